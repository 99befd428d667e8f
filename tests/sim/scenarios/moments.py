"""Moments of a history, for scenarios to wait for."""

from collections.abc import Callable

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.completion import CompletionStatus
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from tests.sim.engine.world import Event, Match


def pipeline(match: Callable[[PipelineRecord], object], job: str = "j", number: int = 1) -> Match:
    """A pipeline record was written that looks like this."""

    def found(event: Event) -> bool:
        record = event.get("record")
        ours = isinstance(record, PipelineRecord) and (record.job, record.number) == (job, number)
        return event["kind"] == "write" and ours and bool(match(record))  # type: ignore[arg-type]

    return found


def job(*statuses: str, id: str = "j", life: str = "") -> Match:
    """A job record was written with one of these statuses."""

    def found(event: Event) -> bool:
        record = event.get("record")
        ours = isinstance(record, JobRecord) and record.id == id and event["key"].startswith("job/")
        return (
            event["kind"] == "write"
            and ours
            and record.status in statuses  # type: ignore[union-attr]
            and life in ("", record.incarnation)  # type: ignore[union-attr]
        )

    return found


def event(kind: str, **facts: object) -> Match:
    """Something of a kind happened, with these facts."""
    return lambda e: e["kind"] == kind and all(e.get(k) == v for k, v in facts.items())


def elected(event: Event) -> bool:
    """A master won an election."""
    return event["kind"] == "write" and event["key"] == "leader" and "record" in event


def gone(job: str) -> Match:
    """A job's record was deleted."""
    return lambda e: e["kind"] == "write" and e["key"] == f"job/{job}" and bool(e.get("deleted"))


def ready(count: int) -> Callable[[PipelineRecord], bool]:
    """So many sources are at their end."""
    return lambda p: len(p.completion.ready) >= count


def complete(number: int) -> Callable[[PipelineRecord], bool]:
    """The nth checkpoint, or a later one, is complete."""
    return lambda p: p.checkpoints.latest is not None and p.checkpoints.latest.number >= number


def committed(number: int) -> Callable[[PipelineRecord], bool]:
    """Commits are done through a number."""
    return lambda p: p.commits.listened >= number


def ended(p: PipelineRecord) -> bool:
    """Every source is at its end."""
    return p.completion.status is CompletionStatus.ENDED


def pending(kind: CheckpointKind, number: int = 0) -> Callable[[PipelineRecord], bool]:
    """A checkpoint of a kind is on its way."""
    return lambda p: (
        p.checkpoints.pending is not None
        and p.checkpoints.pending.kind is kind
        and p.checkpoints.pending.number >= number
    )


def attempt(task: str, least: int = 2) -> Callable[[PipelineRecord], bool]:
    """A task has begun a later attempt, and it runs."""
    return lambda p: any(
        t.id == task and t.attempt >= least and t.status == "running" for t in p.tasks
    )


def running(p: PipelineRecord) -> bool:
    """Every task runs."""
    return all(t.status == "running" for t in p.tasks)
