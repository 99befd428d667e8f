"""Whether a pipeline gets on: a job that runs is believed only while rows become visible.

Checkpoints must complete, and what is complete must be committed and its listeners run.  Both ages
are told by the cluster's own time: a takeover neither hides nor invents one, whatever the clocks of
two masters say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.checkpoint import Completed
from holdfast.core.commit import CommitStatus
from holdfast.core.pipeline import ACTIVE, OVER, Pipeline
from holdfast.core.task import TaskStatus

LATE_SHARE, LATE_S = 0.5, 2.5
STALLED_SHARE, STALLED_S = 1.0, 5.0
"""A checkpoint is due one interval after the last.  It is late once it is overdue by this share of
the interval, but not before so many seconds: a takeover takes some, whatever the interval is."""


class Health(StrEnum):
    """How a pipeline gets on."""

    OK = "OK"
    LATE = "LATE"
    STALLED = "STALLED"


@dataclass(frozen=True, slots=True)
class Ages:
    """How old a pipeline's last checkpoint is, and the oldest that is owed a commit (0: none)."""

    checkpoint_s: float
    commit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """A pipeline's health, its last checkpoint (0: none), and what it waits for if it is late.

    `commit` is the oldest checkpoint that is complete and not visible, or whose listeners have not
    run (0: none), and `commit_age_s` how long it has been complete.  `unseen`: it is what is late.
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


def judged(age_s: float, interval_s: float) -> Health:
    """Judge a time without a checkpoint, or without a commit, where one is due every interval."""
    overdue_s = age_s - interval_s
    if overdue_s > max(STALLED_SHARE * interval_s, STALLED_S):
        return Health.STALLED
    late = overdue_s > max(LATE_SHARE * interval_s, LATE_S)
    return Health.LATE if late else Health.OK


def owed_commit(pipeline: Pipeline) -> Completed | None:
    """Return the oldest checkpoint that is complete and whose commit or listeners are owed."""
    commits = pipeline.commits
    if pipeline.status in OVER or commits.status is CommitStatus.SETTLED:
        return None  # one that is over commits nothing any more
    if commits.status is CommitStatus.COMMITTING:
        return commits.waiting[0]
    kept = pipeline.checkpoints.kept
    return next((c for c in kept if c.number == commits.through), None)


def newest(pipeline: Pipeline) -> float:
    """Return the latest moment that a record knows of, in the cluster's time."""
    latest = pipeline.checkpoints.latest
    return max(latest.clock_s if latest else 0.0, pipeline.clock_s)


def ages(pipeline: Pipeline, now_s: float, taken_s: float) -> Ages:
    """Return the ages by the cluster's time.  What has no moment of its own counts from `taken_s`.

    That is when this leader took the record over: one from before there was a cluster's time.
    """
    latest, owed = pipeline.checkpoints.latest, owed_commit(pipeline)
    since_s = (latest.clock_s if latest else pipeline.clock_s) or taken_s
    owed_s = now_s - (owed.clock_s or taken_s) if owed else 0.0
    return Ages(max(0.0, now_s - since_s), max(0.0, owed_s))


def report(
    pipeline: Pipeline,
    ages: Ages,
    interval_s: float,
    waits: Mapping[str, str],
    missing: str,
    trouble: str = "",
) -> Report:
    """Judge a pipeline.

    `waits` says why tasks have no place, `missing` who did not answer, and `trouble` why the oldest
    owed commit is not made.
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
    return Report(
        pipeline.number, health, ages.checkpoint_s, number, at_s, reason,
        owed.number if owed else 0, ages.commit_s, unseen,
    )  # fmt: skip


def _due(pipeline: Pipeline) -> bool:
    """None are due once the last one is taken, nor in a job that takes none before its end."""
    return pipeline.status is ACTIVE and pipeline.final is None and pipeline.policy.periodic


def _unseen(pipeline: Pipeline, age_s: float, trouble: str) -> str:
    """Say what is complete and does not get through."""
    commits, why = pipeline.commits, f": {trouble.removesuffix('.')}" if trouble else ""
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


def _reason(pipeline: Pipeline, waits: Mapping[str, str], missing: str) -> str:
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
