"""The shell around Spark: start the JVM, run tasks slice by slice, count rows.

Read `task.py` first.  The only package besides connectors that imports `pyspark`.
"""
