"""The shapes of what /api tells beyond jobs and the cluster, for its routes and for the client."""

from typing import Any

import msgspec

from holdfast.api.job_graph import StageView
from holdfast.api.timeline import CheckpointView, Happened
from holdfast.api.views import JobRow, TaskView


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


class Checkpoints(msgspec.Struct):
    """A job's checkpoints.  `since_s`: from when on this leader has seen every one of them."""

    job_id: str
    live: bool
    since_s: float
    pipelines: list[PartCheckpoints]


class Timeline(msgspec.Struct):
    """What happened to a job, the oldest first."""

    job_id: str
    live: bool
    events: list[Happened]


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


class CheckText(msgspec.Struct, forbid_unknown_fields=True):
    """The text of a job file, to be checked or run.

    `format` is hocon, json, yaml or sql; by the ending of `file` where it is not given.
    """

    text: str
    format: str = ""
    file: str = "job.conf"
    name: str = ""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    lenient: bool = False
    allow_unset: bool = False


class SubmitText(CheckText, forbid_unknown_fields=True):
    """A job to run, as its text.  `token` makes a repeated submit the same one.

    `maps` and `allow_dropped` say what becomes of sources and sinks that a restore does not find
    again: old id or uid -> new one, or `none`.
    """

    job_id: str = ""
    token: str = ""
    restore: bool = False
    maps: dict[str, str] = msgspec.field(default_factory=dict)
    allow_dropped: bool = False
    source: str = ""
    number: int = 0
    write_again: bool = False


class Told(msgspec.Struct):
    """A mistake or a warning, with its place; lines and columns count from 1."""

    file: str
    line: int
    column: int
    message: str


class Checked(msgspec.Struct):
    """What is wrong with a job file; `ok` if nothing is."""

    ok: bool
    mistakes: list[Told]
    warnings: list[Told]
    plan: dict[str, Any]


class ConnectAsked(CheckText, kw_only=True, forbid_unknown_fields=True):
    """A job whose places a worker is to open: as its text, or as a client has parsed it (`spec`).

    One request waits for `wait_s` seconds at most.  While the answer is not `done`, the same
    request, with the same `token`, waits on.
    """

    text: str = ""
    spec: str = ""
    token: str = ""
    within_s: float = 120.0
    wait_s: float = 20.0


class Connected(msgspec.Struct):
    """What a worker found.  `ok`: it is done, all was looked at, and nothing is wrong.

    `problem`: why not all could be looked at; `mistakes` are then those that were found by then.
    """

    done: bool
    ok: bool
    token: str
    worker: str = ""
    problem: str = ""
    mistakes: list[Told] = msgspec.field(default_factory=list)
    warnings: list[Told] = msgspec.field(default_factory=list)


class Restart(msgspec.Struct, forbid_unknown_fields=True):
    """Go on from what a life of a job has left: the latest, or the one with this number.

    `spec` "": with the file that it was saved with.  `write_again`: even if rows that show already
    are then written once more.
    """

    spec: str = ""
    token: str = ""
    number: int = 0
    write_again: bool = False
    maps: dict[str, str] = msgspec.field(default_factory=dict)
    allow_dropped: bool = False


class Again(msgspec.Struct, forbid_unknown_fields=True):
    """Run a job that is over once more, with the same file."""

    restore: bool = False
    token: str = ""


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


class Change(msgspec.Struct):
    """How often what this master shows has changed; ask again with it to wait for more."""

    change: int
    term: int
    leads: bool


class NewTokenAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A token to be made.  `days`: how long it is good; 0: until it is taken back.

    `jobs`: how the ids of the jobs it is for begin; "": it is for all.
    """

    name: str
    role: str = "viewer"
    days: float = 0.0
    jobs: str = ""


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
