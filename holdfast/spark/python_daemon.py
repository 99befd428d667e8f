"""The process from which Spark forks its Python workers: everything is imported before the fork.

Spark runs this module with `spark.python.daemon.module`.  A worker of PySpark's own daemon imports
Arrow again, and collects garbage after every task.  Imported once and frozen, they cost a
worker nothing, and the collection looks only at what the task left behind.  Not pandas,
which takes longer than all the others and which none of our connectors uses.
"""

import gc
from importlib import import_module

from pyspark.daemon import manager

PRELOADED = (
    "numpy",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.conversion",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
)

if __name__ == "__main__":
    for name in PRELOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    manager()
