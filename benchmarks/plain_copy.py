"""The ten lines a user would write instead of a job file.  Run as a script:
FORMAT IN OUT MARKS SCHEMA, and perhaps another format for OUT than Parquet.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

form, source, target, marks, schema = sys.argv[1:6]
written = sys.argv[6] if len(sys.argv) > 6 else "parquet"
spark = SparkSession.builder.master("local[*]").getOrCreate()
ready = time.time()
reader = spark.read.schema(schema) if form == "csv" else spark.read
reader.format(form).load(source).write.mode("overwrite").format(written).save(target)
ended = time.time()
jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
times = [jobs.apply(i).submissionTime().get().getTime() / 1000 for i in range(jobs.size())]
Path(marks).write_text(json.dumps({"ready": ready, "ended": ended, "first_job": min(times)}))
spark.stop()
