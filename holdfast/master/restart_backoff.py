"""How long a task that failed waits before its next try, as its job file asks."""

import math

from holdfast.core.pipeline import PipelineRecord
from holdfast.master.ports import Clock


class RestartBackoff:
    """The rests of one pipeline's tasks.  A new leader waits anew: rather longer than shorter."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_s: dict[tuple[str, int], float] = {}

    def over(self, pipeline: PipelineRecord, task: str) -> bool:
        """Say whether a task has waited long enough; one whose rest has not begun has not."""
        if not _pause_s(pipeline, task):
            return True
        return self._clock.now() >= self._until_s.get(_try(pipeline, task), math.inf)

    async def wait(self, pipeline: PipelineRecord, task: str) -> None:
        """Wait before the next try."""
        clock, pause_s = self._clock, _pause_s(pipeline, task)
        if pause_s:
            until_s = self._until_s.setdefault(_try(pipeline, task), clock.now() + pause_s)
            await clock.sleep(max(0.0, until_s - clock.now()))


def _pause_s(pipeline: PipelineRecord, task: str) -> float:
    last = pipeline.failures[-1] if pipeline.failures else None
    return pipeline.policy.retry_interval_s if last and last.task == task else 0.0


def _try(pipeline: PipelineRecord, task: str) -> tuple[str, int]:
    return task, next(t.attempt for t in pipeline.tasks if t.id == task)
