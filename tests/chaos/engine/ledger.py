"""What the store has applied, in its own order, and the story that all logs tell together.

The harness watches the store from its beginning in a process of its own, so it sees every write,
whoever dies.  A master notes what it asks for (`Try`); joined, they say who made a write, in which
term, and under which guards.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.master import read_mark
from holdfast.master.records import decode, job_key, pipeline_key
from holdfast.process.event_trace import digest
from holdfast.store.contract import Change, Store
from tests.oracle.events import (
    Boot,
    Event,
    Lease,
    Order,
    Proof,
    Publish,
    Read,
    Snapshot,
    Took,
    Try,
    Write,
    read_events,
    record_of,
)
from tests.oracle.story import Story

SLOTS = 4
"""The slots of every worker."""


@dataclass(frozen=True)
class Applied:
    """One revision of the store, and when the harness saw it."""

    at: float
    changes: tuple[Change, ...]


class Ledger:
    """Everything the store has applied, and what it holds now."""

    def __init__(self) -> None:
        self.applied: list[Applied] = []
        self.values: dict[str, bytes] = {}
        self.revision = 0
        self._term = 0
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def watch(self, store: Store) -> None:
        """Take in every change, for ever."""
        async with aclosing(store.watch("", 0)) as changes:
            async for made in changes:
                self.take(made)

    def take(self, made: list[Change]) -> None:
        """Take in one revision."""
        self.applied.append(Applied(monotonic(), tuple(made)))
        for change in made:
            self.revision = change.revision
            if change.item:
                self.values[change.key] = change.item.value
                self._term = change.revision if change.key == "leader" else self._term
            else:
                self.values.pop(change.key, None)
        for holds, seen in list(self._waiting):
            if not seen.done() and holds():
                seen.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds of what the store has; checked at every single write."""
        if holds():
            return
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = (holds, seen)
        self._waiting.append(waiting)
        try:
            await seen
        finally:
            self._waiting.remove(waiting)

    def leader(self) -> str | None:
        """Return the name of the master that holds the lease."""
        mark = self.values.get("leader")
        return read_mark(mark).name if mark else None

    def term(self) -> int:
        """Return the present term, or the last one."""
        return self._term

    def job(self, job: str) -> JobRecord | None:
        """Return a job's record."""
        value = self.values.get(job_key(job))
        return decode(JobRecord, value) if value else None

    def pipeline(self, job: str, number: int = 1) -> PipelineRecord | None:
        """Return a pipeline's record."""
        value = self.values.get(pipeline_key(job, number))
        return decode(PipelineRecord, value) if value else None

    def end(self, job: str) -> JobStatus | None:
        """Return how the last life of a job ended, as its history says."""
        ends = [v for k, v in self.values.items() if k.startswith(f"history/{job}/")]
        lives = [decode(JobRecord, value) for value in ends]
        return max(lives, key=lambda life: life.life).status if lives else None


def tell(
    ledger: Ledger, logs: Path, jobs: Iterable[str], since_s: float, more: Iterable[Event]
) -> Story:
    """Return the story of some jobs from a moment on, as ledger and logs tell it."""
    wanted = set(jobs)
    noted = [e for e in read_events(sorted(logs.glob("*.jsonl"))) if not isinstance(e, Write)]
    writes = _joined(ledger.applied, noted)
    noted = _once(noted + _unseen_snapshots(noted))
    leading = [w for w in writes if w.key == "leader" and w.at < since_s]
    before = [e for e in noted if e.at < since_s]
    leases = {e.process: e for e in before if isinstance(e, Lease)}
    # A worker's records know it by its incarnation alone.
    boots = {e.process: e.known_as for e in noted if isinstance(e, Boot)}
    kept: list[Event] = [e for e in before if isinstance(e, Boot)]
    kept += [*leading[-1:], *leases.values()]
    kept += [e for e in (*noted, *writes, *more) if e.at >= since_s and _is_of(e, wanted)]
    kept = [_renamed(e, boots) for e in kept]
    kept.sort(key=lambda e: (e.at, e.revision if isinstance(e, Write) else 0))
    return Story(kept)


def late_writes(ledger: Ledger, logs: Path, term: int, since_s: float) -> tuple[int, list[str]]:
    """Return how many writes of a term were tried after a moment, and the keys of those applied."""
    noted = [e for e in read_events(sorted(logs.glob("*.jsonl"))) if not isinstance(e, Write)]
    tried = [e for e in noted if isinstance(e, Try) and e.guards.get("leader") == term]
    applied = [w for w in _joined(ledger.applied, noted) if w.term == term]
    return len([t for t in tried if t.at > since_s]), [w.key for w in applied if w.at > since_s]


def _renamed(event: Event, boots: Mapping[str, str]) -> Event:
    """Give what a worker noted the name that records give the worker, and its size."""
    if isinstance(event, Boot) and event.name.startswith("W"):
        return replace(event, slots=SLOTS)
    if isinstance(event, Took):
        return replace(event, process=boots.get(event.process, event.process))
    return event


def _is_of(event: Event, jobs: set[str]) -> bool:
    """Say whether an event is about one of the jobs, or about all."""
    if isinstance(event, Write):
        # Keys without a part after a slash (leader, clock) belong to no job.
        _, belongs, rest = event.key.partition("/")
        return not belongs or rest.split("/")[0] in jobs
    if isinstance(event, Read | Publish | Snapshot):
        return event.user.split(".")[0] in jobs
    if isinstance(event, Order) and event.order == "HeartbeatAck":
        return True
    return getattr(event, "job", "") in ("", *jobs)


def _joined(applied: list[Applied], noted: list[Event]) -> list[Write]:
    """Return every write, with who made it."""
    tries: dict[tuple[tuple[str, str], ...], list[Try]] = defaultdict(list)
    answered: dict[int, Proof] = {}
    for event in noted:
        if isinstance(event, Try):
            tries[tuple(sorted(event.changes.items()))].append(event)
        elif isinstance(event, Proof) and event.revision:
            answered[event.revision] = event
    standing: dict[str, int] = {}
    found: list[Write] = []
    for one in applied:
        made = {c.key: digest(c.item.value if c.item else None) for c in one.changes}
        maker = _maker(tries.get(tuple(sorted(made.items())), []), standing, one.at)
        known = answered.get(one.changes[0].revision)
        at = min(one.at, known.at) if known else one.at
        for change in one.changes:
            found.append(_write(change, at, maker))
            standing[change.key] = change.revision if change.item else 0
    # The store's order is the true one, and an answer may reach us before the watch does.
    for index in range(len(found) - 2, -1, -1):
        found[index] = replace(found[index], at=min(found[index].at, found[index + 1].at))
    return found


def _maker(tries: list[Try], standing: Mapping[str, int], at: float) -> Try | None:
    """Return who made a write: one whose guards held, else (a violation) whoever tried it last."""
    asked = [t for t in tries if t.at <= at]
    for one in reversed(asked):
        if all(standing.get(key, 0) == revision for key, revision in one.guards.items()):
            return one
    return asked[-1] if asked else None


def _write(change: Change, at: float, maker: Try | None) -> Write:
    record = record_of(change.key, change.item.value.decode() if change.item else None)
    return Write(
        at=at,
        process=maker.process if maker else "",
        key=change.key,
        revision=change.revision,
        term=maker.guards.get("leader") if maker else None,
        record=record,
        deleted=change.item is None,
        guards=dict(maker.guards) if maker else {},
    )


def _once(noted: list[Event]) -> list[Event]:
    """Leave out the snapshots that only say again what an earlier one said.

    Real sinks keep no versions that we could see: by their contract a commit under a number they
    know changes nothing.  Whether that is true the reader of the rows finds out.
    """
    found: list[Event] = []
    said: set[tuple[str, str, int, tuple[str, ...]]] = set()
    for event in sorted(noted, key=lambda e: e.at):
        if isinstance(event, Snapshot):
            key = (event.table, event.user, event.number, event.files)
            if key in said:
                continue
            said.add(key)
        found.append(event)
    return found


def _unseen_snapshots(noted: list[Event]) -> list[Event]:
    """Return the snapshots whose makers died before they could say so.

    A later read of the table proves that they are there.
    """
    said = {(e.table, e.user, e.number) for e in noted if isinstance(e, Snapshot)}
    tried: dict[tuple[str, str, int], Publish] = {}
    found: dict[tuple[str, str, int], Event] = {}
    for event in noted:
        if isinstance(event, Publish):
            tried[(event.table, event.user, event.number)] = event
        elif isinstance(event, Read):
            for key, one in tried.items():
                proven = key[:2] == (event.table, event.user) and event.committed >= one.number
                if proven and key not in said and key not in found:
                    found[key] = Snapshot(
                        at=one.at, process=one.process, table=one.table, user=one.user,
                        number=one.number, files=one.files, watermark=one.watermark,
                    )  # fmt: skip
    return list(found.values())
