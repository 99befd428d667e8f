"""The events an oracle reads: one class for each kind, and their form as JSON lines.

A process writes one line for each event to a file of its own and flushes it before it goes on, so
that kill -9 costs at most the line being written.  Times are seconds of the machine's monotonic
clock.  Writes are logged by a watcher of the store, which sees them whoever dies.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.errors import HoldfastError
from holdfast.master.records import decode, encode

Record = JobRecord | PipelineRecord | Saved | str
Positions = tuple[tuple[str, Any], ...]


class LogUnreadable(HoldfastError):
    """A line of an event log is damaged, or of a kind that this oracle does not know."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened, when, and in which process (`name#incarnation`)."""

    at: float = 0.0
    process: str = ""


@dataclass(frozen=True, kw_only=True)
class TaskEvent(Event):
    """An event about one attempt of one task."""

    job: str = ""
    incarnation: str = ""
    pipeline: int = 0
    task: str = ""
    attempt: int = 0


@dataclass(frozen=True, kw_only=True)
class Boot(Event):
    """A process began.  `slots` is 0 for a master."""

    name: str
    incarnation: int | str = 1
    slots: int = 0

    @property
    def known_as(self) -> str:
        """How records name this incarnation of a worker."""
        one = self.incarnation
        return one if isinstance(one, str) else f"{self.name}#{one}"


@dataclass(frozen=True, kw_only=True)
class Write(Event):
    """The store applied a change of one key; those of one transaction share a revision."""

    key: str
    revision: int
    term: int | None = None
    record: Record | None = None
    deleted: bool = False
    guards: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Proof(Event):
    """A master heard from the store that records stood at these revisions when it asked.

    It is the answer to a read, or to a transaction under these guards: the one that made
    `revision`, unless that is 0.
    """

    guards: Mapping[str, int] = field(default_factory=dict)
    revision: int = 0


@dataclass(frozen=True, kw_only=True)
class Try(Event):
    """A real master asks the store for a transaction: key -> a digest of its value, if any.

    Only the store knows whether it was applied.  Joined with what a watcher of the store saw, it
    says who made a write, and under which guards."""

    guards: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Refused(Event):
    """A real master was told that a transaction's guards do not hold."""

    guards: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Lease(Event):
    """The store granted or kept the process's lease."""


@dataclass(frozen=True, kw_only=True)
class Order(TaskEvent):
    """A leader sent a message to a worker incarnation."""

    order: str
    term: int
    to: str
    number: int = 0
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Took(Event):
    """A worker accepted a leader's message and acts on it."""

    order: str
    term: int


@dataclass(frozen=True, kw_only=True)
class Heard(TaskEvent):
    """A leading master received the report that a source has ended."""

    source: str
    worker: str


@dataclass(frozen=True, kw_only=True)
class Start(TaskEvent):
    """A worker began to run an attempt, from these positions (None: from the start)."""

    worker: str
    positions: Positions | None = None


@dataclass(frozen=True, kw_only=True)
class End(TaskEvent):
    """A worker runs an attempt no more: "stopped", "failed" or "orphaned"."""

    worker: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Ack(TaskEvent):
    """A worker answered a barrier for the first time.

    `staged` holds (number under which it was created, sink, file); `through` and `complete` are
    the latest visible and the latest complete checkpoint that the barrier named."""

    worker: str
    number: int
    ended: bool = False
    positions: Positions = ()
    staged: tuple[tuple[int, str, str], ...] = ()
    watermark: int | None = None
    idle: bool = False
    through: int = 0
    complete: int = 0


@dataclass(frozen=True, kw_only=True)
class Blob(Event):
    """A blob was stored."""

    name: str
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class Drop(Event):
    """A blob was removed."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Read(Event):
    """A master read a table's version and what a user has committed to it."""

    table: str
    user: str
    version: int
    committed: int


@dataclass(frozen=True, kw_only=True)
class Publish(Event):
    """A master asked a table to add a snapshot to this version.

    A real one says what is in it, because it may die before it can say that it is there."""

    table: str
    user: str
    number: int
    version: int
    files: tuple[str, ...] = ()
    watermark: int | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot(Event):
    """A table got a snapshot, which may have `removed` files that were shown before."""

    table: str
    user: str
    number: int
    files: tuple[str, ...] = ()
    watermark: int | None = None
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Removed(Event):
    """Files or rows that a table had shown were gone, and no commit removed them."""

    table: str
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Listen(Event):
    """The listeners of a commit ran.  `user` has no sink: they are the pipeline's.

    `files` is what they were told the commit has shown; None if nobody had to be told.
    """

    user: str
    number: int
    files: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Deaf(Event):
    """None of a pipeline's sinks has a listener: there is nobody to tell of its commits."""

    job: str
    incarnation: str
    sinks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sweep(Event):
    """Staged files were removed."""

    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Stage(Event):
    """A file was staged; its rows are (source, index) of a source that can be verified."""

    file: str
    rows: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Shown(TaskEvent):
    """A leader said how a pipeline gets on: its last checkpoint, its owed commit, their ages."""

    health: str
    reason: str = ""
    checkpoint: int = 0
    age_s: float = 0.0
    commit: int = 0
    commit_age_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Client(Event):
    """A user did something: "asks" `what` of the master `by`, "was answered", "saw the end"."""

    did: str
    job: str = ""
    incarnation: str = ""
    what: str = ""
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Fault(Event):
    """Something was made to go wrong; the fault "heal" ends them all."""

    fault: str
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class Setting(Event):
    """How patient everyone is, and whether messages get lost or tasks fail by themselves."""

    lease_s: float = 3.0
    act_s: float = 1.8
    tombstone_s: float = 5.0
    interval_s: float = 1.0
    timeout_s: float = 5.0
    worker_lost_s: float = 3.0
    orphan_s: float = 12.0
    lossy: bool = True


@dataclass(frozen=True, kw_only=True)
class Expect(Event):
    """All rows that a job's sources hold; empty if they never end."""

    job: str
    rows: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Left(Event):
    """Something was found after the end: "key ...", "blob ..." or "staged file ..."."""

    thing: str


@dataclass(frozen=True, kw_only=True)
class Stuck(Event):
    """The run did not come to rest, or met an error that nobody expected."""

    why: str


KINDS: dict[str, type[Event]] = {
    kind.__name__.lower(): kind
    for kind in (
        Boot, Write, Try, Refused, Proof, Lease, Order, Took, Heard, Start, End, Ack, Blob, Drop,
        Read, Publish, Snapshot, Removed, Listen, Deaf, Sweep, Stage, Shown, Client, Fault,
        Setting, Expect, Left, Stuck,
    )
}  # fmt: skip

_RECORDS = {
    "job": JobRecord,
    "history": JobRecord,
    "grave": JobRecord,
    "saved": Saved,
    "pipeline": PipelineRecord,
}
_NAMES = {kind: tuple(f.name for f in fields(kind)) for kind in KINDS.values()}


def from_facts(facts: Mapping[str, Any]) -> Event | None:
    """Return the event of a simulated history's entry; None for kinds that no check reads."""
    kind = KINDS.get(facts["kind"])
    if kind is None:
        return None
    make: Any = kind
    given = {n: facts[n] for n in _NAMES[kind] if n in facts}
    event: Event = make(**{n: tuple(v) if type(v) is list else v for n, v in given.items()})
    return event


def to_line(event: Event) -> str:
    """Return an event as one line of JSON, without the line's end."""
    facts = {n: getattr(event, n) for n in _NAMES[type(event)]}
    if isinstance(event, Write) and isinstance(event.record, JobRecord | PipelineRecord | Saved):
        facts["record"] = encode(event.record).decode()
    return json.dumps({"kind": type(event).__name__.lower(), **facts}, separators=(",", ":"))


def from_line(line: str) -> Event:
    """Read a line back.  Raises `LogUnreadable` rather than skip what it does not understand."""
    try:
        facts = msgspec.json.decode(line, type=dict[str, Any])
        kind = KINDS[facts.pop("kind")]
        if kind is Write:
            facts["record"] = record_of(facts["key"], facts.get("record"))
            return Write(**facts)
        return msgspec.convert(facts, kind)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise LogUnreadable(f"An event log has a line that cannot be read: {error}") from error


def read_events(paths: Iterable[Path]) -> list[Event]:
    """Read the logs of several processes into one history, in order of time.

    A last line without an end was being written when its process died, and does not count.
    Writes are put in the order of their revisions: the store's order is the true one.
    """
    found: list[Event] = []
    for path in paths:
        lines = path.read_text().split("\n")
        found += [from_line(line) for line in lines[:-1] if line]
    found.sort(key=lambda e: e.at)
    places = [i for i, e in enumerate(found) if isinstance(e, Write)]
    writes = sorted((e for e in found if isinstance(e, Write)), key=lambda w: w.revision)
    for place, write in zip(places, writes, strict=True):
        found[place] = write
    return found


def record_of(key: str, text: str | None) -> Record | None:
    """Read what a key holds."""
    kind: Any = _RECORDS.get(key.partition("/")[0])
    return decode(kind, text.encode()) if kind and text else text
