"""A simulated store: linearizable, with latency, outages, and answers that never come."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.store.contract import Change, Delete, Guard, Item, LeaseLost, Put
from holdfast.testing.sim.kernel import PROCESS, SimLoop

if TYPE_CHECKING:
    from holdfast.testing.sim.world import World

T = TypeVar("T")
TIMEOUT_S = 1.0


class SimStoreServer:
    """The one store of a world.  Its own clock runs on through every client's troubles."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.items: dict[str, Item] = {}
        self.revision = 0
        self.leases: dict[int, tuple[float, float]] = {}
        self.down_until = 0.0

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

    async def get(self, key: str) -> Item | None:
        """Read a key."""
        return await self._call(lambda s: s.items.get(key), writes=False)

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Read all keys below a prefix."""

        def read(s: SimStoreServer) -> tuple[list[Item], int]:
            found = [s.items[k] for k in sorted(s.items) if k.startswith(prefix)]
            return found, s.revision

        return await self._call(read, writes=False)

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply a transaction."""
        return await self._call(lambda s: s.commit(guards, changes), writes=True)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """No simulated process watches: masters hear of changes by making them."""
        raise AssertionError("the simulated store has no watch")
        yield []

    async def grant_lease(self, ttl_s: float) -> int:
        """Grant a lease."""

        def grant(s: SimStoreServer) -> int:
            lease = max(s.leases, default=0) + 1 + s.revision * 1000
            s.leases[lease] = (s.world.loop.time() + ttl_s, ttl_s)
            return lease

        return await self._call(grant, writes=True)

    async def keep_lease(self, lease: int) -> None:
        """Keep a lease."""

        def keep(s: SimStoreServer) -> bool:
            if lease not in s.leases:
                return False
            ttl_s = s.leases[lease][1]
            s.leases[lease] = (s.world.loop.time() + ttl_s, ttl_s)
            return True

        if not await self._call(keep, writes=True):
            raise LeaseLost(f"Lease {lease} has lapsed.")

    async def revoke_lease(self, lease: int) -> None:
        """End a lease."""
        await self._call(lambda s: s.drop_lease(lease), writes=True)

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _call(self, action: Callable[[SimStoreServer], T], *, writes: bool) -> T:
        """Send a request, let it land whenever it lands, and wait for the answer a while."""
        loop = self.world.loop
        answer: asyncio.Future[T] = loop.create_future()
        kind = OutcomeUnknown if writes else Unavailable
        late = loop.in_world(TIMEOUT_S, _answer, answer, kind("The store did not answer in time."))
        loop.in_world(_way_s(loop), self._arrive, action, answer, writes, PROCESS.get())
        try:
            return await answer
        finally:
            late.cancel()

    def _arrive(
        self,
        action: Callable[[SimStoreServer], T],
        answer: "asyncio.Future[T]",
        writes: bool,
        sender: object,
    ) -> None:
        """Serve a request, whether or not its sender is still alive."""
        world, rng, faults = self.world, self.world.loop.random, self.world.faults
        server = world.store
        if world.loop.time() < server.down_until or world.cut(self.owner, "store"):
            _answer(answer, Unavailable("The store is out of reach."))
            return
        if faults.happens(rng, faults.store_error):
            _answer(answer, Unavailable("The store refused."))
            return
        server.expire()
        world.writer = sender
        result = action(server)
        if writes and faults.happens(rng, faults.store_unknown):
            world.note("fault", fault="store answer lost", of=self.owner)
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
