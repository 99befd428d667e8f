"""A simulated network: messages are lost, late, repeated, out of order, or cut off."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.sim.engine.world import World

Deliver = Callable[[], Coroutine[Any, Any, None] | None]


@dataclass
class Parcel:
    """One message on its way."""

    at: float
    sender: str
    receiver: str
    message: Any
    deliver: Deliver


@dataclass
class Tap:
    """A hand on the wire: what becomes of the messages that match.

    `drop` loses them, `hold` keeps them for `release`, `copy` lets them pass and keeps a copy,
    `twice` delivers them twice.  It takes `left` messages, or all if that is None.
    """

    match: Callable[[Parcel], bool]
    verdict: str
    left: int | None = None
    taken: list[Parcel] = field(default_factory=list)

    def takes(self, parcel: Parcel) -> bool:
        """Say whether this message is one to take, and note it."""
        if self.left == 0 or not self.match(parcel):
            return False
        if self.left is not None:
            self.left -= 1
        self.taken.append(parcel)
        return True

    def end(self) -> None:
        """Let everything pass from now on."""
        self.left = 0


class SimNetwork:
    """Delivers messages between processes.  Cuts have a direction and an end."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.cuts: dict[tuple[str, str], float] = {}
        self.taps: list[Tap] = []
        self.log: list[Parcel] = []

    def heal(self) -> None:
        """End every cut and every tap."""
        self.cuts.clear()
        for tap in self.taps:
            tap.end()

    def tap(self, match: Callable[[Parcel], bool], verdict: str, left: int | None = None) -> Tap:
        """Put a hand on the wire."""
        self.taps.append(Tap(match, verdict, left))
        return self.taps[-1]

    def release(self, parcel: Parcel) -> None:
        """Deliver a message that was held or copied, now."""
        self.world.note("late", message=type(parcel.message).__name__, to=parcel.receiver)
        self._arrive(parcel)

    def cut(self, sender: str, receiver: str) -> bool:
        """Say whether nothing gets through this way now."""
        return self.cuts.get((sender, receiver), 0.0) > self.world.loop.time()

    def send(self, sender: str, receiver: str, deliver: Deliver, message: Any = None) -> None:
        """Send a message, which may arrive once, twice, late or never."""
        rng, faults = self.world.loop.random, self.world.faults
        parcel = Parcel(self.world.loop.time(), sender, receiver, message, deliver)
        self.log.append(parcel)
        verdicts = {t.verdict for t in self.taps if t.takes(parcel)}
        if verdicts & {"drop", "hold"}:
            return
        if self.cut(sender, receiver) or faults.happens(rng, faults.message_lost):
            return
        twice = "twice" in verdicts or faults.happens(rng, faults.message_twice)
        for _ in range(2 if twice else 1):
            slow = faults.message_slow_s if faults.happens(rng, 0.05) else 0.03
            self.world.loop.in_world(0.002 + rng.random() * slow, self._carry, parcel)

    def _carry(self, parcel: Parcel) -> None:
        if not self.cut(parcel.sender, parcel.receiver):
            self._arrive(parcel)

    def _arrive(self, parcel: Parcel) -> None:
        process = self.world.process_of(parcel.receiver)
        arrives = parcel.deliver() if process else None
        if arrives is not None:
            self.world.loop.spawn(process, arrives)
