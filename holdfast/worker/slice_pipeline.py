"""The slices of one task that are under way: at most two, and they count in the order of the plan.

The second one is planned and composed while Spark works on the first, and where the sinks allow it
it is written, too: Spark gives its tasks the cores that the first one leaves idle, so that between
two slices nothing is idle.  A task's own thread plans, waits for the oldest, and keeps it.
"""

import itertools
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Generic, TypeVar

from holdfast.connect.arrow_rows import MALFORMED
from holdfast.connect.source import Budget
from holdfast.errors import Cancelled, UserError
from holdfast.model.job import JobPlan
from holdfast.model.tree import Plain
from holdfast.worker.task_runner import PlannedSlices, StagedSlice, TaskRun

log = logging.getLogger("holdfast")


ROWS_FIRST = 250_000
ROWS_LEAST = 1_000
ROWS_UNPROVEN = 1_000_000
"""How far slices grow that do not use what they may take: a full one may take very long.

A stream that trickles would else be allowed everything at once when the flood comes.
"""

FULL = 0.5
"""The share of its rows that a slice must have taken to prove anything about larger ones."""

GROWTH_MOST = 8.0
SHRINK_MOST = 4.0
SHARE_OF_INTERVAL = 0.2
SHARE_MOST = 0.9
SLICE_S_LEAST = 2.0
COLD_S = 3.0
"""Warm-up time of processes and connections, ignored when the first slice is sized."""


@dataclass
class SliceSizer:
    """The state of pacing one task: the most rows of its next slice, None for all there are."""

    interval_s: float
    rows: int | None
    rows_per_second: int | None
    bytes_per_second: int | None = None
    cold: bool = True
    """Whether no slice has ended yet."""
    last: tuple[int, float] = (0, 0.0)
    """How many rows the slice before might have had, and how long it took."""

    @classmethod
    def of(cls, job: JobPlan, readers: int = 1) -> "SliceSizer":
        """Return the pace a task starts with.  A job's limits are those of each of its readers."""
        interval, limit, size = (
            job.checkpoint_interval_ms, job.rows_per_second, job.bytes_per_second
        )  # fmt: skip
        rows = None if interval is None else ROWS_FIRST
        if size is not None:  # how many bytes a row has is seen with the first slice
            rows = ROWS_LEAST
            size *= readers
        if limit is not None:
            limit *= readers
            rows = min(rows or limit, limit)
        return cls(math.inf if interval is None else interval / 1000, rows, limit, size)

    @property
    def free(self) -> bool:
        """Whether one slice may follow another at once."""
        return self.rows_per_second is None and self.bytes_per_second is None

    def after(self, rows: int, size: int, took_s: float, allowed: int | None = None) -> float:
        """Take in what a slice has read and how long it took; return how long to rest now.

        `allowed`: what it might have taken, if others have ended since it was planned.
        """
        if self.rows is None:
            return 0.0
        cold, self.cold = self.cold, False
        if not cold or took_s > COLD_S or not self.free:
            allowed = allowed or self.rows
            self.rows = self._next(allowed, rows, size, self._usual_s(allowed, took_s))
        rest_s = 0.0
        if self.rows_per_second:
            rest_s = rows / self.rows_per_second - took_s
        if self.bytes_per_second:
            rest_s = max(rest_s, size / self.bytes_per_second - took_s)
        return max(0.0, rest_s)

    def _usual_s(self, allowed: int, took_s: float) -> float:
        """Return how long so many rows take, judged by two slices: they may have run side by
        side, and then the second one seems to have taken no time."""
        before, before_s = self.last
        self.last = (allowed, took_s)
        return (took_s + before_s) * allowed / (allowed + before)

    def _next(self, allowed: int, rows: int, size: int, took_s: float) -> int:
        """Return how many rows the next slice may take."""
        # Without an interval a limit alone decides, and that for a second's worth.
        long_s = max(self.interval_s * SHARE_OF_INTERVAL, SLICE_S_LEAST)
        aim_s = 1.0 if math.isinf(self.interval_s) else min(self.interval_s * SHARE_MOST, long_s)
        factor = min(GROWTH_MOST, max(1 / SHRINK_MOST, aim_s / max(took_s, 0.001)))
        grown = max(ROWS_LEAST, int(allowed * factor))
        if rows < allowed * FULL:
            grown = min(grown, max(allowed, ROWS_UNPROVEN))
        if self.rows_per_second:
            grown = min(grown, self.rows_per_second)
        if self.bytes_per_second and size:
            grown = min(grown, max(1, self.bytes_per_second * rows // size))
        return grown


T = TypeVar("T")


class StagingThread(Generic[T]):
    """One piece of work at a time.  The thread begins with the first one, and ends with `close`.

    It is kept, because each thread that talks to Spark has a connection and a thread in the JVM.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._orders: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._made: T | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def begin(self, work: Callable[[], T]) -> None:
        """Begin a piece of work.  The former result must have been taken."""
        assert self._idle.is_set() and self._made is None and self._error is None
        self._idle.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
            self._thread.start()
        self._orders.put(work)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no work is under way; say whether that is so."""
        return self._idle.wait(seconds)

    def take(self) -> T:
        """Wait, and return the result, or raise the error of the work."""
        self.wait()
        made, error = self._made, self._error
        self._made = self._error = None
        if error is not None:
            raise error
        assert made is not None, "nothing was begun"
        return made

    def close(self) -> None:
        """Let the thread end."""
        self._orders.put(None)

    def _live(self) -> None:
        while work := self._orders.get():
            try:
                self._made = work()
            except BaseException as error:  # noqa: BLE001  `take` raises it
                self._error = error
            finally:
                self._idle.set()


LANES = 2
CANCEL_S = 0.5
"""Jobs of a task that is to end are cancelled again and again: it may begin another meanwhile."""


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
