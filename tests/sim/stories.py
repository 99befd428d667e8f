"""One good story, told by hand, and the ways to change it.

Job `j` has one pipeline with one task that reads four rows of source `a` into table `t`: two under
checkpoint 1, two under the final checkpoint 2.  Its records move by the core's own steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.core import job as jobs
from holdfast.core import pipeline as pipelines
from holdfast.core.checkpoint import CheckpointDue, CheckpointKind, CheckpointStored
from holdfast.core.commit import Committed, HooksFinished
from holdfast.core.completion import Completion, SourceEnded
from holdfast.core.gather import CheckpointRound, StagedCommittable, TaskAck
from holdfast.core.job import JobRecord, JobSavepointRequested, PipelinesChanged
from holdfast.core.pipeline import PipelineRecord, SavepointRequested, StopRequested
from holdfast.core.saved_state import leave
from holdfast.core.task import TaskPlaced, TaskRecord, TaskStarted, WorkerId
from holdfast.master import checkpoint_content
from tests.oracle.events import (
    Ack,
    Blob,
    Boot,
    Client,
    Drop,
    End,
    Event,
    Expect,
    Fault,
    Heard,
    Lease,
    Listen,
    Order,
    Proof,
    Publish,
    Read,
    Record,
    Setting,
    Shown,
    Snapshot,
    Stage,
    Start,
    Took,
    Write,
)

TERM, M, W = 1, "M1#1", "W1#1"
HERE = WorkerId("W1", W)
USER, TASK = "j.i1.1.t", {"job": "j", "incarnation": "i1", "pipeline": 1, "task": "t1"}
A1: dict[str, Any] = {**TASK, "attempt": 1}
JOB, PIPE, SAVED = "job/j", "pipeline/j/0001", "saved/j/i1"
NEVER_ENDED = TaskRecord("t1", ("a",))

Events = list[Event]


class Teller:
    """Puts events one after the other, a tenth of a second apart."""

    def __init__(self) -> None:
        self.events: Events = []
        self.at = 0.0
        self.revision = 0
        self.standing: dict[str, int] = {}
        self.job = JobRecord("j", "i1", "token", "j", "spec", 1)
        self.pipe = PipelineRecord("j", "i1", 1, (NEVER_ENDED,), Completion(("a",)))

    def tell(self, event: Event, process: str = M) -> None:
        self.at = round(self.at + 0.1, 1)
        self.events.append(replace(event, at=self.at, process=process))

    def write(self, values: Mapping[str, Record | None], term: int | None) -> None:
        """Apply one transaction, guarded as a desk guards it; None deletes."""
        self.revision += 1
        guards = {k: self.standing.get(k, 0) for k in values if not k.startswith("history/")}
        for key, value in values.items():
            facts: dict[str, Any] = {"record": value} if value else {"deleted": True}
            write = Write(key=key, revision=self.revision, term=term, guards=guards, **facts)
            self.tell(write)
            self.standing[key] = self.revision if value else 0
        self.tell(Proof(guards=guards))

    def step(self, event: object) -> None:
        self.pipe = pipelines.step(self.pipe, event)
        self.write({PIPE: self.pipe}, TERM)

    def look(self) -> None:
        self.want(PipelinesChanged((self.pipe,)))

    def want(self, event: object) -> None:
        self.job = jobs.step(self.job, event)
        saved = leave(self.job, (self.pipe,), 0.0)
        self.write({JOB: self.job, **({SAVED: saved} if saved else {})}, TERM)

    def order(self, name: str, **facts: Any) -> None:
        self.tell(Lease())
        self.tell(Order(order=name, term=TERM, to=W, **A1, **facts))
        self.tell(Took(order=name, term=TERM), W)

    def checkpoint(self, number: int, kind: CheckpointKind) -> None:
        """Take a checkpoint of two rows and commit it."""
        file, end = f"f{number}", number * 2
        self.step(CheckpointDue(kind, TERM))
        self.order("Barrier", number=number)
        self.tell(Stage(file=file, rows=(("a", end - 2), ("a", end - 1))), W)
        staged, ended = StagedCommittable(number, "t", file), kind is CheckpointKind.FINAL
        acked = TaskAck(number, "t1", 1, HERE, (("a", end),), (staged,), ended, end)
        held = ((number, "t", file),)
        self.tell(
            Ack(**A1, worker=W, number=number, ended=ended, positions=(("a", end),), staged=held,
                watermark=end, through=number - 1, complete=number - 1), W,
        )  # fmt: skip
        content = checkpoint_content.write(
            self.pipe, CheckpointRound(number, kind, (), (acked,))
        ).decode()
        self.tell(Blob(name=f"b{number}", content=content))
        self.step(CheckpointStored(number, f"b{number}"))
        self.tell(
            Shown(job="j", incarnation="i1", pipeline=1, health="OK", checkpoint=number,
                  age_s=0.1, commit=number, commit_age_s=0.1)
        )  # fmt: skip
        self.tell(Read(table="t", user=USER, version=number - 1, committed=number - 1))
        self.tell(Publish(table="t", user=USER, number=number, version=number - 1))
        self.tell(Snapshot(table="t", user=USER, number=number, files=(file,), watermark=end), "")
        self.step(Committed(number, end))
        self.tell(Listen(user="j.i1.1.", number=number, files=(file,)))
        self.step(HooksFinished(number, ""))


def good() -> Events:
    """Return the good story of a job that is FINISHED."""
    t = _begun()
    t.tell(Heard(**A1, source="a", worker=W))
    t.step(SourceEnded("t1", "a", 1, HERE))
    t.order("SourceEndAck", source="a")
    t.checkpoint(2, CheckpointKind.FINAL)
    return _ended(t, kept=())


def saved() -> Events:
    """Return the good story of the same job, stopped with a savepoint instead."""
    t = _begun()
    t.want(JobSavepointRequested("r"))
    t.step(SavepointRequested("r"))
    t.checkpoint(2, CheckpointKind.SAVEPOINT)
    t.look()
    t.step(StopRequested())
    return _ended(t, kept=("b2",))


def _begun() -> Teller:
    """Tell of a job up to its first checkpoint."""
    t = Teller()
    t.tell(Setting(lossy=False), "")
    t.tell(Expect(job="j", rows=tuple(("a", n) for n in range(4))), "")
    t.tell(Boot(name="M1"), "")
    t.tell(Boot(name="W1", slots=1), "")
    t.write({"leader": M}, None)
    for did in ("wants", "asks"):
        t.tell(Client(did=did, what="submit", job="j", incarnation="i1", by=M), "C")
    t.write({JOB: t.job, PIPE: t.pipe}, TERM)
    t.tell(Client(did="was answered", what="submit", job="j", incarnation="i1", by=M), "C")
    t.tell(Client(did="submitted", job="j", incarnation="i1"), "C")
    t.step(TaskPlaced("t1", 1, HERE))
    t.order("DeployTask")
    t.tell(Start(**A1, worker=W), W)
    t.step(TaskStarted("t1", 1, HERE))
    t.look()
    t.checkpoint(1, CheckpointKind.PERIODIC)
    return t


def _ended(t: Teller, kept: tuple[str, ...]) -> Events:
    """Tell of the end, and of the cleanup."""
    t.tell(End(**A1, worker=W, why="stopped"), W)
    t.look()
    t.tell(Fault(fault="heal"), "")
    t.at += 6
    for name in [b for b in ("b1", "b2") if b not in kept]:
        t.tell(Drop(name=name))
    t.write({JOB: None, PIPE: None, "history/j/i1": t.job}, TERM)
    return t.events


def place(events: Events, kind: type[Event], n: int = 0, **facts: Any) -> int:
    """Return where the nth event of a kind with these facts stands; -1 is the last."""
    found = [
        i
        for i, e in enumerate(events)
        if type(e) is kind and all(getattr(e, f) == v for f, v in facts.items())
    ]
    return found[n]


def pick(events: Events, kind: type[Event], n: int = 0, **facts: Any) -> Any:
    """Return the nth event of a kind with these facts."""
    return events[place(events, kind, n, **facts)]


def changed(events: Events, where: int, /, **facts: Any) -> Events:
    """Return the story with other facts in one event."""
    return [*events[:where], replace(events[where], **facts), *events[where + 1 :]]


def without(events: Events, at: int) -> Events:
    """Return the story without one event."""
    return [*events[:at], *events[at + 1 :]]


def added(events: Events, after: int, *new: Event) -> Events:
    """Return the story with events put in after one, at its time unless they have their own."""
    at, who = events[after].at, M
    told = [replace(e, at=e.at or at, process=e.process or who) for e in new]
    cut = after + 1 if after >= 0 else len(events)
    return [*events[:cut], *told, *events[cut:]]


def rewritten(
    events: Events, key: str, n: int, fix: Callable[[Any], Any], onwards: bool = False
) -> Events:
    """Return the story with the nth write of a record changed, and perhaps all later ones."""
    at = [i for i, e in enumerate(events) if isinstance(e, Write) and e.key == key and e.record]
    for i in at[n:] if onwards else [at[n]]:
        write = events[i]
        assert isinstance(write, Write)
        events = changed(events, i, record=fix(write.record))
    return events


def wrote(events: Events, key: str, n: int) -> int:
    """Return where the nth write of a key stands."""
    return place(events, Write, n, key=key)


def record(events: Events, key: str, n: int) -> Any:
    """Return what the nth write of a key put there."""
    return pick(events, Write, n, key=key).record


def with_checkpoints(pipeline: Any, **facts: Any) -> Any:
    return replace(pipeline, checkpoints=replace(pipeline.checkpoints, **facts))


def with_commits(pipeline: Any, **facts: Any) -> Any:
    return replace(pipeline, commits=replace(pipeline.commits, **facts))
