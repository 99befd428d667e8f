"""What a scenario may do: submit jobs, arm failpoints, kill and cut, wait for moments, and claim.

A scenario never waits for a time to hit a window: it arms a failpoint and waits for its hit, or
waits for a record or an event that proves the moment.  `prove` says whether the window was hit,
`claim` whether what came of it is right.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.master.records import decode
from tests.chaos.engine.client import Answer, Client
from tests.chaos.engine.cluster import TOKEN, Cluster
from tests.chaos.engine.jobs import SHORT, Shape
from tests.chaos.engine.sinks import SinkKind
from tests.chaos.engine.spec import spec_text
from tests.chaos.engine.tail import Facts, Tail
from tests.oracle.events import Client as ClientEvent
from tests.oracle.events import Event, Fault

Script = Callable[["Scene"], Awaitable[None]]


class Missed(Exception):
    """The window was not hit, so the run proves nothing."""


class Wrong(Exception):
    """What came of the fault is not what was promised."""


@dataclass
class Submitted:
    """A job of a scenario."""

    id: str
    shape: Shape
    out: Path
    spec: str
    token: str
    sink: SinkKind
    ends: str = "FINISHED"
    ended: str = ""
    emptied: bool = False
    """Whether another job empties its tables: its rows are to be gone."""


@dataclass(frozen=True)
class Scenario:
    """One window, struck once.  `stores` names those it makes sense for.

    `sink` is the kind of sink its jobs write to, where the window is struck with several.
    """

    window: str
    name: str
    script: Script
    shape: Shape | None = SHORT
    stores: tuple[str, ...] = ("sqlite", "etcd", "postgres")
    waived: tuple[str, ...] = ()
    sink: str = ""

    @property
    def key(self) -> str:
        """What to call it to run it: the window, and the kind of sink."""
        return f"{self.window}-{self.sink}" if self.sink else self.window

    @property
    def id(self) -> str:
        """The window and what is done to it."""
        return f"{self.key} {self.name}"


SCENARIOS: list[Scenario] = []


def window(
    id: str, shape: Shape | None = SHORT, sinks: Iterable[str] = ("",), **facts: Any
) -> Callable[[Script], Script]:
    """Register a scenario for a window, with one job `j` unless the shape is None.

    `sinks`: one for each of these kinds of sinks.
    """

    def register(script: Script) -> Script:
        name = script.__name__.strip("_")
        SCENARIOS.extend(Scenario(id, name, script, shape, sink=sink, **facts) for sink in sinks)
        return script

    return register


def kill_at(
    id: str, *points: str | tuple[str, int], shape: Shape = SHORT, sinks: Iterable[str] = ("",)
) -> None:
    """Register: whoever leads is killed at these points, one after another; the job ends well."""

    async def script(s: Scene) -> None:
        for point in points:
            name, count = point if isinstance(point, tuple) else (point, 1)
            number = s.arm(name, "kill", count)
            if not s.jobs:
                await s.submit_soon()
            await s.killed(number)
        await s.answered()
        await s.rest()
        s.untouched()

    words = " then ".join(p if isinstance(p, str) else f"{p[0]} {p[1]}" for p in points)
    SCENARIOS.extend(Scenario(id, f"kill {words}", script, shape, sink=sink) for sink in sinks)


@dataclass
class Scene:
    """One run of a scenario."""

    cluster: Cluster
    scenario: Scenario
    prefix: str
    tail: Tail
    since_s: float = field(default_factory=monotonic)
    jobs: dict[str, Submitted] = field(default_factory=dict)
    noted: list[Event] = field(default_factory=list)
    hits: int = 0
    hit_s: float = 0.0
    remarks: list[str] = field(default_factory=list)
    _asking: list[asyncio.Task[Answer]] = field(default_factory=list)

    @property
    def client(self) -> Client:
        """A client of the cluster."""
        return Client(self.cluster.urls, TOKEN)

    @property
    def sink(self) -> SinkKind:
        """The kind of sink that jobs write to."""
        return self.cluster.sink(self.scenario.sink or "files")

    def say(self, text: str) -> None:
        """Put something worth knowing under the scenario's line."""
        self.remarks.append(text)

    # Jobs

    async def submit(self, name: str = "j", shape: Shape | None = None, **facts: Any) -> Submitted:
        """Submit a job and wait for the yes."""
        job = self.new(name, shape, **facts)
        await asyncio.to_thread(job.sink.make_room, job.out)
        answer = await self.client.submit(job.id, job.spec, job.token)
        self.claim(answer.yes, f"the submit of {name} was refused: {answer.message}")
        # The watch of the store may be a moment behind.
        await self.cluster.ledger.until(lambda: self.cluster.ledger.job(job.id) is not None)
        self._note_submit(job)
        return job

    async def submit_soon(self, name: str = "j", shape: Shape | None = None) -> Submitted:
        """Submit a job; `answered` waits for the yes."""
        job = self.new(name, shape)
        await asyncio.to_thread(job.sink.make_room, job.out)
        asking = self.client.submit(job.id, job.spec, job.token)
        self._asking.append(asyncio.ensure_future(asking))
        return job

    async def answered(self) -> None:
        """Wait until all that was submitted soon is accepted."""
        for asking in self._asking:
            answer = await asking
            self.claim(answer.yes, f"a submit was refused: {answer.message}")
        self._asking.clear()

    def new(
        self, name: str, shape: Shape | None = None, id: str = "", into: str = "", **facts: Any
    ) -> Submitted:
        """Make a job, without submitting it; with the id of another, if that is given.

        `into` names a job whose tables it writes to.
        """
        chosen = shape or self.scenario.shape
        assert chosen
        own = f"{self.prefix}-{name}"
        out = self.jobs[into].out if into else self.cluster.folder / "out" / own
        file = self.cluster.folder / "out" / f"{own}.conf"
        file.write_text(chosen.text(own, out, self.sink))
        spec, token = spec_text(file), secrets.token_hex(8)
        job = Submitted(id or own, chosen, out, spec, token, self.sink, **facts)
        self.jobs[name] = job
        return job

    async def cancel(self, name: str = "j") -> None:
        """Cancel a job."""
        answer = await self.client.cancel(self.jobs[name].id)
        self.claim(answer.yes, f"the cancel was refused: {answer.message}")
        self.jobs[name].ends = "CANCELED"

    async def shown(self, name: str = "j") -> dict[str, Any]:
        """Return what the leader shows of a job."""
        return await self.client.job(self.jobs[name].id)

    # Faults

    def arm(self, point: str, action: str = "kill", count: int = 1, process: str = "") -> int:
        """Arm a failpoint; return its number."""
        return self.cluster.points.arm(point, action, count, process)

    async def hit(self, number: int) -> str:
        """Wait until an armed point was hit; return the process's name."""
        facts = await self.cluster.points.hit(number)
        self.hits += 1
        self.hit_s = float(facts["at"])
        name = str(facts["process"])
        self.note_fault(f"failpoint {facts['point']}", name)
        return name

    async def killed(self, number: int) -> str:
        """Wait until an armed point has killed a process, and start it again."""
        name = await self.hit(number)
        await self.start_again(name)
        return name

    async def start_again(self, name: str) -> None:
        """Start a process that is dying."""
        process = self.cluster.process(name)
        while process.alive:
            await asyncio.sleep(0.01)
        process.start()

    def release(self, number: int) -> None:
        """Let go of whoever an armed point holds."""
        self.cluster.points.release(number)

    def kill(self, *names: str, revive: bool = True) -> None:
        """Kill -9 processes, all at once, and start them again."""
        for name in names:
            self.note_fault("kill", name)
            self.cluster.process(name).kill()
        for name in names:
            if revive:
                self.cluster.process(name).start()

    async def kill_leader(self) -> str:
        """Kill -9 whoever leads, and start it again."""
        name = await self.leader()
        self.kill(name)
        return name

    def note_fault(self, fault: str, of: str = "") -> None:
        """Put a fault into the story."""
        self.noted.append(Fault(at=monotonic(), process="world", fault=fault, of=of))

    def links(self, worker: str) -> list[Any]:
        """Return a worker's ways to all masters."""
        return [p for (w, _), p in self.cluster.to_master.items() if w == worker]

    # Moments

    async def leader(self) -> str:
        """Wait until somebody leads; return its name."""
        await self.cluster.ledger.until(lambda: self.cluster.ledger.leader() is not None)
        leading = self.cluster.ledger.leader()
        assert leading
        return leading

    async def elected(self, after: int) -> str:
        """Wait for a later term than this; return who leads then."""
        ledger = self.cluster.ledger
        await ledger.until(lambda: ledger.leader() is not None and ledger.term() > after)
        return await self.leader()

    async def until(
        self, holds: Callable[[PipelineRecord], object], name: str = "j", number: int = 1
    ) -> PipelineRecord:
        """Wait until a pipeline's record looks like this; return it."""
        seen: list[PipelineRecord] = []

        def look() -> bool:
            record = self.cluster.ledger.pipeline(self.jobs[name].id, number)
            if record and holds(record):
                seen.append(record)
            return bool(seen)

        await self.cluster.ledger.until(look)
        return seen[0]

    async def until_job(self, *statuses: str, name: str = "j") -> JobRecord:
        """Wait until a job's record has one of these statuses; return it."""
        seen: list[JobRecord] = []

        def look() -> bool:
            record = self.cluster.ledger.job(self.jobs[name].id)
            if record and record.status in statuses:
                seen.append(record)
            return bool(seen)

        await self.cluster.ledger.until(look)
        return seen[0]

    async def saw(self, match: Callable[[Facts], object], count: int = 1) -> Facts:
        """Wait for an event in the logs."""
        return await self.tail.saw(self.since_s, match, count)

    def events(self, kind: str, **facts: object) -> list[Facts]:
        """Return the events of a kind that the logs hold, in order of time."""
        mine = [e for e in self.tail.look() if e["at"] >= self.since_s and e["kind"] == kind]
        found = [e for e in mine if all(e.get(k) == v for k, v in facts.items())]
        return sorted(found, key=lambda e: float(e["at"]))

    def worker_of(self, record: PipelineRecord, task: int = 0) -> str:
        """Return the worker a task is placed on."""
        place = record.tasks[task].place
        self.prove(place is not None, "the task has no place")
        assert place
        return place.worker

    def states(self) -> list[Saved]:
        """Return what the lives of all jobs here have left to go on from."""
        values = self.cluster.ledger.values.items()
        found = [decode(Saved, value) for key, value in values if key.startswith("saved/")]
        return [s for s in found if s.job in {j.id for j in self.jobs.values()}]

    # Ends

    async def rest(self) -> None:
        """Wait until every job is over and its records are gone; streams are cancelled first."""
        for name, job in self.jobs.items():
            if job.shape.streaming and job.ends == "FINISHED" and not job.ended:
                await self.further(1, name)
                await self.cancel(name)
        for job in [j for j in self.jobs.values() if not j.ended]:
            await self.cluster.ledger.until(lambda id=job.id: self._over(id))  # type: ignore[misc]
            job.ended = str(self.cluster.ledger.end(job.id))

    async def further(self, count: int, name: str = "j") -> None:
        """Wait for more complete checkpoints than there are now."""
        record = self.cluster.ledger.pipeline(self.jobs[name].id)
        latest = record.checkpoints.latest if record else None
        wanted = (latest.number if latest else 0) + count
        await self.until(
            lambda p: p.checkpoints.latest and p.checkpoints.latest.number >= wanted, name
        )

    def _over(self, id: str) -> bool:
        ledger = self.cluster.ledger
        graves = [k for k in ledger.values if k.startswith(f"grave/{id}/")]
        return ledger.job(id) is None and ledger.end(id) is not None and not graves

    def untouched(self) -> None:
        """Claim that no task was started a second time."""
        again = [e for e in self.events("start") if self._mine(e) and e["attempt"] > 1]
        self.claim(not again, f"tasks were restarted: {[e['task'] for e in again]}")

    def starts(self, task: str, name: str = "j") -> list[int]:
        """Return the attempts of a task that were started."""
        found = self.events("start", job=self.jobs[name].id, task=task)
        return [int(e["attempt"]) for e in found]

    def _mine(self, event: Facts) -> bool:
        return event.get("job") in {j.id for j in self.jobs.values()}

    def prove(self, holds: object, text: str) -> None:
        """Say what must be so for the window to be hit."""
        if not holds:
            raise Missed(text)

    def claim(self, holds: object, text: str) -> None:
        """Say what must be so if all is well."""
        if not holds:
            raise Wrong(text)

    def _note_submit(self, job: Submitted) -> None:
        record = self.cluster.ledger.job(job.id)
        if record:
            self.noted.append(
                ClientEvent(
                    at=monotonic(), process="world", did="submitted", job=job.id,
                    incarnation=record.incarnation,
                )
            )  # fmt: skip
