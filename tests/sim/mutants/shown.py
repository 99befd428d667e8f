"""Mutants of what people are shown: ages told by dates, begun anew, or told of too little."""

import asyncio
from collections.abc import Iterator
from typing import Any

from holdfast.master import health
from holdfast.master.cluster_time import ClusterTime
from holdfast.master.health import Ages
from holdfast.master.pipeline_keeper import PipelineKeeper
from tests.sim.engine.plan import Plan
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import mutant, scene, swapped
from tests.sim.scenarios import moments

LONG = JobSpec("j", ((("a",), ("b",)),), rows=40)


def _commits_stand_while_leaders_change() -> Plan:
    """No commit gets through, checkpoints do not either, and the leader is killed."""
    return Plan(jobs=(LONG,), script=_hold_and_kill, faulty_s=40.0)


def _commits_stand() -> Plan:
    """No commit gets through; checkpoints do."""
    return Plan(jobs=(LONG,), script=_hold, faulty_s=40.0)


async def _hold_and_kill(world: World) -> None:
    await _hold(world, ("p1t2",))


async def _hold(world: World, busy: tuple[str, ...] = ()) -> None:
    world.tables.holds = lambda order: order.number == 3
    await world.saw(moments.event("held", number=3))
    world.busy = set(busy)
    await asyncio.sleep(8)
    leading = world.leader()
    if leading:
        world.kill(leading.name)
    await asyncio.sleep(12)
    world.busy = set()
    world.tables.holds = None
    for held in world.tables.held:
        held.gate.set()


@mutant("ages are told by the dates of two machines", "I71",
        scene(_commits_stand_while_leaders_change))  # fmt: skip
def ages_by_dates() -> Iterator[None]:
    def dated(self: PipelineKeeper, waits: dict[str, str]) -> Any:
        now_s = self.desk.ports.clock.date()
        latest, owed = self.state.checkpoints.latest, health.owed_commit(self.state)
        ages = Ages(
            max(0.0, now_s - (latest.at_s if latest else self.state.since_s)),
            max(0.0, now_s - owed.at_s) if owed else 0.0,
        )
        return health.report(self.state, ages, self.interval_s, waits, "")

    with swapped(PipelineKeeper, "health", dated):
        yield


@mutant("the cluster's time begins anew with each leader", "I71 I72",
        scene(_commits_stand_while_leaders_change))  # fmt: skip
def time_begins_anew() -> Iterator[None]:
    def forget(self: ClusterTime, item: Any) -> None:
        self.revision = item.revision if item else 0
        self._set(0.0)

    with swapped(ClusterTime, "hear", forget):
        yield


@mutant("what is complete and not visible is not judged", "I72", scene(_commits_stand))
def unseen_is_well() -> Iterator[None]:
    with swapped(health, "owed_commit", lambda pipeline: None):
        yield
