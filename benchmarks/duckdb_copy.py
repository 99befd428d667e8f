"""A copy of csv files by DuckDB, which notes rows that do not fit, to Parquet.

Run as a script: IN OUT MARKS SCHEMA.
"""

import json
import os
import sys
import time
from pathlib import Path

import duckdb

source, target, marks, schema = sys.argv[1:5]
Path(target).mkdir(parents=True, exist_ok=True)
database = duckdb.connect()
database.execute(f"set threads = {len(os.sched_getaffinity(0))}")
ready = time.time()
kinds = {"string": "varchar"}
pairs = (column.strip().split("` ") for column in schema.split(", "))
columns = ", ".join(f"'{name.strip('`')}': '{kinds.get(kind, kind)}'" for name, kind in pairs)
database.execute(
    f"copy (select * from read_csv('{source}/*.csv', columns = {{{columns}}}, auto_detect = false,"
    f" delim = ',', quote = '\"', escape = '\"', header = false, store_rejects = true))"
    f" to '{target}/rows.parquet' (format parquet, compression snappy)"
)
ended = time.time()
Path(marks).write_text(json.dumps({"ready": ready, "ended": ended}))
