"""What a check of a store works with: clients, keys of its own, and ways to break the server."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.store.contract import Change, Guard, Item, Put, Store
from holdfast.testing.promises import PATIENCE_S, must, same

Open = Callable[[], Awaitable[Store]]


class Disturb(Protocol):
    """How the kit breaks what is between a store's clients and its data.

    `answers_while_stopped` says that `stop` takes away a part only, as one member of a cluster.
    """

    answers_while_stopped: bool

    async def stop(self) -> None:
        """Kill the server, as `kill -9` does."""

    async def start(self) -> None:
        """Start it again, on the same data."""

    async def lose_answers(self) -> None:
        """From now on let requests through, and no answer back."""

    async def cut(self) -> None:
        """Break all connections, once."""

    async def heal(self) -> None:
        """Undo `lose_answers`."""


@dataclass
class Bench:
    """The surroundings of one check."""

    open: Open
    lease_s: float
    disturbance: Disturb | None
    prefix: str = field(default_factory=lambda: f"check/{secrets.token_hex(6)}/")
    opened: list[Store] = field(default_factory=list)
    leases: list[int] = field(default_factory=list)

    async def client(self) -> Store:
        """Open one more client; it is closed after the check."""
        store = await self.open()
        self.opened.append(store)
        return store

    def key(self, name: str) -> str:
        """Return a key that no other check uses."""
        return self.prefix + name

    @property
    def disturb(self) -> Disturb:
        """Return the way to break the server; only checks that need one ask."""
        assert self.disturbance is not None
        return self.disturbance

    async def lease(self, store: Store, ttl_s: float) -> int:
        """Grant a lease that does not outlive the check: its end would disturb the next one."""
        self.leases.append(await store.grant_lease(ttl_s))
        return self.leases[-1]

    async def put(self, store: Store, name: str, value: bytes, lease: int | None = None) -> int:
        """Put a key without any guard; return the revision."""
        return must(await store.commit([], [Put(self.key(name), value, lease)]))

    async def close(self) -> None:
        """End all leases and close all clients."""
        last = await self.client()
        for lease in self.leases:
            await last.revoke_lease(lease)
        for store in self.opened:
            await store.close()


async def add_one(store: Store, key: str) -> None:
    """Count up by one, however often others are faster and whatever is not answered.

    Each try writes a mark of its own, so that after an unknown outcome it can be read back.
    """
    mark = secrets.token_hex(8)
    async with asyncio.timeout(PATIENCE_S * 2):
        while not await _try_to_add(store, key, mark):
            pass


async def _try_to_add(store: Store, key: str, mark: str) -> bool:
    try:
        item = await store.get(key)
        count, marks = parse_count(item)
        if mark in marks:
            return True
        value = " ".join([str(count + 1), *marks, mark]).encode()
        guard = Guard(key, item.revision if item else 0)
        return await store.commit([guard], [Put(key, value)]) is not None
    except (Unavailable, OutcomeUnknown):
        await asyncio.sleep(0.05)
        return False


def parse_count(item: Item | None) -> tuple[int, list[str]]:
    """Return a counter's value, and the marks of those who counted."""
    count, *marks = item.value.decode().split() if item else ["0"]
    return int(count), marks


@asynccontextmanager
async def following(store: Store, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
    """Collect what a watch yields, in the background, into the list that this gives."""
    seen: list[Change] = []

    async def follow() -> None:
        async with aclosing(store.watch(prefix, after)) as watch:
            async for made in watch:
                same("one list a revision", len({change.revision for change in made}), 1)
                same("a list is sorted by key", sorted(c.key for c in made), [c.key for c in made])
                seen.extend(made)

    task = asyncio.create_task(follow())
    try:
        yield seen
        if task.done():
            await task
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()
