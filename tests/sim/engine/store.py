"""A simulated store: linearizable, with latency, outages, and answers that never come."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.store.contract import (
    Change,
    Delete,
    Guard,
    HistoryLost,
    Item,
    LeaseLost,
    Put,
)
from tests.sim.engine.kernel import PROCESS, SimLoop

if TYPE_CHECKING:
    from tests.sim.engine.world import World

T = TypeVar("T")
TIMEOUT_S = 1.0
READS = ("get", "range")


@dataclass
class Armed:
    """A fault for one call of a method: `unknown` does it and is silent, `error` refuses it."""

    op: str
    fault: str
    match: Callable[[Any], bool] = lambda about: True
    skip: int = 0


class SimStoreServer:
    """The one store of a world.  Its own clock runs on through every client's troubles."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.items: dict[str, Item] = {}
        self.revision = 0
        self.leases: dict[int, tuple[float, float]] = {}
        self.down_until = 0.0
        self.stall_until = 0.0
        self.full_until = 0.0
        self.armed: list[Armed] = []

    def heal(self) -> None:
        """End every trouble."""
        self.down_until = self.stall_until = self.full_until = 0.0
        self.armed.clear()

    def strikes(self, op: str, about: object) -> str:
        """Return the fault that is armed for this call, once; empty if there is none."""
        one = next((a for a in self.armed if a.op == op and a.match(about)), None)
        if one is None:
            return ""
        one.skip -= 1
        if one.skip >= 0:
            return ""
        self.armed.remove(one)
        return one.fault

    def expire(self) -> None:
        """Let lapsed leases go, with the keys that hang on them."""
        now = self.world.loop.time()
        lapsed = [lease for lease, (until, _) in self.leases.items() if until <= now]
        for lease in lapsed:
            self.drop_lease(lease)

    def drop_lease(self, lease: int) -> None:
        """End a lease."""
        self.leases.pop(lease, None)
        gone = [k for k, item in self.items.items() if item.lease == lease]
        for key in gone:
            self.revision += 1
            del self.items[key]
            self.world.note("write", key=key, deleted=True, revision=self.revision, by="lease")

    def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply a transaction, or nothing."""
        for guard in guards:
            item = self.items.get(guard.key)
            if (item.revision if item else 0) != guard.revision:
                keys = [c.key for c in changes]
                self.world.note_by(self.world.writer, "refused", guard=guard.key, keys=keys)
                return None
        if any(isinstance(c, Put) and c.lease and c.lease not in self.leases for c in changes):
            return None
        if not changes:
            return self.revision
        self.revision += 1
        for change in changes:
            self._apply(change)
        self.world.wrote(guards, changes, self.revision)
        return self.revision

    def _apply(self, change: Put | Delete) -> None:
        if isinstance(change, Delete):
            self.items.pop(change.key, None)
            return
        known = self.items.get(change.key)
        created = known.created if known else self.revision
        self.items[change.key] = Item(
            change.key, change.value, self.revision, created, change.lease
        )


class SimStore:
    """A process's connection to the store."""

    def __init__(self, world: "World", owner: str) -> None:
        self.world = world
        self.owner = owner
        self.seen = 0

    async def get(self, key: str) -> Item | None:
        """Read a key."""
        item = await self._call(lambda s: s.items.get(key), "get", key)
        self.world.note("proof", guards={key: item.revision if item else 0})
        return item

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Read all keys below a prefix."""

        def read(s: SimStoreServer) -> tuple[list[Item], int]:
            found = [s.items[k] for k in sorted(s.items) if k.startswith(prefix)]
            return found, s.revision

        return await self._call(read, "range", prefix)

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply a transaction."""
        revision = await self._call(lambda s: s.commit(guards, changes), "commit", changes)
        if revision is not None:
            self.world.note("proof", guards={g.key: g.revision for g in guards})
        return revision

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """No simulated process watches: masters hear of changes by making them."""
        raise AssertionError("the simulated store has no watch")
        yield []

    async def grant_lease(self, ttl_s: float) -> int:
        """Grant a lease."""

        def grant(s: SimStoreServer) -> int:
            lease = max(s.leases, default=0) + 1 + s.revision * 1000
            s.leases[lease] = (s.world.loop.time() + ttl_s, ttl_s)
            s.world.note_by(s.world.writer, "lease")
            return lease

        return await self._call(grant, "grant", None)

    async def keep_lease(self, lease: int) -> None:
        """Keep a lease."""

        def keep(s: SimStoreServer) -> bool:
            if lease not in s.leases:
                return False
            ttl_s = s.leases[lease][1]
            s.leases[lease] = (s.world.loop.time() + ttl_s, ttl_s)
            s.world.note_by(s.world.writer, "lease")
            return True

        if not await self._call(keep, "keep", None):
            raise LeaseLost(f"Lease {lease} has lapsed.")

    async def revoke_lease(self, lease: int) -> None:
        """End a lease."""
        await self._call(lambda s: s.drop_lease(lease), "revoke", None)

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _call(self, action: Callable[[SimStoreServer], T], op: str, about: object) -> T:
        """Send a request, let it land whenever it lands, and wait for the answer a while."""
        loop = self.world.loop
        answer: asyncio.Future[T] = loop.create_future()
        kind = Unavailable if op in READS else OutcomeUnknown
        late = loop.in_world(TIMEOUT_S, _answer, answer, kind("The store did not answer in time."))
        stall_s = max(0.0, self.world.store.stall_until - loop.time())
        way_s = stall_s + _way_s(loop)
        loop.in_world(way_s, self._arrive, action, answer, op, about, PROCESS.get())
        try:
            return await answer
        finally:
            late.cancel()

    def _arrive(
        self,
        action: Callable[[SimStoreServer], T],
        answer: "asyncio.Future[T]",
        op: str,
        about: object,
        sender: object,
    ) -> None:
        """Serve a request, whether or not its sender is still alive."""
        world, rng, faults = self.world, self.world.loop.random, self.world.faults
        server = world.store
        down = world.loop.time() < server.down_until
        full = world.loop.time() < server.full_until and op == "commit" and about
        if down or full or world.cut(self.owner, "store"):
            _answer(answer, Unavailable("The store is out of reach."))
            return
        struck, writes = server.strikes(op, about), op not in READS
        if struck == "error" or faults.happens(rng, faults.store_error):
            _answer(answer, Unavailable("The store refused."))
            return
        if writes and faults.happens(rng, faults.store_unknown):
            world.note("fault", fault="store request lost", of=self.owner)
            return
        if server.revision < self.seen:
            _answer(answer, HistoryLost("The store has lost commits that it had answered."))
            return
        server.expire()
        world.writer = sender
        result = action(server)
        self.seen = max(self.seen, server.revision)
        if struck == "unknown" or (writes and faults.happens(rng, faults.store_unknown)):
            world.note("fault", fault="store answer lost", of=self.owner, op=op)
            return
        world.loop.in_world(_way_s(world.loop), self._return, answer, result)

    def _return(self, answer: "asyncio.Future[T]", result: T) -> None:
        if not answer.done() and not self.world.cut("store", self.owner):
            answer.set_result(result)


def _way_s(loop: SimLoop) -> float:
    """How long a request or an answer travels."""
    return 0.001 + loop.random.random() * 0.01


def _answer(answer: "asyncio.Future[T]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # a process that has died meanwhile will not look
