"""What happened to a job, in order, with dates and terms: for people, under any leader.

A record's trail is one key next to it, written in the same commit as the change it reports: it
costs no commit of its own, and is as true as the record.  It is short and nothing is decided by it;
one that cannot be read is started again.  When a job is buried its trails become one key of the
past.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from holdfast.core.checkpoint import CheckpointStored, Completed, Pending
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.machine import Event
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskRecord, TaskStatus
from holdfast.store.contract import Put

log = logging.getLogger("holdfast")

TRAIL = "trail/"
PAST = "past/"
VERSION = 1
CHECKPOINTS_KEPT, CHECKPOINTS_SHOWN = 50, 128
EVENTS_KEPT, EVENTS_SHOWN = 50, 256
"""So many are durable; so many a leader that saw them can show."""
FIRST_KEPT = 3
REASON_MAX = 300


class EndedCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint that is over.  None: the leader that saw it begin is gone, and did not say."""

    number: int
    kind: str
    complete: bool
    term: int
    ended_s: float
    started_s: float | None = None
    took_s: float | None = None
    size: int | None = None
    rows: int | None = None
    bytes: int | None = None
    reason: str = ""


class StatusChange(msgspec.Struct, frozen=True, array_like=True):
    """A change of state.  `what` is job, pipeline, task or leader."""

    at_s: float
    what: str
    status: str
    term: int = 0
    reason: str = ""
    task: str = ""
    attempt: int = 0
    worker: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointStart:
    """A checkpoint on its way, as this leader saw it begin."""

    pending: Pending
    at_s: float
    clock_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """The moment of a change: its date, a clock that only measures, and whose term it is.

    `term` is counted for people; `numbers` gives that of the terms that records name.
    """

    at_s: float
    clock_s: float
    term: int
    numbers: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventHistory:
    """What is known to have happened to one record, the oldest first.  `under` is memory only."""

    checkpoints: tuple[EndedCheckpoint, ...] = ()
    events: tuple[StatusChange, ...] = ()
    under: CheckpointStart | None = None

    def grown(self, before: "EventHistory", record: str) -> list[Put]:
        """Return what is to be written of the trail of a record: nothing, if there is no more."""
        if self.checkpoints is before.checkpoints and self.events is before.events:
            return []
        return [Put(trail_key(record), self.encoded())]

    def noting(self, *events: StatusChange) -> "EventHistory":
        """Return it with more events."""
        if not events:
            return self
        return replace(self, events=_short((*self.events, *events), EVENTS_SHOWN))

    @classmethod
    def begun(cls, record: JobRecord | PipelineRecord, seen: Moment) -> "EventHistory":
        """Return the first lines about a record that has none: its status."""
        if isinstance(record, JobRecord):
            submitted = StatusChange(round(record.since_s, 3), "job", "SUBMITTED")
            if record.status is JobStatus.PENDING:
                seen = replace(seen, at_s=record.since_s)
            return EventHistory(events=(submitted, _job_line(record, seen)))
        fresh = not record.checkpoints.latest and all(
            t.attempt == 1 and t.status is TaskStatus.WAITING for t in record.tasks
        )
        if fresh:
            seen = replace(seen, at_s=record.since_s)
        # A record older than trails still has its checkpoints, but not their terms.
        kept = record.checkpoints.kept
        known = tuple(
            EndedCheckpoint(
                c.number, c.kind.value, True, 0, c.at_s, None, None, None, *_added(record, c)
            )
            for c in kept
        )
        return EventHistory(known, tuple(_part_lines(None, record, seen)))

    def after_job(self, old: JobRecord, new: JobRecord, seen: Moment) -> "EventHistory":
        """Return it after a change of a job."""
        return self.noting(_job_line(new, seen)) if new.status is not old.status else self

    def after_pipeline(
        self, old: PipelineRecord, new: PipelineRecord, event: Event, seen: Moment
    ) -> "EventHistory":
        """Return it after a change of a pipeline."""
        before, pending = old.checkpoints.pending, new.checkpoints.pending
        trail = self.noting(*_part_lines(old, new, seen))
        if before and before != pending:
            over = _over(trail.under, before, old, new, event, seen)
            checkpoints = (*trail.checkpoints, over)[-CHECKPOINTS_SHOWN:]
            trail = replace(trail, checkpoints=checkpoints, under=None)
        if pending and pending != before:
            trail = replace(trail, under=CheckpointStart(pending, seen.at_s, seen.clock_s))
        return trail

    def encoded(self) -> bytes:
        """Return it as the store keeps it."""
        return msgspec.json.encode(_stored(self))

    @classmethod
    def decoded(cls, value: bytes | None, key: str) -> "EventHistory | None":
        """Read a trail back; None if there is none, or none that this code can read."""
        if value is None:
            return None
        try:
            return _read(msgspec.json.decode(value, type=_Stored))
        except (msgspec.DecodeError, ValueError) as error:
            log.warning("what happened before is not shown: %s cannot be read: %s", key, error)
            return None


class _Stored(msgspec.Struct):
    version: int
    checkpoints: tuple[EndedCheckpoint, ...]
    events: tuple[StatusChange, ...]


class _Past(msgspec.Struct):
    version: int
    parts: dict[int, _Stored]


def trail_key(record: str) -> str:
    """Return the key of the trail of a record, `job/ID` or `pipeline/ID/NUMBER`."""
    kind, _, rest = record.partition("/")
    return f"{TRAIL}{rest}/0000" if kind == "job" else f"{TRAIL}{rest}"


def past_key(job: str, incarnation: str) -> str:
    """Return the key of what happened to an incarnation whose records are deleted."""
    return f"{PAST}{job}/{incarnation}"


def encode_past(trails: Mapping[int, EventHistory]) -> bytes:
    """Return all trails of an incarnation, 0 being the job's, as one value."""
    return msgspec.json.encode(_Past(VERSION, {n: _stored(t) for n, t in trails.items()}))


def decode_past(value: bytes, key: str) -> dict[int, EventHistory]:
    """Read the trails of a deleted incarnation back; empty if this code cannot."""
    try:
        past = msgspec.json.decode(value, type=_Past)
        return {number: _read(stored) for number, stored in past.parts.items()}
    except (msgspec.DecodeError, ValueError) as error:
        log.warning("what happened before is not shown: %s cannot be read: %s", key, error)
        return {}


def leads(name: str, seen: Moment) -> StatusChange:
    """Return the line that says that another master leads."""
    said = f"{name} leads in term {seen.term}"
    return StatusChange(round(seen.at_s, 3), "leader", "LEADS", seen.term, said)


def _stored(trail: EventHistory) -> _Stored:
    events = _short(trail.events, EVENTS_KEPT)
    return _Stored(VERSION, trail.checkpoints[-CHECKPOINTS_KEPT:], events)


def _short(events: tuple[StatusChange, ...], most: int) -> tuple[StatusChange, ...]:
    """Return how it began and the latest: when a job first ran is asked for at its end."""
    if len(events) <= most:
        return events
    return (*events[:FIRST_KEPT], *events[FIRST_KEPT - most :])


def _read(stored: _Stored) -> EventHistory:
    if stored.version != VERSION:
        raise ValueError(f"it has version {stored.version}")
    return EventHistory(stored.checkpoints, stored.events)


def _over(
    under: CheckpointStart | None,
    pending: Pending,
    old: PipelineRecord,
    new: PipelineRecord,
    event: Event,
    seen: Moment,
) -> EndedCheckpoint:
    known = under if under and under.pending == pending else None
    started_s = round(known.at_s, 3) if known else None
    took_s = round(seen.clock_s - known.clock_s, 4) if known else None
    done, term = new.checkpoints.latest, seen.numbers.get(pending.term, pending.term)
    if done is None or done.number != pending.number:
        reason = (new.checkpoints.last_failure or "it was given up")[:REASON_MAX]
        return EndedCheckpoint(
            pending.number, pending.kind.value, False, term, round(seen.at_s, 3),
            started_s, took_s, reason=reason,
        )  # fmt: skip
    size = event.size if isinstance(event, CheckpointStored) else None
    return EndedCheckpoint(
        done.number, done.kind.value, True, term, round(done.at_s, 3), started_s, took_s,
        size, *_added(old, done),
    )  # fmt: skip


def _added(old: PipelineRecord, done: Completed) -> tuple[int | None, int | None]:
    """Return the rows and bytes that a checkpoint added to those before it."""
    before = next((c for c in old.checkpoints.kept if c.number == done.previous), None)
    if before:
        return done.totals.written - before.totals.written, done.totals.bytes - before.totals.bytes
    return (done.totals.written, done.totals.bytes) if not done.previous else (None, None)


def _job_line(job: JobRecord, seen: Moment) -> StatusChange:
    return StatusChange(
        round(seen.at_s, 3), "job", job.status.value, seen.term, job.reason[:REASON_MAX]
    )


def _part_lines(
    old: PipelineRecord | None, new: PipelineRecord, seen: Moment
) -> Iterator[StatusChange]:
    at_s = round(seen.at_s, 3)
    if old is None or new.status is not old.status:
        yield StatusChange(at_s, "pipeline", new.status.value.upper(), seen.term)
    if old and old.tasks is new.tasks:
        return
    known = {t.id: t for t in old.tasks} if old else {}
    for task in new.tasks:
        yield from _task_lines(new, known.get(task.id), task, at_s, seen.term)


def _task_lines(
    pipeline: PipelineRecord, old: TaskRecord | None, task: TaskRecord, at_s: float, term: int
) -> Iterator[StatusChange]:
    if old and (old.status, old.attempt, old.place) == (task.status, task.attempt, task.place):
        return
    if old and old.place and task.moves != old.moves:
        yield StatusChange(
            at_s, "task", "MOVED", term, f"worker {old.place.worker} is draining", task.id,
            old.attempt, old.place.worker,
        )  # fmt: skip
    elif old and task.attempt != old.attempt:
        failed = [f for f in pipeline.failures if f.task == task.id]
        why = failed[-1].reason if failed else "it is restarted"
        worker = old.place.worker if old.place else ""
        yield StatusChange(
            at_s, "task", "FAILED", term, why[:REASON_MAX], task.id, old.attempt, worker
        )  # fmt: skip
    worker = task.place.worker if task.place else ""
    yield StatusChange(
        at_s, "task", task.status.value.upper(), term, "", task.id, task.attempt, worker
    )
