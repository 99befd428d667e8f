"""The messages between the leader and its workers.

Every message carries the leader's term; a worker refuses lower ones than it has seen, and a leader
drops answers to former terms.  Every message may be lost, repeated, late or out of order: each is
safe to repeat, and what matters is said again until it is confirmed.
"""

from dataclasses import dataclass, field

import msgspec

from holdfast.core.gather import Counts, OpenedTable, TaskAck
from holdfast.model.tree import Plain


class TaskKey(msgspec.Struct, frozen=True, order=True):
    """Which task of which incarnation of which job.  Its attempt is named separately.

    Heartbeats name thousands: a struct is read, compared and hashed faster than a dataclass.
    """

    job: str
    incarnation: str
    pipeline: int
    task: str


class TaskReport(msgspec.Struct, frozen=True):
    """One attempt on a worker: it runs, or it failed and the leader has not yet received it.

    `progress` grows whenever the task makes progress, rows or not; None from a worker that cannot
    say.  `fatal`: the failure is one that trying again does not mend.  `read`, `written` and
    `rejected` are rows so far, and `stack` is where the failure came from: for people to see.
    """

    key: TaskKey
    attempt: int
    failure: str | None = None
    progress: int | None = None
    fatal: bool = False
    read: int = 0
    written: int = 0
    stack: str = ""
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """What a worker uses of its machine: processor cores and bytes, and how many there are."""

    cpu: float
    cores: int
    memory: int
    memory_total: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Everything a worker is and holds; sent on connecting and with every heartbeat.

    `sequence` grows with each, so that a late one is not taken for the present.  `load` is for
    people to see; None from a worker that cannot say.  `leaving`: it was asked to end, and waits
    for its tasks to move.  `trouble` says what is wrong with its Spark, and `silent_s`
    for how long that has not answered.  `looks`: it knows the order LookAtJob.
    """

    worker: str
    incarnation: str
    sequence: int
    term: int
    slots: int
    tags: tuple[tuple[str, str], ...]
    held: tuple[TaskReport, ...]
    load: MachineLoad | None = None
    leaving: bool = False
    silent_s: float = 0.0
    trouble: str = ""
    looks: bool = False


@dataclass(frozen=True, slots=True)
class DeployTask:
    """Run this attempt, unless it runs already.

    Positions are None for a fresh start, else those of checkpoint `restored` (0: of a savepoint of
    an earlier incarnation), and `counts` the counters that go with them.  `opened` are the tables
    that had their save modes by then, in all tasks; None if the state cannot say: then all have.
    """

    term: int
    key: TaskKey
    attempt: int
    spec: str
    positions: tuple[tuple[str, Plain], ...] | None
    restored: int = 0
    counts: Counts = field(default_factory=Counts)
    opened: tuple[OpenedTable, ...] | None = ()


@dataclass(frozen=True, slots=True)
class StopTask:
    """Give up this attempt, and forget a failure that was reported.

    `gone`: the job's records are no more, so what the attempt has staged and no leader committed
    will never be wanted; its worker removes it.
    """

    term: int
    key: TaskKey
    attempt: int
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Barrier:
    """End the present epoch under this number; everything up to `through` is visible.

    What was staged up to `complete` is held by a complete checkpoint, and need not be said again.
    """

    term: int
    key: TaskKey
    attempt: int
    number: int
    through: int
    complete: int


@dataclass(frozen=True, slots=True)
class BarrierAck:
    """A task's answer to a barrier."""

    term: int
    key: TaskKey
    acked: TaskAck


@dataclass(frozen=True, slots=True)
class SourceEndReport:
    """A task has read a source to its end; said again until it is confirmed."""

    term: int
    key: TaskKey
    attempt: int
    source: str
    worker: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class SourceEndAck:
    """That report is durable."""

    term: int
    key: TaskKey
    attempt: int
    source: str


@dataclass(frozen=True, slots=True)
class HeartbeatAck:
    """The leader's answer to a heartbeat: it leads in this term and has received it.

    `leave`: a worker that wants to end may do so now.
    """

    term: int
    leave: bool = False


Told = tuple[str, int, int, str]
"""A mistake in a job file: file, line, column, sentence."""


@dataclass(frozen=True, slots=True)
class LookAtJob:
    """Open what a job names, change nothing, and say what is wrong, within so many seconds.

    A person waits for the answer.  It is never said again: if it is lost, the person asks again.
    """

    term: int
    request: str
    spec: str
    within_s: float


@dataclass(frozen=True, slots=True)
class Looked:
    """The answer to LookAtJob.  `failure`: why it is not whole; what was found by then is in it."""

    term: int
    worker: str
    incarnation: str
    request: str
    mistakes: tuple[Told, ...] = ()
    warnings: tuple[Told, ...] = ()
    failure: str = ""


ToWorker = DeployTask | StopTask | Barrier | SourceEndAck | HeartbeatAck | LookAtJob
ToLeader = Heartbeat | BarrierAck | SourceEndReport | Looked
