"""Wait for something to happen, but no longer than a while; and have others not wait for us."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from holdfast.core.pipeline import PipelineRecord
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


class RestartBackoff:
    """The rests of one pipeline's tasks.  A new leader waits again: rather longer than shorter."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_s: dict[tuple[str, int], float] = {}

    def over(self, pipeline: PipelineRecord, task: str) -> bool:
        """Say whether a task has waited long enough; one whose rest has not begun has not."""
        if not _pause_s(pipeline, task):
            return True
        return self._clock.now() >= self._until_s.get(_try(pipeline, task), math.inf)

    async def wait(self, pipeline: PipelineRecord, task: str) -> None:
        """Wait before the next try."""
        clock, pause_s = self._clock, _pause_s(pipeline, task)
        if pause_s:
            until_s = self._until_s.setdefault(_try(pipeline, task), clock.now() + pause_s)
            await clock.sleep(max(0.0, until_s - clock.now()))


def _pause_s(pipeline: PipelineRecord, task: str) -> float:
    last = pipeline.failures[-1] if pipeline.failures else None
    return pipeline.policy.retry_interval_s if last and last.task == task else 0.0


def _try(pipeline: PipelineRecord, task: str) -> tuple[str, int]:
    return task, next(t.attempt for t in pipeline.tasks if t.id == task)
