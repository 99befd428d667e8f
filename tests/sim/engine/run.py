"""Run one seed: a safety phase with faults, then a healed phase in which all must come to rest."""

import asyncio
from dataclasses import dataclass

from tests.sim.engine.client import Client
from tests.sim.engine.nemesis import nemesis
from tests.sim.engine.oracle import check
from tests.sim.engine.plan import Plan, Refusal, Script, Strike, Wish, random_plan
from tests.sim.engine.viewer import look
from tests.sim.engine.world import MASTERS, WORKERS, World

__all__ = ["Plan", "Result", "Script", "Strike", "Wish", "random_plan", "run_seed"]

REST_S = 200.0
HOURS_APART = (0.0, 3600.0, -3600.0)
"""The masters' clocks do not agree: nothing that is decided or shown may need them to."""


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


def run_seed(seed: int, plan: Plan | None = None) -> Result:
    """Run one seed to the end and ask the oracle."""
    plan = plan or random_plan(seed)
    world = World(seed, plan.faults.fresh(), plan.settings)
    world.specs = {job.id: job for job in plan.jobs}
    world.crashes = dict(plan.crashes)
    world.loop.in_order = plan.in_order
    world.dates = dict(zip(MASTERS, HOURS_APART, strict=True))
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
    loop.spawn(None, nemesis(world, plan))
    loop.spawn(None, look(world))
    for refusal in plan.refusals:
        loop.spawn(None, _refuse(world, refusal))
    if plan.script:
        loop.spawn(None, plan.script(world))
    healed = False
    while loop.time() < REST_S:
        await asyncio.sleep(0.5)
        done = all(client.done() for client in clients)
        if not healed and (loop.time() > plan.faulty_s or done):
            world.heal()
            healed = True
            continue  # what was paused or cut off has yet to speak
        if done and _at_rest(world):
            for client in clients:
                client.result()
            return True
    return False


async def _refuse(world: World, refusal: Refusal) -> None:
    """Have a table refuse commits for a while."""
    await asyncio.sleep(refusal.from_s)
    world.note("fault", fault="table refuses", of=refusal.sink)
    world.tables.table(refusal.sink).refuses = "The table has other columns."
    await asyncio.sleep(refusal.to_s - refusal.from_s)
    world.tables.table(refusal.sink).refuses = ""


def _at_rest(world: World) -> bool:
    """Nothing left: no records, no tasks, no staged files but the committed ones."""
    keys = [k for k in world.store.items if k.startswith(("job/", "pipeline/", "grave/"))]
    keys += [k for k, i in world.store.items.items() if b'"removed":true' in i.value]
    tasks = [t for w in world.workers.values() for t in w.tasks]
    return not keys and not tasks
