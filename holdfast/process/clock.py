"""The clock of a real process."""

import asyncio
import time


class SystemClock:
    """Measures with the monotonic clock; the date is for people only."""

    def now(self) -> float:
        """Return seconds since some moment; never goes back."""
        return time.monotonic()

    def date(self) -> float:
        """Return seconds since 1970, as this machine believes."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
