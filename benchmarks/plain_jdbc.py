"""What a user would write instead of a job file.  Run as a script: IN URL TABLE JAR MARKS."""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

source, url, table, jar, marks = sys.argv[1:6]
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.driver.extraClassPath", jar)
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
ready = time.time()
options = {"user": "postgres", "driver": "org.postgresql.Driver"}
spark.read.parquet(source).write.jdbc(url, table, mode="append", properties=options)
ended = time.time()
Path(marks).write_text(json.dumps({"ready": ready, "ended": ended}))
spark.stop()
