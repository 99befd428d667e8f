"""Make trouble: kill, pause, cut off, as a plan's strikes say."""

import asyncio
import random

from tests.sim.engine.plan import Plan, Strike
from tests.sim.engine.world import MASTERS, WORKERS, World


async def nemesis(world: World, plan: Plan) -> None:
    """Strike as planned, one after the other, until the world is healed."""
    for strike in plan.strikes:
        await asyncio.sleep(strike.after_s)
        if world.loop.time() > plan.faulty_s:
            return
        strike_at(world, strike)


def strike_at(world: World, strike: Strike) -> None:
    """Strike once."""
    rng = random.Random(strike.dice)
    leading = world.leader()
    leader = leading.name if leading else rng.choice(MASTERS)
    worker = rng.choice(WORKERS)
    now, lease = world.loop.time(), world.settings.lease_s
    world.note("fault", fault=strike.kind, leader=leader, worker=worker)
    match strike.kind:
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
            process = world.process_of(leader if strike.kind == "pause leader" else worker)
            if process:
                world.loop.pause(process, lease * (0.5 + rng.random() * 3))
        case "cut store":
            cut(world, leader, "store", now + rng.random() * 8)
        case "cut worker":
            cut(world, leader, worker, now + rng.random() * 8)
        case "cut one way":
            ends = [leader, worker]
            rng.shuffle(ends)
            world.network.cuts[(ends[0], ends[1])] = now + rng.random() * 8
        case "store down":
            world.store.down_until = now + rng.random() * 6


def cut(world: World, one: str, other: str, until_s: float) -> None:
    """Let nothing through between two, either way."""
    world.network.cuts[(one, other)] = until_s
    world.network.cuts[(other, one)] = until_s
