"""Run one seed: a safety phase with faults, then a healed phase in which all must come to rest."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import Fenced, HoldfastError, UserError
from holdfast.master.ports import Settings
from holdfast.master.records import history_key, job_key
from holdfast.testing.sim.faults import Faults
from holdfast.testing.sim.oracle import check
from holdfast.testing.sim.world import MASTERS, WORKERS, JobSpec, World

FAULTY_S, REST_S = 30.0, 200.0

Script = Callable[[World], Coroutine[Any, Any, None]]


@dataclass
class Plan:
    """What happens in a run: the jobs, what is asked of them, and the trouble."""

    jobs: tuple[JobSpec, ...] = (JobSpec("j"),)
    lives: int = 1
    faults: Faults = field(default_factory=Faults)
    nemesis: bool = False
    cancel_after_s: float | None = None
    savepoint_after_s: float | None = None
    crashes: dict[tuple[str, int], str] = field(default_factory=dict)
    script: Script | None = None
    settings: Settings = field(default_factory=Settings)
    faulty_s: float = FAULTY_S


@dataclass
class Result:
    """How a run went: what the oracle found, and the world for whoever wants to look."""

    seed: int
    violations: list[str]
    world: World

    @property
    def digest(self) -> str:
        """A hash of everything that happened."""
        return self.world.history.digest()


def random_plan(seed: int) -> Plan:
    """Draw a plan from a seed: jobs, lives, wishes and which kinds of faults are on."""
    rng = random.Random(f"plan {seed}")
    shapes = [
        ((("a",), ("b",)),),
        ((("a",), ("b",), ("c",)),),
        ((("a", "b"),),),
        ((("a",),), (("b",),)),
    ]
    jobs = tuple(
        JobSpec(
            f"j{i}",
            rng.choice(shapes),
            rows=rng.choice([4, 6, 9]),
            sinks=rng.choice([("t",), ("t", "u")]),
        )
        for i in range(rng.choice([1, 1, 2]))
    )
    return Plan(
        jobs=jobs,
        lives=rng.choice([1, 2]),
        faults=Faults.drawn(rng),
        nemesis=True,
        cancel_after_s=rng.choice([None, None, None, rng.uniform(0.5, 12)]),
        savepoint_after_s=rng.choice([None, None, None, rng.uniform(0.5, 12)]),
    )


def run_seed(seed: int, plan: Plan | None = None) -> Result:
    """Run one seed to the end and ask the oracle."""
    plan = plan or random_plan(seed)
    world = World(seed, plan.faults, plan.settings)
    world.specs = {job.id: job for job in plan.jobs}
    world.crashes = dict(plan.crashes)
    asyncio.set_event_loop(world.loop)
    try:
        rested = world.loop.run_until_complete(_play(world, plan))
        stuck = [] if rested else ["L3 the jobs did not come to rest"]
    except (RuntimeError, AssertionError) as error:
        stuck = [f"E {error}"]
    violations = check(world, stuck)
    world.loop.end()
    asyncio.set_event_loop(None)
    return Result(seed, violations, world)


async def _play(world: World, plan: Plan) -> bool:
    loop = world.loop
    for name in (*MASTERS, *WORKERS):
        world.boot(name)
    clients = [
        loop.spawn(("C", i), Client(world, job, plan).live()) for i, job in enumerate(plan.jobs, 1)
    ]
    if plan.nemesis:
        loop.spawn(None, nemesis(world, plan.faulty_s))
    if plan.script:
        loop.spawn(None, plan.script(world))
    healed = False
    while loop.time() < REST_S:
        await asyncio.sleep(0.5)
        done = all(client.done() for client in clients)
        if not healed and (loop.time() > plan.faulty_s or done):
            world.heal()
            healed = True
        if done and _at_rest(world):
            for client in clients:
                client.result()
            return True
    return False


def _at_rest(world: World) -> bool:
    """Nothing left: no records, no tasks, no staged files but the committed ones."""
    keys = [k for k in world.store.items if k.startswith(("job/", "pipeline/"))]
    tasks = [t for w in world.workers.values() for t in w.tasks]
    return not keys and not tasks


class Client:
    """A user: submits, perhaps cancels or takes a savepoint, waits for the end, comes again."""

    def __init__(self, world: World, job: JobSpec, plan: Plan) -> None:
        self.world = world
        self.job = job
        self.plan = plan

    async def live(self) -> None:
        """Run every life of the job."""
        for life in range(1, self.plan.lives + 1):
            await self._life(f"i{life}")

    async def _life(self, incarnation: str) -> None:
        records = self.job.records(incarnation)
        await self._insist("submit", lambda leader: leader.submit(*records))
        self.world.note("client", did="submitted", job=self.job.id, incarnation=incarnation)
        for after_s, wish in self._wishes(incarnation):
            self.world.loop.spawn(("C", 9), self._later(after_s, wish, incarnation))
        while history_key(self.job.id, incarnation) not in self.world.store.items:
            await asyncio.sleep(0.5)
        self.world.note("client", did="saw the end", job=self.job.id, incarnation=incarnation)

    def _wishes(self, incarnation: str) -> list[tuple[float, str]]:
        wishes = []
        if self.plan.cancel_after_s is not None:
            wishes.append((self.plan.cancel_after_s, "cancel"))
        if self.plan.savepoint_after_s is not None:
            wishes.append((self.plan.savepoint_after_s, "savepoint"))
        return wishes

    async def _later(self, after_s: float, wish: str, incarnation: str) -> None:
        await asyncio.sleep(after_s)
        item = self.world.store.items.get(job_key(self.job.id))
        if item is None or incarnation.encode() not in item.value:
            return
        if wish == "cancel":
            await self._insist(wish, lambda leader: leader.cancel(self.job.id), incarnation)
        else:
            request = f"s-{incarnation}"
            await self._insist(
                wish, lambda leader: leader.savepoint(self.job.id, request), incarnation
            )
        self.world.note("client", did=wish, job=self.job.id, incarnation=incarnation)

    async def _insist(
        self,
        what: str,
        ask: Callable[[Any], Coroutine[Any, Any, None]],
        incarnation: str | None = None,
    ) -> None:
        """Ask whoever leads until a definite answer comes; every request may be repeated."""
        while True:
            await asyncio.sleep(0.1 + self.world.loop.random.random() * 0.3)
            master = self.world.leader()
            if master is None or master.leader is None:
                continue
            if incarnation and self._gone(incarnation):
                return
            process = self.world.process_of(master.name)
            answer: asyncio.Future[object] = self.world.loop.create_future()
            self.world.loop.spawn(process, _serve(ask(master.leader), answer))
            done, _ = await asyncio.wait([answer], timeout=3.0)
            if done and answer.result() is None:
                return

    def _gone(self, incarnation: str) -> bool:
        return history_key(self.job.id, incarnation) in self.world.store.items


async def _serve(work: Coroutine[Any, Any, None], answer: "asyncio.Future[object]") -> None:
    """Run a request in the master's process; the answer is None for yes, or the reason."""
    try:
        await work
        result: object = None
    except (Fenced, UserError, HoldfastError) as error:
        result = str(error) or "no"
    if not answer.done():
        answer.set_result(result)


async def nemesis(world: World, until_s: float) -> None:
    """Make trouble at random moments."""
    rng = world.loop.random
    for _ in range(rng.randrange(0, 7)):
        await asyncio.sleep(rng.random() * 8)
        if world.loop.time() > until_s:
            return
        _strike(world, rng)


def _strike(world: World, rng: random.Random) -> None:
    leading = world.leader()
    leader = leading.name if leading else rng.choice(MASTERS)
    worker = rng.choice(WORKERS)
    now, lease = world.loop.time(), world.settings.lease_s
    kind = rng.choice(
        ["kill leader", "kill leader", "kill worker", "kill any", "kill both", "pause leader",
         "pause worker", "cut store", "cut worker", "cut one way", "store down"]
    )  # fmt: skip
    world.note("fault", fault=kind, leader=leader, worker=worker)
    match kind:
        case "kill leader":
            world.kill(leader)
        case "kill worker":
            world.kill(worker)
        case "kill any":
            world.kill(rng.choice(MASTERS))
        case "kill both":
            world.kill(leader)
            world.kill(worker)
        case "pause leader" | "pause worker":
            process = world.process_of(leader if kind == "pause leader" else worker)
            if process:
                world.loop.pause(process, lease * (0.5 + rng.random() * 3))
        case "cut store":
            _cut(world, leader, "store", now + rng.random() * 8, both=True)
        case "cut worker":
            _cut(world, leader, worker, now + rng.random() * 8, both=True)
        case "cut one way":
            ends = [leader, worker]
            rng.shuffle(ends)
            _cut(world, ends[0], ends[1], now + rng.random() * 8, both=False)
        case "store down":
            world.store.down_until = now + rng.random() * 6


def _cut(world: World, one: str, other: str, until_s: float, *, both: bool) -> None:
    world.network.cuts[(one, other)] = until_s
    if both:
        world.network.cuts[(other, one)] = until_s
