"""The workers a leader has heard of, and what each said it holds.

Soft state: workers say everything again with every heartbeat, and a new leader hears it all within
one.  Comparing what a worker holds with what the records say is what makes things right; the
messages in between only make them fast.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from holdfast.core.placement import Room
from holdfast.core.task import WorkerId
from holdfast.wire.messages import Heartbeat, TaskKey, TaskReport

Stand = tuple[int | None, float]
"""The progress of an attempt, and since when it has stood there."""


@dataclass
class WorkerState:
    """A worker's last hello, when it came, and where each attempt that it holds stands.

    `spoke_s` is when anything at all last came from it, though there was no time to take it in.
    `holds` and `stands` are in the order of the hello; `lives` are the jobs of which it holds
    something, as (id, incarnation).  `agreed` is the edition of the roster with which all of it
    was found to agree: as long as neither changes, nobody need compare again.
    """

    hello: Heartbeat
    at_s: float
    holds: list[tuple[TaskKey, int]]
    stands: list[Stand]
    lives: frozenset[tuple[str, str]]
    agreed: int | None = None
    spoke_s: float = 0.0

    def __post_init__(self) -> None:
        self.spoke_s = max(self.spoke_s, self.at_s)

    def stand(self, key: TaskKey, attempt: int) -> Stand:
        """Return where an attempt stands; nowhere if it is not held."""
        pairs = zip(self.holds, self.stands, strict=True)
        return next((stand for one, stand in pairs if one == (key, attempt)), (None, 0.0))


class WorkerRegistry:
    """All workers in contact."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.seen: dict[str, WorkerState] = {}

    def take(self, hello: Heartbeat, now_s: float) -> list[str] | None:
        """Note a hello; return the incarnations it replaces, or None if it is an old one."""
        known = self.seen.get(hello.incarnation)
        if known and known.hello.sequence >= hello.sequence:
            return None
        self.seen[hello.incarnation] = _seen(known, hello, now_s)
        others = [i for i, s in self.seen.items() if s.hello.worker == hello.worker]
        replaced = [i for i in others if i != hello.incarnation]
        for incarnation in replaced:
            del self.seen[incarnation]
        return replaced

    def spoke(self, incarnation: str, now_s: float) -> None:
        """Note that a worker in contact lives, whatever it says."""
        seen = self.seen.get(incarnation)
        if seen:
            seen.spoke_s = now_s

    def troubles(self) -> dict[str, str]:
        """Return what workers say is wrong with them."""
        return {i: s.hello.trouble for i, s in self.seen.items() if s.hello.trouble}

    def overdue(self, now_s: float, patience_s: float, placed: set[str]) -> list[str]:
        """Return incarnations that are lost: silent too long, or never heard though placed on."""
        silent = {i for i, s in self.seen.items() if now_s - s.spoke_s > patience_s}
        unheard = placed - set(self.seen) if now_s - self.since_s > patience_s else set()
        for incarnation in silent:
            del self.seen[incarnation]
        return sorted(silent | unheard)

    def rooms(self, placed: Mapping[str, int], draining: Container[str] = ()) -> list[Room]:
        """Return the free slots of each worker, given the slots that records have placed there.

        What a worker still holds of tasks that records no longer place there takes room too.
        """
        rooms = []
        for incarnation, seen in sorted(self.seen.items()):
            hello = seen.hello
            held = max(placed.get(incarnation, 0), len(hello.held))
            free = max(0, hello.slots - held)
            here = WorkerId(hello.worker, incarnation)
            rooms.append(Room(here, free, hello.tags, incarnation in draining))
        return rooms

    def holds(self, job: str, incarnation: str) -> bool:
        """Say whether a worker in contact still holds a task of one life of a job."""
        return any((job, incarnation) in seen.lives for seen in self.seen.values())

    def standing(self, incarnation: str, now_s: float, longer_s: float) -> list[TaskReport]:
        """Return a worker's attempts that have not got on for longer than a bound."""
        seen = self.seen[incarnation]
        return [
            held
            for held, (progress, since_s) in zip(seen.hello.held, seen.stands, strict=True)
            if progress is not None and now_s - since_s > longer_s
        ]

    def stands_s(self, incarnation: str, held: TaskReport, now_s: float) -> float:
        """Return for how long an attempt has not got on; 0 if its worker cannot say."""
        seen = self.seen.get(incarnation)
        progress, since_s = seen.stand(held.key, held.attempt) if seen else (None, 0.0)
        return 0.0 if progress is None else now_s - since_s

    def stood_since(self, incarnation: str, key: TaskKey, attempt: int, since_s: float) -> bool:
        """Say whether an attempt is known not to have got on since then.

        A worker that has said nothing since, or that cannot say, is given the benefit of the doubt.
        """
        seen = self.seen.get(incarnation)
        progress, moved_s = seen.stand(key, attempt) if seen else (None, 0.0)
        return seen is not None and progress is not None and moved_s <= since_s < seen.at_s

    def place(self, incarnation: str) -> WorkerId | None:
        """Return the place of a worker in contact, or None."""
        seen = self.seen.get(incarnation)
        return WorkerId(seen.hello.worker, incarnation) if seen else None


def _seen(known: WorkerState | None, hello: Heartbeat, now_s: float) -> WorkerState:
    holds = [(h.key, h.attempt) for h in hello.held]
    if known and known.holds == holds:  # as nearly always: then nothing need be looked up
        pairs = zip(known.stands, hello.held, strict=True)
        stands = [s if s[0] == h.progress else (h.progress, now_s) for s, h in pairs]
        well = all(h.failure is None for h in hello.held)
        return WorkerState(hello, now_s, holds, stands, known.lives, known.agreed if well else None)
    before = dict(zip(known.holds, known.stands, strict=True)) if known else {}
    stands = []
    for held, one in zip(hello.held, holds, strict=True):
        stood = before.get(one)
        stands.append(stood if stood and stood[0] == held.progress else (held.progress, now_s))
    lives = frozenset((h.key.job, h.key.incarnation) for h in hello.held)
    return WorkerState(hello, now_s, holds, stands, lives)
