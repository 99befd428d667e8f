"""The slices of one task that are under way: at most two, and they count in the order of the plan.

The second one is planned and composed while Spark works on the first, and where the sinks allow it
it is written, too: Spark gives its tasks the cores that the first one leaves idle, so that between
two slices nothing stands still.  A task's own thread plans, waits for the oldest, and keeps it.
"""

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.connect.arrow_rows import MALFORMED
from holdfast.connect.source import Budget
from holdfast.errors import Cancelled, UserError
from holdfast.model.tree import Plain
from holdfast.worker.staging_thread import StagingThread
from holdfast.worker.task_runner import PlannedSlices, StagedSlice, TaskRun

LANES = 2
CANCEL_S = 0.5
"""Jobs of a task that is to end are cancelled again and again: it may begin another meanwhile."""

log = logging.getLogger("holdfast")


@dataclass
class SliceInFlight:
    """Slices that are being staged."""

    planned: PlannedSlices
    lane: StagingThread[StagedSlice]
    before: "SliceInFlight | None"
    budget: Budget
    composed: threading.Event = field(default_factory=threading.Event)
    landed: threading.Event = field(default_factory=threading.Event)
    failed: bool = False


@dataclass(frozen=True)
class FinishedSlice:
    """Slices that were staged and are kept: how long that took, others' time left out, and how
    many rows they might have had."""

    made: StagedSlice
    took_s: float
    allowed: int | None


class SlicePipeline:
    """What is under way.  Only the task's own thread calls this."""

    def __init__(self, task: TaskRun) -> None:
        self._task = task
        self._lanes: list[StagingThread[StagedSlice]] = [
            StagingThread(f"{task.group} lane {n}") for n in range(LANES)
        ]
        self._turns = itertools.cycle(self._lanes)
        self._flying: deque[SliceInFlight] = deque()
        self._last_s = 0.0

    def __len__(self) -> int:
        return len(self._flying)

    def depart(self, budget: Budget) -> bool:
        """Plan what comes next and begin to stage it; say whether there was anything."""
        assert len(self._flying) < LANES
        task = self._task
        planned = task.plan(self._heading(), budget)
        if not self._flying:
            task.at_end = planned.at_end
        if not planned.slices:
            return False
        before = self._flying[-1] if self._flying else None
        flight = SliceInFlight(planned, next(self._turns), before, budget)
        self._flying.append(flight)
        flight.lane.begin(lambda: self._fly(flight))
        return True

    def arrive(self) -> FinishedSlice:
        """Wait for the oldest and keep it.

        If it has failed, nothing is under way any more.
        """
        flight, task = self._flying.popleft(), self._task
        try:
            made = flight.lane.take()
        except UserError as error:
            self._call_back()
            made = self._with_care(flight.planned, error)
        except BaseException:
            self._call_back()
            raise
        task.keep(made)
        task.at_end = flight.planned.at_end
        now_s = time.monotonic()
        took_s, self._last_s = now_s - max(flight.budget.now_s, self._last_s), now_s
        return FinishedSlice(made, took_s, flight.budget.rows)

    def close(self) -> None:
        """End what is under way, and the threads."""
        self._call_back()
        for lane in self._lanes:
            lane.close()
        self._task.close()

    def _heading(self) -> Mapping[str, Plain]:
        """Return where sources read next once all that is under way is kept."""
        heading = dict(self._task.positions)
        for flight in self._flying:
            heading |= {stage: one.after for stage, one in flight.planned.slices.items()}
        return heading

    def _fly(self, flight: SliceInFlight) -> StagedSlice:
        """Compose and stage, in a thread of its own, in turn with the slices before."""
        task, before, flight.before = self._task, flight.before, None
        try:
            task.running.pass_now("before:worker.slice")
            task.use_pool()
            if before:
                before.composed.wait()
            ready = task.compose(flight.planned.slices)
            flight.composed.set()
            if before and not task.overlaps:
                before.landed.wait()
            if before and before.failed:
                ready.composed.release()
                raise Cancelled("The slice before has failed.")
            return task.stage(ready)
        except BaseException:
            flight.failed = True
            raise
        finally:
            flight.composed.set()
            flight.landed.set()

    def _with_care(self, planned: PlannedSlices, error: UserError) -> StagedSlice:
        """Stage slices again, with ever more care, as long as that may help."""
        task = self._task
        while error.code == MALFORMED and task.read_carefully(planned.slices):
            log.info("%s: a slice is read again: %s", task.group, error)
            try:
                return task.stage(task.compose(planned.slices))
            except UserError as next_error:
                error = next_error
        raise error

    def _call_back(self) -> None:
        """End everything under way, and remove what it has staged."""
        while self._flying:
            lane = self._flying.popleft().lane
            patience_s = 0.0
            while not lane.wait(patience_s):
                self._cancel_jobs()
                patience_s = CANCEL_S
            try:
                self._task.drop(lane.take())
            except Exception as error:  # noqa: BLE001  it was to end, and has left nothing
                log.info("%s: a slice that was called back ended: %s", self._task.group, error)

    def _cancel_jobs(self) -> None:
        running = self._task.running
        try:
            for group in running.tally.watched():
                running.spark.sparkContext.cancelJobGroup(group)
        except Exception as error:  # noqa: BLE001  without Spark the jobs end by themselves
            log.info("%s: Spark does not cancel jobs: %s", self._task.group, error)
