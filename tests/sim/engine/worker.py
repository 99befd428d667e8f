"""A simulated worker: it reads, stages and answers as a real one does, without Spark."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core.gather import Counts, OpenedTable, StagedCommittable, TaskAck
from holdfast.core.task import WorkerId
from holdfast.master.ports import Incarnation
from holdfast.wire.codec import NAMES
from holdfast.wire.describe import describe_ack, describe_task
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    DeployTask,
    Heartbeat,
    HeartbeatAck,
    SourceEndAck,
    SourceEndReport,
    StopTask,
    TaskKey,
    TaskReport,
    ToLeader,
    ToWorker,
)
from tests.sim.engine.kernel import Process
from tests.sim.engine.lake import OPENS

if TYPE_CHECKING:
    from tests.sim.engine.world import World

BEAT_S = 0.5
ORPHAN_S = 12.0
ROW_S = 0.3


@dataclass
class Running:
    """One attempt on this worker."""

    key: TaskKey
    attempt: int
    sources: dict[str, int]
    positions: dict[str, int]
    fresh: list[tuple[str, int]] = field(default_factory=list)
    carried: list[StagedCommittable] = field(default_factory=list)
    answered: TaskAck | None = None
    confirmed: set[str] = field(default_factory=set)
    stopped: bool = False
    failure: str | None = None
    progress: int = 0
    empties: bool = False
    opened: tuple[OpenedTable, ...] | None = ()
    due: tuple[str, ...] = ()
    ready: bool = False

    @property
    def ended(self) -> bool:
        """Whether every bounded source has been read whole."""
        return all(n and self.positions[s] >= n for s, n in self.sources.items())


class SimWorker:
    """One worker process."""

    def __init__(self, world: "World", process: Process, slots: int) -> None:
        self.world = world
        self.process = process
        self.name, self.incarnation = process[0], f"{process[0]}#{process[1]}"
        self.slots = slots
        self.term = 0
        self.sequence = 0
        self.heard_s = world.loop.time()
        self.tasks: dict[TaskKey, Running] = {}
        self.ended: dict[TaskKey, int] = {}
        self.leaving = False

    async def run(self) -> None:
        """Beat, and give up every task if no leader is heard for too long."""
        while True:
            self._tell(self._hello())
            await asyncio.sleep(BEAT_S)
            if self.world.loop.time() - self.heard_s > ORPHAN_S:
                # Given up, but still held: the next leader must learn that it runs no more.
                for running in [r for r in self.tasks.values() if r.failure is None]:
                    running.failure = "no leader was in contact for too long"
                    self._note_end(running, "orphaned")

    async def hear(self, message: ToWorker) -> None:
        """Take in a leader's message; a lower term than the highest seen is refused."""
        if message.term < self.term:
            return
        if message.term > self.term:
            # A confirmation counts in its term: the new leader gets everything again.
            for held in self.tasks.values():
                held.confirmed.clear()
        self.term = message.term
        self.heard_s = self.world.loop.time()
        self.world.note("took", order=NAMES[type(message)], term=message.term)
        match message:
            case DeployTask():
                self._deploy(message)
            case StopTask(_, key, attempt, gone):
                self._stop(key, attempt)
                if gone:
                    await self.world.tables.sweep(Incarnation(key.job, key.incarnation, ""))
            case Barrier():
                self._barrier(message)
            case SourceEndAck(_, key, attempt, source):
                running = self.tasks.get(key)
                if running and running.attempt == attempt:
                    running.confirmed.add(source)
            case HeartbeatAck(leave=True) if self.leaving:
                if self.tasks:  # nobody has room for them
                    self.world.note_by(None, "fault", fault="told to end", of=self.name)
                self.world.note("departed", worker=self.incarnation)
                self.world.loop.kill(self.process)
            case HeartbeatAck():
                pass

    def _deploy(self, order: DeployTask) -> None:
        """Run an attempt, unless exactly it runs already or a later one does."""
        known = self.tasks.get(order.key)
        if known and known.attempt >= order.attempt:
            return
        if self.ended.get(order.key, 0) >= order.attempt:
            # Late, or a leader that does not know: say so, and it will stop or try the next one.
            gone = Running(order.key, order.attempt, {}, {}, failure="it was stopped here before")
            self.tasks[order.key] = gone
            return
        if known:
            known.stopped = True
            self._note_end(known, "stopped")
        spec = json.loads(order.spec)
        lengths = spec.get("lengths", {})
        named = spec["sources"][order.key.task]
        sources = {source: lengths.get(source, spec["rows"]) for source in named}
        given = dict(order.positions or ())
        positions = {s: int(str(given.get(s) or 0)) for s in sources}
        running = Running(order.key, order.attempt, sources, positions)
        running.empties, running.opened = spec.get("empties", False), order.opened
        running.ready = not running.empties  # only save modes make a task's first answer wait
        self.tasks[order.key] = running
        running.failure = self.world.poisoned.get(order.key.job)
        facts = describe_task(order.key, order.attempt)
        self.world.note("start", **facts, worker=self.incarnation, positions=order.positions)
        if running.failure is not None:
            self._note_end(running, "failed")
        self.world.loop.spawn(self.process, self._read(running))

    def _stop(self, key: TaskKey, attempt: int) -> None:
        running = self.tasks.get(key)
        if running and running.attempt <= attempt:
            running.stopped = True
            if running.failure is None:
                self._note_end(running, "stopped")
            del self.tasks[key]
        self.ended[key] = max(self.ended.get(key, 0), attempt)

    async def _read(self, running: Running) -> None:
        """Read a row from each source now and then; report each end until it is confirmed."""
        world = self.world
        gate = world.slow_to_open.get((running.key.task, running.attempt))
        if gate:
            world.note("opening", **describe_task(running.key, running.attempt))
            await gate.wait()
        running.due, running.ready = self.open(running), True  # nothing in there looks for a stop
        while not running.stopped and running.failure is None:
            await asyncio.sleep(ROW_S * (0.5 + world.loop.random.random()))
            if running.stopped:
                return
            if (running.key.task, running.attempt) in world.hangs:
                await asyncio.Event().wait()
            running.progress += 1
            if world.faults.happens(world.loop.random, world.faults.task_failure):
                running.failure = "a row could not be read"
                self._note_end(running, "failed")
                return
            for source, rows in running.sources.items():
                at = running.positions[source]
                if not rows or at < rows:
                    running.fresh.append((source, at))
                    running.positions[source] = at + 1
                elif source not in running.confirmed:
                    self._tell(
                        SourceEndReport(
                            self.term, running.key, running.attempt, source, self.name,
                            self.incarnation,
                        )
                    )  # fmt: skip

    def open(self, running: Running) -> tuple[str, ...]:
        """Look at the tables of a task; return those whose save modes are due."""
        if not running.empties or running.opened is None:
            return ()
        known = {o.target for o in running.opened}
        return tuple(s for s in self.world.sinks(running.key.job) if s not in known)

    def _barrier(self, barrier: Barrier) -> None:
        """Stage what was read since the last barrier, answer, and go on at once."""
        running = self.tasks.get(barrier.key)
        if running is None or running.attempt != barrier.attempt or running.failure is not None:
            return
        if barrier.key.task in self.world.busy or not running.ready:
            return  # in the middle of a slice; the leader asks again
        answered = running.answered
        if answered and answered.number > barrier.number:
            return  # late: a later barrier has passed
        if not answered or answered.number < barrier.number:
            running.carried = [s for s in running.carried if s.created > barrier.complete]
            self._stage(running, barrier.number)
            answered = running.answered = self._ack(running, barrier.number)
            new = BarrierAck(self.term, barrier.key, answered)
            self.world.note("ack", **describe_ack(new, barrier))
        self._tell(BarrierAck(self.term, barrier.key, answered))

    def _open(self, running: Running, number: int) -> None:
        """Put the save modes that are due into this answer."""
        key, due, running.due = running.key, running.due, ()
        for sink in due:
            name = (
                f"{key.job}/{key.incarnation}/{key.pipeline}/{key.task}/a{running.attempt}"
                f"-{self.incarnation}-{number}-{sink}{OPENS}"
            )
            self.world.tables.stage(name, ())
            running.carried.append(StagedCommittable(number, sink, name))
            opened = OpenedTable(sink, sink, sink, key.incarnation)
            running.opened = (*(running.opened or ()), opened)

    def _stage(self, running: Running, number: int) -> None:
        self._open(running, number)
        if not running.fresh:
            return
        key = running.key
        rows = tuple(running.fresh)
        running.fresh = []
        for sink in self.world.sinks(key.job):
            name = (
                f"{key.job}/{key.incarnation}/{key.pipeline}/{key.task}/a{running.attempt}"
                f"-{self.incarnation}-{number}-{sink}"
            )
            self.world.tables.stage(name, rows)
            running.carried.append(StagedCommittable(number, sink, name))

    def _ack(self, running: Running, number: int) -> TaskAck:
        mark: tuple[int | None, bool] = (min(running.positions.values()), False)
        said = self.world.marks.get(running.key.task)
        if said:
            mark = said[min(number, len(said)) - 1]
        return TaskAck(
            number=number,
            task=running.key.task,
            attempt=running.attempt,
            place=WorkerId(self.name, self.incarnation),
            positions=tuple(sorted(running.positions.items())),
            staged=tuple(running.carried),
            ended=running.ended,
            watermark=mark[0],
            idle=mark[1],
            counts=Counts(sum(running.positions.values())),
            opened=running.opened,
        )

    def fail(self, task: str, reason: str, job: str = "") -> None:
        """Let a task fail, for a test: of one job, or of all that have it."""
        mine = [r for k, r in self.tasks.items() if k.task == task and job in ("", k.job)]
        for running in [r for r in mine if r.failure is None]:
            running.failure = reason
            self._note_end(running, "failed")

    def leave(self) -> None:
        """Hear that this process is to end, politely."""
        self.leaving = True
        self._tell(self._hello())

    def _note_end(self, running: Running, why: str) -> None:
        facts = describe_task(running.key, running.attempt)
        self.world.note("end", **facts, worker=self.incarnation, why=why)

    def _hello(self) -> Heartbeat:
        self.sequence += 1
        held = tuple(
            TaskReport(r.key, r.attempt, r.failure, r.progress)
            for _, r in sorted(self.tasks.items())
        )
        return Heartbeat(
            self.name, self.incarnation, self.sequence, self.term, self.slots, (), held,
            leaving=self.leaving,
        )  # fmt: skip

    def _tell(self, message: ToLeader) -> None:
        """Say it to every master; the one that leads listens."""
        for master in self.world.master_names:
            self.world.network.send(self.name, master, self._delivery(master, message), message)

    def _delivery(self, master: str, message: ToLeader) -> Callable[[], Any]:
        return lambda: self.world.to_master(master, self.incarnation, message)
