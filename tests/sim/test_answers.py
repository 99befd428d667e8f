"""An answer does not grow while commits wait: what is held by a checkpoint is not said again."""

import asyncio

from holdfast.core.pipeline import WAITING_MAX
from holdfast.wire.codec import encode
from holdfast.wire.messages import BarrierAck
from tests.sim.engine.plan import Plan
from tests.sim.engine.run import run_seed
from tests.sim.engine.world import JobSpec, World
from tests.sim.scenarios import moments

GROWTH_MAX = 1.2


async def nobody_commits(world: World) -> None:
    """Commits are held until as many wait as may."""
    world.tables.holds = lambda order: True
    await world.saw(moments.pipeline(lambda p: len(p.commits.waiting) >= WAITING_MAX))
    await asyncio.sleep(1)
    world.tables.holds = None
    for held in world.tables.held:
        held.gate.set()


def test_an_answer_with_sixty_waiting_commits_is_as_small_as_one_with_a_single_one() -> None:
    job = JobSpec("j", rows=240)
    done = run_seed(1, Plan((job,), script=nobody_commits, faulty_s=150.0))
    assert done.violations == []
    acks = [p.message for p in done.world.network.log if isinstance(p.message, BarrierAck)]
    sizes = {a.acked.number: len(encode(a)) for a in acks if a.acked.staged}
    assert max(sizes) >= WAITING_MAX
    assert max(sizes.values()) <= GROWTH_MAX * sizes[2], sizes
