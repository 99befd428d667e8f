"""Count rows and bytes without touching them.

Written rows come with the committables.  Read rows, and written ones that a sink cannot know, come
from Spark's own task metrics, looked up by job group: they cost nothing and are there while a job
still runs.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.connect.arrow_rows import ArrowCounts
from holdfast.connect.inside import figures
from holdfast.connect.rows import Rows, Tables
from holdfast.core.gather import Counts, WrittenRows, least
from holdfast.errors import UserError
from holdfast.model.job import EventTime, Stage
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession


log = logging.getLogger("holdfast")


SETTLE_MS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows and bytes that the Spark jobs of one group have moved so far."""

    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    pulse: int = 0
    """A number that changes as long as the jobs make progress."""


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
    """A task's counters since the start of the incarnation, and what is moving right now.

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
                WrittenRows(sink, table, rows, size)
                for (sink, table), (rows, size) in sorted(self._written.items())
            )
            latest = tuple(sorted(self._latest.items()))
            return Counts(self._read, written, latest, self._rejected)


UNREAD_MAX = 20
"""Spark keeps what it was to observe until it has: a table that no sink reads is given up."""

KINDS = {
    # Spark's type: milliseconds since 1970 of the latest
    "timestamp": "unix_millis(max({0}))",
    "timestamp_ntz": "unix_millis(CAST(max({0}) AS TIMESTAMP))",
    "date": "unix_millis(CAST(max({0}) AS TIMESTAMP))",
    "bigint": "max({0})",
}


Watched = list[tuple[str, str, "Observation"]]
"""What Spark observes of one slice: of which source and table."""


class EventTimes:
    """The event times of one attempt.  Only one of its threads at a time uses this."""

    def __init__(
        self, stages: Iterable[Stage], tally: RowCounts, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wanted = {s.id: s.event_time for s in stages if s.event_time}
        self._tally = tally
        self._clock = clock
        # A new attempt does not know since when there are no rows: it waits again.
        self._rows_s = dict.fromkeys(self._wanted, clock())
        self._without: set[str] = set()
        self._unread: Counter[tuple[str, str]] = Counter()

    def watch(self, stage: Stage, tables: Tables, watched: Watched) -> Tables:
        """Have Spark observe the event times of what a source reads; note in `watched` what."""
        wanted = stage.event_time
        if wanted is None:
            return tables
        found = {str(rows.table.path): _column(rows, wanted.column) for rows in tables}
        if any(found.values()):
            self._without.discard(stage.id)
        elif wanted.own and found:
            raise _no_column(stage, wanted, tables)
        else:
            self._without.add(stage.id)
        return Tables(
            self._observed(stage, rows, found[str(rows.table.path)], watched) for rows in tables
        )

    def seen(self, watched: Watched) -> None:
        """Take in what was observed, once a slice is staged."""
        for source, table, observation in watched:
            if not _is_there(observation):
                self._unread[source, table] += 1  # no sink has written it
                continue
            del self._unread[source, table]
            latest = observation.get["latest"]
            if latest is not None:
                self._tally.reached(source, int(latest))
                self._rows_s[source] = self._clock()

    def mark(self, at_end: Collection[str]) -> tuple[int | None, bool]:
        """Return the task's watermark, and whether it is idle: all its sources are."""
        latest = dict(self._tally.counts().latest)
        marks = []
        for source, wanted in self._wanted.items():
            quiet = self._clock() - self._rows_s[source] > wanted.idle_s
            idle = quiet or source in at_end or source in self._without
            known = latest.get(source)
            marks.append((None if known is None else known - wanted.delay_ms, idle))
        return least(marks), all(idle for _, idle in marks)

    def _observed(self, stage: Stage, rows: Rows, column: str | None, watched: Watched) -> Rows:
        from pyspark.sql import Observation
        from pyspark.sql.functions import expr

        path = str(rows.table.path)
        if column is None or self._unread[stage.id, path] >= UNREAD_MAX:
            return rows
        kind = rows.frame.schema[column].dataType.simpleString()
        if kind not in KINDS:
            raise UserError(
                f"{stage.id} ({stage.place}): watermark.column {column} of {rows.table.path} is of"
                f" type {kind}. It must be a timestamp, a date, or a bigint with milliseconds"
                " since 1970.",
                code="watermark.type",
            )
        observation = Observation()
        watched.append((stage.id, path, observation))
        latest = expr(KINDS[kind].format(quote(column))).alias("latest")
        return Rows(rows.table, rows.frame.observe(observation, latest))


def _column(rows: Rows, wanted: str) -> str | None:
    """Return a column as the rows spell it; None if there is none."""
    names = rows.frame.columns
    return next((n for n in names if n.lower() == wanted.lower()), None)


def _no_column(stage: Stage, wanted: EventTime, tables: Tables) -> UserError:
    listed = "; ".join(f"{rows.table.path}: {', '.join(rows.frame.columns)}" for rows in tables)
    return UserError(
        f"{stage.id} ({stage.place}): no table has a column {wanted.column} (watermark.column)."
        f" Columns are: {listed}.",
        code="watermark.column",
    )


def _is_there(observation: "Observation") -> bool:
    """Whether Spark has said what it observed: to ask for it would else never return."""
    known: Any = observation._jo
    return known is not None and bool(known.future().isCompleted())
