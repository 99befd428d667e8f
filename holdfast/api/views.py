"""The shapes of the master's answers, for its routes and for the client alike."""

from typing import Any

import msgspec

from holdfast.api.problems import Problem as Problem
from holdfast.core.job import TERMINAL, JobRecord
from holdfast.master.records import RecordUnreadable, decode
from holdfast.plan.masking import masked_text
from holdfast.store.contract import Item

ENDED = frozenset({*(s.value for s in TERMINAL), "DAMAGED"})
"""The statuses in which a job does nothing more."""


class Submit(msgspec.Struct, forbid_unknown_fields=True):
    """A job to run: its file, read and filled in by the client.

    `maps` and `allow_dropped` say what becomes of sources and sinks that a restore does not find
    again: old id or uid -> new one, or `none`.

    `restore`: go on from the latest saved state of the job, or from that of job `source`; `number`
    names another one.  `spec` "": with the file that it was saved with.  `write_again`: even if
    rows that show already are then written once more.
    """

    spec: str
    token: str
    job_id: str = ""
    restore: bool = False
    maps: dict[str, str] = msgspec.field(default_factory=dict)
    allow_dropped: bool = False
    source: str = ""
    number: int = 0
    write_again: bool = False


class SavedView(msgspec.Struct):
    """What a life of a job has left to go on from.

    `state` is the number by which it is named.  `rows` are those it had written by then; `past`
    says which lives have shown more since, so that it is no place to go on from.  `unfinished`
    counts commits that are complete and not visible; the next life makes them first.
    """

    job_id: str
    state: int
    kind: str
    name: str
    ended_s: float
    rows: int
    checkpoints: dict[int, int]
    unfinished: int
    retained_s: float
    expires_in_s: float | None
    past: list[str]


class Accepted(msgspec.Struct):
    """A job was accepted, or what was asked of it is durable.

    `restored` says of each source and sink whether it goes on, is new or was dropped.
    """

    job_id: str
    name: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
    restored: list[str] = msgspec.field(default_factory=list)


class JobRow(msgspec.Struct):
    """A job in a list.

    `health_reason` says in words why it is LATE or STALLED.  `checkpoint_age_s` is that of the
    oldest of its pipelines' last checkpoints, None where nobody measures it now; `commit_age_s`
    that of the oldest one that is complete and not visible, None if there is none.  `written` rows
    are committed ones, `rejected` ones were read and left out; `restarts` counts attempts that were
    lost or failed.
    """

    job_id: str
    incarnation: str
    name: str
    status: str
    reason: str
    since_s: float
    ended_s: float
    health: str = ""
    health_reason: str = ""
    checkpoint_at_s: float = 0.0
    checkpoint_age_s: float | None = None
    read: int = 0
    written: int = 0
    bytes: int = 0
    read_per_s: float = 0.0
    written_per_s: float = 0.0
    restarts: int = 0
    mode: str = ""
    rejected: int = 0
    commit_age_s: float | None = None


class JobList(msgspec.Struct):
    """Jobs, as of a revision of the store.  `total` counts all that were asked for."""

    revision: int
    jobs: list[JobRow]
    total: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=dict)


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
    read_per_s: float = 0.0
    written_per_s: float = 0.0
    rejected: int = 0


class FailureView(msgspec.Struct):
    """Why an attempt ended."""

    task: str
    attempt: int
    reason: str


class PipelineView(msgspec.Struct):
    """A pipeline of a job.

    `commit` is the oldest checkpoint that is complete and not visible, or whose listeners have not
    run (0: none), and `commit_age_s` how long it has been complete.
    """

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
    periodic: bool = True
    interval_s: float | None = None
    committed_rows: int | None = None
    watermark_ms: int | None = None
    retry_times: int = 0
    sinks: list[str] = msgspec.field(default_factory=list)
    commit: int = 0
    commit_age_s: float | None = None


class JobDetail(msgspec.Struct):
    """A job with all that is known of it.

    `live`: the leader says so, health and counters included; else it is what the store holds.
    `guarantees` says what each sink promises.  `watermark_ms` and `lag_s` are None where no source
    of the job knows event times.  `commit_age_s` is that of the oldest checkpoint that is complete
    and not visible, or whose listeners have not run; None if there is none.
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
    health_reason: str = ""
    checkpoint_at_s: float = 0.0
    checkpoint_age_s: float | None = None
    started_s: float = 0.0
    mode: str = ""
    file: str = ""
    guarantees: dict[str, str] = msgspec.field(default_factory=dict)
    committed_rows: int | None = None
    watermark_ms: int | None = None
    lag_s: float | None = None
    restarts: int = 0
    read_per_s: float = 0.0
    written_per_s: float = 0.0
    from_savepoint: bool = False
    rejected: int = 0
    commit_age_s: float | None = None


class WorkerView(msgspec.Struct):
    """A worker in contact with the leader.

    `cpu` is how many cores it and its Spark use, `memory` how many bytes; None if it did not say.
    `draining` says why it gets no task, and its tasks go on elsewhere; "" for one that gets some.
    `trouble` says what is wrong with its Spark, which has not answered for `silent_s`.
    """

    worker: str
    incarnation: str
    slots: int
    held: int
    tags: dict[str, str]
    heard_s_ago: float
    used: int = 0
    tasks: list["HeldView"] = msgspec.field(default_factory=list)
    cpu: float | None = None
    cores: int | None = None
    memory: int | None = None
    memory_total: int | None = None
    draining: str = ""
    trouble: str = ""
    silent_s: float = 0.0


class HeldView(msgspec.Struct):
    """A task that a worker says it holds.

    `moves` says where a task of a draining worker goes on, or why it cannot leave yet.
    """

    job_id: str
    pipeline: int
    task: str
    attempt: int
    read: int
    written: int
    read_per_s: float
    written_per_s: float
    failure: str
    moves: str = ""


class ClusterView(msgspec.Struct):
    """Who leads, and who works.  `drained` workers get no task, whether they are there or not."""

    leader: str
    url: str
    term: int
    workers: list[WorkerView]
    set_aside: dict[str, str]
    slots: int = 0
    slots_used: int = 0
    version: str = ""
    drained: list[str] = msgspec.field(default_factory=list)


class LogLines(msgspec.Struct):
    """What one master has logged about a job."""

    master: str
    lines: list[dict[str, Any]]


def row(item: Item) -> JobRow:
    """Return the row of a job record, or of what stayed of it."""
    try:
        job = decode(JobRecord, item.value)
    except RecordUnreadable as error:
        return JobRow(item.key.split("/")[1], "", "", "DAMAGED", str(error), 0.0, 0.0)
    return row_of(job)


def row_of(job: JobRecord) -> JobRow:
    """Return the row of a job as its record shows it."""
    totals = job.totals
    return JobRow(
        job.id, job.incarnation, job.name, job.status.value, masked_text(job.reason), job.since_s,
        job.ended_s, read=totals.read, written=totals.written, bytes=totals.bytes,
        rejected=totals.rejected,
    )  # fmt: skip
