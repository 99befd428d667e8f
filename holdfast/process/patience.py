"""Commits of a job that a person waits for: tried as often as the job file says, then given up.

A cluster tries a commit for as long as it takes, because the rows are owed and nobody waits.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.master.ports import CommitHookRequest, CommitRequest, Incarnation, TableState
from holdfast.process.committers import SinkTables

T = TypeVar("T")

LOOK_S = 0.05


class PatientTables:
    """The sinks of one job.  `error` is what ended the last try."""

    def __init__(self, inner: SinkTables, say: Callable[[str], None]) -> None:
        self.error: HoldfastError | None = None
        self._inner = inner
        self._say = say
        self._times = 0
        self._interval_s = 0.0
        self._failed: Counter[str] = Counter()
        self._hurry = False

    def allow(self, times: int, interval_s: float) -> None:
        """Set how often a failed call is made again, and how long to rest before."""
        self._times, self._interval_s = times, interval_s

    def hurry(self) -> None:
        """Make no more tries: the user wants an end."""
        self._hurry = True

    def close(self) -> None:
        """Let the threads end."""
        self._inner.close()

    async def read(self, order: CommitRequest) -> TableState:
        """Return what the table says of the order's user."""
        return await self._inner.read(order)

    async def publish(self, version: int, order: CommitRequest) -> bool:
        """Make an order visible."""
        return await self._tried(
            f"commit {order.number} to {order.sink}", lambda: self._inner.publish(version, order)
        )

    async def listens(self, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        """Say whether any of these sinks has a listener."""
        return await self._inner.listens(life, sinks)

    async def listen(self, order: CommitHookRequest) -> str:
        """Run the listeners of a commit."""
        return await self._tried(
            f"the listeners of commit {order.number}", lambda: self._inner.listen(order)
        )

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Tell sinks that the input has ended."""
        await self._tried("finish", lambda: self._inner.finish(life, rows))

    async def sweep(self, life: Incarnation) -> None:
        """Remove whatever was staged and never committed."""
        await self._inner.sweep(life)

    async def _tried(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        try:
            done = await call()
        except UserError as error:
            self.error = error
            raise
        except (Unavailable, OutcomeUnknown) as error:
            self.error = error
            self._failed[what] += 1
            if self._failed[what] > self._times or self._hurry:
                raise UserError(str(error), code=error.code) from error
            self._say(
                f"{error} Retry {self._failed[what]} of {self._times} in {self._interval_s:g} s."
            )
            await self._rest()
            raise
        del self._failed[what]
        return done

    async def _rest(self) -> None:
        left_s = self._interval_s
        while left_s > 0 and not self._hurry:
            await asyncio.sleep(min(left_s, LOOK_S))
            left_s -= LOOK_S
