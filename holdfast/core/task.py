"""One task of a pipeline: where it runs, and which try this is.

A try (attempt) belongs to one worker incarnation.  Whatever ends it, the next one has a higher
number, so that nothing a former try still sends can be taken for the present one's.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from holdfast.core.machine import TransitionTable


class TaskStatus(StrEnum):
    """A task's status."""

    WAITING = "waiting"
    PLACED = "placed"
    RUNNING = "running"
    DONE = "done"


WAITING, PLACED, RUNNING, DONE = TaskStatus


@dataclass(frozen=True, slots=True)
class WorkerId:
    """A worker process: its name, and the incarnation that a restart of it changes."""

    worker: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class TaskPlaced:
    """The leader chose a worker for an attempt."""

    label: ClassVar[str] = "TaskPlaced"

    task: str
    attempt: int
    place: WorkerId


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A worker says that it runs an attempt.  `at_s` is the date, `clock_s` the cluster's time."""

    label: ClassVar[str] = "TaskStarted"

    task: str
    attempt: int
    place: WorkerId
    at_s: float = 0.0
    clock_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A worker says that an attempt failed, or the leader found it gone.

    `fatal`: it would fail again however often it is tried.
    """

    label: ClassVar[str] = "TaskFailed"

    task: str
    attempt: int
    place: WorkerId
    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker incarnation is gone for good; `why` is what it last said of itself."""

    label: ClassVar[str] = "WorkerLost"

    incarnation: str
    why: str = ""

    @property
    def reason(self) -> str:
        """Why its tasks are restarted."""
        return f"its worker was lost: {self.why}" if self.why else "its worker was lost"


@dataclass(frozen=True, slots=True)
class TaskMoves:
    """A task is to move to a worker that has room; None: it stays after all."""

    label: ClassVar[str] = "TaskMoves"

    task: str
    attempt: int
    place: WorkerId
    to: WorkerId | None


@dataclass(frozen=True, slots=True)
class TaskHandedOver:
    """What an attempt has done is in a complete checkpoint: the next one continues from there."""

    label: ClassVar[str] = "TaskHandedOver"


@dataclass(frozen=True, slots=True)
class TaskRolledBack:
    """The pipeline goes back to an earlier checkpoint: what this attempt did counts no more."""

    label: ClassVar[str] = "TaskRolledBack"


@dataclass(frozen=True, slots=True)
class TaskReleased:
    """The pipeline needs this task no more."""

    label: ClassVar[str] = "TaskReleased"


TASK = TransitionTable(
    "task",
    [
        # from    on           to
        (WAITING, TaskPlaced, PLACED),
        (WAITING, TaskPlaced, WAITING),  # a placement of a former attempt, decided late
        (WAITING, TaskStarted, WAITING),  # late: that attempt was given up
        (WAITING, TaskFailed, WAITING),  # late: the failure is known
        (WAITING, WorkerLost, WAITING),
        (WAITING, TaskRolledBack, WAITING),
        (WAITING, TaskReleased, DONE),
        (PLACED, TaskPlaced, PLACED),  # two placements raced; the first was saved
        (PLACED, TaskStarted, RUNNING),
        (PLACED, TaskStarted, PLACED),  # of a former attempt
        (PLACED, TaskFailed, WAITING),
        (PLACED, TaskFailed, PLACED),  # of a former attempt
        (PLACED, WorkerLost, WAITING),
        (PLACED, WorkerLost, PLACED),  # another worker
        (PLACED, TaskMoves, PLACED),  # it had not begun: it begins there
        (PLACED, TaskRolledBack, WAITING),
        (PLACED, TaskReleased, DONE),
        (RUNNING, TaskPlaced, RUNNING),  # a placement decided before the one that runs
        (RUNNING, TaskStarted, RUNNING),  # reports are repeated
        (RUNNING, TaskFailed, WAITING),
        (RUNNING, TaskFailed, RUNNING),  # of a former attempt
        (RUNNING, WorkerLost, WAITING),
        (RUNNING, WorkerLost, RUNNING),  # another worker
        (RUNNING, TaskMoves, RUNNING),  # it runs on until a checkpoint holds what it has done
        (RUNNING, TaskHandedOver, PLACED),
        (RUNNING, TaskRolledBack, WAITING),
        (RUNNING, TaskReleased, DONE),
        (DONE, TaskPlaced, DONE),  # decided just before the end
        (DONE, TaskStarted, DONE),  # late reports change nothing
        (DONE, TaskFailed, DONE),
        (DONE, WorkerLost, DONE),
        (DONE, TaskReleased, DONE),
    ],
)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task's durable state.  `place` is None while it waits for one.

    `to` is the worker it moves to after the next checkpoint, and `moves` counts how often it did
    so.
    """

    id: str
    sources: tuple[str, ...]
    slots: int = 1
    status: TaskStatus = WAITING
    attempt: int = 1
    place: WorkerId | None = None
    to: WorkerId | None = None
    moves: int = 0

    @property
    def restarts(self) -> int:
        """How often it was restarted because something was lost or failed."""
        return self.attempt - 1 - self.moves

    @property
    def live(self) -> bool:
        """Whether some worker should be running it."""
        return self.status in (PLACED, RUNNING)

    def runs_as(self, attempt: int, place: WorkerId) -> bool:
        """Say whether a report speaks of the present attempt, on the worker it was placed on."""
        return self.live and self.attempt == attempt and self.place == place


def step(old: TaskRecord, event: object) -> TaskRecord:
    """Return the task after `event`.  A task that loses its attempt waits for the next one."""
    new = old
    match event:
        case TaskPlaced(_, attempt, place) if old.status is WAITING and attempt == old.attempt:
            new = replace(old, status=PLACED, place=place)
        case TaskStarted(_, attempt, place) if old.runs_as(attempt, place):
            new = replace(old, status=RUNNING)
        case TaskFailed(_, attempt, place) if old.runs_as(attempt, place):
            new = _next_attempt(old)
        case WorkerLost(incarnation) if old.live and old.place:
            if old.place.incarnation == incarnation:
                new = _next_attempt(old)
            elif old.to and old.to.incarnation == incarnation:
                new = replace(old, to=None)
        case TaskMoves(_, _, _, to) if old.status is PLACED and to:
            new = _handed_over(old, to)
        case TaskMoves(_, _, _, to):
            new = replace(old, to=to)
        case TaskHandedOver() if old.to:
            new = _handed_over(old, old.to)
        case TaskRolledBack() if old.live:
            new = _next_attempt(old)
        case TaskReleased():
            new = replace(old, status=DONE, place=None, to=None)
    TASK.check(old.status, event, new.status)
    return new


def _next_attempt(task: TaskRecord) -> TaskRecord:
    return replace(task, status=WAITING, attempt=task.attempt + 1, place=None, to=None)


def _handed_over(task: TaskRecord, to: WorkerId) -> TaskRecord:
    """Begin the next attempt on another worker.  Nothing was lost, and nothing failed."""
    return replace(
        task, status=PLACED, attempt=task.attempt + 1, place=to, to=None, moves=task.moves + 1
    )


def first_run(old: tuple[TaskRecord, ...], new: tuple[TaskRecord, ...]) -> bool:
    """Say whether all tasks run now, and for the first time."""
    return old != new and all(t.attempt == 1 and t.status is TaskStatus.RUNNING for t in new)
