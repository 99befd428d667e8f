"""The workers a leader knows of, and what each said it holds.

Soft state: workers say everything again with every heartbeat, and a new leader has it all within
one.  Comparing what a worker holds with what the records say is what makes things right; the
messages in between only make them fast.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from holdfast.core.pipeline import PipelineRecord
from holdfast.core.placement import Room
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.wire.messages import Heartbeat, TaskKey, TaskReport

Stand = tuple[int | None, float]
"""The progress of an attempt, and since when it has stood there."""


@dataclass
class WorkerState:
    """A worker's last heartbeat, when it came, and the progress of each attempt that it holds.

    `spoke_s` is when anything at all last came from it, though there was no time to take it in.
    `holds` and `stands` are in the order of the heartbeat; `lives` are the jobs of which it holds
    something, as (id, incarnation).  `agreed` is the edition of the roster with which all of it
    was found to agree: as long as neither changes, no new comparison is needed.
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
        """Return the progress of an attempt; none if it is not held."""
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
        """Note that a worker is in contact, whatever it says."""
        seen = self.seen.get(incarnation)
        if seen:
            seen.spoke_s = now_s

    def troubles(self) -> dict[str, str]:
        """Return what workers say is wrong with them."""
        return {i: s.hello.trouble for i, s in self.seen.items() if s.hello.trouble}

    def overdue(self, now_s: float, patience_s: float, placed: set[str]) -> list[str]:
        """Return incarnations that are lost: silent too long, or never seen though placed on."""
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
        """Say whether a worker in contact still holds a task of one incarnation of a job."""
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


class Roster:
    """The tasks of one leader, by worker incarnation."""

    def __init__(self) -> None:
        self.waiting: dict[str, PipelineKeeper] = {}
        self.used: dict[str, int] = {}
        self._on: dict[str, dict[TaskKey, TaskRecord]] = {}
        self._coming: dict[str, dict[TaskKey, TaskRecord]] = {}
        self._seen: dict[str, tuple[TaskRecord, ...]] = {}
        self._edition = 0
        self._editions: dict[str, int] = {}

    def note(self, keeper: PipelineKeeper) -> None:
        """Take in how a pipeline's tasks stand now."""
        now = keeper.state.tasks
        if now is self._seen.get(keeper.key):
            return
        self.forget(keeper)
        for task in now:
            if task.live and task.place:
                self._put(task.place.incarnation, keeper.task_key(task.id), task)
            if task.to:
                coming = self._coming.setdefault(task.to.incarnation, {})
                coming[keeper.task_key(task.id)] = task
        self._seen[keeper.key] = now
        if any(t.status is TaskStatus.WAITING for t in now):
            self.waiting[keeper.key] = keeper

    def forget(self, keeper: PipelineKeeper) -> None:
        """Forget a pipeline's tasks as they were last noted."""
        for task in self._seen.pop(keeper.key, ()):
            if task.live and task.place:
                self._take(task.place.incarnation, keeper.task_key(task.id), task)
            if task.to:
                coming = self._coming[task.to.incarnation]
                del coming[keeper.task_key(task.id)]
                if not coming:
                    del self._coming[task.to.incarnation]
        self.waiting.pop(keeper.key, None)

    def placed(self) -> set[str]:
        """Return the worker incarnations that some task is placed on, or is to move to."""
        return {*self._on, *self._coming}

    def on(self, incarnation: str) -> Mapping[TaskKey, TaskRecord]:
        """Return the tasks that records have placed on a worker."""
        return self._on.get(incarnation, {})

    def comes(self, incarnation: str) -> bool:
        """Say whether a task is on its way to a worker."""
        return incarnation in self._coming

    def moving(self) -> list[tuple[TaskKey, TaskRecord]]:
        """Return the tasks that are on their way to another worker."""
        return [one for coming in self._coming.values() for one in coming.items()]

    def taken(self) -> Mapping[str, int]:
        """Return the slots in use on each worker, with those kept for tasks on their way there."""
        if not self._coming:
            return self.used
        kept = {i: sum(t.slots for t in c.values()) for i, c in self._coming.items()}
        return {i: self.used.get(i, 0) + kept.get(i, 0) for i in {*self.used, *kept}}

    def differs(
        self, seen: WorkerState
    ) -> tuple[list[TaskReport], list[tuple[TaskKey, TaskRecord]]]:
        """Compare what a worker holds with what the records say it runs.

        Return the attempts that are not what they say, or that failed, and the tasks it lacks.
        """
        incarnation = seen.hello.incarnation
        edition = self._editions.get(incarnation, 0)
        if seen.agreed == edition:
            return [], []
        on, holds = self._on.get(incarnation, {}), set(seen.holds)
        odd = [held for held in seen.hello.held if not _expected(on.get(held.key), held)]
        running = [(key, task) for key, task in on.items() if task.status is TaskStatus.RUNNING]
        missing = [(key, task) for key, task in running if (key, task.attempt) not in holds]
        if not odd and not missing:
            seen.agreed = edition
        return odd, missing

    def _put(self, incarnation: str, key: TaskKey, task: TaskRecord) -> None:
        self._changed(incarnation)
        self._on.setdefault(incarnation, {})[key] = task
        self.used[incarnation] = self.used.get(incarnation, 0) + task.slots

    def _take(self, incarnation: str, key: TaskKey, task: TaskRecord) -> None:
        self._changed(incarnation)
        on = self._on[incarnation]
        del on[key]
        self.used[incarnation] -= task.slots
        if not on:
            del self._on[incarnation], self.used[incarnation], self._editions[incarnation]

    def _changed(self, incarnation: str) -> None:
        self._edition += 1
        self._editions[incarnation] = self._edition


def _expected(task: TaskRecord | None, held: TaskReport) -> bool:
    """Say whether a worker holds what the records say it runs, and it has not failed."""
    return (
        task is not None
        and task.attempt == held.attempt
        and task.status is TaskStatus.RUNNING
        and held.failure is None
    )


def hangs(
    pipeline: PipelineRecord, task: TaskRecord, stands_s: float, bound_s: float
) -> str | None:
    """Return the reason to give up a task that is alive and gets nowhere, or None.

    A task whose sources are at their end has nothing left to do and may stand still.
    """
    at_end = {r.source for r in pipeline.completion.ready}
    if stands_s <= bound_s or set(task.sources) <= at_end:
        return None
    return f"it made no progress for {bound_s:.0f} s"
