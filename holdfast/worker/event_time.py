"""How far the event times of one task's sources have come: what its watermark is made of.

The latest event time of a slice is found in the same pass that writes the rows: Spark observes it
on the way.  A source that brings no rows for some time, or is at its end, is idle and holds nobody
back.  The latest times go with the task's counters into each checkpoint, so a new attempt does
not begin at nothing.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from holdfast.connect.rows import Rows, Tables
from holdfast.core.gather import least
from holdfast.errors import UserError
from holdfast.model.job import EventTime, Stage
from holdfast.model.types import quote
from holdfast.worker.row_counts import RowCounts

if TYPE_CHECKING:
    from pyspark.sql import Observation

UNREAD_MAX = 20
"""Spark keeps what it was to observe until it has: a table that nobody reads is given up."""

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
        # A new attempt does not know since when there are no rows: it waits anew.
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
    """Whether Spark has said what it observed: to ask for it would else wait for ever."""
    known: Any = observation._jo
    return known is not None and bool(known.future().isCompleted())
