"""Where the tasks of all pipelines run, and which pipelines wait for a worker.

Derived from the pipelines' records as they change, and never stored: so that hearing a worker or
placing a task costs what that worker or task costs, however many jobs there are.
"""

from collections.abc import Mapping

from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskRecord, TaskStatus
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.worker_registry import WorkerState
from holdfast.wire.messages import TaskKey, TaskReport


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
        """Let go of a pipeline's tasks as they were last noted."""
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
        """Return the worker incarnations that some task is placed on, or is to go on."""
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
