"""A store in the memory of one process: for tests, and the contract in its plainest form.

Clients of one `Memory` see the same data, as processes see the same server.  Time is that of the
event loop, so a simulated loop simulates leases too.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from holdfast.store.bell import Bell, wait
from holdfast.store.contract import (
    Change,
    Compacted,
    Delete,
    Guard,
    HistoryLost,
    Item,
    LeaseLost,
    Put,
    Store,
)
from holdfast.store.limits import check_commit, check_key, check_prefix, closed

HISTORY_REVISIONS = 1_000


def loop_time() -> float:
    """Return the event loop's time."""
    return asyncio.get_running_loop().time()


@dataclass
class Lease:
    """How long a lease lasts when kept, and when it lapses if it is not."""

    ttl_s: float
    deadline: float


@dataclass
class Memory:
    """The data that the clients of one process share."""

    history_revisions: int = HISTORY_REVISIONS
    clock: Callable[[], float] = loop_time
    items: dict[str, Item] = field(default_factory=dict)
    leases: dict[int, Lease] = field(default_factory=dict)
    history: list[list[Change]] = field(default_factory=list)
    revision: int = 0
    compacted: int = 0
    leases_granted: int = 0
    bell: Bell = field(default_factory=Bell)

    def settle(self) -> None:
        """Drop lapsed leases with their keys.  Every call does this first, so none sees them."""
        now = self.clock()
        lapsed = {lease for lease, held in self.leases.items() if held.deadline <= now}
        for lease in lapsed:
            del self.leases[lease]
        self.apply([Delete(item.key) for item in self.items.values() if item.lease in lapsed])

    def apply(self, changes: Sequence[Put | Delete]) -> int:
        """Make changes as one revision; return it, or the present one if nothing changed."""
        done = [
            self._change(change)
            for change in changes
            if isinstance(change, Put) or change.key in self.items
        ]
        if done:
            self.revision += 1
            self.history.append(sorted(done, key=lambda change: change.key))
            self.compacted = max(self.compacted, self.revision - self.history_revisions)
            del self.history[: -self.history_revisions]
            self.bell.ring()
        return self.revision

    def _change(self, change: Put | Delete) -> Change:
        revision = self.revision + 1
        before = self.items.pop(change.key, None)
        if isinstance(change, Delete):
            return Change(change.key, None, revision)
        created = before.created if before else revision
        item = Item(change.key, change.value, revision, created, change.lease)
        self.items[change.key] = item
        return Change(change.key, item, revision)

    def changes(self, prefix: str, after: int) -> list[list[Change]]:
        """Return what changed below a prefix after a revision."""
        if after < self.compacted:
            raise Compacted(f"history up to {self.compacted} is gone; {after} was asked for")
        if after > self.revision:
            raise HistoryLost(f"revision {after} was asked for, the store is at {self.revision}")
        since = (
            [change for change in made if change.key.startswith(prefix)]
            for made in self.history
            if made[0].revision > after
        )
        return [made for made in since if made]

    def lapse_in(self) -> float | None:
        """Return in how many seconds the next lease lapses, if there is one."""
        deadlines = [held.deadline for held in self.leases.values()]
        return max(0.0, min(deadlines) - self.clock()) if deadlines else None


class MemoryStore:
    """One client of a `Memory`."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory or Memory()
        self._closed = False

    def _settled(self) -> Memory:
        if self._closed:
            raise closed("The store in memory")
        self._memory.settle()
        return self._memory

    async def get(self, key: str) -> Item | None:
        """Return a key's current value, or None."""
        check_key(key)
        return self._settled().items.get(key)

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Return all keys that start with a prefix, sorted, and the revision they are as of."""
        check_prefix(prefix)
        memory = self._settled()
        found = [item for key, item in memory.items.items() if key.startswith(prefix)]
        return sorted(found, key=lambda item: item.key), memory.revision

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply all changes if all guards hold; return the revision, or None if one does not."""
        check_commit(guards, changes)
        memory = self._settled()
        for guard in guards:
            item = memory.items.get(guard.key)
            if (item.revision if item else 0) != guard.revision:
                return None
        for change in changes:
            if isinstance(change, Put) and change.lease not in (None, *memory.leases):
                raise LeaseLost(f"lease {change.lease} of {change.key!a} is gone")
        return memory.apply(changes)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """Yield changes below a prefix after a revision, one list a revision."""
        check_prefix(prefix)
        while True:
            memory = self._settled()
            ring = memory.bell.next
            for made in memory.changes(prefix, after):
                yield made
                after = made[0].revision
            # A change while the reader was busy has rung the bell already.
            await wait(ring, memory.lapse_in())

    async def grant_lease(self, ttl_s: float) -> int:
        """Return a new lease that lapses unless kept within `ttl_s`."""
        memory = self._settled()
        memory.leases_granted += 1
        memory.leases[memory.leases_granted] = Lease(ttl_s, memory.clock() + ttl_s)
        memory.bell.ring()
        return memory.leases_granted

    async def keep_lease(self, lease: int) -> None:
        """Start the lease's time again."""
        memory = self._settled()
        held = memory.leases.get(lease)
        if held is None:
            raise LeaseLost(f"lease {lease} has lapsed")
        held.deadline = memory.clock() + held.ttl_s

    async def revoke_lease(self, lease: int) -> None:
        """End a lease at once, with the keys that hang on it."""
        memory = self._settled()
        if lease in memory.leases:
            memory.leases[lease].deadline = memory.clock()
            memory.settle()

    async def close(self) -> None:
        """Refuse further calls, and end this client's watches."""
        self._closed = True
        self._memory.bell.ring()


async def open_url(url: str) -> Store:
    """Open a store of this process alone: `memory:`."""
    return MemoryStore()
