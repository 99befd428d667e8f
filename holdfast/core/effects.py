"""What a pipeline still owes, no matter which leader wrote its record, or when.

Effects are data.  A new leader that reads a record owes exactly what the one that wrote it owed;
recovery needs no code of its own.  Every effect is safe to repeat.
"""

from dataclasses import dataclass

from holdfast.core.checkpoint import CheckpointKind, Completed
from holdfast.core.commit import CommitStatus
from holdfast.core.former_commits import Former, next_of
from holdfast.core.pipeline import ACTIVE, OVER, PipelineRecord, wanted
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId


@dataclass(frozen=True, slots=True)
class PlaceTask:
    """Choose a worker for an attempt."""

    task: str
    attempt: int
    slots: int


@dataclass(frozen=True, slots=True)
class Deploy:
    """Have a worker run an attempt, from this blob's positions (None: from the start)."""

    task: str
    attempt: int
    place: WorkerId
    restore: str | None


@dataclass(frozen=True, slots=True)
class RestartStuckTask:
    """Restart an attempt that runs, makes no progress and answers no checkpoint."""

    task: str
    attempt: int
    place: WorkerId
    times: int


@dataclass(frozen=True, slots=True)
class StartCheckpoint:
    """Begin a checkpoint that does not wait for the timer."""

    kind: CheckpointKind


@dataclass(frozen=True, slots=True)
class CollectAcks:
    """Send barriers for the pending checkpoint and gather the answers."""

    number: int
    kind: CheckpointKind
    through: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Make a complete checkpoint visible in every sink."""

    completed: Completed


@dataclass(frozen=True, slots=True)
class Listen:
    """Run the listeners of a commit."""

    number: int
    state: str


@dataclass(frozen=True, slots=True)
class DropBlob:
    """Remove a checkpoint that is no longer needed."""

    number: int
    blob: str


@dataclass(frozen=True, slots=True)
class FinishFormer:
    """Run the next commit of a former incarnation, or its listeners with their `state`."""

    index: int
    former: Former
    state: str


Effect = (
    PlaceTask
    | Deploy
    | RestartStuckTask
    | StartCheckpoint
    | CollectAcks
    | Commit
    | Listen
    | DropBlob
    | FinishFormer
)


def owed(pipeline: PipelineRecord) -> tuple[Effect, ...]:
    """Return every effect this record still requires, in the order to start them."""
    first = next_of(pipeline.formers) if pipeline.status is ACTIVE else None
    if first:
        return (FinishFormer(*first, pipeline.commits.listeners),)
    # One that is over keeps what it has not committed, for a later incarnation to finish.
    effects: list[Effect] = [] if pipeline.status in OVER else _commits(pipeline)
    if pipeline.status is ACTIVE:
        effects += _tasks(pipeline)
        effects += _checkpoints(pipeline)
    effects += _droppable(pipeline)
    return tuple(effects)


def restore_from(pipeline: PipelineRecord) -> str | None:
    """Return the blob a new attempt starts from: the latest complete one of this incarnation.

    The declared restore source counts only while there is none; nothing never counts over one.
    """
    latest = pipeline.checkpoints.latest
    return latest.blob if latest else pipeline.restore


def _commits(pipeline: PipelineRecord) -> list[Effect]:
    commits = pipeline.commits
    match commits.status:
        case CommitStatus.COMMITTING:
            return [Commit(commits.waiting[0])]
        case CommitStatus.LISTENING:
            return [Listen(commits.through, commits.listeners)]
        case CommitStatus.SETTLED:
            return []


def _tasks(pipeline: PipelineRecord) -> list[Effect]:
    effects: list[Effect] = []
    for task in pipeline.tasks:
        if task.status is TaskStatus.WAITING:
            effects.append(PlaceTask(task.id, task.attempt, task.slots))
        elif task.status is TaskStatus.PLACED:
            assert task.place
            effects.append(Deploy(task.id, task.attempt, task.place, restore_from(pipeline)))
        elif task.status is TaskStatus.RUNNING:
            assert task.place
            times = _unanswered(pipeline, task)
            if 0 < pipeline.policy.tolerable_failures <= times:
                effects.append(RestartStuckTask(task.id, task.attempt, task.place, times))
    return effects


def _unanswered(pipeline: PipelineRecord, task: TaskRecord) -> int:
    """Return how many checkpoints in a row a task's attempt stood still and did not answer."""
    silent = pipeline.checkpoints.silent
    found = [s.times for s in silent if (s.task, s.attempt) == (task.id, task.attempt)]
    return max(found, default=0)


def _checkpoints(pipeline: PipelineRecord) -> list[Effect]:
    pending = pipeline.checkpoints.pending
    if pending:
        return [CollectAcks(pending.number, pending.kind, pipeline.commits.through)]
    kinds = [CheckpointKind.SAVEPOINT, CheckpointKind.FINAL]
    # Periodic ones wait for the keeper's timer, unless a task is to move.  After a
    # failure that waits for the timer, too.
    if any(t.to for t in pipeline.tasks) and not pipeline.checkpoints.failed_in_a_row:
        kinds.append(CheckpointKind.PERIODIC)
    return [StartCheckpoint(k) for k in kinds if wanted(pipeline, k)]


def _droppable(pipeline: PipelineRecord) -> list[Effect]:
    """Old checkpoints beyond the number to keep.

    Never the latest, never a savepoint, never one whose commit is still owed.
    """
    kept = [c for c in pipeline.checkpoints.kept if c.kind is not CheckpointKind.SAVEPOINT]
    old = kept[: -pipeline.retained] if pipeline.retained else kept[:-1]
    settled = [c for c in old if c.number <= pipeline.commits.listened]
    return [DropBlob(c.number, c.blob) for c in settled if c != pipeline.checkpoints.latest]
