"""The shapes of what clients send, for the routes and for the client alike."""

import msgspec


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


class JobsAsked(msgspec.Struct):
    """Which jobs: a part of the id or name, a status or `running` or `ended`, a health, a page."""

    search: str = ""
    status: str = ""
    health: str = ""
    offset: int = 0
    limit: int = 0


class SubmitText(CheckText, forbid_unknown_fields=True):
    """A job to run, as its text.  `token` makes a repeated submit the same one.

    `maps` and `allow_dropped` say what to do with sources and sinks that a restore does not find
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


class ConnectAsked(CheckText, kw_only=True, forbid_unknown_fields=True):
    """A job whose places a worker is to open: as its text, or as a client has parsed it (`spec`).

    One request waits for `wait_s` seconds at most.  While the answer is not `done`, send the same
    request again, with the same `token`.
    """

    text: str = ""
    spec: str = ""
    token: str = ""
    within_s: float = 120.0
    wait_s: float = 20.0


class RestartAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Continue from a saved state of a job: the latest, or the one with this number.

    `spec` "": with the file that it was saved with.  `write_again`: even if rows that are visible
    are then written again.
    """

    spec: str = ""
    token: str = ""
    number: int = 0
    write_again: bool = False
    maps: dict[str, str] = msgspec.field(default_factory=dict)
    allow_dropped: bool = False


class RetryAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Run a job that is over once more, with the same file."""

    restore: bool = False
    token: str = ""


class NewTokenAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A token to create.  `days`: how long it is valid; 0: until it is revoked.

    `jobs`: how the ids of the jobs it is for begin; "": it is for all.
    """

    name: str
    role: str = "viewer"
    days: float = 0.0
    jobs: str = ""


class Submit(msgspec.Struct, forbid_unknown_fields=True):
    """A job to run: its file, read and filled in by the client.

    `maps` and `allow_dropped` say what to do with sources and sinks that a restore does not find
    again: old id or uid -> new one, or `none`.

    `restore`: continue from the latest saved state of the job, or from that of job `source`;
    `number` names another one.  `spec` "": with the file that it was saved with.  `write_again`:
    even if rows that are visible are then written again.
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
