"""Count rows and bytes without touching them.

Written rows come with the committables.  Read rows, and written ones that a sink cannot know, come
from Spark's own task metrics, looked up by job group: they cost nothing and are there while a job
still runs.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.connect.arrow_rows import ArrowCounts
from holdfast.connect.inside import figures
from holdfast.core.gather import Counts, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTLE_MS_MAX = 5_000

log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows and bytes that the Spark jobs of one group have moved so far."""

    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    pulse: int = 0
    """A number that changes as long as the jobs get on."""


def settle(spark: "SparkSession") -> None:
    """Wait until Spark's figures have caught up with its jobs.

    A thread of Spark's keeps them, a little behind: right after a job's end they may be those of
    its last heartbeat.
    """
    if not figures(spark.sparkContext).settled(SETTLE_MS_MAX):
        log.warning("Spark's figures lag behind; rows may be missing from the counts.")


def measure(spark: "SparkSession", group: str) -> Measured:
    """Return what the jobs of a group have read and written, finished or not."""
    said: str = figures(spark.sparkContext).of(group)
    rows_in, bytes_in, rows_out, bytes_out, shuffled, tasks, stages = map(int, said.split())
    pulse = stages + tasks + rows_in + rows_out + shuffled
    return Measured(rows_in, bytes_in, rows_out, bytes_out, pulse)


def jobs_s(spark: "SparkSession", group: str) -> list[tuple[float, float]]:
    """Return from when to when the jobs of a group, which have ended, were with Spark."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()
    found = []
    for number in context.statusTracker().getJobIdsForGroup(group):
        job = store.job(number)
        begun, ended = job.submissionTime(), job.completionTime()
        if begun.isDefined() and ended.isDefined():
            found.append((begun.get().getTime() / 1000, ended.get().getTime() / 1000))
    return sorted(found)


def first_job_s(spark: "SparkSession") -> float | None:
    """Return when this session ran its first Spark job, in seconds since 1970."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    times = [jobs.apply(i).submissionTime() for i in range(jobs.size())]
    return min((t.get().getTime() / 1000 for t in times if t.isDefined()), default=None)


def _with(measured: Measured, moved: Sequence[ArrowCounts]) -> Measured:
    """Return Spark's figures with the rows that only its Python workers see."""
    return replace(
        measured,
        rows_in=max(measured.rows_in, sum(m.read for m in moved)),
        rows_out=max(measured.rows_out, sum(m.written for m in moved)),
    )


class RowCounts:
    """A task's counters since the start of its job's life, and what is moving right now.

    Its thread counts whole slices; others look at any time.
    """

    def __init__(self, counts: Counts | None = None) -> None:
        counts = counts or Counts()
        self._lock = threading.Lock()
        self._read = counts.read
        self._rejected = counts.rejected
        self._written = {(w.sink, w.table): (w.rows, w.bytes) for w in counts.written}
        self._latest = dict(counts.latest)
        self._moving: dict[str, tuple[Measured, Sequence[ArrowCounts]]] = {}

    def add_read(self, rows: int, rejected: int = 0) -> None:
        """Count what a finished slice has read, and how much of it was left out."""
        with self._lock:
            self._read += rows
            self._rejected += rejected

    def add_written(self, sink: str, table: str, rows: int, size: int) -> None:
        """Count what a finished slice has written to one table of one sink."""
        with self._lock:
            before = self._written.get((sink, table), (0, 0))
            self._written[sink, table] = (before[0] + rows, before[1] + size)

    def reached(self, source: str, latest_ms: int) -> None:
        """Note the latest event time that a finished slice of a source has read."""
        with self._lock:
            self._latest[source] = max(latest_ms, self._latest.get(source, latest_ms))

    def watch(self, group: str, moved: Sequence[ArrowCounts] = ()) -> None:
        """Note a job group whose Spark jobs run now, and what counts the rows they do not see."""
        with self._lock:
            self._moving[group] = Measured(), moved

    def unwatch(self, group: str) -> None:
        """Forget a group; what it moved is about to be counted, or is lost with its attempt."""
        with self._lock:
            del self._moving[group]

    def watched(self) -> tuple[str, ...]:
        """Return the groups at work now, the oldest first."""
        with self._lock:
            return tuple(self._moving)

    def moves(self, group: str, measured: Measured) -> None:
        """Note what a group has moved so far, unless it has ended meanwhile."""
        with self._lock:
            if group in self._moving:
                self._moving[group] = measured, self._moving[group][1]

    def moving(self) -> Measured:
        """Return what the groups at work have moved when somebody last looked."""
        with self._lock:
            found = [_with(measured, moved) for measured, moved in self._moving.values()]
        return Measured(
            sum(m.rows_in for m in found), sum(m.bytes_in for m in found),
            sum(m.rows_out for m in found), sum(m.bytes_out for m in found),
        )  # fmt: skip

    def counts(self) -> Counts:
        """Return the counters, as a checkpoint keeps them."""
        with self._lock:
            written = tuple(
                Written(sink, table, rows, size)
                for (sink, table), (rows, size) in sorted(self._written.items())
            )
            latest = tuple(sorted(self._latest.items()))
            return Counts(self._read, written, latest, self._rejected)
