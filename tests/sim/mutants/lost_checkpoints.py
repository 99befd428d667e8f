"""Mutants of checkpoints that are lost, and of tasks that do not answer."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from holdfast.core import commit
from holdfast.core import pipeline as rollback
from holdfast.core.checkpoint import CheckpointLost
from holdfast.core.commit import Commits
from holdfast.core.pipeline import OVER, PipelineRecord
from holdfast.master import checkpoint_content
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.ports import BlobBad
from holdfast.master.worker_registry import WorkerRegistry
from tests.sim.engine.plan import Plan
from tests.sim.engine.stages import some_leader
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import mutant, scene, swapped
from tests.sim.scenarios import moments

LONG = JobSpec("j", rows=24)


def _lost_while_a_former_leader_commits() -> Plan:
    """A checkpoint is damaged while the commit of a leader that is gone is on its way."""
    return Plan((LONG,), script=_tear_and_kill)


async def _tear_and_kill(world: World) -> None:
    world.tables.holds = lambda order: order.number == 2
    await world.saw(moments.event("held", number=2))
    _spoil(world, 2)
    world.kill(await some_leader(world))
    await world.saw(moments.pipeline(_decided))
    _let_go(world)


def _lost_while_its_commit_is_out() -> Plan:
    """A checkpoint is damaged, and a task fails, while its commit is on its way."""
    return Plan((LONG,), script=_tear_and_fail)


async def _tear_and_fail(world: World) -> None:
    world.tables.holds = lambda order: order.number == 2
    await world.saw(moments.event("held", number=2))
    _spoil(world, 2)
    _fail(world, "p1t1")
    await world.saw(moments.pipeline(_decided))
    _let_go(world)


def _lost_and_found() -> Plan:
    """A checkpoint cannot be read when a task wants to start from it, and can be later."""
    return Plan((LONG,), script=_away_for_a_while)


async def _away_for_a_while(world: World) -> None:
    world.tables.holds = lambda order: order.number == 1
    await world.saw(moments.pipeline(moments.complete(2)))
    _spoil(world, 2)
    _fail(world, "p1t1")
    await world.saw(moments.pipeline(lambda p: p.checkpoints.lost))
    world.blobs.torn.clear()
    _let_go(world)


def _lost_after_a_task_used_it() -> Plan:
    """A task starts anew from a checkpoint that is damaged only then."""
    return Plan((LONG,), script=_tear_after_a_start)


async def _tear_after_a_start(world: World) -> None:
    world.tables.holds = lambda order: order.number == 1
    await world.saw(moments.pipeline(moments.complete(2)))
    _fail(world, "p1t1")
    await world.saw(lambda e: e["kind"] == "start" and e["attempt"] == 2)
    _spoil(world, 2)
    _let_go(world)


def _one_slice_takes_long() -> Plan:
    """A task gets on, but comes to answer no barrier for some time."""
    return Plan((JobSpec("j", rows=120),), script=_busy, faulty_s=60.0)


async def _busy(world: World) -> None:
    await world.saw(moments.pipeline(moments.complete(1)))
    world.busy.add("p1t1")
    await asyncio.sleep(24)
    world.busy.clear()


def _a_task_stands_still() -> Plan:
    """A task stands still and lives."""
    return Plan((LONG,), script=_hang)


async def _hang(world: World) -> None:
    await world.saw(moments.pipeline(moments.complete(1)))
    world.hangs.add(("p1t1", 1))


def _decided(pipeline: PipelineRecord) -> bool:
    """Whether it is known what becomes of a pipeline whose checkpoint is lost."""
    return bool(pipeline.checkpoints.lost) or pipeline.status in OVER


def _spoil(world: World, number: int) -> None:
    names = [n for n in world.blobs.objects if f"/{number:08}-" in n]
    world.blobs.torn.update(names)
    world.note_by(None, "fault", fault="blob spoilt", name=names[0])


def _fail(world: World, task: str) -> None:
    for worker in world.workers.values():
        worker.fail(task, "a row could not be read")


def _let_go(world: World) -> None:
    world.tables.holds = None
    for held in world.tables.held:
        held.gate.set()


@mutant("a lost checkpoint gives way although a former leader may have begun its commit",
        "I30 I32 I44 I51", scene(_lost_while_a_former_leader_commits))  # fmt: skip
def back_although_the_commit_may_have_begun() -> Iterator[None]:
    with swapped(commit, "may_have_begun", lambda commits, number: False):
        yield


@mutant("a leader forgets that it has begun to commit what turns out to be lost",
        "I30 I32 I44 I51", scene(_lost_while_its_commit_is_out))  # fmt: skip
def begun_commit_forgotten() -> Iterator[None]:
    async def lost(self: PipelineKeeper, number: int, error: BlobBad) -> None:
        self.condemned.add(number)
        await self.handle(CheckpointLost(number, str(error), untouched=True))

    with swapped(PipelineKeeper, "lost", lost):
        yield


@mutant("a checkpoint that was given up as lost is committed when it can be read again",
        "I30", scene(_lost_and_found))  # fmt: skip
def lost_checkpoint_used_again() -> Iterator[None]:
    step = commit.step

    def keeps(old: Commits, event: object) -> Commits:
        return old if isinstance(event, CheckpointLost) else step(old, event)

    async def lost(self: PipelineKeeper, number: int, error: BlobBad) -> None:
        await self.handle(CheckpointLost(number, str(error), untouched=True))

    with swapped(commit, "step", keeps), swapped(PipelineKeeper, "lost", lost):
        yield


@mutant("after a lost checkpoint only tasks without a place go back", "I32 I43 I49",
        scene(_lost_after_a_task_used_it))  # fmt: skip
def tasks_do_not_go_back() -> Iterator[None]:
    back = rollback.back

    def alone(old: PipelineRecord, event: CheckpointLost) -> PipelineRecord:
        return replace(back(old, event), tasks=old.tasks, completion=old.completion)

    with swapped(rollback, "back", alone):
        yield


@mutant("tasks start from nothing where their checkpoint cannot be read", "I16 I32 I44",
        scene(_lost_while_its_commit_is_out))  # fmt: skip
def lost_checkpoint_means_the_start() -> Iterator[None]:
    restored = PipelineKeeper._restored

    async def nothing(
        self: PipelineKeeper, name: str
    ) -> checkpoint_content.CheckpointContent | None:
        if name in self.desk.ports.blobs.torn:  # type: ignore[attr-defined]
            return checkpoint_content.CheckpointContent(
                checkpoint_content.VERSION, "", "", 1, 0, {}, (), None
            )
        return await restored(self, name)

    with swapped(PipelineKeeper, "_restored", nothing):
        yield


@mutant("a task that takes long to answer is started anew though it gets on", "I20",
        scene(_one_slice_takes_long, 3))  # fmt: skip
def busy_task_started_anew() -> Iterator[None]:
    with swapped(WorkerRegistry, "stood_since", lambda *_: True):
        yield


@mutant("a task that stands still is left alone for ever", "L3", scene(_a_task_stands_still, 3))
def standing_task_left_alone() -> Iterator[None]:
    with (
        swapped(WorkerRegistry, "stood_since", lambda *_: False),
        swapped(WorkerRegistry, "stands_s", lambda *_: 0.0),
    ):
        yield
