"""Every row of every machine's table is taken by some run, and every run keeps the promises.

A row that no run takes is either impossible, and then it should not be in the table, or a run is
missing here.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast.core.job import JobStatus
from holdfast.core.pipeline import FINISHED, PipelineRecord, PipelineStatus
from holdfast.core.task import TaskStatus
from holdfast.master.ports import MasterSettings
from tests.sim.echo import hear_twice
from tests.sim.engine.faults import Faults
from tests.sim.engine.run import Plan, Script, Strike, Wish, random_plan, run_seed
from tests.sim.engine.stages import drained
from tests.sim.engine.world import Event, JobSpec, World
from tests.sim.scenarios import moments
from tools.machines import MACHINES

TWO = ((("a",),), (("b",),))
"""Two pipelines of one source each."""

WIDE = (tuple((name,) for name in "abcdefghij"),)
"""One pipeline of more tasks than one worker has room for."""

LONG = JobSpec("j", rows=16)
POISONED = JobSpec("j", tuple(((name,),) for name in "abcd"), retry_times=0)


def directed() -> Iterator[tuple[int, Plan]]:
    """Return runs that lead into one corner each: a seed and a plan."""
    for seed in range(16):
        yield seed, failing(seed)
        yield seed, refusing(seed)
    for seed in range(8):
        yield seed, Plan((JobSpec("j", retry_times=0),), script=losing(seed))
        yield seed, Plan((POISONED,), faults=Faults(store_unknown=0.3), script=poison)
    for seed in range(4):
        yield (
            seed,
            Plan((JobSpec("j"),), settings=MasterSettings(worker_lost_s=1.0), script=all_lost),
        )
        yield seed, Plan((replace(LONG, pipelines=TWO),), script=first_is_refused)
        yield seed, Plan((JobSpec("j", WIDE),), script=lost_before_they_start)
        yield seed, drained()
        yield seed, Plan((LONG,), script=drained_before_it_starts)
        # Each gives up before the next one is due, so a late word of it meets the next.
        yield seed, Plan((LONG,), settings=MasterSettings(timeout_s=0.7), script=busy_for_a_while)
        yield seed, Plan((JobSpec("j", TWO),), script=tearing)
        yield seed, Plan((JobSpec("j"),), script=deaf_listener)
        yield seed, Plan((LONG,), wishes=(Wish("j", 2, "savepoint"),), script=full)
        yield seed, Plan((JobSpec("j"),), wishes=(Wish("j", 1, "savepoint"),), script=no_worker)
        yield seed, Plan((JobSpec("j"),), wishes=(Wish("j", 1, "cancel"),), script=no_worker)
        wishes = (Wish("j", 3, "cancel"), Wish("j", 4, "savepoint"))
        yield seed, Plan((replace(LONG, pipelines=TWO),), wishes=wishes, script=second_is_slow)
        yield seed, Plan((JobSpec("j", retry_times=0),), script=forced_as_it_fails)
        yield seed, Plan((LONG,), script=forced_as_it_stops)
        yield seed, Plan((JobSpec("j", TWO, lengths=(("b", 26),)),), script=failing_when_done)
    for seed in range(6):
        yield seed, Plan((LONG,), script=spoiling(fail_tasks))
        yield seed, Plan((LONG,), script=spoiling(fail_one_by_one))
        yield seed, Plan((LONG,), script=spoiling(cancel))
        yield seed, Plan((LONG,), script=spoiling(fail_tasks, deaf=True))
        yield seed, Plan((replace(LONG, retry_times=0),), script=spoiling(fail_tasks))
        yield seed, Plan((LONG,), script=spoilt_at_once)
        yield seed, Plan((replace(LONG, retry_times=0),), script=spoilt_at_once)


def races() -> Iterator[tuple[int, Plan]]:
    """Return the runs in which two things must meet within milliseconds; some seeds do it."""
    for seed in range(24):
        yield seed, Plan((JobSpec("j"),), script=cancelled_at_the_end(0))
        yield seed, Plan((JobSpec("j"),), script=cancelled_at_the_end(0.03))
        yield seed, Plan((JobSpec("j", retry_times=0),), script=cancelled_as_it_fails)
        yield seed, Plan((JobSpec("j"),), strikes=(Strike(0.05, "pause leader", seed),))


def failing(seed: int) -> Plan:
    """Tasks fail by themselves, retries are few, commits slow, and users change their minds."""
    job = JobSpec("j", TWO, rows=16, retry_times=seed % 3)
    faults = Faults(task_failure=0.08, commit_slow_s=9.0, store_unknown=0.04)
    wishes = (Wish("j", 2.0 + seed / 4, "savepoint"), Wish("j", 3.0 + seed / 3, "cancel"))
    return Plan((job,), faults=faults, wishes=wishes)


def refusing(seed: int) -> Plan:
    """A table refuses for good after a while: in the middle, while it stops, while it fails."""

    async def refuse(world: World) -> None:
        await asyncio.sleep(2.0 + seed / 4)
        world.tables.table("t").refuses = "The column b is gone."

    job = JobSpec("j", TWO, rows=16, retry_times=seed % 2)
    faults = Faults(task_failure=0.05 * (seed % 2), commit_slow_s=2.0)
    wishes = (Wish("j", 2.0 + seed / 5, "cancel"),) if seed % 3 else ()
    return Plan((job,), faults=faults, wishes=wishes, script=refuse)


async def tearing(world: World) -> None:
    """Every checkpoint is damaged, and then a worker is lost."""
    await world.saw(lambda e: e["kind"] == "listen")
    world.blobs.torn.update(world.blobs.objects)
    world.kill("W1")
    world.kill("W2")


def spoiling(strike: Callable[[World], None], deaf: bool = False) -> Script:
    """A checkpoint is damaged while an earlier one is being committed, and then something else."""

    async def spoil(world: World) -> None:
        if deaf:
            world.tables.deaf = 9
        else:
            world.tables.holds = lambda order: order.number == 1
        await world.saw(moments.pipeline(moments.complete(2)))
        world.blobs.torn.update(n for n in world.blobs.objects if "/00000001-" not in n)
        world.note_by(None, "fault", fault="blob spoilt")
        strike(world)
        await asyncio.sleep(2)
        release(world)

    return spoil


async def spoilt_at_once(world: World) -> None:
    """A checkpoint is damaged before anybody reads it."""
    blob = await world.saw(lambda e: e["kind"] == "blob" and "/00000002-" in e["name"])
    world.blobs.torn.add(blob["name"])
    world.note_by(None, "fault", fault="blob spoilt")


def fail_one_by_one(world: World) -> None:
    """One task fails, and the other once the first has a place again."""

    async def second() -> None:
        await world.saw(moments.pipeline(lambda p: p.tasks[0].place and p.tasks[0].attempt > 1))
        fail_tasks(world, "p1t2")

    fail_tasks(world, "p1t1")
    world.loop.spawn(None, second())


async def deaf_listener(world: World) -> None:
    """The listeners do not answer for longer than a checkpoint takes."""
    world.tables.deaf = 9


async def full(world: World) -> None:
    """The blobs have no space left while a savepoint is wanted."""

    def saving(event: Event) -> bool:
        return event.get("status") is JobStatus.DOING_SAVEPOINT

    await world.saw(saving)
    world.blobs.refused_puts = 3


async def no_worker(world: World) -> None:
    """There is nobody to run the job for some time."""
    for name in ("W1", "W2"):
        world.kill(name, revive=False)
    await asyncio.sleep(4)
    for name in ("W1", "W2"):
        world.boot(name)


def losing(seed: int) -> Script:
    """All workers are lost, at first or while commits are on their way; the job has no retry."""

    async def lose(world: World) -> None:
        if seed % 2:
            world.tables.holds = lambda order: True
            await world.saw(lambda e: e["kind"] == "held")
            await asyncio.sleep(seed / 2)
        else:
            await world.saw(lambda e: e["kind"] == "start")
        for name in ("W1", "W2"):
            world.kill(name)
        await asyncio.sleep(5)
        release(world)

    return lose


def release(world: World) -> None:
    """Let every commit go that was held."""
    world.tables.holds = None
    for held in world.tables.held:
        held.gate.set()


def cancel(world: World, *, force: bool = False) -> None:
    """Ask whoever leads for a cancel, at this very moment."""
    master = world.leader()
    if master and master.leader:
        world.loop.spawn(world.process_of(master.name), master.leader.cancel("j", force=force))


def fail_tasks(world: World, task: str = "") -> None:
    """Let tasks fail, and their workers say so at once."""
    for worker in world.workers.values():
        for running in [r for k, r in worker.tasks.items() if k.task.startswith(task)]:
            if running.failure is None:
                worker._note_end(running, "failed")
            running.failure = "it failed just now"
        worker._tell(worker._hello())


def cancelled_at_the_end(after_s: float) -> Script:
    """A cancel comes while the listeners of the last commit run, or have just run."""

    def last(event: Event) -> bool:
        record = event.get("record")
        return isinstance(record, PipelineRecord) and record.final == record.commits.through

    async def strike(world: World) -> None:
        if after_s:
            await world.saw(last)
            await asyncio.sleep(after_s)
            cancel(world)
        else:
            await world.saw(last, lambda event: cancel(world))

    return strike


async def cancelled_as_it_fails(world: World) -> None:
    """A cancel comes together with a failure, while a commit is on its way that then fails."""
    world.tables.holds = lambda order: True
    await world.saw(lambda e: e["kind"] == "held")
    cancel(world)
    fail_tasks(world)
    await asyncio.sleep(3)
    fail_tasks(world)
    world.tables.table("t").refuses = "The table is gone."
    release(world)


async def forced_as_it_fails(world: World) -> None:
    """A job that fails and waits for its commits is ended by force."""
    world.tables.holds = lambda order: True
    await world.saw(lambda e: e["kind"] == "held")
    fail_tasks(world)
    await world.saw(moments.job("FAILING"))
    cancel(world, force=True)
    await asyncio.sleep(3)
    release(world)


async def forced_as_it_stops(world: World) -> None:
    """A job that was cancelled and waits for its commits is ended by force."""
    world.tables.holds = lambda order: True
    await world.saw(lambda e: e["kind"] == "held")
    cancel(world)
    await world.saw(moments.pipeline(lambda p: p.status is PipelineStatus.STOPPING))
    cancel(world, force=True)
    await asyncio.sleep(3)
    release(world)


async def poison(world: World) -> None:
    """Nothing of the job can run."""
    world.poisoned["j"] = "its driver is missing"


async def second_is_slow(world: World) -> None:
    """The commits of the second pipeline hang."""
    world.tables.holds = lambda order: ".2." in order.user
    await asyncio.sleep(10)
    release(world)


async def all_lost(world: World) -> None:
    """All workers are lost just after the tasks were placed, and nobody comes for some time."""
    await world.saw(lambda e: e["kind"] == "start")
    await asyncio.sleep(0.6)
    await no_worker(world)


async def lost_before_they_start(world: World) -> None:
    """Tasks have places on two workers, and both workers are lost before either starts one."""

    def placed(event: Event) -> bool:
        record = event.get("record")
        found = record.tasks if isinstance(record, PipelineRecord) else ()
        return len({t.place for t in found if t.status is TaskStatus.PLACED}) > 1

    await world.saw(placed)
    await no_worker(world)


async def drained_before_it_starts(world: World) -> None:
    """The worker that a task was just placed on is drained."""

    def drain(event: Event) -> None:
        master = world.leader()
        assert master and master.leader
        place = event["record"].tasks[0].place
        order = master.leader.drain(place.worker, drained=True)
        world.loop.spawn(world.process_of(master.name), order)

    def placed(event: Event) -> bool:
        record = event.get("record")
        return isinstance(record, PipelineRecord) and record.tasks[0].status is TaskStatus.PLACED

    await world.saw(placed, drain)


async def busy_for_a_while(world: World) -> None:
    """A task gets on and answers no barrier for some time."""
    world.busy.add("p1t1")
    await asyncio.sleep(8)
    world.busy.clear()


async def first_is_refused(world: World) -> None:
    """The commits of the first pipeline are refused for good while those of the second hang."""
    world.tables.holds = lambda order: ".2." in order.user
    await world.saw(lambda e: e["kind"] == "held")
    world.tables.table("t").refuses = "The column b is gone."
    await asyncio.sleep(8)
    world.tables.table("t").refuses = ""
    release(world)


async def failing_when_done(world: World) -> None:
    """A task fails just after its pipeline has finished."""

    def done(event: Event) -> bool:
        return event.get("status") is FINISHED

    await world.saw(done, lambda event: fail_tasks(world, "p1"))


def test_every_row_is_taken_and_every_run_keeps_the_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for machine in MACHINES:
        machine.taken.clear()
    broken: list[str] = []

    def run(seed: int, plan: Plan) -> None:
        broken.extend(f"seed {seed} of {plan}: {v}" for v in run_seed(seed, plan).violations)

    for seed, plan in (*directed(), *races()):
        run(seed, plan)
    for seed, plan in (*((seed, random_plan(seed)) for seed in range(70)), *directed()):
        with monkeypatch.context() as patch:
            hear_twice(patch, seed)
            run(seed, plan)
    assert not broken, "; ".join(broken)
    never = [
        f"{m.name}: {old.name} on {event.__name__} to {new.name}"
        for m in MACHINES
        for old, event, new in m.rows
        if (old, event, new) not in m.taken
    ]
    assert not never, "never taken: " + "; ".join(never)
