"""Stages: plans without random trouble that, between them, pass every durable step."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import OVER, PipelineRecord
from holdfast.master.ports import MasterSettings
from holdfast.master.records import decode, job_key, pipeline_key
from holdfast.wire.messages import BarrierAck
from tests.sim.engine.nemesis import cut
from tests.sim.engine.plan import Plan, Refusal, Wish
from tests.sim.engine.world import Event, JobSpec, World

LOOK_S = 0.05


def bounded() -> Plan:
    """One job with an end: two pipelines, two sinks."""
    return Plan(jobs=(JobSpec("j", ((("a",), ("b",)), (("c",),)), sinks=("t", "u")),))


def again() -> Plan:
    """The same job id, used again as soon as it is free."""
    return Plan(jobs=(JobSpec("j", rows=4),), lives=2)


def saved() -> Plan:
    """A job without an end that is stopped with a savepoint over two pipelines."""
    spec = JobSpec("j", ((("a",),), (("b",),)), rows=0)
    return Plan(jobs=(spec,), wishes=(Wish("j", 3.0, "savepoint"),))


def going_on() -> Plan:
    """Jobs that go on from what they have left: a savepoint, a failure that was mended, and one
    that was not, whose saved state is removed."""
    jobs = (
        JobSpec("on", ((("a",),), (("b",),)), rows=12),
        JobSpec("mended", ((("a",),),), rows=12, sinks=("shut",)),
        JobSpec("given_up", ((("a",),),), rows=12, sinks=("closed",)),
    )
    wishes = (Wish("on", 2.0, "savepoint"), Wish("given_up", 5.5, "forget", 2))
    refusals = (Refusal("shut", 1.0, 4.0), Refusal("closed", 1.0, 150.0))
    settings = MasterSettings(tidy_s=2.0)
    return Plan(jobs, 2, wishes=wishes, refusals=refusals, settings=settings, rest_s=3.0)


def drained() -> Plan:
    """Each worker is drained in turn, while a job of two pipelines runs."""
    spec = JobSpec("j", ((("a",), ("b",)), (("c",),)), rows=24)
    said = ((1.5, "drain W1"), (4.0, "undrain W1"), (4.5, "drain W2"), (7.0, "undrain W2"))
    return Plan(jobs=(spec,), wishes=tuple(Wish("j", at_s, what) for at_s, what in said))


def forced() -> Plan:
    """A job whose commits hang is cancelled, and then cancelled by force."""
    spec = JobSpec("j", ((("a",),), (("b",),)), rows=0)
    wishes = (Wish("j", 4.0, "cancel"), Wish("j", 6.0, "force"))
    return Plan(jobs=(spec,), wishes=wishes, script=_commits_hang)


async def _commits_hang(world: World) -> None:
    world.tables.holds = lambda order: True
    await asyncio.sleep(9)
    world.tables.holds = None
    for held in world.tables.held:
        held.gate.set()


def everything() -> Plan:
    """Eight jobs, and all that can become of them.

    A worker, a leader's store and a checkpoint are lost too.
    """
    jobs = (
        JobSpec("both", ((("a",), ("b",)), (("c",),)), sinks=("t", "u")),
        JobSpec("long", ((("a",), ("b",)),), rows=24),
        JobSpec("saved", ((("a",),),), rows=0),
        JobSpec("saver", ((("a",),),), rows=0),
        JobSpec("ended", ((("a",),),), rows=0),
        JobSpec("weak", ((("a",),),), rows=20, retry_times=1),
        JobSpec("doomed", ((("a",),),), rows=20, sinks=("shut",)),
        JobSpec("torn", ((("a",),),), rows=24),
    )
    wishes = (
        Wish("saved", 3.0, "savepoint"),
        Wish("saver", 2.0, "savepoint"),
        Wish("saver", 14.0, "cancel"),
        Wish("ended", 4.0, "cancel"),
        Wish("ended", 6.0, "cancel"),  # it is over: the answer needs a proof, and no change
    )
    settings = MasterSettings(timeout_s=1.5, history=3)
    return Plan(jobs, wishes=wishes, script=_trouble, settings=settings, faulty_s=40.0)


async def _trouble(world: World) -> None:
    world.tables.table("shut").refuses = "The table has other columns."
    world.network.tap(
        lambda p: (
            isinstance(p.message, BarrierAck)
            and p.message.key.job == "saver"
            and status(world, "saver") is JobStatus.DOING_SAVEPOINT
        ),
        "drop",
    )
    world.loop.spawn(None, _fail_tasks(world, "weak"))
    world.loop.spawn(None, tear_later_blobs(world, "torn"))
    await asyncio.sleep(5)
    world.kill("W1")
    await asyncio.sleep(3)
    leader = await some_leader(world)
    cut(world, leader, "store", world.loop.time() + 2.5)
    await asyncio.sleep(3)
    await _step_down(world)
    await asyncio.sleep(0.5)
    await until(world, pending)
    world.kill(await some_leader(world))


async def _step_down(world: World) -> None:
    """Have the leader learn that it is fenced, as a worker that saw a later term would tell it."""
    leading = world.masters[await some_leader(world)]
    assert leading.leader
    leading.leader.desk.abandon()


async def _fail_tasks(world: World, job: str) -> None:
    """Let every attempt of a job fail when it has run for a second or so."""
    while not world.faults.quiet:
        await asyncio.sleep(1.2)
        for worker in world.workers.values():
            worker.fail("p1t1", "a row could not be read", job)


async def tear_later_blobs(world: World, job: str) -> None:
    """Damage every checkpoint of a job but the first, until one of them is found to be lost."""

    def later(event: Event) -> bool:
        mine = event["kind"] == "blob" and event["name"].startswith(f"{job}/")
        return mine and "/00000001-" not in event["name"] and not lost(world, job)

    while not lost(world, job):
        blob = await world.saw(later)
        world.blobs.torn.add(blob["name"])
        world.note_by(None, "fault", fault="blob spoilt", name=blob["name"])


async def until(world: World, holds: Callable[[World], Any]) -> None:
    """Wait until something holds, looking often."""
    while not holds(world):
        await asyncio.sleep(LOOK_S)


async def some_leader(world: World) -> str:
    """Wait for a master that leads; return its name."""
    await until(world, World.leader)
    leading = world.leader()
    assert leading
    return leading.name


def pending(world: World) -> bool:
    """Whether a checkpoint is on its way, which the next leader must give up."""
    items = [i for k, i in world.store.items.items() if k.startswith("pipeline/")]
    return any(decode(PipelineRecord, i.value).checkpoints.pending for i in items)


def lost(world: World, job: str) -> bool:
    """Whether a checkpoint of a job's first pipeline was found to be lost."""
    item = world.store.items.get(pipeline_key(job, 1))
    state = decode(PipelineRecord, item.value) if item else None
    return state is not None and (bool(state.checkpoints.lost) or state.status in OVER)


def status(world: World, job: str) -> JobStatus | None:
    """Return how a job stands in the store, or None if it has no record."""
    item = world.store.items.get(job_key(job))
    return decode(JobRecord, item.value).status if item else None


STAGES: dict[str, Callable[[], Plan]] = {
    "bounded": bounded,
    "again": again,
    "saved": saved,
    "going_on": going_on,
    "drained": drained,
    "forced": forced,
    "everything": everything,
}
