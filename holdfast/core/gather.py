"""Gather the acknowledgements of one pending checkpoint, in memory.

Pure like everything here, but not durable: a leader that dies loses them, and its successor starts
the next checkpoint instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.core.checkpoint import CheckpointKind, Pending, Totals
from holdfast.core.task import TaskRecord, WorkerId
from holdfast.model.tree import Plain


@dataclass(frozen=True, slots=True)
class StagedCommittable:
    """One committable and the number of the checkpoint under which its rows were staged."""

    created: int
    sink: str
    content: Plain


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What a task has written to one table of one sink."""

    sink: str
    table: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A table whose save modes are in a checkpoint: no later one has them again.

    `target` is the sink's own name for the place its rows go to, and `incarnation` is the one
    that opened it.
    """

    sink: str
    table: str
    target: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class Counts:
    """A task's counters: they go with its checkpoints, so that no restart counts a row twice.

    `rejected` rows were read and left out, because they did not fit their table.  `latest` is
    the latest event time that each source has read, in milliseconds since 1970.
    """

    read: int = 0
    written: tuple[WrittenRows, ...] = ()
    latest: tuple[tuple[str, int], ...] = ()
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class TaskAck:
    """A task's answer to a barrier: where it reads next, and what it has staged.

    What a complete checkpoint holds is not said again: however many of them wait for their
    commits, an answer grows with what was staged since the last one.

    `ended` says for every source of the task whether it was at its end.  `watermark` is None
    while nothing is known of it.  `idle`: the task holds no other watermark back.  `counts`
    are the task's counters since the start of the incarnation.  `opened` are all tables that the
    task knows to be opened, itself or before it; None if it started from a state that cannot say.
    """

    number: int
    task: str
    attempt: int
    place: WorkerId
    positions: tuple[tuple[str, Plain], ...]
    staged: tuple[StagedCommittable, ...]
    ended: bool
    watermark: int | None = None
    idle: bool = False
    counts: Counts = Counts()
    opened: tuple[OpenedTable, ...] | None = ()


@dataclass(frozen=True, slots=True)
class CheckpointRound:
    """The acknowledgements so far, and the tasks still missing."""

    number: int
    kind: CheckpointKind
    waiting: tuple[str, ...]
    acks: tuple[TaskAck, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every task has answered."""
        return not self.waiting


def begin(pending: Pending, tasks: tuple[TaskRecord, ...]) -> CheckpointRound:
    """Start gathering: every task must answer."""
    return CheckpointRound(pending.number, pending.kind, tuple(t.id for t in tasks))


def take(
    old: CheckpointRound, ack: TaskAck, tasks: tuple[TaskRecord, ...]
) -> CheckpointRound | str:
    """Return the gathering with one more answer, or the reason why the checkpoint must fail.

    Answers to other checkpoints, of former attempts or given before do not count.  A final
    checkpoint fails unless every answer proves that its sources are at their end.
    """
    current = any(t.id == ack.task and t.runs_as(ack.attempt, ack.place) for t in tasks)
    if ack.number != old.number or ack.task not in old.waiting or not current:
        return old
    if old.kind is CheckpointKind.FINAL and not ack.ended:
        return f"task {ack.task} is not at the end of its input"
    waiting = tuple(t for t in old.waiting if t != ack.task)
    return replace(old, waiting=waiting, acks=(*old.acks, ack))


def opened(acks: tuple[TaskAck, ...]) -> tuple[OpenedTable, ...] | None:
    """Return every table that is opened; None if a task started from a state that cannot say."""
    known = [a.opened for a in acks]
    if None in known:
        return None
    return tuple(dict.fromkeys(o for some in known for o in some or ()))


def totals(acks: tuple[TaskAck, ...]) -> Totals:
    """Return the sums over all tasks."""
    written = [w for a in acks for w in a.counts.written]
    return Totals(
        sum(a.counts.read for a in acks),
        sum(w.rows for w in written),
        sum(w.bytes for w in written),
        sum(a.counts.rejected for a in acks),
    )


def watermark(acks: tuple[TaskAck, ...]) -> int | None:
    """Return the watermark of a checkpoint; None if it is unknown."""
    return least((a.watermark, a.idle) for a in acks)


def least(marks: Iterable[tuple[int | None, bool]]) -> int | None:
    """Return the least of the marks whose owners are not idle; None if one of them has none.

    Where all are idle, none is left to hold the greatest of them back.
    """
    given = list(marks)
    active = [mark for mark, idle in given if not idle]
    known = [mark for mark in active if mark is not None]
    if active:
        return min(known) if len(known) == len(active) else None
    return max((mark for mark, _ in given if mark is not None), default=None)
