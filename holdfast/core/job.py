"""A job: what its user wants, its status, and how it ends.

The job record holds what no pipeline can know alone.  The state of its pipelines is not copied into
it: the keeper shows them (`PipelinesChanged`) whenever one has changed, and the step decides.  A
terminal status is the tombstone, and the duty to clean up is part of it: there is no moment at
which one is durable without the other.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from holdfast.core.checkpoint import Totals
from holdfast.core.machine import TransitionTable
from holdfast.core.pipeline import ACTIVE, FAILED, FAILING, FINISHED, OVER, PipelineRecord
from holdfast.core.task import TaskStatus
from holdfast.core.unfinished import Abandoned, abandoned

SAVEPOINT_TRIES = 3
RETAINED_S = 30 * 86_400.0


class JobStatus(StrEnum):
    """A job's status, in SeaTunnel's words."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    CANCELING = "CANCELING"
    DOING_SAVEPOINT = "DOING_SAVEPOINT"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    SAVEPOINT_DONE = "SAVEPOINT_DONE"


S = JobStatus
TERMINAL = (S.FINISHED, S.FAILED, S.CANCELED, S.SAVEPOINT_DONE)


@dataclass(frozen=True, slots=True)
class PipelinesChanged:
    """The job's pipelines, as their records say.  `at_s` is a date for people."""

    label: ClassVar[str] = "PipelinesChanged"

    pipelines: tuple[PipelineRecord, ...]
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobCancelRequested:
    """A user wants the job to stop; `force`: without waiting for commits that are owed."""

    label: ClassVar[str] = "JobCancelRequested"

    force: bool = False


@dataclass(frozen=True, slots=True)
class JobSavepointRequested:
    """A user wants the job to stop with a savepoint.  The first request counts."""

    label: ClassVar[str] = "JobSavepointRequested"

    request: str


JOB = TransitionTable(
    "job",
    [
        # from        on            to
        (S.PENDING, PipelinesChanged, S.PENDING),
        (S.PENDING, PipelinesChanged, S.RUNNING),
        (S.PENDING, PipelinesChanged, S.FAILING),  # its savepoint cannot be read
        (S.PENDING, JobCancelRequested, S.CANCELING),
        (S.PENDING, JobSavepointRequested, S.PENDING),  # refused: nothing runs that could be saved
        (S.RUNNING, PipelinesChanged, S.RUNNING),
        (S.RUNNING, PipelinesChanged, S.FINISHED),
        (S.RUNNING, PipelinesChanged, S.FAILING),
        (S.RUNNING, JobCancelRequested, S.CANCELING),
        (S.RUNNING, JobSavepointRequested, S.DOING_SAVEPOINT),
        (S.DOING_SAVEPOINT, PipelinesChanged, S.DOING_SAVEPOINT),
        (S.DOING_SAVEPOINT, PipelinesChanged, S.SAVEPOINT_DONE),
        (S.DOING_SAVEPOINT, PipelinesChanged, S.RUNNING),  # it failed too often; the job continues
        (S.DOING_SAVEPOINT, PipelinesChanged, S.FINISHED),  # the input ended first
        (S.DOING_SAVEPOINT, PipelinesChanged, S.FAILING),
        (S.DOING_SAVEPOINT, JobCancelRequested, S.CANCELING),
        (S.DOING_SAVEPOINT, JobSavepointRequested, S.DOING_SAVEPOINT),  # one savepoint answers both
        (S.CANCELING, PipelinesChanged, S.CANCELING),
        (S.CANCELING, PipelinesChanged, S.CANCELED),
        (S.CANCELING, JobCancelRequested, S.CANCELING),
        (S.CANCELING, JobSavepointRequested, S.CANCELING),
        (S.FAILING, PipelinesChanged, S.FAILING),
        (S.FAILING, PipelinesChanged, S.FAILED),
        (S.FAILING, JobCancelRequested, S.FAILING),  # it ends anyway, and the failure is the news
        (S.FAILING, JobSavepointRequested, S.FAILING),
        *(
            (t, e, t)
            for t in TERMINAL
            for e in (PipelinesChanged, JobCancelRequested, JobSavepointRequested)
        ),
    ],
)


@dataclass(frozen=True, slots=True)
class AskStop:
    """Have a pipeline stop."""

    pipeline: int


@dataclass(frozen=True, slots=True)
class AskAbandon:
    """Have a pipeline stop at once, whatever it owes."""

    pipeline: int


@dataclass(frozen=True, slots=True)
class AskSavepoint:
    """Have a pipeline take a savepoint."""

    pipeline: int
    request: str


@dataclass(frozen=True, slots=True)
class DropSavepoint:
    """Have a pipeline forget a savepoint that failed as a whole."""

    pipeline: int


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Remove everything a terminal job has left, once its tombstone has stood long enough."""


Effect = AskStop | AskAbandon | AskSavepoint | DropSavepoint | CleanUp


@dataclass(frozen=True, slots=True)
class JobRecord:
    """All durable state of a job that is not one pipeline's.

    `token` is the submitter's: a repeated submit with it is the same submit.  `life` counts the
    incarnations of this id, for people.  `origin` is the saved state that this one began from, ""
    for none.  `retained_s`: how long the saved state that it leaves is kept; 0: until it is
    removed.  `forced`: its user wants it to stop at once.  `abandoned` is what it had not committed
    at its end.
    """

    record_name: ClassVar[str] = "job"

    id: str
    incarnation: str
    token: str
    name: str
    spec: str
    pipelines: int
    status: JobStatus = S.PENDING
    request: str = ""
    saved: tuple[tuple[int, str], ...] = ()
    reason: str = ""
    since_s: float = 0.0  # the date of the submit
    ended_s: float = 0.0  # the date of the end; both are for people to read
    totals: Totals = field(default_factory=Totals)
    tags: tuple[tuple[str, str], ...] = ()
    life: int = 1
    origin: str = ""
    retained_s: float = RETAINED_S
    forced: bool = False
    abandoned: tuple[Abandoned, ...] = ()


def step(old: JobRecord, event: object) -> JobRecord:
    """Return the job after `event`.  A terminal job never changes."""
    new = old
    match event:
        case _ if old.status in TERMINAL:
            pass
        case PipelinesChanged(pipelines, at_s):
            new = _seen(old, pipelines)
            if new.status in TERMINAL:
                new = _ended(replace(new, ended_s=at_s, totals=_totals(pipelines)), pipelines)
        case JobCancelRequested(force):
            status = S.FAILING if old.status is S.FAILING else S.CANCELING
            new = replace(old, status=status, forced=old.forced or force)
        case JobSavepointRequested(request) if old.status is S.RUNNING:
            new = replace(old, status=S.DOING_SAVEPOINT, request=request, reason="")
    JOB.check(old.status, event, new.status)
    return new


def owed(job: JobRecord, pipelines: tuple[PipelineRecord, ...]) -> tuple[Effect, ...]:
    """Return what the job's status still requires of its pipelines, or of the janitor."""
    if job.status in TERMINAL:
        return (CleanUp(),)
    if job.forced:
        return tuple(AskAbandon(p.number) for p in pipelines if p.status not in OVER)
    active = [p for p in pipelines if p.status is ACTIVE]
    if job.status in (S.CANCELING, S.FAILING) or job.saved:
        return tuple(AskStop(p.number) for p in active)
    if job.status is S.DOING_SAVEPOINT:
        return tuple(AskSavepoint(p.number, job.request) for p in active if not p.savepoint)
    return tuple(DropSavepoint(p.number) for p in active if p.savepoint)


def _seen(job: JobRecord, pipelines: tuple[PipelineRecord, ...]) -> JobRecord:
    over = all(p.status in OVER for p in pipelines)
    failing = next((p for p in pipelines if p.status in (FAILING, FAILED)), None)
    match job.status:
        case S.CANCELING | S.FAILING if over:
            ends = {S.CANCELING: S.CANCELED, S.FAILING: S.FAILED}
            return replace(job, status=ends[job.status])
        case S.CANCELING | S.FAILING:
            return job
    if failing:
        return replace(job, status=S.FAILING, reason=_why(failing))
    if job.status is S.PENDING:
        # One step at a time, however late this is seen: RUNNING comes before any end.
        return replace(job, status=S.RUNNING) if _started(pipelines) else job
    if all(p.status is FINISHED for p in pipelines):
        return replace(job, status=S.FINISHED)
    if job.status is S.DOING_SAVEPOINT:
        return _saving(job, pipelines, over)
    return job


def _started(pipelines: tuple[PipelineRecord, ...]) -> bool:
    tasks = [t for p in pipelines for t in p.tasks]
    return all(t.status is not TaskStatus.WAITING or t.attempt > 1 for t in tasks)


def _saving(job: JobRecord, pipelines: tuple[PipelineRecord, ...], over: bool) -> JobRecord:
    """A savepoint is one thing: every pipeline has its part, or there is none."""
    if job.saved:
        return replace(job, status=S.SAVEPOINT_DONE) if over else job
    tried = max((p.savepoint.failures for p in pipelines if p.savepoint), default=0)
    if tried >= SAVEPOINT_TRIES:
        reason = f"The savepoint failed {tried} times; the job continues without it."
        return replace(job, status=S.RUNNING, request="", reason=reason)
    parts = [
        (p.number, p.checkpoints.latest.blob)
        for p in pipelines
        if p.checkpoints.latest and (p.status is FINISHED or (p.savepoint and p.savepoint.number))
    ]
    return replace(job, saved=tuple(parts)) if len(parts) == len(pipelines) else job


def _ended(job: JobRecord, pipelines: tuple[PipelineRecord, ...]) -> JobRecord:
    """Note what is complete and not surely visible, or whose listeners have not run."""
    left = abandoned(pipelines)
    reason = job.reason
    if job.forced and job.status is S.CANCELED:
        said = [one.words for one in left]
        reason = " ".join(["It was cancelled by force.", *(said or ["It owed no commit."])])
    return replace(job, abandoned=left, reason=reason)


def _totals(pipelines: tuple[PipelineRecord, ...]) -> Totals:
    """Return what the last complete checkpoints have counted."""
    done = [p.checkpoints.latest.totals for p in pipelines if p.checkpoints.latest]
    return sum(done, Totals())


def _why(pipeline: PipelineRecord) -> str:
    last = pipeline.failures[-1] if pipeline.failures else None
    if not last:
        return "A pipeline failed."
    if not last.task:
        return last.reason
    # The root cause first: a task is only where it came to light.
    return f"{last.reason.rstrip('.')}. Task {last.task} failed."
