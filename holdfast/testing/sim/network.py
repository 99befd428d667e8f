"""A simulated network: messages are lost, late, repeated, out of order, or cut off."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.testing.sim.world import World


class SimNetwork:
    """Delivers messages between processes.  Cuts have a direction and an end."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.cuts: dict[tuple[str, str], float] = {}

    def cut(self, sender: str, receiver: str) -> bool:
        """Say whether nothing gets through this way now."""
        return self.cuts.get((sender, receiver), 0.0) > self.world.loop.time()

    def send(
        self, sender: str, receiver: str, deliver: Callable[[], Coroutine[Any, Any, None] | None]
    ) -> None:
        """Send a message, which may arrive once, twice, late or never."""
        rng, faults = self.world.loop.random, self.world.faults
        if self.cut(sender, receiver) or faults.happens(rng, faults.message_lost):
            return
        copies = 2 if faults.happens(rng, faults.message_twice) else 1
        for _ in range(copies):
            self.world.loop.spawn(None, self._carry(sender, receiver, deliver))

    async def _carry(
        self,
        sender: str,
        receiver: str,
        deliver: Callable[[], Coroutine[Any, Any, None] | None],
    ) -> None:
        rng, faults = self.world.loop.random, self.world.faults
        slow = faults.message_slow_s if faults.happens(rng, 0.05) else 0.03
        await asyncio.sleep(0.002 + rng.random() * slow)
        if self.cut(sender, receiver):
            return
        arrives = deliver()
        process = self.world.process_of(receiver)
        if arrives is not None and process is not None:
            self.world.loop.spawn(process, arrives)
        elif arrives is not None:
            arrives.close()
