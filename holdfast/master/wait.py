"""Wait for something to happen, but no longer than a while, by the clock of the ports."""

import asyncio

from holdfast.master.ports import Clock


async def wait(clock: Clock, event: asyncio.Event, longest_s: float) -> None:
    """Return when the event is set, or after so long."""
    waiting = asyncio.ensure_future(event.wait())
    beat = asyncio.ensure_future(clock.sleep(longest_s))
    try:
        await asyncio.wait((waiting, beat), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        beat.cancel()
