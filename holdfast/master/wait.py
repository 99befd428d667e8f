"""Wait for something to happen, but no longer than a while; and have others not wait for us."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from holdfast.master.ports import Clock

T = TypeVar("T")
TOGETHER = 64


async def wait(clock: Clock, event: asyncio.Event, longest_s: float) -> None:
    """Return when the event is set, or after so long."""
    waiting = asyncio.ensure_future(event.wait())
    beat = asyncio.ensure_future(clock.sleep(longest_s))
    try:
        await asyncio.wait((waiting, beat), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        beat.cancel()


async def unhurried(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items, and let others have the loop now and then: a lease must be kept meanwhile."""
    for number, item in enumerate(items, 1):
        yield item
        if number % TOGETHER == 0:
            await asyncio.sleep(0)
