"""Play a scenario with a seed, and judge it: was the window hit, does everything hold?"""

import asyncio
from dataclasses import dataclass

from tests.sim.engine.client import Client
from tests.sim.engine.oracle import check
from tests.sim.engine.plan import Plan
from tests.sim.engine.viewer import look
from tests.sim.engine.world import MASTERS, WORKERS, World
from tests.sim.scenarios.catalogue import scenarios_of
from tests.sim.scenarios.scene import Scenario, Scene

LIMIT_S = 200.0
HEAL_S = 60.0
GRACE_S = 5.0
SEEDS = (1, 2, 3)


@dataclass
class Outcome:
    """How one play went."""

    window: str
    scenario: str
    seed: int
    missed: list[str]
    wrong: list[str]
    world: World

    @property
    def passed(self) -> bool:
        """Whether the window was hit and everything holds."""
        return not self.missed and not self.wrong

    @property
    def told(self) -> str:
        """What is wrong, in words."""
        missed = [f"the window was not hit: {m}" for m in self.missed]
        return "; ".join([*missed, *self.wrong]) or "hit and held"


def play_window(name: str, seeds: tuple[int, ...] = SEEDS) -> list[Outcome]:
    """Play every scenario of a window with every seed."""
    return [play(scenario, seed) for scenario in scenarios_of(name) for seed in seeds]


def play(scenario: Scenario, seed: int) -> Outcome:
    """Play one scenario to its end and ask the oracle."""
    world = World(seed, scenario.faults.fresh(), scenario.settings)
    world.specs = {job.id: job for job in scenario.jobs}
    world.slots = scenario.slots
    asyncio.set_event_loop(world.loop)
    scene = Scene(world, scenario)
    stuck: list[str] = []
    try:
        if not world.loop.run_until_complete(_play(scene)):
            stuck = ["L3 the jobs did not come to rest"]
    except (RuntimeError, AssertionError) as error:
        stuck = [f"E {error}"]
    wrong = _violations(scene, stuck) + scene.complaints
    missed = scene.unproven + [f"{label} was not passed {n} times" for label, n in world.crashes]
    world.loop.end()
    asyncio.set_event_loop(None)
    return Outcome(scenario.window, scenario.script.__name__, seed, missed, wrong, world)


def _violations(scene: Scene, stuck: list[str]) -> list[str]:
    """Ask the oracle; a scenario that speaks for its rows itself is not asked about lost ones."""
    found = check(scene.world, stuck)
    waived = scene.scenario.waived
    waived += ("I43",) if scene.scenario.own_rows else ()
    waived += () if scene.scenario.rests else ("I67", "L3", "L5")
    return [v for v in found if not v.startswith(waived)]


async def _play(scene: Scene) -> bool:
    world, loop = scene.world, scene.world.loop
    script = loop.spawn(None, scene.scenario.script(scene))
    await asyncio.sleep(0)
    for name in (*MASTERS, *WORKERS):
        world.boot(name)
    loop.spawn(None, look(world))
    plan = Plan(scene.scenario.jobs, scene.scenario.lives)
    clients = [
        loop.spawn(("C", i), Client(world, job, plan).live())
        for i, job in enumerate(scene.scenario.jobs, 1)
    ]
    healed, quiet_s = False, 0.0
    while loop.time() < LIMIT_S and not script.done():
        await asyncio.sleep(0.25)
        done = all(client.done() for client in clients)
        if not healed and (loop.time() > HEAL_S or (done and scene.waiting)):
            world.heal()
            healed = True
        quiet_s = quiet_s + 0.25 if done and _at_rest(world) else 0.0
        if quiet_s and scene.waiting:
            scene.rested.set()
            await script
        elif quiet_s > GRACE_S:
            break
    return _finished(scene, script, quiet_s)


def _finished(scene: Scene, script: "asyncio.Task[None]", quiet_s: float) -> bool:
    if not script.done():
        scene.unproven.append("the script did not get to its end")
        return bool(quiet_s)
    script.result()
    return bool(quiet_s) or not scene.scenario.rests


def _at_rest(world: World) -> bool:
    keys = [k for k in world.store.items if k.startswith(("job/", "pipeline/"))]
    return not keys and not [t for w in world.workers.values() for t in w.tasks]
