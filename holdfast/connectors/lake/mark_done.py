"""Mark partitions as done, some time after the last rows came for them.

A listener of commits.  A partition that a commit has added files to is pending; the state holds
the pending ones with the date of their last commit, so that a new leader continues where the last
one was.  One that is done is marked and forgotten; if rows come late, it is pending again, and is
marked again.  Marks may be repeated: a leader that dies after a mark leaves it to the next.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from holdfast.connect.sink import CommitEvent
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.mark_actions import check_report, mark
from holdfast.connectors.lake.mark_options import MarkDoneOptions, MarkMode
from holdfast.connectors.lake.partition_time import partition_time_ms
from holdfast.errors import UserError
from holdfast.model.tree import Plain

VERSION = 1
PENDING_MAX = 10_000
"""So many partitions may wait: their list is part of the job's record."""

log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition that a commit has added files to: of which table, where, and its values.

    `folder` is below the table's place, and has what marks it.
    """

    table: str
    url: str
    folder: str
    values: tuple[tuple[str, str | None], ...]


@dataclass
class MarkDone:
    """Marks the partitions of one sink.  `place` opens a table's folder; `clock` is the date."""

    options: MarkDoneOptions
    place: Callable[[str], Location]
    clock: Callable[[], float] = field(default=time.time)

    def after_commit(
        self, commit: CommitEvent, touched: Iterable[Partition], state: Plain
    ) -> Plain:
        """Take in a commit, mark what is done by now, and return what is pending."""
        check_report(self.options)  # at the first commit, not days later
        now_ms = round(self.clock() * 1000)
        pending = _restored(state)
        pending |= dict.fromkeys(touched, now_ms)
        done = [p for p, last_ms in pending.items() if self._is_done(p, last_ms, now_ms, commit)]
        for partition in done:
            mark(self.options, self.place(partition.url), partition, commit.identifier, now_ms)
            del pending[partition]
        if commit.final and pending:
            log.info(
                "%d partitions were not done when the input ended; they are not marked.",
                len(pending),
            )
        return _stored(pending)

    def _is_done(
        self, partition: Partition, last_ms: int, now_ms: int, commit: CommitEvent
    ) -> bool:
        options = self.options
        if commit.final and options.end_input_to_done:
            return True
        idle_ms = options.idle_time.ms if options.idle_time else None
        watermark = options.mark_mode is MarkMode.WATERMARK
        if idle_ms is None and not watermark:
            return False  # only the end of the input says so
        ends_ms = self._ends_ms(partition)
        if ends_ms is None:
            return False
        if watermark:
            mark_ms = commit.identifier.watermark
            return mark_ms is not None and mark_ms >= ends_ms + (idle_ms or 0)
        # A date of another machine may be ahead of ours: then the time runs from now.
        return now_ms - max(min(last_ms, now_ms), ends_ms) >= (idle_ms or 0)

    def _ends_ms(self, partition: Partition) -> int | None:
        """Return when a partition's own time is over; None if its values do not tell."""
        options = self.options
        if options.time_interval is None:
            return 0
        begins_ms = partition_time_ms(
            dict(partition.values), options.timestamp_pattern, options.timestamp_formatter,
            options.timestamp_zone,
        )  # fmt: skip
        return None if begins_ms is None else begins_ms + options.time_interval.ms


def _restored(state: Plain) -> dict[Partition, int]:
    if state is None:
        return {}
    assert isinstance(state, dict)
    if state.get("version") != VERSION:
        raise UserError(
            f"What is known of partitions to be marked is of version {state.get('version')}; this"
            f" Holdfast knows {VERSION}. Upgrade this master.",
            code="sink.listener_version",
        )
    listed: Any = state["pending"]  # as `_stored` has left it
    return {
        Partition(table, url, folder, tuple((k, v) for k, v in values)): last_ms
        for table, url, folder, values, last_ms in listed
    }


def _stored(pending: dict[Partition, int]) -> Plain:
    if len(pending) > PENDING_MAX:
        raise UserError(
            f"{len(pending)} partitions wait to be marked as done, the most is {PENDING_MAX}."
            " Partition the table by something coarser, or shorten partition.idle-time-to-done.",
            code="sink.partitions_pending",
        )
    if not pending:
        return None
    listed: list[Plain] = [
        [p.table, p.url, p.folder, [list(pair) for pair in p.values], last_ms]
        for p, last_ms in pending.items()
    ]
    return {"version": VERSION, "pending": listed}
