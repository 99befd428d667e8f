"""Where the tasks of all pipelines run, and which pipelines wait for a worker.

Derived from the pipelines' records as they change, and never stored: so that hearing a worker or
placing a task costs what that worker or task costs, however many jobs there are.
"""

from holdfast.core.pipeline import Pipeline
from holdfast.core.task import Task, TaskStatus
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.wire.messages import Held, TaskKey


class Roster:
    """The tasks of one leader, by worker incarnation."""

    def __init__(self) -> None:
        self.waiting: dict[str, PipelineKeeper] = {}
        self.used: dict[str, int] = {}
        self._on: dict[str, dict[TaskKey, Task]] = {}
        self._seen: dict[str, tuple[Task, ...]] = {}

    def note(self, keeper: PipelineKeeper) -> None:
        """Take in how a pipeline's tasks stand now."""
        now = keeper.state.tasks
        if now is self._seen.get(keeper.key):
            return
        self.forget(keeper)
        for task in now:
            if task.live and task.place:
                self._put(task.place.incarnation, keeper.task_key(task.id), task)
        self._seen[keeper.key] = now
        if any(t.status is TaskStatus.WAITING for t in now):
            self.waiting[keeper.key] = keeper

    def forget(self, keeper: PipelineKeeper) -> None:
        """Let go of a pipeline's tasks as they were last noted."""
        for task in self._seen.pop(keeper.key, ()):
            if task.live and task.place:
                self._take(task.place.incarnation, keeper.task_key(task.id), task)
        self.waiting.pop(keeper.key, None)

    def placed(self) -> set[str]:
        """Return the worker incarnations that some task is placed on."""
        return set(self._on)

    def running_on(self, incarnation: str) -> list[tuple[TaskKey, Task]]:
        """Return the tasks that records say a worker runs."""
        on = self._on.get(incarnation, {})
        return [(key, task) for key, task in on.items() if task.status is TaskStatus.RUNNING]

    def expects(self, incarnation: str, held: Held) -> bool:
        """Say whether a worker holds what the records say it runs, and it has not failed."""
        task = self._on.get(incarnation, {}).get(held.key)
        return (
            task is not None
            and task.attempt == held.attempt
            and task.status is TaskStatus.RUNNING
            and held.failure is None
        )

    def _put(self, incarnation: str, key: TaskKey, task: Task) -> None:
        self._on.setdefault(incarnation, {})[key] = task
        self.used[incarnation] = self.used.get(incarnation, 0) + task.slots

    def _take(self, incarnation: str, key: TaskKey, task: Task) -> None:
        on = self._on[incarnation]
        del on[key]
        self.used[incarnation] -= task.slots
        if not on:
            del self._on[incarnation], self.used[incarnation]


def hangs(pipeline: Pipeline, task: Task, stands_s: float, bound_s: float) -> str | None:
    """Return the reason to give up a task that is alive and gets nowhere, or None.

    A task whose sources are at their end has nothing left to do and may stand still.
    """
    at_end = {r.source for r in pipeline.completion.ready}
    if stands_s <= bound_s or set(task.sources) <= at_end:
        return None
    return f"it made no progress for {bound_s:.0f} s"
