"""Simulated blobs and tables: slow, sometimes silent about what they did, and with other users."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core.gather import StagedCommittable
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.master.ports import BlobBad, CommitHookRequest, CommitRequest, Incarnation, TableState

if TYPE_CHECKING:
    from tests.sim.engine.world import World


OPENS = ":opens"
"""How names of staged things end that have no rows: they say that a table is to be emptied."""


class SimBlobs:
    """Checkpoint objects.  `torn` names those that a test has damaged."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.objects: dict[str, bytes] = {}
        self.torn: set[str] = set()
        self.refused_puts = 0
        self.full_until = 0.0
        self.put_s = 0.0

    async def put(self, name: str, content: bytes) -> None:
        """Store an object, whole or not at all."""
        await self._pause()
        await asyncio.sleep(self.put_s)
        self._maybe_fail()
        if self.refused_puts or self.world.loop.time() < self.full_until:
            self.refused_puts = max(0, self.refused_puts - 1)
            self.world.note("fault", fault="blob refused", name=name)
            raise Unavailable("The blob store has no space left.")
        self.objects[name] = content
        self.world.note("blob", name=name, content=content.decode())

    async def get(self, name: str) -> bytes:
        """Read an object."""
        await self._pause()
        self._maybe_fail()
        if name not in self.objects:
            raise BlobBad(f"There is no blob {name}.")
        content = self.objects[name]
        return content[: len(content) // 2] if name in self.torn else content

    async def drop(self, *names: str) -> None:
        """Remove objects; any of them may be the first that fails."""
        for name in names:
            await self._pause()
            self._maybe_fail()
            if self.objects.pop(name, None):
                self.world.note("drop", name=name)

    async def names(self, prefix: str) -> list[str]:
        """List objects."""
        await self._pause()
        return sorted(n for n in self.objects if n.startswith(prefix))

    async def _pause(self) -> None:
        await asyncio.sleep(0.005 + self.world.loop.random.random() * 0.03)

    def _maybe_fail(self) -> None:
        world = self.world
        if world.faults.happens(world.loop.random, world.faults.blob_error):
            raise Unavailable("The blob store refused.")


@dataclass
class Snapshot:
    """One version of a table: what was added by whom, under which number."""

    user: str
    number: int
    files: tuple[str, ...]
    watermark: int | None


@dataclass
class SimTable:
    """A table: its snapshots, and the last number of each user, which outlives them."""

    snapshots: list[Snapshot] = field(default_factory=list)
    version: int = 0
    last: dict[str, int] = field(default_factory=dict)
    refuses: str = ""
    opened: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    @property
    def shown(self) -> list[str]:
        """The files that readers see."""
        files = (f for s in self.snapshots for f in s.files)
        return [f for f in files if f not in self.gone and not f.endswith(OPENS)]

    def empty_for(self, files: tuple[str, ...]) -> list[str]:
        """Remove what is shown if a life opens the table with these files; return that."""
        lives = {"/".join(f.split("/")[:2]) for f in files if f.endswith(OPENS)}
        removed = self.shown if lives - self.opened else []
        self.opened |= lives
        self.gone |= {*removed}
        return removed

    def add(self, snapshot: Snapshot) -> None:
        """Become the next version."""
        self.snapshots.append(snapshot)
        self.version += 1
        self.last[snapshot.user] = max(self.last.get(snapshot.user, 0), snapshot.number)

    def expire(self) -> None:
        """Forget who added what, as snapshot expiry does; the files stay."""
        files = tuple(f for s in self.snapshots for f in s.files)
        self.snapshots = [Snapshot("expired", 0, files, None)]


@dataclass
class Held:
    """A commit on its way that waits until it is let go."""

    order: CommitRequest
    gate: asyncio.Event


class SimTables:
    """All tables of a world, and the files that were staged for them."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.tables: dict[str, SimTable] = {}
        self.files: dict[str, tuple[Any, ...]] = {}
        self.heard: list[tuple[str, int]] = []
        self.holds: Callable[[CommitRequest], bool] | None = None
        self.held: list[Held] = []
        self.silent = 0
        self.deaf = 0

    def table(self, sink: str) -> SimTable:
        """Return the table of a sink."""
        return self.tables.setdefault(sink, SimTable())

    def stage(self, name: str, rows: tuple[Any, ...]) -> None:
        """Put rows where no reader looks."""
        self.files[name] = rows
        self.world.note("stage", file=name, rows=rows)

    def clear(self, sink: str) -> None:
        """Remove what a table shows, at once and by no commit."""
        table = self.table(sink)
        removed = table.shown
        table.gone |= {*removed}
        self.world.note("removed", table=sink, files=removed)

    async def admit(self, life: Incarnation, staged: tuple[StagedCommittable, ...]) -> None:
        """Believe every worker."""

    async def read(self, order: CommitRequest) -> TableState:
        """Return a table's version and what a user has committed."""
        sink, user = order.sink, order.user
        await asyncio.sleep(0.01 + self.world.loop.random.random() * 0.05)
        table = self.table(sink)
        state = TableState(table.version, table.last.get(user, 0))
        self.world.note(
            "read", table=sink, user=user, version=state.version, committed=state.committed
        )
        return state

    async def publish(self, version: int, order: CommitRequest) -> bool:
        """Add a snapshot by compare-and-set; it may land long after the caller is gone."""
        loop, faults = self.world.loop, self.world.faults
        answer: asyncio.Future[bool | Exception] = loop.create_future()
        self.world.note(
            "publish", table=order.sink, user=order.user, number=order.number, version=version
        )
        loop.spawn(None, self._land(version, order, answer))
        result = await answer
        if isinstance(result, Exception):
            raise result
        self.silent -= 1
        if self.silent >= 0 or faults.happens(loop.random, faults.commit_unknown):
            self.world.note("fault", fault="table did not say")
            raise OutcomeUnknown("The table did not say whether it committed.")
        return result

    async def _land(
        self, version: int, order: CommitRequest, answer: "asyncio.Future[bool | Exception]"
    ) -> None:
        loop, faults = self.world.loop, self.world.faults
        if self.holds and self.holds(order):
            self.held.append(Held(order, asyncio.Event()))
            self.world.note("held", table=order.sink, number=order.number)
            await self.held[-1].gate.wait()
        else:
            slow = faults.commit_slow_s if faults.happens(loop.random, 0.15) else 0.1
            await asyncio.sleep(0.02 + loop.random.random() * slow)
        table = self.table(order.sink)
        if faults.happens(loop.random, faults.foreign_commit):
            table.add(Snapshot("someone else", 0, (), None))
        if not answer.done():
            answer.set_result(self._add(table, version, order))
        else:
            self._add(table, version, order)

    def _add(self, table: SimTable, version: int, order: CommitRequest) -> bool | Exception:
        files = tuple(str(s.content) for s in order.staged)
        lost = [f for f in files if f not in self.files]
        if table.refuses:
            return UserError(table.refuses)
        if table.version != version:
            self.world.note("conflict", table=order.sink, user=order.user, number=order.number)
            return False
        if lost:
            return UserError(f"Staged files are gone: {lost}.")
        removed = table.empty_for(files)
        table.add(Snapshot(order.user, order.number, files, order.watermark))
        self.world.note(
            "snapshot", table=order.sink, user=order.user, number=order.number,
            files=list(files), watermark=order.watermark, removed=removed,
        )  # fmt: skip
        return True

    async def listens(self, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        """Have listeners for every commit."""
        return True

    async def listen(self, order: CommitHookRequest) -> str:
        """Run the listeners."""
        await asyncio.sleep(0.01 + self.world.loop.random.random() * 0.02)
        if self.deaf:
            self.deaf -= 1
            self.world.note("fault", fault="listener failed", number=order.number)
            raise Unavailable("The listener did not answer.")
        self.heard.append((order.user, order.number))
        files = [str(s.content) for s in order.staged or ()]
        self.world.note("listen", user=order.user, number=order.number, files=files)
        return str(int(order.state or 0) + len(files))

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Have no objection."""

    async def sweep(self, life: Incarnation) -> None:
        """Remove files of an incarnation that no snapshot holds."""
        job, incarnation = life.job, life.incarnation
        await asyncio.sleep(0.01 + self.world.loop.random.random() * 0.05)
        held = {f for t in self.tables.values() for s in t.snapshots for f in s.files}
        mine = f"{job}/{incarnation}/"
        swept = [f for f in self.files if f.startswith(mine) and f not in held]
        for name in swept:
            del self.files[name]
        if swept:
            self.world.note("sweep", files=swept)
