"""The workers a leader has heard of, and what each said it holds.

Soft state: workers say everything again with every heartbeat, and a new leader hears it all within
one.  Comparing what a worker holds with what the records say is what makes things right; the
messages in between only make them fast.
"""

from dataclasses import dataclass, field

from holdfast.core.placement import Room
from holdfast.core.task import Place, Task
from holdfast.wire.messages import Held, Hello, TaskKey


@dataclass
class Seen:
    """A worker's last hello, when it came, and since when each attempt stands where it stands.

    `lives` are the jobs of which it holds something, as (id, incarnation).
    """

    hello: Hello
    at_s: float
    moved: dict[tuple[TaskKey, int], tuple[int | None, float]] = field(default_factory=dict)
    lives: frozenset[tuple[str, str]] = frozenset()


class Crew:
    """All workers in contact."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.seen: dict[str, Seen] = {}

    def take(self, hello: Hello, now_s: float) -> list[str] | None:
        """Note a hello; return the incarnations it replaces, or None if it is an old one."""
        known = self.seen.get(hello.incarnation)
        if known and known.hello.sequence >= hello.sequence:
            return None
        moved = {}
        for held in hello.held:
            one = (held.key, held.attempt)
            before = known.moved.get(one) if known else None
            stands = before is not None and before[0] == held.progress
            moved[one] = before if before and stands else (held.progress, now_s)
        lives = frozenset((h.key.job, h.key.incarnation) for h in hello.held)
        self.seen[hello.incarnation] = Seen(hello, now_s, moved, lives)
        others = [i for i, s in self.seen.items() if s.hello.worker == hello.worker]
        replaced = [i for i in others if i != hello.incarnation]
        for incarnation in replaced:
            del self.seen[incarnation]
        return replaced

    def overdue(self, now_s: float, patience_s: float, placed: set[str]) -> list[str]:
        """Return incarnations that are lost: silent too long, or never heard though placed on."""
        silent = {i for i, s in self.seen.items() if now_s - s.at_s > patience_s}
        unheard = placed - set(self.seen) if now_s - self.since_s > patience_s else set()
        for incarnation in silent:
            del self.seen[incarnation]
        return sorted(silent | unheard)

    def rooms(self, placed: dict[str, int]) -> list[Room]:
        """Return the free slots of each worker, given the slots that records have placed there.

        What a worker still holds of tasks that records no longer place there takes room too.
        """
        rooms = []
        for incarnation, seen in sorted(self.seen.items()):
            hello = seen.hello
            held = max(placed.get(incarnation, 0), len(hello.held))
            free = max(0, hello.slots - held)
            rooms.append(Room(Place(hello.worker, incarnation), free, hello.tags))
        return rooms

    def holds(self, job: str, incarnation: str) -> bool:
        """Say whether a worker in contact still holds a task of one life of a job."""
        return any((job, incarnation) in seen.lives for seen in self.seen.values())

    def standing(self, incarnation: str, now_s: float, longer_s: float) -> set[tuple[TaskKey, int]]:
        """Return a worker's attempts that have not got on for longer than a bound."""
        seen = self.seen.get(incarnation)
        return {
            one
            for one, (progress, since_s) in (seen.moved if seen else {}).items()
            if progress is not None and now_s - since_s > longer_s
        }

    def stands_s(self, incarnation: str, held: Held, now_s: float) -> float:
        """Return for how long an attempt has not got on; 0 if its worker cannot say."""
        seen = self.seen.get(incarnation)
        progress, since_s = (seen.moved if seen else {}).get((held.key, held.attempt), (None, 0.0))
        return 0.0 if progress is None else now_s - since_s

    def stood_since(self, incarnation: str, key: TaskKey, attempt: int, since_s: float) -> bool:
        """Say whether an attempt is known not to have got on since then.

        A worker that has said nothing since, or that cannot say, is given the benefit of the doubt.
        """
        seen = self.seen.get(incarnation)
        progress, moved_s = (seen.moved if seen else {}).get((key, attempt), (None, 0.0))
        return seen is not None and progress is not None and moved_s <= since_s < seen.at_s

    def place(self, incarnation: str) -> Place | None:
        """Return the place of a worker in contact, or None."""
        seen = self.seen.get(incarnation)
        return Place(seen.hello.worker, incarnation) if seen else None


def missing(hello: Hello, tasks: list[tuple[TaskKey, Task]]) -> list[tuple[TaskKey, Task]]:
    """Return the tasks that records say this worker runs and that it does not hold."""
    holds = {(h.key, h.attempt) for h in hello.held}
    return [(key, task) for key, task in tasks if (key, task.attempt) not in holds]


def failed(held: Held) -> bool:
    """Say whether a held attempt is one that has failed."""
    return held.failure is not None
