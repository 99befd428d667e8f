"""The Structured Streaming script that a user would write instead of a streaming job file.

Run as a script: SINK IN OUT STATE SCHEMA SAMPLE.  It runs in the very session that Holdfast
gives its own jobs (same JVM, same settings), so that what differs is the engine alone.  SINK is
`files` (Spark's own file sink) or `Delta`: the jar of Delta for Spark is not on PyPI, so that one
writes each micro-batch with the `deltalake` library, under its number, which makes it exactly-once.

How much a micro-batch may take has to be chosen by hand: it chooses as many bytes as plain Spark
copies in a second, measured first on the files in SAMPLE.  STATE gets the
checkpoints and, once the script is told to end, the progress of every micro-batch.
"""

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from holdfast.spark import session

sink, source, out, state, schema, sample = sys.argv[1:7]
told_to_end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: told_to_end.set())
Path(state).mkdir(parents=True)
starting = session.begin(
    {"spark.sql.streaming.numRecentProgressUpdates": "100000"}, None, Path(state) / "spark.log"
)
spark = starting.session()


def copied_in_s(files: list[Path], folder: str) -> float:
    """Return how long plain Spark takes to copy files."""
    began_s = time.monotonic()
    spark.read.schema(schema).csv([*map(str, files)]).write.parquet(f"{state}/{folder}")
    return time.monotonic() - began_s


def append(batch: Any, number: int) -> None:
    """Write one micro-batch to the Delta table, unless it was written before."""
    if DeltaTable.is_deltatable(out):
        last = DeltaTable(out).transaction_version("micro-batches")
        if last is not None and last >= number:
            return
    marked = CommitProperties(app_transactions=[Transaction("micro-batches", number)])
    write_deltalake(out, batch.toArrow(), mode="append", commit_properties=marked)


files = sorted(Path(sample).iterdir())
copied_in_s(files, "cold")
half = files[::2]
size = sum(file.stat().st_size for file in half)
a_second = max(1, round(size / copied_in_s(half, "warm")))
stream = spark.readStream.schema(schema).option("maxBytesPerTrigger", a_second).csv(source)
writer = stream.writeStream.trigger(processingTime="1 second")
writer = writer.option("checkpointLocation", f"{state}/checkpoints")
if sink == "Delta":
    query = writer.foreachBatch(append).start()
else:
    query = writer.format("parquet").start(out)
while not told_to_end.wait(1.0):
    if not query.isActive:
        raise SystemExit(str(query.exception()))
batches = [json.loads(p.json) for p in query.recentProgress]
Path(state, "progress.json").write_text(json.dumps(batches))
session.stop(starting)
