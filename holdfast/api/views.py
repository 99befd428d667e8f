"""The shapes of the master's answers, for its routes and for the client alike."""

from typing import Any

import msgspec

from holdfast.core.job import TERMINAL

ENDED = frozenset({*(s.value for s in TERMINAL), "DAMAGED"})
"""The statuses in which a job does nothing more."""


class StageView(msgspec.Struct):
    """A stage of the graph: `vertex` is its number in SeaTunnel's answers."""

    id: str
    vertex: int
    role: str
    plugin: str
    inputs: list[str]
    output: str
    parallelism: int
    line: int
    guarantee: str
    tables: list[str]


class PartView(msgspec.Struct):
    """A pipeline of the graph: which stages each of its tasks runs."""

    pipeline: int
    tasks: dict[str, list[str]]


class CheckpointView(msgspec.Struct):
    """One checkpoint, complete or not.  None: the leader that saw it begin did not say.

    `rows` and `bytes` are what it added to the tables; `size` is that of its blob.
    """

    number: int
    kind: str
    outcome: str
    started_s: float | None
    ended_s: float
    duration_s: float | None
    size: int | None
    rows: int | None
    bytes: int | None
    reason: str
    term: int


class TimelineEvent(msgspec.Struct):
    """A change of state.  `what` is job, pipeline, task or leader."""

    at_s: float
    what: str
    status: str
    pipeline: int = 0
    task: str = ""
    attempt: int = 0
    worker: str = ""
    term: int = 0
    reason: str = ""


class SavedView(msgspec.Struct):
    """A saved state: what an incarnation of a job has left to continue from.

    `state` is the number by which it is named.  `rows` are those it had written by then; `past`
    names incarnations that have made more visible since, so that it cannot be continued from.
    `unfinished` counts commits that are complete and not visible; the next incarnation makes them
    first.
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
    """A job was accepted, or the order about it is durable.

    `restored` says of each source and sink whether it continues, is new or was dropped.
    """

    job_id: str
    name: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
    restored: list[str] = msgspec.field(default_factory=list)


class JobRow(msgspec.Struct):
    """A job in a list.

    `health_reason` says in words why it is LATE or STALLED.  `checkpoint_age_s` is that of the
    oldest of its pipelines' last checkpoints, None where it is not measured now; `commit_age_s`
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
    `draining` says why it gets no task and its tasks move; "" for a worker that gets tasks.
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

    `moves` says where a task of a draining worker moves, or why it cannot move yet.
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


class Overview(msgspec.Struct):
    """The cluster at a glance.  `live`: this is the leader's own answer, health included."""

    version: str
    master: str
    leader: str
    url: str
    term: int
    live: bool
    change: int
    by_status: dict[str, int]
    by_health: dict[str, int]
    running: int
    waiting: int
    workers: int
    slots: int
    slots_used: int
    read_per_s: float
    written_per_s: float
    worst: list[JobRow]
    set_aside: dict[str, str]


class PartGraph(msgspec.Struct):
    """A pipeline of a job's graph."""

    pipeline: int
    status: str
    health: str
    tasks: list[TaskView]
    stages_of: dict[str, list[str]]


class TableCount(msgspec.Struct):
    """What the last complete checkpoint has counted for one table of one sink.

    `destination` is where its rows are, as people name it; "" if the sink does not say.
    """

    sink: str
    table: str
    rows: int
    bytes: int
    destination: str = ""


class Graph(msgspec.Struct):
    """A job's stages, which feeds which, and how fast its tasks are."""

    job_id: str
    live: bool
    problem: str
    stages: list[StageView]
    pipelines: list[PartGraph]
    tables: list[TableCount]


class Gap(msgspec.Struct):
    """A time without a complete checkpoint that was longer than two intervals."""

    from_s: float
    to_s: float


class InProgress(msgspec.Struct):
    """A checkpoint on its way."""

    number: int
    kind: str
    started_s: float
    answered: int
    total: int
    missing: list[str]


class PartCheckpoints(msgspec.Struct):
    """The checkpoints of one pipeline, the newest first.

    The counts are since this leader took over; `next` is the number the next one will have.
    """

    pipeline: int
    interval_s: float | None
    next: int
    triggered: int
    completed: int
    failed: int
    restored: int
    failed_in_a_row: int
    last_failure: str
    in_progress: InProgress | None
    history: list[CheckpointView]
    gaps: list[Gap]


class CheckpointsView(msgspec.Struct):
    """A job's checkpoints.  `since_s`: from when on this leader has seen every one of them."""

    job_id: str
    live: bool
    since_s: float
    pipelines: list[PartCheckpoints]


class Timeline(msgspec.Struct):
    """What happened to a job, the oldest first."""

    job_id: str
    live: bool
    events: list[TimelineEvent]


class FailureDetail(msgspec.Struct):
    """Why an attempt ended.  `at_s` is 0 where it was before this leader's time."""

    pipeline: int
    task: str
    attempt: int
    at_s: float
    worker: str
    reason: str
    stack: str


class Failures(msgspec.Struct):
    """The last failures of a job, the newest first."""

    job_id: str
    restarts: int
    failures: list[FailureDetail]


class ConfigView(msgspec.Struct):
    """What a job's file says, after includes and variables, without secrets."""

    job_id: str
    file: str
    mode: str
    config: dict[str, Any]
    problem: str


class ProblemView(msgspec.Struct):
    """A mistake or a warning, with its place; lines and columns count from 1."""

    file: str
    line: int
    column: int
    message: str


class CheckResult(msgspec.Struct):
    """What is wrong with a job file; `ok` if nothing is."""

    ok: bool
    mistakes: list[ProblemView]
    warnings: list[ProblemView]
    plan: dict[str, Any]


class Connected(msgspec.Struct):
    """What a worker found.  `ok`: it is done, all was looked at, and nothing is wrong.

    `problem`: why not all could be looked at; `mistakes` are then those that were found by then.
    """

    done: bool
    ok: bool
    token: str
    worker: str = ""
    problem: str = ""
    mistakes: list[ProblemView] = msgspec.field(default_factory=list)
    warnings: list[ProblemView] = msgspec.field(default_factory=list)


class OptionView(msgspec.Struct):
    """One option of a connector, for forms.  `choices` where only these are good."""

    key: str
    kind: str
    required: bool
    default: Any
    doc: str
    aliases: list[str]
    secret: bool
    choices: list[str]
    options: list["OptionView"]


class ConnectorView(msgspec.Struct):
    """A connector and its options."""

    name: str
    role: str
    summary: str
    refused: str
    guarantee: str
    needs_python: bool
    notes: str
    options: list[OptionView]


class ConnectorRow(msgspec.Struct):
    """A connector in the list."""

    name: str
    role: str
    summary: str
    refused: str
    guarantee: str


class Me(msgspec.Struct):
    """Who asks, as this master sees it.  `masters` are the URLs of all masters it knows of."""

    name: str
    role: str
    permissions: list[str]
    master: str
    leads: bool
    masters: list[str] = msgspec.field(default_factory=list)


class ChangeView(msgspec.Struct):
    """How often what this master shows has changed; ask again with it to wait for more."""

    change: int
    term: int
    leads: bool


class AuditLines(msgspec.Struct):
    """The last lines of one master's audit log."""

    master: str
    lines: list[dict[str, Any]]


class Done(msgspec.Struct):
    """What was asked is done."""

    done: bool = True


class Healthy(msgspec.Struct):
    """This process answers."""

    ok: bool = True
