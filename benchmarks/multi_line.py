"""A copy of csv files with quoted line breaks by Spark's own reader, to Parquet.

Run as a script: IN OUT MARKS SCHEMA.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

source, target, marks, schema = sys.argv[1:5]
spark = SparkSession.builder.master("local[*]").getOrCreate()
ready = time.time()
reader = spark.read.schema(schema).option("multiLine", True).option("escape", '"')
reader.csv(source).write.mode("overwrite").parquet(target)
ended = time.time()
Path(marks).write_text(json.dumps({"ready": ready, "ended": ended}))
spark.stop()
