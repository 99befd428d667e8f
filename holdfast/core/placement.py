"""Choose workers for waiting tasks, and say why the others wait.

A job starts whole or not at all, in the order of submission.  A task that lost its worker goes
before all jobs that have not started.  Slots in use are not stored anywhere: they follow from
what workers say they run and what records have placed on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.task import WorkerId


@dataclass(frozen=True, slots=True)
class Wanted:
    """A task that needs a worker.  Those of one job that has not started go together.

    One that is `moving` runs on a worker that is draining.
    """

    job: str
    order: int
    pipeline: int
    task: str
    attempt: int
    slots: int
    tags: tuple[tuple[str, str], ...] = ()
    starting: bool = True
    moving: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """A worker with its free slots and tags.  One that is `draining` gets nothing new."""

    place: WorkerId
    free: int
    tags: tuple[tuple[str, str], ...] = ()
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """A choice."""

    wanted: Wanted
    place: WorkerId


@dataclass(frozen=True, slots=True)
class Waits:
    """Why a task waits, in words."""

    wanted: Wanted
    why: str


def place(
    wanted: Sequence[Wanted], rooms: Sequence[Room]
) -> tuple[tuple[Placed, ...], tuple[Waits, ...]]:
    """Return choices for as many tasks as fit, and the reason for each that does not."""
    staying = [room for room in rooms if not room.draining]
    free = {room.place: room.free for room in staying}
    tags = {room.place: room.tags for room in staying}
    names = ", ".join(sorted(room.place.worker for room in rooms if room.draining))
    aside = f" (besides {names}, draining)" if names else ""
    placed: list[Placed] = []
    waits: list[Waits] = []
    blocked = ""
    for group in _groups(wanted):
        chosen = None if blocked and group[0].starting else _fit(group, free, tags)
        if chosen is not None:
            placed += chosen
            continue
        behind = blocked and group[0].starting
        why = blocked if behind else f"{_why(group, free, tags)}{aside}"
        waits += [Waits(w, why) for w in group]
        if group[0].starting and not blocked:
            blocked = f"waits behind job {group[0].job}, which was submitted earlier"
    return tuple(placed), tuple(waits)


def _groups(wanted: Sequence[Wanted]) -> list[list[Wanted]]:
    """Single tasks of running jobs first, then those that move, then whole jobs that start.

    Each in order of submission.
    """
    key = lambda w: (w.moving, w.order, w.job, w.pipeline, w.task)  # noqa: E731
    running = [[w] for w in sorted((w for w in wanted if not w.starting), key=key)]
    starting: dict[str, list[Wanted]] = {}
    for w in sorted((w for w in wanted if w.starting), key=key):
        starting.setdefault(w.job, []).append(w)
    return [*running, *starting.values()]


def _fit(
    group: Sequence[Wanted],
    free: dict[WorkerId, int],
    tags: Mapping[WorkerId, tuple[tuple[str, str], ...]],
) -> list[Placed] | None:
    """Place a whole group on the emptiest workers, or nothing of it."""
    left = dict(free)
    chosen: list[Placed] = []
    for w in group:
        able = [p for p in left if left[p] >= w.slots and set(w.tags) <= set(tags[p])]
        if not able:
            return None
        best = max(able, key=lambda p: (left[p], p.worker))
        left[best] -= w.slots
        chosen.append(Placed(w, best))
    free.update(left)
    return chosen


def _why(
    group: Sequence[Wanted],
    free: Mapping[WorkerId, int],
    tags: Mapping[WorkerId, tuple[tuple[str, str], ...]],
) -> str:
    if not free:
        return "no worker is connected"
    wanted = set(group[0].tags)
    able = [p for p in free if wanted <= set(tags[p])]
    if not able:
        listed = ", ".join(f"{k}={v}" for k, v in sorted(wanted))
        return f"no connected worker carries the tags {listed}"
    needed, there = sum(w.slots for w in group), sum(free[p] for p in able)
    return f"needs {needed} slots, {there} are free"
