"""The bounded end: which sources of a pipeline have been read to their end.

An entry is durable as soon as it is reported, one by one, and is bound to the attempt and the
worker incarnation that said so.  A task that is restarted reads again, so its entries go in the
same step that records its new attempt.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from holdfast.core.machine import TransitionTable
from holdfast.core.task import TaskRecord, WorkerId


class CompletionStatus(StrEnum):
    """Whether rows may still come."""

    READING = "reading"
    ENDED = "ended"


READING, ENDED = CompletionStatus


@dataclass(frozen=True, slots=True)
class SourceEnded:
    """A task has read one of its sources to the end."""

    label: ClassVar[str] = "SourceEnded"

    task: str
    source: str
    attempt: int
    place: WorkerId


@dataclass(frozen=True, slots=True)
class TasksChanged:
    """Tasks may have begun a new attempt."""

    label: ClassVar[str] = "TasksChanged"

    tasks: tuple[TaskRecord, ...]


COMPLETION = TransitionTable(
    "completion",
    [
        # from    on            to
        (READING, SourceEnded, READING),  # others are still missing, or the report is late
        (READING, SourceEnded, ENDED),
        (READING, TasksChanged, READING),
        (ENDED, SourceEnded, ENDED),  # reports are repeated until they are answered
        (ENDED, TasksChanged, READING),  # a task is restarted and will read again
    ],
)


@dataclass(frozen=True, slots=True, order=True)
class SourceEnd:
    """One source at its end, as one attempt reported it."""

    source: str
    task: str
    attempt: int
    incarnation: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The sources of a pipeline, and those that are at their end."""

    sources: tuple[str, ...]
    ready: tuple[SourceEnd, ...] = ()

    @property
    def status(self) -> CompletionStatus:
        """Whether every source has ended.  A pipeline without sources never does."""
        at_end = {r.source for r in self.ready}
        return ENDED if self.sources and at_end == set(self.sources) else READING

    def has(self, event: SourceEnded) -> bool:
        """Say whether exactly this report is recorded, so that it may be answered."""
        return _entry(event) in self.ready


def step(old: Completion, event: object, tasks: tuple[TaskRecord, ...]) -> Completion:
    """Return the completion after `event`; `tasks` are the present attempts."""
    new = old
    match event:
        case SourceEnded(task, source, attempt, place):
            speaks = next((t for t in tasks if t.id == task and t.runs_as(attempt, place)), None)
            if speaks and source in speaks.sources and source in old.sources:
                kept = [r for r in old.ready if r.source != source]
                new = Completion(old.sources, tuple(sorted([*kept, _entry(event)])))
        case TasksChanged(now):
            attempts = {(t.id, t.attempt) for t in now}
            kept = [r for r in old.ready if (r.task, r.attempt) in attempts]
            new = Completion(old.sources, tuple(kept))
    COMPLETION.check(old.status, event, new.status)
    return new


def _entry(event: SourceEnded) -> SourceEnd:
    return SourceEnd(event.source, event.task, event.attempt, event.place.incarnation)
