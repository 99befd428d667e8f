"""The words a scenario is written in: wait for a moment, strike, wait for the end, claim.

A scenario never guesses a moment: it waits for an event of the history or arms a named point, and
strikes right there.  Its window was hit if its script ran to the end, every armed point was
passed, and every proof held.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import Fenced, HoldfastError
from holdfast.master.leader import Leader
from holdfast.master.master import Master, read_mark
from holdfast.master.ports import MasterSettings
from tests.sim.engine.faults import Faults
from tests.sim.engine.network import Parcel, Tap
from tests.sim.engine.store import Armed
from tests.sim.engine.world import MASTERS, Event, JobSpec, Match, Strike, World

FOREVER_S = 10_000.0
LEASE_S = MasterSettings().lease_s

Script = Callable[["Scene"], Coroutine[Any, Any, None]]


@dataclass
class Scenario:
    """One way into one window.

    `waived` names invariants that the scenario itself breaks by hand, to see what follows.
    """

    window: str
    script: Script
    jobs: tuple[JobSpec, ...]
    lives: int = 1
    slots: int = 8
    settings: MasterSettings = field(default_factory=MasterSettings)
    faults: Faults = field(default_factory=Faults)
    own_rows: bool = False
    rests: bool = True
    waived: tuple[str, ...] = ()


SCENARIOS: dict[str, list[Scenario]] = {}

JOB = JobSpec("j", rows=9)
THREE = JobSpec("j", ((("a",), ("b",), ("c",)),), rows=6)
UNEVEN = JobSpec("j", rows=5, lengths=(("b", 26),))
PAIR = JobSpec("j", ((("a",),), (("b",),)), rows=5, lengths=(("b", 26),))


def window(name: str, *jobs: JobSpec, **how: Any) -> Callable[[Script], Script]:
    """Register a script as a scenario of a window."""

    def register(script: Script) -> Script:
        SCENARIOS.setdefault(name, []).append(Scenario(name, script, jobs or (JOB,), **how))
        return script

    return register


def kill_at(
    name: str, *points: str | tuple[str, int], jobs: tuple[JobSpec, ...] = (JOB,), **how: Any
) -> None:
    """Register: the leader dies at each point in turn; another goes on and no task notices."""

    async def script(scene: "Scene") -> None:
        for point in points:
            scene.arm(*((point, 1) if isinstance(point, str) else point), "kill")
        await scene.rest()
        scene.ends("FINISHED")
        scene.untouched()
        scene.takeovers(1)

    first = points[0] if isinstance(points[0], str) else points[0][0]
    script.__name__ = "leader_dies_" + first.replace(":", "_").replace(".", "_").lower()
    SCENARIOS.setdefault(name, []).append(Scenario(name, script, jobs, **how))


class Scene:
    """One play of a scenario."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = scenario
        self.complaints: list[str] = []
        self.unproven: list[str] = []
        self.rested = asyncio.Event()
        self.waiting = False

    # Moments.

    async def saw(self, match: Match, act: Callable[[Event], None] | None = None) -> Event:
        """Wait for an event; `act` strikes at that very moment."""
        return await self.world.saw(match, act)

    async def kills_leader(self, match: Match) -> Event:
        """Kill the leader at the very moment of an event."""
        return await self.saw(match, lambda event: self.kill_leader())

    async def rest(self) -> None:
        """Wait until every job is over and everything is cleaned up."""
        self.waiting = True
        await self.rested.wait()

    async def until(self, true: Callable[[], bool], limit_s: float = 60.0) -> None:
        """Wait until something is so, looking often."""
        end_s = self.now + limit_s
        while not true():
            if self.now > end_s:
                self.unproven.append("what was waited for did not happen")
                return
            await asyncio.sleep(0.02)

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self.world.loop.time()

    # Strikes.

    def arm(self, point: str, count: int, action: str | Strike) -> None:
        """Strike the process that passes a named point for the nth time from the start."""
        self.world.crashes[(point, count)] = action

    def holder(self) -> str:
        """Return the name of the master that was elected last."""
        marks = [e for e in self.world.history.events if e.get("key") == "leader"]
        mark = str(next(e["record"] for e in reversed(marks) if "record" in e))
        return read_mark(mark.encode()).name

    def kill_leader(self, revive: bool = True) -> None:
        """Kill the master that leads."""
        self.world.kill(self.holder(), revive)

    def kill(self, *names: str, revive: bool = True) -> None:
        """Kill processes."""
        for name in names:
            self.world.kill(name, revive)

    def reboot(self, name: str) -> None:
        """Kill a process and start it again at once."""
        self.world.kill(name, revive=False)
        self.world.boot(name)

    def pause(self, name: str, seconds: float = LEASE_S * 2.5) -> None:
        """Let a process stand still."""
        process = self.world.process_of(name)
        assert process
        self.world.note_by(None, "fault", fault="pause", of=name)
        self.world.loop.pause(process, seconds)

    def cut(self, one: str, other: str, seconds: float = FOREVER_S, *, both: bool = True) -> None:
        """Lose every message from one to the other, and back."""
        self.world.note_by(None, "fault", fault="cut", of=max(one, other), other=min(one, other))
        self.world.network.cuts[(one, other)] = self.now + seconds
        if both:
            self.world.network.cuts[(other, one)] = self.now + seconds

    def mend(self) -> None:
        """End every cut and tap."""
        self.world.note_by(None, "fault", fault="mend")
        self.world.network.heal()

    def store_down(self, seconds: float) -> None:
        """Let the store be out of reach."""
        self.world.note_by(None, "fault", fault="store down")
        self.world.store.down_until = self.now + seconds

    def silence(self, op: str, match: Callable[[Any], bool] = lambda about: True) -> None:
        """Let the store do the next such call and never answer it."""
        self.world.store.armed.append(Armed(op, "unknown", match))

    def tap(
        self, verdict: str, message: type, match: Callable[[Any], bool] = lambda m: True,
        left: int | None = None,
    ) -> Tap:  # fmt: skip
        """Put a hand on messages of a kind: drop, hold, copy or twice."""
        return self.world.network.tap(
            lambda p: isinstance(p.message, message) and match(p.message), verdict, left
        )

    def release(self, tap: Tap) -> None:
        """Deliver what a tap has taken, now."""
        for parcel in tap.taken:
            self.world.network.release(parcel)
        tap.end()

    def hold_commits(self, match: Callable[[Any], bool] = lambda order: True) -> None:
        """Keep commits on their way until they are let go."""
        self.world.tables.holds = match

    def let_go(self) -> None:
        """Let every held commit land, and hold no more."""
        self.world.tables.holds = None
        for held in self.world.tables.held:
            held.gate.set()

    def latest_blob(self, job: str = "j", number: int = 1) -> str:
        """Return the name of a pipeline's latest checkpoint."""
        latest = self.pipeline(job, number).checkpoints.latest
        assert latest
        return latest.blob

    # Asking.

    def leader(self) -> Leader:
        """Return the leader of this moment."""
        master = self.world.leader()
        assert master and master.leader
        return master.leader

    async def ask(self, question: Callable[[Leader], Coroutine[Any, Any, Any]]) -> str:
        """Ask whoever leads until a definite answer comes: empty for yes, or the reason."""
        while True:
            await asyncio.sleep(0.05)
            master: Master | None = self.world.leader()
            if master is None or master.leader is None or not master.leader.loaded:
                continue
            answer: asyncio.Future[str] = self.world.loop.create_future()
            process = self.world.process_of(master.name)
            self.world.loop.spawn(process, _serve(question(master.leader), answer))
            done, _ = await asyncio.wait([answer], timeout=3.0)
            if done and answer.result() != "retry":
                return answer.result()

    # What was.

    def records(self, kind: type) -> list[Any]:
        """Return every state that was written of a kind of record, in order."""
        return [
            e["record"]
            for e in self.world.history.of("write")
            if isinstance(e.get("record"), kind) and not e["key"].startswith("history/")
        ]

    def pipeline(self, job: str = "j", number: int = 1) -> PipelineRecord:
        """Return a pipeline as last written."""
        found = [p for p in self.records(PipelineRecord) if (p.job, p.number) == (job, number)]
        pipeline: PipelineRecord = found[-1]
        return pipeline

    def job(self, job: str = "j") -> JobRecord:
        """Return a job as last written."""
        found: JobRecord = [j for j in self.records(JobRecord) if j.id == job][-1]
        return found

    def sent(self, message: type, match: Callable[[Parcel], bool] = lambda p: True) -> list[Parcel]:
        """Return the messages of a kind that were sent."""
        return [p for p in self.world.network.log if isinstance(p.message, message) and match(p)]

    def terms(self) -> int:
        """Return how many terms there were."""
        return len([e for e in self.world.history.of("write") if _elected(e)])

    # Claims.

    def claim(self, holds: bool, what: str) -> None:
        """Say what must be so."""
        if not holds:
            self.complaints.append(what)

    def prove(self, holds: bool, what: str) -> None:
        """Say what shows that the window was hit."""
        if not holds:
            self.unproven.append(what)

    def ends(self, *statuses: str, job: str = "j") -> None:
        """Claim how a job's last life ended."""
        status = str(self.job(job).status)
        self.claim(status in statuses, f"{job} is {status}, not {' or '.join(statuses)}")

    def untouched(self) -> None:
        """Claim that no task was started anew."""
        again = {
            (p.job, t.id) for p in self.records(PipelineRecord) for t in p.tasks if t.attempt > 1
        }
        self.claim(not again, f"tasks were restarted: {sorted(again)}")

    def restarted(self, task: str) -> None:
        """Claim that a task was started anew."""
        tasks = [t for p in self.records(PipelineRecord) for t in p.tasks if t.id == task]
        self.claim(max(t.attempt for t in tasks) > 1, f"{task} was not restarted")

    def takeovers(self, least: int, most: int = 99) -> None:
        """Claim how often leadership passed on."""
        count = self.terms() - 1
        self.claim(least <= count <= most, f"{count} takeovers, not {least} to {most}")


def _elected(event: Event) -> bool:
    return event["key"] == "leader" and "record" in event


async def _serve(work: Coroutine[Any, Any, Any], answer: "asyncio.Future[str]") -> None:
    try:
        await work
        said = ""
    except Fenced:
        said = "retry"
    except HoldfastError as error:
        said = str(error) or "no"
    if not answer.done():
        answer.set_result(said)


def others(*names: str) -> tuple[str, ...]:
    """Return the masters that are not named."""
    return tuple(m for m in MASTERS if m not in names)
