"""The way back from a checkpoint that is lost: to the one before it, or not at all.

A complete checkpoint whose blob is missing or damaged is never used.  Going back is right only if
it loses nothing and shows nothing twice: the one before it must be there, and nobody may have begun
to make the lost one visible.  Where that cannot be known the pipeline fails, loudly.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.core import checkpoint, commit, completion, task
from holdfast.core.checkpoint import CheckpointKind, CheckpointLost
from holdfast.core.completion import TasksChanged
from holdfast.core.task import TaskRolledBack, TaskStatus

if TYPE_CHECKING:  # a pipeline's step goes this way, so it imports us
    from holdfast.core.pipeline import PipelineRecord


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

    All tasks begin anew there: one that started from the lost one lacks what only that one held.
    """
    tasks = tuple(task.step(t, TaskRolledBack()) for t in old.tasks)
    return replace(
        old,
        tasks=tasks,
        completion=completion.step(old.completion, TasksChanged(tasks), tasks),
        checkpoints=checkpoint.step(old.checkpoints, event),
        commits=commit.step(old.commits, event),
    )
