"""Mutants of workers that are drained."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.core import pipeline as pipelines
from holdfast.core import task as tasks
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskMoves, TaskRecord, WorkerId, WorkerLost
from holdfast.master import pipeline_keeper
from tests.sim.engine.plan import Plan
from tests.sim.engine.stages import some_leader
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import mutant, scene, swapped
from tests.sim.scenarios import moments

LONG = JobSpec("j", rows=24)


def _a_worker_is_drained() -> Plan:
    """A worker is drained while its tasks run, and nothing else happens."""
    return Plan((LONG,), script=_drain)


async def _drain(world: World) -> None:
    await world.saw(moments.pipeline(moments.complete(1)))
    leading = world.masters[await some_leader(world)]
    process = world.process_of(leading.name)
    leader = leading.leader
    assert leader
    place = leader.jobs["j"].pipelines[1].state.tasks[0].place
    assert place
    world.loop.spawn(process, leader.drain(place.worker, drained=True))


@mutant("a task is given up as lost to leave a drained worker", "I20",
        scene(_a_worker_is_drained, 3))  # fmt: skip
def drained_means_lost() -> Iterator[None]:
    step = pipelines.step

    def lost(old: PipelineRecord, event: object) -> PipelineRecord:
        if isinstance(event, TaskMoves) and event.to:
            return step(old, WorkerLost(event.place.incarnation))
        return step(old, event)

    with swapped(pipeline_keeper, "step", lost):
        yield


@mutant("a task that goes on elsewhere is the same attempt there", "I18 I19",
        scene(_a_worker_is_drained, 3))  # fmt: skip
def one_attempt_on_two_workers() -> Iterator[None]:
    over = tasks._handed_over

    def same(task: TaskRecord, to: WorkerId) -> TaskRecord:
        return replace(over(task, to), attempt=task.attempt)

    with swapped(tasks, "_handed_over", same):
        yield
