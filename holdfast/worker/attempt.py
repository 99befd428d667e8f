"""One attempt of one task, in a thread of its own: slices, and between them the leader's barriers.

The thread never waits for the leader.  What it has to say (an answer, an end, that it is over) it
posts to the event loop, where the worker passes it on; what it receives (a barrier, a stop) is in a
mailbox of one, because only the latest barrier counts.  A failure is kept until it is confirmed.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from holdfast.connect.registry import Registry
from holdfast.connect.sink import Committable, Leftovers, Sink
from holdfast.connect.source import Budget
from holdfast.core.gather import StagedCommittable, TaskAck
from holdfast.core.task import WorkerId
from holdfast.errors import Cancelled, HoldfastError, Unavailable, UserError
from holdfast.model.tree import Plain
from holdfast.plan.record import decode_spec
from holdfast.wire.codec import FRAME_BYTES_MAX
from holdfast.wire.messages import Barrier, DeployTask, TaskReport
from holdfast.worker.failures import GONE, explained, stack_of
from holdfast.worker.row_counts import RowCounts
from holdfast.worker.slice_pipeline import FinishedSlice, SlicePipeline, SliceSizer
from holdfast.worker.task_runner import StagedSlice, TaskContext, TaskRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = logging.getLogger("holdfast")


NAMES_BYTES_PAUSE = FRAME_BYTES_MAX // 2
"""From so many bytes of names on a task waits for a checkpoint; the other half is for slices that
are under way then."""

NAMES_BYTES_MAX = FRAME_BYTES_MAX // 16 * 15
"""What names may take of one answer; the rest is for positions and counters."""

MIB = 1024 * 1024


class Unheld:
    """The names of what is staged.  Only the task's own thread calls this."""

    def __init__(self, periodic: bool) -> None:
        self.fresh: list[StagedSlice] = []
        self._periodic = periodic
        self._new: list[tuple[str, Plain, int]] = []
        self._said: list[tuple[StagedCommittable, int]] = []
        self._bytes = 0
        self._waits = False

    def waits(self, name: str) -> bool:
        """Say whether the task must wait for a checkpoint before it stages more."""
        waits = self._periodic and self._bytes >= NAMES_BYTES_PAUSE
        if waits and not self._waits:
            log.warning(
                "%s reads no further until a checkpoint completes: it has staged %d MiB of names"
                " that none holds", name, self._bytes // MIB,
            )  # fmt: skip
        self._waits = waits
        return waits

    def add(self, made: StagedSlice) -> None:
        """Take in what slices have staged since the last answer."""
        self.fresh.append(made)
        for sink, committables in made.committables.items():
            self._take(sink, committables)

    def answer(
        self, task: str, number: int, complete: int, due: list[StagedCommittable]
    ) -> tuple[StagedCommittable, ...]:
        """Return what this answer names: all that was staged after the latest complete one.

        What is new is from now on part of checkpoint `number`.  `due` are save modes, which come
        before the rows that were staged with them.
        """
        kept = [(s, size) for s, size in self._said if s.created > complete]
        kept += [(s, _size(s.content)) for s in due]
        kept += [
            (StagedCommittable(number, sink, content), size) for sink, content, size in self._new
        ]
        self._bytes = sum(size for _, size in kept)
        if self._bytes > NAMES_BYTES_MAX:
            raise UserError(
                f"Task {task} has staged {len(kept):,} pieces that no checkpoint holds yet; their"
                f" names take {self._bytes // MIB} MiB, and one answer has room for"
                f" {NAMES_BYTES_MAX // MIB}. Have checkpoints more often (checkpoint.interval), or"
                " write fewer and larger files: fewer partitions.",
                code="task.too_many_files",
            )
        self._said, self._new, self.fresh = kept, [], []
        return tuple(staged for staged, _ in kept)

    def _take(self, sink: str, committables: Iterable[Committable]) -> None:
        for committable in committables:
            content: Plain = asdict(committable)
            size = _size(content)
            self._new.append((sink, content, size))
            self._bytes += size


def _size(content: Plain) -> int:
    return len(msgspec.msgpack.encode(content))


IDLE_WAIT_S = 0.2
REST_WAIT_S = 1.0
START_S_MAX = 120.0
"""For how long a Spark that starts counts as progress."""

LOSS_PATIENCE_S = 1.0


def _no_loss(_patience_s: float) -> Unavailable | None:
    return None


def _pass(_name: str) -> None:
    """Pass a named moment that no test waits for."""


@dataclass(frozen=True)
class WorkerRuntime:
    """What attempts need of their process: connectors, and a Spark that may still be starting.

    `session` waits for it, in a task's thread.  `loss` says why it is gone, waiting so long for
    that to show; None while it is there.  `pass_now` is where a test may stop a thread.
    """

    registry: Registry
    session: Callable[[], "SparkSession"]
    loss: Callable[[float], Unavailable | None] = _no_loss
    pass_now: Callable[[str], None] = _pass


@dataclass(frozen=True, slots=True)
class BarrierAnswered:
    """An attempt answers a barrier."""

    attempt: "Attempt"
    acked: TaskAck
    barrier: Barrier


@dataclass(frozen=True, slots=True)
class SourceExhausted:
    """An attempt has read a source to its end."""

    attempt: "Attempt"
    source: str


@dataclass(frozen=True, slots=True)
class AttemptExited:
    """An attempt's thread ends; nothing comes from it any more."""

    attempt: "Attempt"


News = BarrierAnswered | SourceExhausted | AttemptExited


class Attempt:
    """One attempt.  The event loop owns it; its thread writes what is said to be the thread's."""

    def __init__(
        self,
        order: DeployTask,
        place: WorkerId,
        runner: WorkerRuntime,
        post: Callable[[News], None],
    ) -> None:
        self.order = order
        self.key = order.key
        self.number = order.attempt
        self.confirmed: set[str] = set()
        self.stopping = threading.Event()
        self.over = False
        self.gone = False
        # The thread's; others only look.
        self.answered: TaskAck | None = None
        self.at_end: frozenset[str] = frozenset()
        self.failure: str | None = None
        self.error: HoldfastError | None = None
        self.lost = False
        self.spark: SparkSession | None = None
        self.task: TaskRun | None = None
        self.tally = RowCounts(order.counts)
        # The worker's helper's.
        self.beats = 0
        self.pulse = -1
        self._rounds = 0
        self._shown = (order.counts.read, _written(self.tally))
        self._place = place
        self._runner = runner
        self._post = post
        self._bell = threading.Condition()
        self._barrier: Barrier | None = None
        self._unheld = Unheld(periodic=False)
        self._positions: dict[int, dict[str, Plain]] = {}
        self._swept = order.attempt == 1
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._live, name=self.name, daemon=True)

    @property
    def name(self) -> str:
        """What logs and Spark call it."""
        return f"{self.key.job}.{self.key.incarnation}/{self.key.task}/{self.number}"

    @property
    def starting(self) -> bool:
        """Whether it waits for a Spark that may well still come."""
        return self.spark is None and time.monotonic() - self._began_s < START_S_MAX

    def start(self) -> None:
        """Set the thread going."""
        self._thread.start()

    def hear(self, barrier: Barrier) -> TaskAck | None:
        """Take in a barrier; return the answer if it was given before.  Never blocks.

        A lower number than the last answered is late and means nothing any more.
        """
        answered = self.answered
        if answered and answered.number >= barrier.number:
            return answered if answered.number == barrier.number else None
        with self._bell:
            if self._barrier is None or self._barrier.number <= barrier.number:
                self._barrier = barrier
            self._bell.notify()
        return None

    def stop(self) -> None:
        """Have the thread give up; its Spark jobs must be cancelled by somebody else."""
        self.stopping.set()
        with self._bell:
            self._bell.notify()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; say whether it has ended.  Not from the event loop."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def held(self) -> TaskReport:
        """Return what a hello says of it.  Rows never go back."""
        moving, counts = self.tally.moving(), self.tally.counts()
        read = max(self._shown[0], counts.read + moving.rows_in)
        written = max(self._shown[1], _written(self.tally) + moving.rows_out)
        self._shown = (read, written)
        fatal = isinstance(self.error, UserError)
        progress = self._rounds + self.beats
        stack = stack_of(self.error) if self.failure and self.error else ""
        return TaskReport(
            self.key, self.number, self.failure, progress, fatal, read, written, stack,
            counts.rejected,
        )  # fmt: skip

    def give_up(self, failure: str) -> None:
        """Fail it from outside: the leader must learn that it runs no more."""
        self.failure = failure
        self.stop()

    def _live(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  it is kept, and reported to the leader
            self._ended_by(error)
        finally:
            self._post(AttemptExited(self))

    def _work(self) -> None:
        order, runner = self.order, self._runner
        runner.pass_now("before:worker.start")
        spec = decode_spec(order.spec)
        job = spec.job(runner.registry)
        part = next(p for p in job.pipelines if p.id == self.key.pipeline)
        planned = next(t for t in part.tasks if t.id == self.key.task)
        spark = runner.session()
        self._check()
        running = TaskContext(
            job, self.key.job, runner.registry, spark, self.tally, self.stopping.is_set,
            spec.allow_python, self.key.incarnation, runner.pass_now,
        )  # fmt: skip
        task = TaskRun(running, planned, self.number, dict(order.positions or ()), order.opened)
        task.use_pool()
        self.task, self.spark = task, spark
        self._began_s = time.monotonic()
        runner.pass_now("after:worker.start")
        pace = SliceSizer.of(job, planned.slots)
        self._unheld = Unheld(periodic=job.checkpoint_interval_ms is not None)
        flights = SlicePipeline(task)
        try:
            self._prepare(task, pace)
            self._loop(task, flights, pace)
        finally:
            flights.close()

    def _prepare(self, task: TaskRun, pace: SliceSizer) -> None:
        """Check the plan and let sinks look at their tables, before the first row moves."""
        self._runner.pass_now("before:worker.prepare")
        for stage, tables in task.expected(Budget(pace.rows, time.monotonic())).items():
            if stage in task.sinks:
                task.open(stage, tables)
        self._runner.pass_now("after:worker.prepare")

    def _loop(self, task: TaskRun, flights: SlicePipeline, pace: SliceSizer) -> None:
        """Run slice after slice, with an eye on the mailbox between them."""
        followed = False
        while True:
            self._answer(task)
            self._rounds += 1
            if task.ended and not flights:
                self._rest(task, REST_WAIT_S)
                continue
            rest_s, full = 0.0, self._unheld.waits(self.name)
            if flights or (not full and flights.depart(Budget(pace.rows, time.monotonic()))):
                if followed and pace.free and not full:
                    # One came right after another, so there is probably more to read.
                    flights.depart(Budget(pace.rows, time.monotonic()))
                landed = flights.arrive()
                made = landed.made
                self._unheld.add(made)
                self._runner.pass_now("after:worker.slice")
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("slice staged", extra={"about": self._facts(task, landed)})
                rest_s = pace.after(made.rows, made.bytes, landed.took_s, landed.allowed)
                followed = True
            else:
                followed = False
                rest_s = 0.0 if task.ended else IDLE_WAIT_S
            self._report_ends(task)
            self._rest(task, rest_s)

    def _facts(self, task: TaskRun, landed: FinishedSlice) -> dict[str, object]:
        """Return what the log says of a slice: how long it took, and Spark's jobs in it."""
        made = landed.made
        times = {"took_s": round(landed.took_s, 3), "spark_s": round(task.spark_s(made), 3)}
        return {"attempt": self.name, "rows": made.rows, "bytes": made.bytes, **times}

    def _report_ends(self, task: TaskRun) -> None:
        for source in sorted(task.at_end - self.at_end):
            self._runner.pass_now("before:worker.end_report")
            self.at_end |= {source}
            self._post(SourceExhausted(self, source))
            self._runner.pass_now("after:worker.end_report")

    def _rest(self, task: TaskRun, seconds: float) -> None:
        """Wait; a barrier is answered at once all the same, and waiting counts as progress."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            with self._bell:
                if self._barrier is None and not self.stopping.is_set():
                    self._bell.wait(min(left_s, REST_WAIT_S))
            self._rounds += 1
            self._answer(task)

    def _answer(self, task: TaskRun) -> None:
        """Answer the barrier in the mailbox, if there is one."""
        self._check()
        with self._bell:
            barrier, self._barrier = self._barrier, None
        if barrier is None or (self.answered and self.answered.number >= barrier.number):
            return
        self._runner.pass_now("before:worker.ack")
        number = barrier.number
        due, ack = task.answer(number, self._place)
        staged = self._unheld.answer(self.key.task, number, barrier.complete, due)
        self._positions[number] = dict(task.positions)
        self.answered = replace(ack, staged=staged)
        self._post(BarrierAnswered(self, self.answered, barrier))
        self._runner.pass_now("after:worker.ack")
        self._committed(task, barrier.through)
        self._sweep(task, barrier.through)

    def _committed(self, task: TaskRun, through: int) -> None:
        """Tell sources up to where everything is visible."""
        visible = [n for n in self._positions if n <= through]
        if not visible:
            return
        for stage, position in self._positions[max(visible)].items():
            with explained(task.running.job.stage(stage)):
                task.sources[stage].committed(position)
        for number in visible:
            del self._positions[number]

    def _sweep(self, task: TaskRun, through: int) -> None:
        """Once all that counts of earlier attempts is visible, remove what else they staged."""
        if self._swept or through < self.order.restored:
            return
        leftovers = Leftovers(self.key.job, self.key.incarnation, self.key.task, self.number)
        # What cannot be removed now is tried at the next barrier, and once the job is over.
        self._swept = _sweep_all(task.sinks.values(), leftovers, self.name)

    def _check(self) -> None:
        if self.stopping.is_set():
            raise Cancelled(f"Task {self.key.task} was stopped.")

    def _ended_by(self, error: BaseException) -> None:
        """Remove what no checkpoint can hold, and keep the reason, unless this was wanted."""
        if self.task:
            for made in self._unheld.fresh:
                self.task.drop(made)
        if self.stopping.is_set():
            if not isinstance(error, Cancelled):
                log.info("%s was stopped and ended with: %s", self.name, error)
            return
        self.error = self._explained(error)
        known = isinstance(error, HoldfastError) or self.lost
        self.failure = str(self.error) if known else _said(error)
        log.warning("%s failed: %s", self.name, self.failure, exc_info=error)

    def _explained(self, error: BaseException) -> HoldfastError:
        """Return the error that people are shown; a Spark that is gone explains all others."""
        gone = isinstance(error, HoldfastError) and error.code == GONE
        loss = self._runner.loss(LOSS_PATIENCE_S if gone else 0.0)
        if loss:
            self.lost = True
            loss.__cause__ = error
            return loss
        if isinstance(error, HoldfastError):
            return error
        shown = Unavailable(f"Task {self.key.task} failed: {_said(error)}", code="task.failed")
        shown.__cause__ = error
        return shown


def sweep_life(attempt: Attempt) -> None:
    """Remove what an incarnation has staged and no leader committed, as far as this task can."""
    if attempt.task:  # else it has not come to stage anything
        leftovers = Leftovers(attempt.key.job, attempt.key.incarnation)
        _sweep_all(attempt.task.sinks.values(), leftovers, attempt.name)


def _sweep_all(sinks: Iterable[Sink[object]], leftovers: Leftovers, name: str) -> bool:
    """Sweep up in every sink; say whether all of it worked."""
    swept = True
    for sink in sinks:
        try:
            sink.sweep(leftovers)
        except Exception as error:  # noqa: BLE001  one sink must not keep the others from it
            swept = False
            log.warning("%s: leftovers in %s stay: %s", name, sink.context.stage, error)
    return swept


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}." if str(error) else f"{type(error).__name__}."


def _written(tally: RowCounts) -> int:
    return sum(w.rows for w in tally.counts().written)
