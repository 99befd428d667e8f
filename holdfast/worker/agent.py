"""A worker: holds attempts, reports them to the leader, and follows its orders.

Everything here runs on the event loop and never blocks.  Attempts run in threads (`attempt.py`),
and one helper thread talks to Spark for them: it cancels what must stop and looks how far the rest
has come.  The leader of the highest term seen is obeyed; a lower one is refused.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.core.task import WorkerId
from holdfast.wire.codec import NAMES
from holdfast.wire.describe import describe_ack, describe_task
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    DeployTask,
    Heartbeat,
    HeartbeatAck,
    LookAtJob,
    MachineLoad,
    SourceEndAck,
    SourceEndReport,
    StopTask,
    TaskKey,
    TaskReport,
    ToLeader,
    ToWorker,
)
from holdfast.worker.attempt import (
    Attempt,
    AttemptExited,
    BarrierAnswered,
    News,
    SourceExhausted,
    WorkerRuntime,
    sweep_life,
)
from holdfast.worker.looks import LookRunner
from holdfast.worker.probe import Trouble
from holdfast.worker.spark_monitor import SparkMonitor

log = logging.getLogger("holdfast")


PROC = Path("/proc")
LIMIT = Path("/sys/fs/cgroup/memory.max")
FRESH_S = 5.0
"""A beat comes twice a second; it is measured less often, for a JVM has many threads to look at."""


class LoadMeter:
    """Measures this process and its children, at most every few seconds."""

    def __init__(self, proc: Path = PROC, limit: Path = LIMIT) -> None:
        self._proc = proc
        self._limit = limit
        self._at_s = -FRESH_S
        self._spent: dict[int, float] = {}
        self._load: MachineLoad | None = None

    def read(self) -> MachineLoad | None:
        """Return the load of the last few seconds; None before the second time, or without /proc.

        Memory that processes share is counted for each of them.
        """
        now_s = time.monotonic()
        if now_s - self._at_s < FRESH_S:
            return self._load
        spent: dict[int, float] = {}
        memory = 0
        for process in self._tree(os.getpid()):
            seen = self._process(process)
            if seen:
                spent[process], size = seen
                memory += size
        # One that has just begun counts from its begin; what one that ended spent last is lost.
        used_s = sum(s - self._spent.get(p, 0.0) for p, s in spent.items())
        if self._spent and spent:
            cpu = max(0.0, used_s / (now_s - self._at_s))
            self._load = MachineLoad(round(cpu, 3), os.cpu_count() or 1, memory, self._total())
        self._at_s, self._spent = now_s, spent
        return self._load

    def _tree(self, process: int) -> Iterator[int]:
        yield process
        for thread in self._threads(process):
            try:
                children = (thread / "children").read_text().split()
            except OSError:
                continue  # it has ended meanwhile, or this system does not say
            for child in children:
                yield from self._tree(int(child))

    def _threads(self, process: int) -> list[Path]:
        try:
            return list((self._proc / str(process) / "task").iterdir())
        except OSError:
            return []

    def _process(self, process: int) -> tuple[float, int] | None:
        """Return the processor time and the memory of a process; None if it is gone."""
        folder = self._proc / str(process)
        try:
            # The name, in brackets, may hold anything.
            numbers = (folder / "stat").read_text().rpartition(")")[2].split()
            pages = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            return None
        ticks = int(numbers[11]) + int(numbers[12])
        return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")

    def _total(self) -> int:
        """Return how much memory there is: the machine's, or what this container may use."""
        lines = (self._proc / "meminfo").read_text().splitlines()
        total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal"))
        try:
            limit = self._limit.read_text().strip()
        except OSError:
            return total
        return min(total, int(limit)) if limit.isdigit() else total


STOPPED_KEPT = 10_000
"""How many attempts that were stopped are remembered: late orders for them must not start them."""

STOP_S_MAX = 20.0
ORPHANED = "no leader was in contact for too long"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How often a worker speaks, and how long it runs tasks without hearing a leader."""

    beat_s: float = 0.5
    orphan_s: float = 60.0


def _silent(*_about: Any, **_facts: Any) -> None:
    """Ignore it."""


class Worker:
    """One worker process, as one incarnation.

    `tell` sends to every master.  `note` gets the events that tests look at, `ended` each attempt
    that was stopped or has failed.  `spark_lost` is set once Spark's JVM is gone: only a new
    process gets another.  `released` is set once the leader lets a worker go that is leaving.
    """

    def __init__(
        self,
        name: str,
        incarnation: str,
        slots: int,
        tags: Mapping[str, str] | tuple[tuple[str, str], ...],
        run: WorkerRuntime,
        tell: Callable[[ToLeader], None],
        settings: WorkerSettings | None = None,
        note: Callable[..., None] = _silent,
        ended: Callable[[Attempt], None] = _silent,
        trouble: Callable[[], Trouble] = Trouble,
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.slots = slots
        self.tags = tuple(sorted(tags.items())) if isinstance(tags, Mapping) else tuple(tags)
        self.settings = settings or WorkerSettings()
        self.spark_lost = asyncio.Event()
        self.term = 0
        self.sequence = 0
        self.leaving = False
        self.released = asyncio.Event()
        self.attempts: dict[TaskKey, Attempt] = {}
        self._leaving: list[Attempt] = []
        self._refused: dict[TaskKey, TaskReport] = {}
        self._stopped: dict[TaskKey, int] = {}
        self._heard_s = time.monotonic()
        self._runner = run
        self._tell = tell
        self._note = note
        self._on_end = ended
        self._trouble = trouble
        self._helper = SparkMonitor(run.loss)
        self._load = LoadMeter()
        self._sweeps: set[asyncio.Task[None]] = set()
        self._looks = LookRunner(WorkerId(name, incarnation), run)

    async def run(self) -> None:
        """Beat, and give up every task if no leader is in contact for too long."""
        self._start_helper()
        self._heard_s = time.monotonic()
        while True:
            self.beat()
            self._tell_ends()
            await asyncio.sleep(self.settings.beat_s)
            if time.monotonic() - self._heard_s > self.settings.orphan_s:
                self._give_all_up()

    async def stop(self) -> None:
        """Stop all attempts and wait for their threads, up to a bound."""
        for attempt in list(self.attempts.values()):
            self._leave(attempt, "stopped")
        deadline_s = time.monotonic() + STOP_S_MAX
        # One that waits for Spark has staged nothing, and its wait cannot be cut short.
        while any(a.task for a in self._leaving) and time.monotonic() < deadline_s:
            await asyncio.sleep(0.02)
        self._helper.close()

    def leave(self) -> None:
        """Say that this process is to end; its tasks move, then `released` is set."""
        self.leaving = True
        self.beat()

    def hello(self) -> Heartbeat:
        """Return everything this worker is and holds."""
        self.sequence += 1
        held = [a.held() for a in (*self.attempts.values(), *self._leaving)]
        held += self._refused.values()
        ill = self._trouble()
        held.sort(key=lambda h: (h.key, h.attempt))
        return Heartbeat(
            self.name, self.incarnation, self.sequence, self.term, self.slots, self.tags,
            tuple(held), self._load.read(), self.leaving, ill.silent_s, ill.said, looks=True,
        )  # fmt: skip

    def beat(self) -> None:
        """Say everything now instead of at the next beat."""
        self._tell(self.hello())

    def hear(self, message: ToWorker) -> None:
        """Take in a leader's message; a lower term than the highest seen is refused."""
        if message.term < self.term:
            return
        if message.term > self.term:
            # A confirmation counts in its term: the new leader gets everything again.
            for attempt in self.attempts.values():
                attempt.confirmed.clear()
        self.term = message.term
        self._heard_s = time.monotonic()
        self._note("took", order=NAMES[type(message)], term=message.term)
        match message:
            case DeployTask():
                self._deploy(message)
            case StopTask(_, key, number, gone):
                self._stop(key, number, gone)
            case Barrier():
                self._barrier(message)
            case SourceEndAck(_, key, number, source):
                found = self.attempts.get(key)
                if found and found.number == number:
                    found.confirmed.add(source)
            case LookAtJob():
                loop = asyncio.get_running_loop()
                self._looks.begin(message, lambda said: _post(loop, lambda: self._tell(said)))
            case HeartbeatAck(_, leave) if leave and self.leaving:
                self.released.set()
            case HeartbeatAck():
                pass

    def _start_helper(self) -> None:
        loop = asyncio.get_running_loop()
        self._helper.start(lambda: _post(loop, self.spark_lost.set))

    def _deploy(self, order: DeployTask) -> None:
        """Run an attempt, unless exactly it runs already or a later one does."""
        known = self.attempts.get(order.key)
        refused = self._refused.get(order.key)
        if (known and known.number >= order.attempt) or (
            refused and refused.attempt >= order.attempt
        ):
            self._said_again(order)
            return
        if self._stopped.get(order.key, 0) >= order.attempt:
            # Late, or a leader that does not know: say so, and it will stop or try the next one.
            self._refused[order.key] = TaskReport(
                order.key, order.attempt, "it was stopped here before"
            )
            return
        self._refused.pop(order.key, None)
        if known:
            self._leave(known, "stopped")
        loop = asyncio.get_running_loop()
        place = WorkerId(self.name, self.incarnation)
        attempt = Attempt(
            order, place, self._runner, lambda news: _post(loop, lambda: self._news(news))
        )
        self.attempts[order.key] = attempt
        self._start_helper()
        self._helper.look_at(attempt)
        facts = describe_task(order.key, order.attempt)
        self._note("start", **facts, worker=self.incarnation, positions=order.positions)
        attempt.start()
        # The leader need not wait for the next beat to know that it runs.
        self.beat()

    def _said_again(self, order: DeployTask) -> None:
        """Log an order for what is here already: it must not begin a second time."""
        key, number = order.key, order.attempt
        log.info(
            "%s.%s/%s/%s is here already: an order to run it, said again, changes nothing",
            key.job, key.incarnation, key.task, number,
        )  # fmt: skip

    def _stop(self, key: TaskKey, number: int, gone: bool) -> None:
        refused = self._refused.get(key)
        if refused and refused.attempt <= number:
            del self._refused[key]
        for leaving in [a for a in self._leaving if a.key == key and a.number <= number]:
            leaving.gone = leaving.gone or gone
        attempt = self.attempts.get(key)
        if attempt and attempt.number <= number:
            attempt.gone = gone
            self._leave(attempt, "stopped")
        self._stopped[key] = max(self._stopped.pop(key, 0), number)
        while len(self._stopped) > STOPPED_KEPT:
            del self._stopped[next(iter(self._stopped))]

    def _leave(self, attempt: Attempt, why: str) -> None:
        """Have an attempt end.  It stays held until its thread has: it may still stage."""
        del self.attempts[attempt.key]
        if attempt.failure is None:
            self._end(attempt, why)
        self._leaving.append(attempt)
        attempt.stop()
        if attempt.over:
            self._left(attempt)
        else:
            self._helper.cancel_soon(self._leaving)

    def _left(self, attempt: Attempt) -> None:
        """Release an attempt whose thread has ended."""
        if not attempt.gone:
            self._leaving.remove(attempt)
            self.beat()
            return
        sweep = asyncio.ensure_future(self._sweep(attempt))
        self._sweeps.add(sweep)
        sweep.add_done_callback(self._sweeps.discard)

    async def _sweep(self, attempt: Attempt) -> None:
        """Remove what a deleted incarnation has staged here, in a thread; then release it."""
        try:
            await asyncio.to_thread(sweep_life, attempt)
        finally:
            self._leaving.remove(attempt)
            self.beat()

    def _barrier(self, barrier: Barrier) -> None:
        attempt = self.attempts.get(barrier.key)
        if attempt is None or attempt.number != barrier.attempt or attempt.failure is not None:
            return
        again = attempt.hear(barrier)
        if again:
            self._tell(BarrierAck(self.term, barrier.key, again))

    def _news(self, news: News) -> None:
        """Pass on what a thread has to say; one that is to stop has nothing to say."""
        attempt = news.attempt
        current = self.attempts.get(attempt.key) is attempt
        match news:
            case BarrierAnswered(_, acked, barrier) if current and not attempt.stopping.is_set():
                ack = BarrierAck(self.term, attempt.key, acked)
                self._note("ack", **describe_ack(ack, barrier))
                self._tell(ack)
            case SourceExhausted(_, source) if current:
                self._tell_end(attempt, source)
            case AttemptExited():
                attempt.over = True
                self._helper.forget(attempt)
                if attempt.lost:
                    self.spark_lost.set()
                if attempt in self._leaving:
                    self._left(attempt)
                elif attempt.failure is not None:
                    if not attempt.stopping.is_set():
                        self._end(attempt, "failed")
                    self.beat()

    def _give_all_up(self) -> None:
        """Stop everything, but keep holding it: the next leader must learn that it runs no more."""
        for attempt in [a for a in self.attempts.values() if a.failure is None]:
            attempt.give_up(ORPHANED)
            self._end(attempt, "orphaned")
            self._helper.cancel_soon([attempt])

    def _end(self, attempt: Attempt, why: str) -> None:
        self._note(
            "end", **describe_task(attempt.key, attempt.number), worker=self.incarnation, why=why
        )
        self._on_end(attempt)

    def _tell_ends(self) -> None:
        """Say again which sources are at their end, as long as no leader has confirmed it."""
        for attempt in [a for a in self.attempts.values() if a.failure is None]:
            for source in sorted(attempt.at_end - attempt.confirmed):
                self._tell_end(attempt, source)

    def _tell_end(self, attempt: Attempt, source: str) -> None:
        self._tell(
            SourceEndReport(
                self.term, attempt.key, attempt.number, source, self.name, self.incarnation
            )
        )


def _post(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Have the event loop do something; a thread that outlives it is ignored."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        if not loop.is_closed():
            raise
