"""Moments of a pipeline's record, for scenarios to wait for."""

from collections.abc import Callable

from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskStatus

Moment = Callable[[PipelineRecord], bool]


def complete(number: int) -> Moment:
    """The nth checkpoint, or a later one, is complete."""
    return lambda p: p.checkpoints.latest is not None and p.checkpoints.latest.number >= number


def committed(number: int) -> Moment:
    """Commits are done through a number."""
    return lambda p: p.commits.through >= number


def ready(count: int) -> Moment:
    """So many sources are at their end."""
    return lambda p: len(p.completion.ready) >= count


def attempt(number: int, task: str = "") -> Moment:
    """A task (any) has come to this attempt."""
    return lambda p: any(t.attempt >= number for t in p.tasks if task in ("", t.id))


def running(p: PipelineRecord) -> bool:
    """Every task runs."""
    return all(t.status is TaskStatus.RUNNING for t in p.tasks)


def final(p: PipelineRecord) -> bool:
    """The final checkpoint is complete."""
    return p.final is not None
