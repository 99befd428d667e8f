"""The event log of a real process: what it did, a line of JSON each, flushed before it continues.

Off unless HOLDFAST_EVENTS names a folder.  The lines are those that the tests' oracle reads, which
checks them against the invariants; nothing here decides anything.
"""

import hashlib
import json
import threading
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.core.gather import StagedCommittable
from holdfast.master.ports import (
    Blobs,
    CommitHookRequest,
    CommitRequest,
    Committers,
    Incarnation,
    Ports,
    TableState,
    Workers,
)
from holdfast.store.contract import Change, Delete, Guard, Item, Put, Store
from holdfast.wire.describe import describe, describe_report, file_name
from holdfast.wire.messages import SourceEndReport, ToLeader, ToWorker

FOLDER = "HOLDFAST_EVENTS"


class Tracer:
    """Writes one process's events.  `process` is `name#incarnation`."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def note(self, kind: str, **facts: Any) -> None:
        """Write an event.  Any thread may."""
        with self._lock:
            # The time is taken under the lock, so that the lines are in its order.
            event = {"kind": kind, "at": time.monotonic(), "process": self.process, **facts}
            self._file.write(json.dumps(event, separators=(",", ":")) + "\n")
            self._file.flush()

    def received(self, message: ToLeader) -> None:
        """Note a message to a leading master whose answer confirms it."""
        if isinstance(message, SourceEndReport):
            self.note("heard", **describe_report(message))

    def ports(self, ports: Ports) -> Ports:
        """Return ports that note what a master does through them."""
        return replace(
            ports,
            blobs=_Blobs(ports.blobs, self),
            tables=_Tables(ports.tables, self),
            workers=_Workers(ports.workers, self),
        )

    def store(self, store: Store) -> Store:
        """Return a store that notes what a master asks of it."""
        return _Store(store, self)

    def close(self) -> None:
        """Close the log."""
        self._file.close()


def tracer_from_env(environ: Mapping[str, str], process: str) -> Tracer | None:
    """Return the tracer of this process, or None unless a test has set a folder."""
    folder = environ.get(FOLDER)
    if not folder:
        return None
    tracer = Tracer(Path(folder) / f"{process.replace('/', '_')}.jsonl", process)
    name, _, incarnation = process.partition("#")
    tracer.note("boot", name=name, incarnation=incarnation)
    return tracer


class _Workers:
    def __init__(self, inner: Workers, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    def send(self, incarnation: str, message: ToWorker) -> None:
        self._tracer.note("order", to=incarnation, **describe(message))
        self._inner.send(incarnation, message)


class _Blobs:
    def __init__(self, inner: Blobs, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    async def put(self, name: str, content: bytes) -> None:
        await self._inner.put(name, content)
        self._tracer.note("blob", name=name, content=content.decode())

    async def get(self, name: str) -> bytes:
        return await self._inner.get(name)

    async def drop(self, *names: str) -> None:
        await self._inner.drop(*names)
        for name in names:
            self._tracer.note("drop", name=name)

    async def names(self, prefix: str) -> list[str]:
        return await self._inner.names(prefix)


class _Tables:
    def __init__(self, inner: Committers, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    async def admit(self, life: Incarnation, staged: tuple[StagedCommittable, ...]) -> None:
        await self._inner.admit(life, staged)

    async def read(self, order: CommitRequest) -> TableState:
        state = await self._inner.read(order)
        self._tracer.note(
            "read", table=order.sink, user=order.user, version=state.version,
            committed=state.committed,
        )  # fmt: skip
        return state

    async def publish(self, version: int, order: CommitRequest) -> bool:
        about = {"table": order.sink, "user": order.user, "number": order.number}
        shown = {
            "files": [file_name(s.content) for s in order.staged],
            "watermark": order.watermark,
        }
        self._tracer.note("publish", **about, version=version, **shown)
        done = await self._inner.publish(version, order)
        if done:
            self._tracer.note("snapshot", **about, **shown)
        return done

    async def listens(self, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        anybody = await self._inner.listens(life, sinks)
        if not anybody:
            self._tracer.note("deaf", job=life.job, incarnation=life.incarnation, sinks=sinks)
        return anybody

    async def listen(self, order: CommitHookRequest) -> str:
        heard = await self._inner.listen(order)
        told = None if order.staged is None else [file_name(s.content) for s in order.staged]
        self._tracer.note("listen", user=order.user, number=order.number, files=told)
        return heard

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        await self._inner.finish(life, rows)

    async def sweep(self, life: Incarnation) -> None:
        await self._inner.sweep(life)
        self._tracer.note("sweep", files=[], job=life.job, incarnation=life.incarnation)


class _Store:
    """A store whose tries are noted: who asked for a change, under which guards.

    Whether it was applied only the store knows; a watcher of it notes that.
    """

    def __init__(self, inner: Store, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer

    async def get(self, key: str) -> Item | None:
        item = await self._inner.get(key)
        self._tracer.note("proof", guards={key: item.revision if item else 0})
        return item

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        return await self._inner.range(prefix)

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        named = {g.key: g.revision for g in guards}
        if changes:
            wanted = {c.key: digest(c.value if isinstance(c, Put) else None) for c in changes}
            self._tracer.note("try", guards=named, changes=wanted)
        revision = await self._inner.commit(guards, changes)
        if revision is None:
            self._tracer.note("refused", guards=named)
        else:
            self._tracer.note("proof", guards=named, revision=revision if changes else 0)
        return revision

    def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        return self._inner.watch(prefix, after)

    async def grant_lease(self, ttl_s: float) -> int:
        lease = await self._inner.grant_lease(ttl_s)
        self._tracer.note("lease")
        return lease

    async def keep_lease(self, lease: int) -> None:
        await self._inner.keep_lease(lease)
        self._tracer.note("lease")

    async def revoke_lease(self, lease: int) -> None:
        await self._inner.revoke_lease(lease)

    async def close(self) -> None:
        await self._inner.close()


def digest(value: bytes | None) -> str:
    """Return a short name for a value; empty for none."""
    return "" if value is None else hashlib.sha256(value).hexdigest()[:24]
