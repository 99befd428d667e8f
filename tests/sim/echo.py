"""Let everything be heard twice: each event reaches its keeper again, some time later.

Reports are repeated, effects too, and answers overtake each other; whatever comes a second time
must change nothing that it should not.
"""

import asyncio
import contextvars
import random
from functools import partial
from typing import Any

import pytest

from holdfast.core.checkpoint import LeaderChanged
from holdfast.core.job import PipelinesChanged
from holdfast.core.machine import Event
from holdfast.master.pipeline_keeper import Keeper

LATE_S = 3.0

ECHO: contextvars.ContextVar[bool] = contextvars.ContextVar("echo", default=False)


def hear_twice(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Repeat half of all events, up to `LATE_S` seconds later."""
    rng = random.Random(seed)
    handle = Keeper.handle

    async def twice(keeper: Keeper[Any], event: Event) -> None:
        await handle(keeper, event)
        # A leader takes a record over once, and looking again happens all the time.
        fresh = not ECHO.get() and not isinstance(event, LeaderChanged | PipelinesChanged)
        if fresh and rng.random() < 0.5:
            keeper.spawn(partial(again, keeper, event, rng.random() * LATE_S))

    async def again(keeper: Keeper[Any], event: Event, seconds: float) -> None:
        await asyncio.sleep(seconds)
        ECHO.set(True)
        await keeper.handle(event)

    patch.setattr(Keeper, "handle", twice)
