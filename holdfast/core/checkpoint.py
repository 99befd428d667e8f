"""Checkpoints of one pipeline: numbered without reuse, one at a time, complete when stored.

The number is reserved durably before the first barrier leaves, so it is never used twice, not by
an aborted checkpoint and not by another leader.  Acknowledgements are gathered in memory
(`gather.py`): losing them costs one checkpoint.  What makes a checkpoint complete is the record
that points at its blob.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from holdfast.core.machine import TransitionTable


class CheckpointKind(StrEnum):
    """Why a checkpoint is taken."""

    PERIODIC = "periodic"
    SAVEPOINT = "savepoint"
    FINAL = "final"


class CheckpointStatus(StrEnum):
    """Whether a checkpoint is on its way."""

    IDLE = "idle"
    PENDING = "pending"


IDLE, PENDING = CheckpointStatus


@dataclass(frozen=True, slots=True)
class CheckpointDue:
    """It is time for a checkpoint; `term` is the leader's that gathers for it."""

    label: ClassVar[str] = "CheckpointDue"

    kind: CheckpointKind
    term: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows read, rows and bytes written since the start of this incarnation.

    `rejected` rows were read and left out, because they did not fit their table.
    """

    read: int = 0
    written: int = 0
    bytes: int = 0
    rejected: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.read + other.read,
            self.written + other.written,
            self.bytes + other.bytes,
            self.rejected + other.rejected,
        )


@dataclass(frozen=True, slots=True)
class CheckpointStored:
    """Every task has acknowledged and the blob is whole.  `size` is its size, for people.

    `clock_s` is the moment in the cluster's own time, which ages are measured by.
    """

    label: ClassVar[str] = "CheckpointStored"

    number: int
    blob: str
    at_s: float = 0.0
    totals: Totals = Totals()
    size: int = 0
    clock_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """A checkpoint will not complete: a timeout, a refusal, a lost task.

    `silent` are the attempts (task, number) that were asked, did not answer in time and stood still
    meanwhile; None where it is not known which.
    """

    label: ClassVar[str] = "CheckpointFailed"

    number: int
    reason: str
    silent: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class CheckpointLost:
    """A complete checkpoint turns out to be missing or damaged.

    `untouched`: the sender knows that no leader has begun to commit it.
    """

    label: ClassVar[str] = "CheckpointLost"

    number: int
    reason: str
    untouched: bool = False


@dataclass(frozen=True, slots=True)
class BlobDropped:
    """A checkpoint that is no longer needed was removed."""

    label: ClassVar[str] = "BlobDropped"

    number: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """A new leader holds the record; what a former one gathered is lost."""

    label: ClassVar[str] = "LeaderChanged"

    term: int


CHECKPOINT = TransitionTable(
    "checkpoint",
    [
        # from   on                to
        (IDLE, CheckpointDue, PENDING),
        (IDLE, CheckpointStored, IDLE),  # of a checkpoint that was aborted meanwhile
        (IDLE, CheckpointFailed, IDLE),  # late
        (IDLE, LeaderChanged, IDLE),
        (IDLE, CheckpointLost, IDLE),  # the one before it is the latest again
        (IDLE, BlobDropped, IDLE),
        (PENDING, CheckpointStored, IDLE),
        (PENDING, CheckpointStored, PENDING),  # of a former number
        (PENDING, CheckpointFailed, IDLE),
        (PENDING, CheckpointFailed, PENDING),  # of a former number
        (PENDING, LeaderChanged, IDLE),
        (PENDING, BlobDropped, PENDING),
    ],
)


@dataclass(frozen=True, slots=True)
class Completed:
    """A complete checkpoint: its blob, and the complete one before it (0: none).

    `at_s` is the date it became complete, for people to read; nothing is decided by it.
    `clock_s` is the same moment in the cluster's own time (0: not known).
    """

    number: int
    kind: CheckpointKind
    blob: str
    previous: int
    at_s: float = 0.0
    totals: Totals = Totals()
    clock_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """A checkpoint that barriers are out for, under this term."""

    number: int
    kind: CheckpointKind
    term: int


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint that was asked for, and its checkpoint once that is complete."""

    request: str
    number: int | None = None
    failures: int = 0


@dataclass(frozen=True, slots=True)
class UnansweredCheckpoint:
    """An attempt that stood still and has not answered the last checkpoints, and how many."""

    task: str
    attempt: int
    times: int


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a pipeline.  `kept` are complete ones whose blobs still exist.

    `lost` are the numbers of those that were complete, turned out to be damaged before anything
    of them was committed, and are never used.
    """

    next: int = 1
    pending: Pending | None = None
    latest: Completed | None = None
    kept: tuple[Completed, ...] = ()
    failed_in_a_row: int = 0
    last_failure: str = ""
    silent: tuple[UnansweredCheckpoint, ...] = ()
    lost: tuple[int, ...] = ()

    @property
    def status(self) -> CheckpointStatus:
        """Whether one is on its way."""
        return PENDING if self.pending else IDLE

    @property
    def complete(self) -> int:
        """The number of the latest complete one; 0: none."""
        return self.latest.number if self.latest else 0

    def before(self, number: int) -> Completed | None:
        """Return the complete checkpoint before this one, if its blob still exists."""
        this = next((c for c in self.kept if c.number == number), None)
        return next((c for c in self.kept if this and c.number == this.previous), None)


def step(old: Checkpoints, event: object) -> Checkpoints:
    """Return the checkpoints after `event`."""
    new = old
    match event:
        case CheckpointDue(kind, term) if not old.pending:
            new = replace(old, next=old.next + 1, pending=Pending(old.next, kind, term))
        case CheckpointStored(number) if old.pending and old.pending.number == number:
            new = _completed(old, old.pending, event)
        case CheckpointFailed(number, reason, silent) if (
            old.pending and old.pending.number == number
        ):
            new = _failed(old, reason, silent)
        case CheckpointLost(number):
            new = _without(old, number)
        case BlobDropped(number):
            new = replace(old, kept=tuple(c for c in old.kept if c.number != number))
        case LeaderChanged(term) if old.pending and old.pending.term != term:
            new = _failed(old, "the leader that gathered for it is gone")
    CHECKPOINT.check(old.status, event, new.status)
    return new


def _completed(old: Checkpoints, pending: Pending, stored: CheckpointStored) -> Checkpoints:
    previous = old.latest.number if old.latest else 0
    done = Completed(
        pending.number, pending.kind, stored.blob, previous, stored.at_s, stored.totals,
        stored.clock_s,
    )  # fmt: skip
    return replace(
        old,
        pending=None,
        latest=done,
        kept=(*old.kept, done),
        failed_in_a_row=0,
        last_failure="",
        silent=(),
    )


def _failed(
    old: Checkpoints, reason: str, silent: tuple[tuple[str, int], ...] | None = None
) -> Checkpoints:
    times = {(s.task, s.attempt): s.times for s in old.silent}
    again = old.silent
    if silent is not None:
        again = tuple(UnansweredCheckpoint(*who, times.get(who, 0) + 1) for who in silent)
    return replace(
        old,
        pending=None,
        failed_in_a_row=old.failed_in_a_row + 1,
        last_failure=reason,
        silent=again,
    )


def _without(old: Checkpoints, number: int) -> Checkpoints:
    """Forget a checkpoint and all that build on it; the one before it is the latest again."""
    lost = tuple(c.number for c in old.kept if c.number >= number)
    return replace(
        old,
        latest=old.before(number),
        kept=tuple(c for c in old.kept if c.number < number),
        lost=(*old.lost, *lost),
    )
