"""A whole installation in one thread: masters, workers, a client, and the ground they stand on."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.completion import Completion
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.core.task import TaskRecord
from holdfast.master.master import Master
from holdfast.master.ports import MasterSettings, Ports
from holdfast.master.records import decode
from holdfast.store.contract import Delete, Guard, Put
from holdfast.wire.describe import describe, describe_report
from holdfast.wire.messages import SourceEndReport, ToLeader, ToWorker
from tests.sim.engine.faults import Faults
from tests.sim.engine.history import History
from tests.sim.engine.kernel import PROCESS, Process, SimClock, SimLoop
from tests.sim.engine.lake import SimBlobs, SimTables
from tests.sim.engine.network import SimNetwork
from tests.sim.engine.store import SimStore, SimStoreServer
from tests.sim.engine.worker import SimWorker

MASTERS, WORKERS = ("M1", "M2", "M3"), ("W1", "W2")
REVIVE_S = (1.0, 6.0)
DATE_S = 1_800_000_000.0

Event = dict[str, Any]
Match = Callable[[Event], bool]
Strike = Callable[[str], None]


@dataclass(frozen=True)
class JobSpec:
    """A job for the simulation: pipelines of tasks of sources, and how many rows each has.

    `rows` 0: the sources never end.  `lengths` names sources that have another number of rows.
    `empties`: the save modes of its sinks remove what is in their tables.
    """

    id: str
    pipelines: tuple[tuple[tuple[str, ...], ...], ...] = ((("a",), ("b",)),)
    rows: int = 6
    sinks: tuple[str, ...] = ("t",)
    retry_times: int = 50
    lengths: tuple[tuple[str, int], ...] = ()
    empties: bool = False

    def length(self, source: str) -> int:
        """Return how many rows a source has."""
        return dict(self.lengths).get(source, self.rows)

    def records(self, incarnation: str) -> tuple[JobRecord, tuple[PipelineRecord, ...]]:
        """Return the records that a submit of this job writes."""
        sources: dict[str, tuple[str, ...]] = {}
        pipelines = []
        for number, tasks in enumerate(self.pipelines, 1):
            made = []
            for index, task_sources in enumerate(tasks, 1):
                name = f"p{number}t{index}"
                sources[name] = task_sources
                made.append(TaskRecord(name, task_sources))
            names = tuple(s for t in tasks for s in t)
            pipelines.append(
                PipelineRecord(
                    self.id, incarnation, number, tuple(made), Completion(names),
                    retry_times=self.retry_times, sinks=self.sinks,
                )
            )  # fmt: skip
        said = {"rows": self.rows, "lengths": dict(self.lengths), "sources": sources}
        spec = json.dumps(said | ({"empties": True} if self.empties else {}))
        life = int(incarnation.removeprefix("i"))
        job = JobRecord(
            self.id, incarnation, f"token-{incarnation}", self.id, spec, len(pipelines), life=life
        )
        return job, tuple(pipelines)


class World:
    """The installation.  Everything in it comes from the seed."""

    def __init__(
        self, seed: int, faults: Faults | None = None, settings: MasterSettings | None = None
    ) -> None:
        self.loop = SimLoop(seed)
        self.faults = faults or Faults()
        self.settings = settings or MasterSettings()
        self.history = History()
        self.network = SimNetwork(self)
        self.store = SimStoreServer(self)
        self.blobs = SimBlobs(self)
        self.tables = SimTables(self)
        self.masters: dict[str, Master] = {}
        self.workers: dict[str, SimWorker] = {}
        self.starts: dict[str, int] = {}
        self.specs: dict[str, JobSpec] = {}
        self.crashes: dict[tuple[str, int], str | Strike] = {}
        self.watchers: list[tuple[Match, Callable[[Event], None]]] = []
        self.dates: dict[str, float] = {}
        self.hits: dict[str, int] = {}
        self.writer: object = None
        self.master_names = MASTERS
        self.slots = 8
        self.hangs: set[tuple[str, int]] = set()
        self.busy: set[str] = set()
        self.slow_to_open: dict[tuple[str, int], asyncio.Event] = {}
        self.poisoned: dict[str, str] = {}
        self.marks: dict[str, Sequence[tuple[int | None, bool]]] = {}

    def note(self, kind: str, **facts: Any) -> None:
        """Add to the history."""
        process = PROCESS.get()
        who = f"{process[0]}#{process[1]}" if process else "world"
        self._add(who, kind, facts)

    def note_by(self, process: object, kind: str, **facts: Any) -> None:
        """Add to the history what a process brought about from afar."""
        who = f"{process[0]}#{process[1]}" if isinstance(process, tuple) else "world"
        self._add(who, kind, facts)

    def when(self, match: Match, act: Callable[[Event], None]) -> None:
        """Act once, at the very moment that an event of this kind enters the history."""
        self.watchers.append((match, act))

    async def saw(self, match: Match, act: Callable[[Event], None] | None = None) -> Event:
        """Wait for an event; `act` strikes at the very moment, before anyone can go on."""
        seen: asyncio.Future[Event] = self.loop.create_future()

        def strike(event: Event) -> None:
            if act:
                act(event)
            seen.set_result(event)

        self.when(match, strike)
        return await seen

    def _add(self, who: str, kind: str, facts: Event) -> None:
        self.history.add(self.loop.time(), who, kind, **facts)
        if not self.watchers:
            return
        event = self.history.events[-1]
        struck = [w for w in self.watchers if w[0](event)]
        for watcher in struck:
            self.watchers.remove(watcher)
            watcher[1](event)

    def wrote(
        self, guards: Sequence[Guard], changes: Sequence[Put | Delete], revision: int
    ) -> None:
        """Note an applied store write, with the records it holds."""
        term = next((g.revision for g in guards if g.key == "leader"), None)
        named = {g.key: g.revision for g in guards}
        for change in changes:
            facts: dict[str, Any] = {"key": change.key, "revision": revision, "term": term}
            facts["guards"] = named
            if isinstance(change, Put):
                facts["record"] = _record(change)
                facts["status"] = getattr(facts["record"], "status", "")
            else:
                facts["deleted"] = True
            self.note_by(self.writer, "write", **facts)

    def cut(self, sender: str, receiver: str) -> bool:
        """Say whether messages from one to the other are lost now."""
        return self.network.cut(sender, receiver)

    def sinks(self, job: str) -> tuple[str, ...]:
        """Return the sinks of a job."""
        return self.specs[job].sinks

    def process_of(self, name: str) -> Process | None:
        """Return the live process of a name, or None."""
        process = (name, self.starts.get(name, 0))
        return process if process[1] and process not in self.loop.dead else None

    def boot(self, name: str) -> None:
        """Start a master or worker, unless it is alive."""
        if self.process_of(name):
            return
        self.starts[name] = self.starts.get(name, 0) + 1
        process = (name, self.starts[name])
        slots = 0 if name.startswith("M") else self.slots
        self.note("boot", name=name, incarnation=process[1], slots=slots)
        if name.startswith("M"):
            ports = Ports(
                ProcessClock(self, name), self.blobs, self.tables, _Workers(self, name),
                SimPoints(self), self.settings,
            )  # fmt: skip
            master = Master(name, f"{name}#{process[1]}", SimStore(self, name), ports)
            self.masters[name] = master
            self.loop.spawn(process, master.run())
        else:
            worker = SimWorker(self, process, self.slots)
            self.workers[name] = worker
            self.loop.spawn(process, worker.run())

    def kill(self, name: str, revive: bool = True) -> None:
        """End a process as kill -9 does; it is started again a little later."""
        process = self.process_of(name)
        if process is None:
            return
        self.note_by(None, "fault", fault="kill", of=name)
        self.loop.kill(process)
        if revive:
            low, high = REVIVE_S
            self.loop.spawn(None, self._revive(name, self.loop.random.uniform(low, high)))

    async def _revive(self, name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.boot(name)

    def heal(self) -> None:
        """End every fault and bring everything back: the second phase of a run."""
        self.note("fault", fault="heal")
        self.faults.quiet = True
        self.network.heal()
        self.store.heal()
        self.loop.resume_all()
        for name in (*MASTERS, *WORKERS):
            self.boot(name)

    def leader(self) -> Master | None:
        """Return the live master that leads and may act, or None."""
        for name, master in self.masters.items():
            alive = self.process_of(name)
            if alive and master.leader and master.election.may_act(self.loop.time()):
                return master
        return None

    def to_master(
        self, name: str, sender: str, message: ToLeader
    ) -> Coroutine[Any, Any, None] | None:
        """Hand a worker's message to a master, if it leads."""
        master = self.masters.get(name)
        leader = master.leader if master else None
        if leader is None or not leader.has_time(sender):
            return None
        if isinstance(message, SourceEndReport):
            self.note_by((name, self.starts[name]), "heard", **describe_report(message))
        return leader.hear(sender, message)

    async def to_worker(self, incarnation: str, message: ToWorker) -> None:
        """Hand a leader's message to a worker, if that incarnation is alive."""
        worker = self.workers.get(incarnation.partition("#")[0])
        if worker and worker.incarnation == incarnation:
            await worker.hear(message)


class _Workers:
    """A master's way to the workers."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    def send(self, incarnation: str, message: ToWorker) -> None:
        """Send a message; it may be lost."""
        receiver = incarnation.partition("#")[0]
        self.world.note("order", to=incarnation, **describe(message))
        self.world.network.send(
            self.name, receiver, lambda: self.world.to_worker(incarnation, message), message
        )


class ProcessClock(SimClock):
    """A process's clock: time is the loop's, the date is its own and may be wrong."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.loop)
        self.world = world
        self.name = name

    def date(self) -> float:
        """Return the date as this process believes it to be."""
        return DATE_S + self.world.loop.time() + self.world.dates.get(self.name, 0.0)


class SimPoints:
    """The labelled moments, where a run may crash the process that passes."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def hit(self, name: str) -> None:
        """Count a moment; end or pause the process if this one is armed."""
        world = self.world
        count = world.hits[name] = world.hits.get(name, 0) + 1
        action = world.crashes.pop((name, count), None)
        process = PROCESS.get()
        if action is None or process is None:
            return
        said = action if isinstance(action, str) else "strike"
        world.note("fault", fault=said, at_point=name, count=count)
        if not isinstance(action, str):
            action(process[0])
        elif action == "kill":
            world.kill(process[0])
        else:
            seconds = action.partition(":")[2] or world.settings.lease_s * 2.5
            world.loop.pause(process, float(seconds))
        if process in world.loop.dead:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


def _record(change: Put) -> object:
    if change.key.startswith(("job/", "history/", "grave/")):
        return decode(JobRecord, change.value)
    if change.key.startswith("saved/"):
        return decode(Saved, change.value)
    if change.key.startswith("pipeline/"):
        return decode(PipelineRecord, change.value)
    return change.value.decode()
