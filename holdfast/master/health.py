"""Whether a pipeline makes progress: a job counts as healthy only while rows become visible.

Checkpoints must complete, and what is complete must be committed and its listeners run.  Both ages
are measured in the cluster's own time: a takeover neither hides nor invents one, whatever the
clocks of two masters say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from holdfast.core.checkpoint import Completed
from holdfast.core.commit import CommitStatus
from holdfast.core.former_commits import Former, next_of
from holdfast.core.job import TERMINAL, JobStatus
from holdfast.core.pipeline import ACTIVE, OVER, PipelineRecord
from holdfast.core.task import TaskStatus

LATE_SHARE, LATE_S = 0.5, 2.5
STALLED_SHARE, STALLED_S = 1.0, 5.0
"""A checkpoint is due one interval after the last.  It is late once it is overdue by this share of
the interval, but not before so many seconds: a takeover takes some, whatever the interval is."""


STALLED_SILENT_S = 10.0
"""A Spark that has not answered for so long holds up all that runs on it."""


class Health(StrEnum):
    """A pipeline's health."""

    OK = "OK"
    LATE = "LATE"
    STALLED = "STALLED"


@dataclass(frozen=True, slots=True)
class Ages:
    """How old a pipeline's last checkpoint is, and the oldest that is owed a commit (0: none)."""

    checkpoint_s: float
    commit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ill:
    """A worker whose Spark has not answered, or not started, for too long; `said` in its words."""

    worker: str
    silent_s: float
    said: str


@dataclass(frozen=True, slots=True)
class HealthReport:
    """A pipeline's health, its last checkpoint (0: none), and what it waits for if it is late.

    `commit` is the oldest checkpoint that is complete and not visible, or whose listeners have not
    run (0: none), and `commit_age_s` how long it has been complete.  `unseen`: it is what is late.
    `ill`: a worker's Spark is.
    """

    pipeline: int
    health: Health
    age_s: float
    checkpoint: int
    checkpoint_at_s: float
    reason: str
    commit: int = 0
    commit_age_s: float = 0.0
    unseen: bool = False
    ill: bool = False

    def with_ill(self, pipeline: PipelineRecord, ill: Mapping[str, Ill]) -> "HealthReport":
        """Return the report with what is wrong with a task's worker; `ill` is by incarnation.

        A job that takes no checkpoints is judged by this alone, and where a checkpoint is late,
        this is why.  A commit that does not succeed has a reason of its own, which comes first.
        """
        for task in pipeline.tasks if pipeline.status is ACTIVE else ():
            sick = ill.get(task.place.incarnation) if task.place and task.live else None
            if sick is None:
                continue
            worse = Health.STALLED if sick.silent_s >= STALLED_SILENT_S else Health.LATE
            health = Health.STALLED if self.health is Health.STALLED else worse
            said = f"Task {task.id} is on worker {sick.worker}. {sick.said}"
            reason = f"{self.reason} {said}" if self.unseen else said
            return replace(self, health=health, reason=reason, ill=True)
        return self


def judged(age_s: float, interval_s: float) -> Health:
    """Judge a time without a checkpoint, or without a commit, where one is due every interval."""
    overdue_s = age_s - interval_s
    if overdue_s > max(STALLED_SHARE * interval_s, STALLED_S):
        return Health.STALLED
    late = overdue_s > max(LATE_SHARE * interval_s, LATE_S)
    return Health.LATE if late else Health.OK


def owed_commit(pipeline: PipelineRecord) -> Completed | None:
    """Return the oldest checkpoint that is complete and whose commit or listeners are owed.

    What a former incarnation has left comes first.
    """
    commits, left = pipeline.commits, _left(pipeline)
    if left:
        return left.unheard or left.waiting[0]
    if pipeline.status in OVER or commits.status is CommitStatus.SETTLED:
        return None  # one that is over commits nothing any more
    if commits.status is CommitStatus.COMMITTING:
        return commits.waiting[0]
    kept = pipeline.checkpoints.kept
    return next((c for c in kept if c.number == commits.through), None)


def _left(pipeline: PipelineRecord) -> Former | None:
    """Return what a former incarnation has left that is to be finished next."""
    first = next_of(pipeline.formers) if pipeline.status is ACTIVE else None
    return first[1] if first else None


def newest(pipeline: PipelineRecord) -> float:
    """Return the latest moment that a record knows of, in the cluster's time."""
    latest = pipeline.checkpoints.latest
    return max(latest.clock_s if latest else 0.0, pipeline.clock_s)


def ages(pipeline: PipelineRecord, now_s: float, taken_s: float) -> Ages:
    """Return the ages by the cluster's time.  What has no moment of its own counts from `taken_s`.

    That is when this leader took the record over: one from before there was a cluster's time.
    """
    latest, owed = pipeline.checkpoints.latest, owed_commit(pipeline)
    since_s = (latest.clock_s if latest else pipeline.clock_s) or taken_s
    owed_s = now_s - (owed.clock_s or taken_s) if owed else 0.0
    return Ages(max(0.0, now_s - since_s), max(0.0, owed_s))


def report(
    pipeline: PipelineRecord,
    ages: Ages,
    interval_s: float,
    waits: Mapping[str, str],
    missing: str,
    trouble: str = "",
) -> HealthReport:
    """Judge a pipeline.

    `waits` says why tasks have no place, `missing` who did not answer, and `trouble` why the oldest
    owed commit does not succeed.
    """
    latest, owed = pipeline.checkpoints.latest, owed_commit(pipeline)
    health = judged(ages.checkpoint_s, interval_s) if _due(pipeline) else Health.OK
    shown = judged(ages.commit_s, interval_s) if owed else Health.OK
    unseen = shown is not Health.OK and (health is Health.OK or shown is Health.STALLED)
    reason = ""
    if unseen:
        health, reason = shown, _unseen(pipeline, ages.commit_s, trouble)
    elif health is not Health.OK:
        reason = _reason(pipeline, waits, missing)
    number, at_s = (latest.number, latest.at_s) if latest else (0, 0.0)
    return HealthReport(
        pipeline.number, health, ages.checkpoint_s, number, at_s, reason,
        owed.number if owed else 0, ages.commit_s, unseen,
    )  # fmt: skip


def health_word(status: JobStatus, reports: Mapping[int, HealthReport]) -> tuple[str, str]:
    """Return a job's health in a word, and the reason.

    "" where there is nothing to judge: it is over, it has not started and is not late either, or
    there is no leader.
    """
    health, reason = _worst(reports)
    told = reports and status not in TERMINAL
    told = told and (status is not JobStatus.PENDING or health is not Health.OK)
    return health.value if told else "", reason


def _worst(reports: Mapping[int, HealthReport]) -> tuple[Health, str]:
    """Return a job's health, which is that of its worst pipeline, and the reason in words."""
    for health in (Health.STALLED, Health.LATE):
        for _, report in sorted(reports.items()):
            if report.health is health:
                return health, report.reason
    return Health.OK, ""


def _due(pipeline: PipelineRecord) -> bool:
    """None are due once the last one is taken, nor in a job that takes none before its end."""
    return pipeline.status is ACTIVE and pipeline.final is None and pipeline.policy.periodic


def _unseen(pipeline: PipelineRecord, age_s: float, trouble: str) -> str:
    """Say what is complete and does not get through."""
    commits, why = pipeline.commits, f": {trouble.removesuffix('.')}" if trouble else ""
    left = _left(pipeline)
    if left:
        number = (left.unheard or left.waiting[0]).number
        what = "the listeners of commit" if left.unheard else "commit"
        return (
            f"The former incarnation left {what} {number} to finish, complete for {age_s:.0f} s,"
            f" before a task may start{why}."
        )
    if commits.status is CommitStatus.LISTENING:
        return (
            f"Commit {commits.through} is visible, and its listeners have not run for"
            f" {age_s:.0f} s{why}."
        )
    others = len(commits.waiting) - 1
    more = f", nor are {others} after it" if others else ""
    return (
        f"Checkpoint {commits.waiting[0].number} has been complete for {age_s:.0f} s and is not"
        f" visible{more}{why}."
    )


def _reason(pipeline: PipelineRecord, waits: Mapping[str, str], missing: str) -> str:
    """Say what is waited for, the nearest cause first."""
    for task in pipeline.tasks:
        if task.status is TaskStatus.WAITING:
            return f"Task {task.id} has no worker: {waits.get(task.id, 'it is being placed')}."
        if task.status is TaskStatus.PLACED and task.place:
            return f"Task {task.id} has not started on worker {task.place.worker}."
    pending, checkpoints = pipeline.checkpoints.pending, pipeline.checkpoints
    if pending and missing:
        return f"Checkpoint {pending.number} waits for {missing}."
    if checkpoints.last_failure:
        return (
            f"{checkpoints.failed_in_a_row} checkpoints failed in a row:"
            f" {checkpoints.last_failure}."
        )
    if pipeline.commits.status is not CommitStatus.SETTLED:
        return f"A commit after {pipeline.commits.through} is not done."
    return "No checkpoint was started."
