"""The shapes of the master's answers, for its routes and for the client alike."""

from collections.abc import Iterable, Mapping

import msgspec

from holdfast.core.job import TERMINAL, Job
from holdfast.core.pipeline import Pipeline
from holdfast.core.task import Task
from holdfast.master.crew import Crew
from holdfast.master.health import Health, Report
from holdfast.master.records import RecordUnreadable, decode
from holdfast.store.contract import Item
from holdfast.wire.messages import Held

ENDED = frozenset({*(s.value for s in TERMINAL), "DAMAGED"})
"""The statuses in which a job does nothing more."""


class Submit(msgspec.Struct, forbid_unknown_fields=True):
    """A job to run: its file, read and filled in by the client."""

    spec: str
    token: str
    job_id: str = ""
    restore: bool = False


class Accepted(msgspec.Struct):
    """A job was accepted, or what was asked of it is durable."""

    job_id: str
    name: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)


class JobRow(msgspec.Struct):
    """A job in a list."""

    job_id: str
    incarnation: str
    name: str
    status: str
    reason: str
    since_s: float
    ended_s: float


class JobList(msgspec.Struct):
    """All jobs that are known, as of a revision of the store."""

    revision: int
    jobs: list[JobRow]


class TaskView(msgspec.Struct):
    """A task: where it runs and which try it is."""

    task: str
    status: str
    attempt: int
    slots: int
    worker: str
    worker_incarnation: str
    read: int
    written: int
    waits: str


class FailureView(msgspec.Struct):
    """Why an attempt ended."""

    task: str
    attempt: int
    reason: str


class PipelineView(msgspec.Struct):
    """A pipeline of a job."""

    pipeline: int
    status: str
    health: str
    checkpoint: int
    checkpoint_at_s: float
    checkpoint_age_s: float | None
    committed: int
    reason: str
    retries: int
    tasks: list[TaskView]
    failures: list[FailureView]


class JobDetail(msgspec.Struct):
    """A job with all that is known of it.

    `live`: the leader says so, health and counters included; else it is what the store holds.
    """

    job_id: str
    incarnation: str
    name: str
    status: str
    reason: str
    since_s: float
    ended_s: float
    health: str
    read: int
    written: int
    bytes: int
    live: bool
    revision: int
    leader: str
    pipelines: list[PipelineView]


class WorkerView(msgspec.Struct):
    """A worker in contact with the leader."""

    worker: str
    incarnation: str
    slots: int
    held: int
    tags: dict[str, str]
    heard_s_ago: float


class ClusterView(msgspec.Struct):
    """Who leads, and who works."""

    leader: str
    url: str
    term: int
    workers: list[WorkerView]
    set_aside: dict[str, str]


class LogLines(msgspec.Struct):
    """What one master has logged about a job."""

    master: str
    lines: list[dict[str, object]]


class Problem(msgspec.Struct):
    """Why a request was not done.  `retryable`: the same request may work later."""

    code: str
    message: str
    retryable: bool = False
    leader: str = ""
    mistakes: list[tuple[str, int, int, str]] = msgspec.field(default_factory=list)
    warnings: list[tuple[str, int, int, str]] = msgspec.field(default_factory=list)


def row(item: Item) -> JobRow:
    """Return the row of a job record, or of what stayed of it."""
    try:
        job = decode(Job, item.value)
    except RecordUnreadable as error:
        return JobRow(item.key.split("/")[1], "", "", "DAMAGED", str(error), 0.0, 0.0)
    return JobRow(
        job.id, job.incarnation, job.name, job.status.value, job.reason, job.since_s, job.ended_s
    )


def detail(
    job: Job,
    pipelines: Iterable[Pipeline],
    *,
    revision: int,
    leader: str,
    reports: Mapping[int, Report] | None = None,
    held: Mapping[tuple[int, str], Held] | None = None,
    waits: Mapping[tuple[int, str], str] | None = None,
    live: bool = False,
) -> JobDetail:
    """Return all about a job, from its records and, if `live`, from what the leader hears."""
    views = [_pipeline(p, reports or {}, held or {}, waits or {}) for p in pipelines]
    states = [v.health for v in views]
    health = next((h for h in (Health.STALLED, Health.LATE) if h in states), Health.OK)
    tasks = [t for v in views for t in v.tasks]
    done = [p.checkpoints.latest.totals for p in pipelines if p.checkpoints.latest]
    over = job.status in TERMINAL
    return JobDetail(
        job.id, job.incarnation, job.name, job.status.value, job.reason, job.since_s, job.ended_s,
        health.value,
        job.totals.read if over else max(sum(d.read for d in done), sum(t.read for t in tasks)),
        job.totals.written if over else sum(d.written for d in done),
        job.totals.bytes if over else sum(d.bytes for d in done),
        live, revision, leader, views,
    )  # fmt: skip


def workers(crew: Crew, now_s: float) -> list[WorkerView]:
    """Return the workers in contact."""
    return [
        WorkerView(
            seen.hello.worker, incarnation, seen.hello.slots, len(seen.hello.held),
            dict(seen.hello.tags), round(now_s - seen.at_s, 3),
        )
        for incarnation, seen in sorted(crew.seen.items())
    ]  # fmt: skip


def _pipeline(
    pipeline: Pipeline,
    reports: Mapping[int, Report],
    held: Mapping[tuple[int, str], Held],
    waits: Mapping[tuple[int, str], str],
) -> PipelineView:
    number, latest = pipeline.number, pipeline.checkpoints.latest
    report = reports.get(number)
    return PipelineView(
        number,
        pipeline.status.value,
        report.health.value if report else Health.OK.value,
        latest.number if latest else 0,
        latest.at_s if latest else 0.0,
        round(report.age_s, 3) if report else None,
        pipeline.commits.through,
        report.reason if report else "",
        pipeline.retries,
        [_task(t, held.get((number, t.id)), waits.get((number, t.id), "")) for t in pipeline.tasks],
        [FailureView(f.task, f.attempt, f.reason) for f in pipeline.failures],
    )


def _task(task: Task, held: Held | None, waits: str) -> TaskView:
    place = task.place
    counts = (held.read, held.written) if held and held.attempt == task.attempt else (0, 0)
    return TaskView(
        task.id, task.status.value, task.attempt, task.slots,
        place.worker if place else "", place.incarnation if place else "", *counts, waits,
    )  # fmt: skip
