"""Whether a pipeline gets on: a job that runs is believed only while checkpoints complete.

The age of the last checkpoint is known to every leader, also to one that has just begun: the
record holds the date, and from the moment it is loaded the leader only measures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.commit import CommitStatus
from holdfast.core.pipeline import ACTIVE, Pipeline
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
class Report:
    """A pipeline's health, its last checkpoint (0: none), and what it waits for if it is late."""

    pipeline: int
    health: Health
    age_s: float
    checkpoint: int
    checkpoint_at_s: float
    reason: str


def judged(age_s: float, interval_s: float) -> Health:
    """Judge a time without a checkpoint where one is due every interval."""
    overdue_s = age_s - interval_s
    if overdue_s > max(STALLED_SHARE * interval_s, STALLED_S):
        return Health.STALLED
    late = overdue_s > max(LATE_SHARE * interval_s, LATE_S)
    return Health.LATE if late else Health.OK


def report(
    pipeline: Pipeline, age_s: float, interval_s: float, waits: Mapping[str, str], missing: str
) -> Report:
    """Judge a pipeline.  `waits` says why tasks have no place, `missing` who did not answer."""
    latest = pipeline.checkpoints.latest
    health = judged(age_s, interval_s) if _due(pipeline) else Health.OK
    reason = "" if health is Health.OK else _reason(pipeline, waits, missing)
    number, at_s = (latest.number, latest.at_s) if latest else (0, 0.0)
    return Report(pipeline.number, health, age_s, number, at_s, reason)


def _due(pipeline: Pipeline) -> bool:
    """None are due once the last one is taken, nor in a job that takes none before its end."""
    return pipeline.status is ACTIVE and pipeline.final is None and pipeline.policy.periodic


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
