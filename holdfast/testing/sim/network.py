"""A simulated network: messages are lost, late, repeated, out of order, or cut off."""

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
            slow = faults.message_slow_s if faults.happens(rng, 0.05) else 0.03
            way_s = 0.002 + rng.random() * slow
            self.world.loop.in_world(way_s, self._arrive, sender, receiver, deliver)

    def _arrive(
        self,
        sender: str,
        receiver: str,
        deliver: Callable[[], Coroutine[Any, Any, None] | None],
    ) -> None:
        process = self.world.process_of(receiver)
        if process is None or self.cut(sender, receiver):
            return
        arrives = deliver()
        if arrives is not None:
            self.world.loop.spawn(process, arrives)
