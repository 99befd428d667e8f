"""What happened to a pipeline's checkpoints and to a job's states, in order, with dates.

It is read off the records as they change.  The records themselves keep the last three complete
checkpoints and the last ten failures; everything older is this leader's memory.
"""

from collections import deque
from dataclasses import dataclass, field

import msgspec

from holdfast.core.checkpoint import Completed, Pending, Totals
from holdfast.core.gather import Written
from holdfast.core.pipeline import Pipeline

CHECKPOINTS_KEPT = 128
EVENTS_KEPT = 256


class CheckpointView(msgspec.Struct):
    """One checkpoint, complete or not.  None: it was before this leader's time.

    `rows` and `bytes` are what it added to the tables; `size` is that of its blob.
    """

    number: int
    kind: str
    outcome: str
    started_s: float | None
    ended_s: float
    duration_s: float | None
    size: int | None
    rows: int | None
    bytes: int | None
    reason: str
    term: int


class Happened(msgspec.Struct):
    """A change of state.  `what` is job, pipeline, task, checkpoint or leader."""

    at_s: float
    what: str
    status: str
    pipeline: int = 0
    task: str = ""
    attempt: int = 0
    worker: str = ""
    term: int = 0
    reason: str = ""


@dataclass
class Under:
    """A checkpoint on its way, as this leader saw it begin."""

    pending: Pending
    at_s: float
    clock_s: float


@dataclass
class Checks:
    """The checkpoints of one pipeline, as far as this leader knows."""

    done: deque[CheckpointView] = field(default_factory=lambda: deque(maxlen=CHECKPOINTS_KEPT))
    under: Under | None = None
    last: Completed | None = None
    written: tuple[Written, ...] = ()
    triggered: int = 0
    completed: int = 0
    failed: int = 0
    restored: int = 0
    committed: Totals = field(default_factory=Totals)
    seconds: float = 0.0

    def begin(self, pipeline: Pipeline, term: int) -> None:
        """Start with what the record knows."""
        before: Completed | None = None
        for one in pipeline.checkpoints.kept:
            self._complete(one, before, None, None, term)
            before = one
        self.last = pipeline.checkpoints.latest
        self.completed = 0

    def take(
        self, pipeline: Pipeline, at_s: float, clock_s: float, size: int | None, term: int
    ) -> None:
        """Compare with how the record stood before, and note what became of a checkpoint."""
        checkpoints = pipeline.checkpoints
        pending, latest = checkpoints.pending, checkpoints.latest
        under = self.under
        if under and (pending is None or pending.number != under.pending.number):
            if latest and latest.number == under.pending.number:
                self._complete(latest, self.last, under, size, term, clock_s)
            else:
                self._fail(under, at_s, clock_s, checkpoints.last_failure)
            self.under = None
        newer = latest is not None and (self.last is None or latest.number > self.last.number)
        if latest and newer and (not self.done or self.done[-1].number != latest.number):
            self._complete(latest, self.last, None, size, term)
        self.last = latest
        if pending and (self.under is None or self.under.pending.number != pending.number):
            self.under = Under(pending, at_s, clock_s)
            self.triggered += 1
        through = pipeline.commits.through
        shown = next((c for c in checkpoints.kept if c.number == through), None)
        if shown:
            self.committed = shown.totals

    def _complete(
        self, one: Completed, before: Completed | None, under: Under | None, size: int | None,
        term: int, clock_s: float = 0.0,
    ) -> None:  # fmt: skip
        known = before is not None or one.previous == 0
        rows = one.totals.written - (before.totals.written if before else 0) if known else None
        size_out = one.totals.bytes - (before.totals.bytes if before else 0) if known else None
        took_s = round(clock_s - under.clock_s, 4) if under else None
        self.completed += 1
        self.seconds += took_s or 0.0
        view = CheckpointView(
            one.number, one.kind.value, "COMPLETED", under.at_s if under else None, one.at_s,
            took_s, size, rows, size_out, "", under.pending.term if under else term,
        )  # fmt: skip
        self.done.append(view)

    def _fail(self, under: Under, at_s: float, clock_s: float, reason: str) -> None:
        self.failed += 1
        pending = under.pending
        view = CheckpointView(
            pending.number, pending.kind.value, "FAILED", under.at_s, at_s,
            round(clock_s - under.clock_s, 4), None, None, None, reason or "it was given up",
            pending.term,
        )  # fmt: skip
        self.done.append(view)
