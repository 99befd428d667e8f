"""Somebody who looks at the jobs once a second, as whoever leads shows them."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.engine.world import World

LOOK_S = 1.0


async def look(world: "World") -> None:
    """Note what is shown of every pipeline, until the world ends."""
    while True:
        await asyncio.sleep(LOOK_S)
        master = world.leader()
        leader = master.leader if master else None
        if master is None or leader is None or not leader.loaded:
            continue
        for job, keeper in leader.jobs.items():
            for told in leader.health(job):
                world.note(
                    "shown", job=job, incarnation=keeper.state.incarnation, by=master.name,
                    pipeline=told.pipeline, health=told.health.value, reason=told.reason,
                    checkpoint=told.checkpoint, age_s=told.age_s,
                    commit=told.commit, commit_age_s=told.commit_age_s,
                )  # fmt: skip
