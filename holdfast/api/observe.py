"""How long a master's store and its blobs take.  The wrappers change nothing."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeVar

from holdfast.errors import HoldfastError
from holdfast.master.ports import Blobs
from holdfast.store.contract import Change, Delete, Guard, Item, Put, Store

T = TypeVar("T")

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Latency:
    """How long calls took: counts by bucket, their number, their sum, and how many failed."""

    def __init__(self) -> None:
        self.counts = [0] * len(BUCKETS_S)
        self.number = 0
        self.total_s = 0.0
        self.failures = 0

    async def measure(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call and note how long it took."""
        begun_s = time.monotonic()
        try:
            return await call()
        except HoldfastError:
            self.failures += 1
            raise
        finally:
            took_s = time.monotonic() - begun_s
            self.number += 1
            self.total_s += took_s
            for place, bound_s in enumerate(BUCKETS_S):
                self.counts[place] += took_s <= bound_s


class ObservedStore:
    """A store whose calls are timed."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.reads = Latency()
        self.writes = Latency()

    async def get(self, key: str) -> Item | None:
        return await self.reads.measure(lambda: self._inner.get(key))

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        return await self.reads.measure(lambda: self._inner.range(prefix))

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        return await self.writes.measure(lambda: self._inner.commit(guards, changes))

    def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        return self._inner.watch(prefix, after)

    async def grant_lease(self, ttl_s: float) -> int:
        return await self._inner.grant_lease(ttl_s)

    async def keep_lease(self, lease: int) -> None:
        await self.writes.measure(lambda: self._inner.keep_lease(lease))

    async def revoke_lease(self, lease: int) -> None:
        await self._inner.revoke_lease(lease)

    async def close(self) -> None:
        await self._inner.close()


class ObservedBlobs:
    """Blobs whose writes are timed."""

    def __init__(self, inner: Blobs) -> None:
        self._inner = inner
        self.writes = Latency()

    async def put(self, name: str, content: bytes) -> None:
        await self.writes.measure(lambda: self._inner.put(name, content))

    async def get(self, name: str) -> bytes:
        return await self._inner.get(name)

    async def drop(self, *names: str) -> None:
        await self._inner.drop(*names)

    async def names(self, prefix: str) -> list[str]:
        return await self._inner.names(prefix)
