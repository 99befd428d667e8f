"""A pipeline: the record that a keeper saves, and what it still owes.

Task, checkpoint, completion and commit are machines of their own; here they change together, in one
step and so in one transaction: a lost task, its voided ready entries and the aborted checkpoint; a
complete checkpoint and the commit it owes; the last commit and the end.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from holdfast.core import checkpoint, commit, completion, former_commits, task
from holdfast.core.checkpoint import (
    BlobDropped,
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointLost,
    Checkpoints,
    CheckpointStored,
    LeaderChanged,
    Savepoint,
)
from holdfast.core.commit import (
    CheckpointCompleted,
    Commits,
    CommitStatus,
    Committed,
    HooksFinished,
    later,
)
from holdfast.core.completion import Completion, CompletionStatus, SourceEnded, TasksChanged
from holdfast.core.former_commits import Former
from holdfast.core.machine import TransitionTable
from holdfast.core.task import (
    TaskFailed,
    TaskHandedOver,
    TaskMoves,
    TaskPlaced,
    TaskRecord,
    TaskReleased,
    TaskRolledBack,
    TaskStarted,
    TaskStatus,
    WorkerLost,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a pipeline is to be kept.  None: as its master is set.

    Without `periodic`, the only checkpoints are savepoints and the one at the end.  A task that
    makes no progress and leaves `tolerable_failures` checkpoints in a row without an answer is
    restarted (0: never); one that only takes long is waited for.
    """

    interval_s: float | None = None
    timeout_s: float | None = None
    periodic: bool = True
    retry_interval_s: float = 0.0
    tolerable_failures: int = 3


FAILURES_KEPT = 10
WAITING_MAX = 60
"""So many complete checkpoints may wait for their commits: a record must not grow without bound."""


class PipelineStatus(StrEnum):
    """A pipeline's status.  STOPPING and FAILING only wait for commits that are owed."""

    ACTIVE = "active"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILING = "failing"
    FAILED = "failed"
    FINISHED = "finished"


ACTIVE, STOPPING, STOPPED, FAILING, FAILED, FINISHED = PipelineStatus
OVER = (STOPPED, FAILED, FINISHED)


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The job needs this pipeline no more: a cancel, a failed neighbour, a savepoint taken."""

    label: ClassVar[str] = "StopRequested"


@dataclass(frozen=True, slots=True)
class AbandonRequested:
    """A user wants it to stop at once; a later incarnation commits what is complete."""

    label: ClassVar[str] = "AbandonRequested"


@dataclass(frozen=True, slots=True)
class SavepointRequested:
    """The job wants a savepoint; nothing after it may become visible."""

    label: ClassVar[str] = "SavepointRequested"

    request: str


@dataclass(frozen=True, slots=True)
class SavepointDropped:
    """The savepoint as a whole failed; continue as before."""

    label: ClassVar[str] = "SavepointDropped"


@dataclass(frozen=True, slots=True)
class PipelineFailed:
    """Something happened that no retry mends, such as a table that refuses a commit."""

    label: ClassVar[str] = "PipelineFailed"

    reason: str


@dataclass(frozen=True, slots=True)
class FormerMoved:
    """A commit of a former incarnation is done, or its listeners have run; `index`: whose."""

    label: ClassVar[str] = "FormerMoved"

    index: int
    what: Committed | HooksFinished


PIPELINE = TransitionTable(
    "pipeline",
    [
        # from     on         to
        (ACTIVE, StopRequested, STOPPING),
        (ACTIVE, StopRequested, STOPPED),  # nothing is left to commit
        (ACTIVE, AbandonRequested, STOPPED),
        (ACTIVE, TaskFailed, ACTIVE),
        (ACTIVE, TaskFailed, FAILING),  # the last retry is used, a commit is still owed
        (ACTIVE, TaskFailed, FAILED),
        (ACTIVE, WorkerLost, FAILING),  # a job without retries, and a commit is still owed
        (ACTIVE, WorkerLost, FAILED),
        (ACTIVE, PipelineFailed, FAILED),
        (ACTIVE, CheckpointLost, ACTIVE),  # back to the one before it
        (ACTIVE, CheckpointLost, FAILED),  # going back would lose rows or show them twice
        (ACTIVE, HooksFinished, ACTIVE),
        (ACTIVE, HooksFinished, FINISHED),  # that was the final checkpoint
        (STOPPING, StopRequested, STOPPING),
        (STOPPING, AbandonRequested, STOPPED),
        (STOPPING, TaskFailed, STOPPING),
        (STOPPING, PipelineFailed, FAILED),
        (STOPPING, CheckpointLost, FAILED),
        (STOPPING, HooksFinished, STOPPING),
        (STOPPING, HooksFinished, STOPPED),
        (FAILING, StopRequested, FAILING),
        (FAILING, AbandonRequested, FAILED),
        (FAILING, TaskFailed, FAILING),
        (FAILING, PipelineFailed, FAILED),
        (FAILING, CheckpointLost, FAILED),
        (FAILING, HooksFinished, FAILING),
        (FAILING, HooksFinished, FAILED),
        (STOPPED, StopRequested, STOPPED),
        (STOPPED, TaskFailed, STOPPED),
        (STOPPED, HooksFinished, STOPPED),
        (FAILED, StopRequested, FAILED),
        (FAILED, TaskFailed, FAILED),
        (FAILED, PipelineFailed, FAILED),
        (FAILED, HooksFinished, FAILED),
        (FINISHED, StopRequested, FINISHED),  # the end came first
        (FINISHED, TaskFailed, FINISHED),
        (FINISHED, HooksFinished, FINISHED),
    ],
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended."""

    task: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class PipelineRecord:
    """All durable state of one pipeline of one incarnation of a job."""

    record_name: ClassVar[str] = "pipeline"

    job: str
    incarnation: str
    number: int
    tasks: tuple[TaskRecord, ...]
    completion: Completion
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    commits: Commits = field(default_factory=Commits)
    status: PipelineStatus = ACTIVE
    final: int | None = None
    savepoint: Savepoint | None = None
    restore: str | None = None
    retry_times: int = 3
    retries: int = 0
    retained: int = 3
    failures: tuple[Failure, ...] = ()
    sinks: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    since_s: float = 0.0  # the date of the submit, or of its tasks' first start, for people to read
    clock_s: float = 0.0  # the same moment in the cluster's own time, which ages are measured by
    formers: tuple[Former, ...] = ()

    @property
    def owes_former(self) -> bool:
        """Whether a former incarnation's commits come first: until then no task may start."""
        return self.status is ACTIVE and former_commits.next_of(self.formers) is not None


def step(old: PipelineRecord, event: object) -> PipelineRecord:
    """Return the pipeline after `event`.  The caller saves it before it does what is owed."""
    match event:
        case TaskPlaced() | TaskStarted() | TaskFailed() | WorkerLost():
            new = _task_event(old, event)
        case TaskMoves(name, to=to) if old.status is ACTIVE and (not to or may_move(old, name)):
            new = _with_tasks(old, tuple(_moved(t, event) for t in old.tasks))
        case SourceEnded():
            new = replace(old, completion=completion.step(old.completion, event, old.tasks))
        case CheckpointDue(kind, _) if old.status is ACTIVE and wanted(old, kind):
            new = replace(old, checkpoints=checkpoint.step(old.checkpoints, event))
        case CheckpointDue():
            new = old
        case CheckpointStored() | CheckpointFailed() | LeaderChanged():
            new = _checkpoint_event(old, event)
        case Committed():
            new = replace(old, commits=commit.step(old.commits, event))
        case HooksFinished():
            new = _settled(replace(old, commits=commit.step(old.commits, event)))
        case StopRequested() if old.status is ACTIVE:
            new = _settled(replace(_no_more_tasks(old, "the job stops"), status=STOPPING))
        case AbandonRequested() if old.status not in OVER:
            new = _no_more_tasks(old, "the job is cancelled by force")
            new = replace(new, status=FAILED if old.status is FAILING else STOPPED)
        case PipelineFailed(reason) if old.status not in OVER:
            new = _doomed(old, reason)
        case CheckpointLost(number) if old.status not in OVER and needed(old, number):
            new = _lost(old, event)
        case SavepointRequested(request) if old.status is ACTIVE and not old.savepoint:
            new = replace(old, savepoint=Savepoint(request))
        case SavepointDropped():
            pending = old.checkpoints.pending
            saving = pending is not None and pending.kind is CheckpointKind.SAVEPOINT
            new = _fail_pending(old, "the savepoint was given up") if saving else old
            new = replace(new, savepoint=None)
        case BlobDropped():
            new = replace(old, checkpoints=checkpoint.step(old.checkpoints, event))
        case FormerMoved(index, what) if old.status is ACTIVE:
            new = _former_moved(old, index, what)
        case _:
            new = old
    moved = new.status is not old.status
    told = isinstance(event, StopRequested | TaskFailed | PipelineFailed | HooksFinished)
    if moved or told or (isinstance(event, CheckpointLost) and new != old):
        PIPELINE.check(old.status, event, new.status)
    return new


def wanted(pipeline: PipelineRecord, kind: CheckpointKind) -> bool:
    """Say whether a checkpoint of this kind may start now.

    A savepoint goes first and is the last; the final one needs every source at its end.
    """
    if pipeline.checkpoints.pending or pipeline.final is not None:
        return False
    if any(t.status is not TaskStatus.RUNNING for t in pipeline.tasks):
        return False  # a task that does not run cannot answer
    if kind is CheckpointKind.PERIODIC and len(pipeline.commits.waiting) >= WAITING_MAX:
        return False  # writers continue, and stage what the next one will hold
    if pipeline.savepoint:
        return kind is CheckpointKind.SAVEPOINT and pipeline.savepoint.number is None
    ended = pipeline.completion.status is CompletionStatus.ENDED
    return kind is (CheckpointKind.FINAL if ended else CheckpointKind.PERIODIC)


def may_move(pipeline: PipelineRecord, name: str) -> bool:
    """Say whether a task may move: from a checkpoint that is soon taken.

    One that takes none before its end, or is about to end, ends where it is.  One that has not
    begun begins elsewhere.
    """
    found = next((t for t in pipeline.tasks if t.id == name), None)
    if pipeline.status is not ACTIVE or not found or pipeline.final is not None:
        return False
    if found.status is TaskStatus.PLACED:
        return pipeline.checkpoints.pending is None
    return found.live and pipeline.policy.periodic and not _about_to_end(pipeline)


def _about_to_end(pipeline: PipelineRecord) -> bool:
    return bool(pipeline.savepoint) or pipeline.completion.status is CompletionStatus.ENDED


def _moved(one: TaskRecord, event: TaskMoves) -> TaskRecord:
    """Let an order reach its task, unless it is of a former attempt."""
    meant = one.id == event.task and one.live and one.runs_as(event.attempt, event.place)
    return task.step(one, event) if meant else one


def _handed_over(one: TaskRecord) -> TaskRecord:
    return task.step(one, TaskHandedOver()) if one.to else one


def _with_tasks(pipeline: PipelineRecord, tasks: tuple[TaskRecord, ...]) -> PipelineRecord:
    """Return it with its tasks changed, and no end that a former attempt has reported."""
    if all(old.attempt == new.attempt for old, new in zip(pipeline.tasks, tasks, strict=True)):
        return replace(pipeline, tasks=tasks)
    ended = completion.step(pipeline.completion, TasksChanged(tasks), tasks)
    return replace(pipeline, tasks=tasks, completion=ended)


def _former_moved(
    old: PipelineRecord, index: int, what: Committed | HooksFinished
) -> PipelineRecord:
    """Take in a former incarnation's commit: its watermark, and what listeners know."""
    now = former_commits.step(old.formers[index], what)
    if now == old.formers[index]:
        return old
    commits = old.commits
    match what:
        case Committed(_, watermark):
            commits = replace(commits, watermark=later(commits.watermark, watermark))
        case HooksFinished(_, state):
            commits = replace(commits, listeners=state)
    formers = (*old.formers[:index], now, *old.formers[index + 1 :])
    return replace(old, formers=formers, commits=commits)


def _task_event(old: PipelineRecord, event: object) -> PipelineRecord:
    """Let an event reach its task; a restarted task resets what its neighbours know of it."""
    named = getattr(event, "task", None)
    tasks = tuple(task.step(t, event) if named is None or t.id == named else t for t in old.tasks)
    new = replace(old, tasks=tasks)
    fresh = old.checkpoints.next == 1 and task.first_run(old.tasks, tasks)
    if isinstance(event, TaskStarted) and fresh:
        # Until now no checkpoint was possible: the first is due an interval from here.
        new = replace(new, since_s=event.at_s, clock_s=event.clock_s)
    lost = [o for o, n in zip(old.tasks, tasks, strict=True) if o.attempt != n.attempt]
    if not lost:
        return new
    reason = event.reason if isinstance(event, TaskFailed | WorkerLost) else ""
    new = replace(
        _noted(new, *(Failure(t.id, t.attempt, reason) for t in lost)),
        completion=completion.step(old.completion, TasksChanged(tasks), tasks),
        # Losing a worker is not the job's fault and costs it no retry.
        retries=old.retries + isinstance(event, TaskFailed),
    )
    new = _fail_pending(new, f"task {lost[0].id} was lost: {reason}")
    fatal = isinstance(event, TaskFailed) and event.fatal
    # A job without retries must not be run again, whatever ended it.
    if fatal or new.retries > new.retry_times or not new.retry_times:
        return _settled(replace(_no_more_tasks(new, "no retry is left"), status=FAILING))
    return new


def _checkpoint_event(old: PipelineRecord, event: object) -> PipelineRecord:
    new = replace(old, checkpoints=checkpoint.step(old.checkpoints, event))
    before, after = old.checkpoints, new.checkpoints
    if after.latest != before.latest and after.latest:
        done = after.latest
        new = replace(new, commits=commit.step(old.commits, CheckpointCompleted(done)))
        if done.kind is CheckpointKind.FINAL:
            # Proven to be at their end, the tasks are of no more use: losing one changes nothing.
            new = replace(_over(new), final=done.number)
        elif done.kind is CheckpointKind.SAVEPOINT and new.savepoint:
            new = replace(new, savepoint=replace(new.savepoint, number=done.number))
        elif done.kind is CheckpointKind.PERIODIC and not _about_to_end(new):
            # A task that moves continues from here: nothing before it is read again.
            new = _with_tasks(new, tuple(_handed_over(t) for t in new.tasks))
    elif before.pending and not after.pending and before.pending.kind is CheckpointKind.SAVEPOINT:
        assert new.savepoint
        failures = new.savepoint.failures + 1
        new = replace(new, savepoint=replace(new.savepoint, failures=failures))
    return new


def _lost(old: PipelineRecord, event: CheckpointLost) -> PipelineRecord:
    """Go back to the checkpoint before a lost one; fail where that could break a promise."""
    reason = f"Checkpoint {event.number} is lost. {event.reason}"
    why = irreplaceable(old, event)
    if why:
        return _doomed(old, f"{reason} {why} Submit the job again, or restore a savepoint of it.")
    new = back(_fail_pending(old, reason), event)
    latest = new.checkpoints.latest
    assert latest
    said = f"{reason} All tasks restart from checkpoint {latest.number}."
    return _noted(new, Failure("", 0, said))


def _doomed(old: PipelineRecord, reason: str) -> PipelineRecord:
    return _noted(replace(_no_more_tasks(old, reason), status=FAILED), Failure("", 0, reason))


def _noted(pipeline: PipelineRecord, *failures: Failure) -> PipelineRecord:
    return replace(pipeline, failures=(*pipeline.failures, *failures)[-FAILURES_KEPT:])


def _fail_pending(pipeline: PipelineRecord, reason: str) -> PipelineRecord:
    pending = pipeline.checkpoints.pending
    if not pending:
        return pipeline
    return _checkpoint_event(pipeline, CheckpointFailed(pending.number, reason))


def _no_more_tasks(pipeline: PipelineRecord, reason: str) -> PipelineRecord:
    return _over(_fail_pending(pipeline, reason))


def _over(pipeline: PipelineRecord) -> PipelineRecord:
    return replace(pipeline, tasks=tuple(task.step(t, TaskReleased()) for t in pipeline.tasks))


def _settled(pipeline: PipelineRecord) -> PipelineRecord:
    """Move on once nothing is left to commit."""
    if pipeline.commits.status is not CommitStatus.SETTLED:
        return pipeline
    if pipeline.status is ACTIVE and pipeline.final is not None:
        return replace(pipeline, status=FINISHED)
    ends = {STOPPING: STOPPED, FAILING: FAILED}
    return replace(pipeline, status=ends.get(pipeline.status, pipeline.status))


def needed(pipeline: "PipelineRecord", number: int) -> bool:
    """Say whether a checkpoint is still to be committed, or tasks would start from it."""
    waiting = {c.number for c in (*pipeline.commits.waiting, pipeline.checkpoints.latest) if c}
    return number in waiting


def irreplaceable(pipeline: "PipelineRecord", event: CheckpointLost) -> str:
    """Say why the checkpoint before a lost one cannot take its place; nothing if it can."""
    number, commits = event.number, pipeline.commits
    if number <= commits.through:
        return "Its rows are visible: going back to an earlier one would show some of them twice."
    if commit.may_have_begun(commits, number) and not event.untouched:
        return "Its commit may have begun: going back could show rows twice."
    if any(c.number >= number and c.kind is not CheckpointKind.PERIODIC for c in commits.waiting):
        return "It is a savepoint or the last one, which no earlier one can stand for."
    if any(t.status is TaskStatus.DONE for t in pipeline.tasks):
        return "The tasks have ended, and nothing can be read again."
    if not pipeline.checkpoints.before(number):
        return "There is none before it, and nothing is read again from the start behind your back."
    if not pipeline.retry_times:
        return "The job may not be tried again (job.retry.times = 0)."
    return ""


def back(old: "PipelineRecord", event: CheckpointLost) -> "PipelineRecord":
    """Return the pipeline at the checkpoint before a lost one; none is on its way any more.

    All tasks restart there: one that started from the lost one lacks what only that one held.
    """
    tasks = tuple(task.step(t, TaskRolledBack()) for t in old.tasks)
    return replace(
        old,
        tasks=tasks,
        completion=completion.step(old.completion, TasksChanged(tasks), tasks),
        checkpoints=checkpoint.step(old.checkpoints, event),
        commits=commit.step(old.commits, event),
    )
