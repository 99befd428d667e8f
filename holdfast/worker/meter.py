"""Count rows and bytes without touching them.

Written rows come with the committables.  Read rows, and written ones that a sink cannot know, come
from Spark's own task metrics, looked up by job group: they cost nothing and are there while a job
still runs.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows and bytes that the Spark jobs of one group have moved so far."""

    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0


def measure(spark: "SparkSession", group: str) -> Measured:
    """Return what the jobs of a group have read and written, finished or not."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()
    tracker = context.statusTracker()
    rows_in = bytes_in = rows_out = bytes_out = 0
    stages: set[int] = set()
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        stages.update(info.stageIds if info else ())
    for stage_id in stages:
        stage = store.lastStageAttempt(stage_id)
        rows_in += stage.inputRecords()
        bytes_in += stage.inputBytes()
        rows_out += stage.outputRecords()
        bytes_out += stage.outputBytes()
    return Measured(rows_in, bytes_in, rows_out, bytes_out)


def first_job_s(spark: "SparkSession") -> float | None:
    """Return when this session ran its first Spark job, in seconds since 1970."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    times = [jobs.apply(i).submissionTime() for i in range(jobs.size())]
    return min((t.get().getTime() / 1000 for t in times if t.isDefined()), default=None)


@dataclass
class Totals:
    """A job's counters.  Written by task threads, read by whoever shows progress."""

    read: int = 0
    written: Counter[str] = field(default_factory=Counter)
    written_bytes: Counter[str] = field(default_factory=Counter)
    committed: int = 0
    groups: dict[str, None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add_read(self, rows: int) -> None:
        """Count what a finished slice has read."""
        with self.lock:
            self.read += rows

    def add_written(self, table: str, rows: int, size: int) -> None:
        """Count what a finished slice has written to one table."""
        with self.lock:
            self.written[table] += rows
            self.written_bytes[table] += size

    def add_committed(self, rows: int) -> None:
        """Count rows that a commit has made visible."""
        with self.lock:
            self.committed += rows

    def watch(self, group: str) -> None:
        """Note a job group whose Spark jobs are running now."""
        with self.lock:
            self.groups[group] = None

    def unwatch(self, group: str) -> None:
        """Forget a group; what it moved is in the totals, or was lost with its attempt."""
        with self.lock:
            self.groups.pop(group, None)

    def running(self) -> tuple[str, ...]:
        """Return the groups at work now."""
        with self.lock:
            return tuple(self.groups)
