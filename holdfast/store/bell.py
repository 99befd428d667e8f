"""Wakes the watches of this process as soon as it has changed something."""

import asyncio


class Bell:
    """Wakes all that wait.  A reader that takes `next` before looking misses no later ring."""

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait now."""
        rung, self.next = self.next, asyncio.Event()
        rung.set()


async def wait(ring: asyncio.Event, longest_s: float | None) -> None:
    """Wait for one ring, but no longer than a bound."""
    try:
        async with asyncio.timeout(longest_s):
            await ring.wait()
    except TimeoutError:
        return
