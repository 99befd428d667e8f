"""Group P: save modes, which empty a table once, with the first commit of a job's life."""

import asyncio

from holdfast.core.job import JobRecord
from tests.sim.engine.lake import Snapshot
from tests.sim.engine.world import JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import worker_of
from tests.sim.scenarios.g_savepoints import go_on, save
from tests.sim.scenarios.scene import FOREVER_S, Scene, window

EMPTIES = JobSpec("j", ((("a",),),), rows=9, empties=True)
PAIR = JobSpec("j", ((("a",),), (("b",),)), rows=5, lengths=(("b", 26),), empties=True)
LONG = JobSpec("j", ((("a",),),), rows=30, empties=True)
OLD = "rows of others"


def fill(s: Scene) -> None:
    """Put rows of somebody else into the table."""
    s.world.tables.files[OLD] = ()
    s.world.tables.table("t").add(Snapshot("someone else", 0, (OLD,), None))


def shows(s: Scene, *lives: str) -> None:
    """Claim that the table shows every row of the job once, and none that was there before."""
    table, spec = s.world.tables.table("t"), s.scenario.jobs[0]
    rows = [row for f in table.shown for row in s.world.tables.files[f]]
    wanted = {(x, n) for p in spec.pipelines for t in p for x in t for n in range(spec.length(x))}
    s.claim(OLD in table.gone, "what was there before is still shown")
    s.claim(sorted(rows) == sorted(wanted), f"{len(rows)} rows are shown of {len(wanted)}")


def slow(s: Scene) -> asyncio.Event:
    """Hold the first attempt of the first task while it looks at its tables."""
    gate = s.world.slow_to_open["p1t1", 1] = asyncio.Event()
    return gate


@window("P01", EMPTIES)
async def worker_wakes_when_the_job_is_over(s: Scene) -> None:
    fill(s)
    gate = slow(s)
    await s.saw(lambda e: e["kind"] == "opening")
    name = worker_of(s)
    s.pause(name, FOREVER_S)
    await s.rest()
    s.ends("FINISHED")
    shows(s)
    process = s.world.process_of(name)
    assert process
    gate.set()
    s.world.loop.resume(process)
    await s.sleep(10)
    shows(s)


@window("P01", LONG)
async def worker_wakes_after_the_first_commit(s: Scene) -> None:
    fill(s)
    gate = slow(s)
    await s.saw(lambda e: e["kind"] == "opening")
    name = worker_of(s)
    s.pause(name, FOREVER_S)
    await s.saw(moments.pipeline(moments.committed(1)))
    process = s.world.process_of(name)
    assert process
    gate.set()
    s.world.loop.resume(process)
    await s.rest()
    s.ends("FINISHED")
    shows(s)


@window("P02", LONG)
async def thread_goes_on_after_the_first_commit(s: Scene) -> None:
    fill(s)
    gate = slow(s)
    await s.saw(lambda e: e["kind"] == "opening")
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.claim(any("no progress" in f.reason for f in s.pipeline().failures), "it was not missed")
    await s.saw(moments.pipeline(moments.committed(1)))
    gate.set()
    await s.rest()
    s.ends("FINISHED")
    shows(s)


@window("P03", LONG)
async def leader_dies_inside_the_first_commit(s: Scene) -> None:
    fill(s)
    s.hold_commits(lambda order: order.number == 1)
    await s.saw(lambda e: e["kind"] == "held")
    s.claim(OLD in s.world.tables.table("t").shown, "rows went before their commit")
    s.kill_leader()
    await s.saw(lambda e: e["kind"] == "held")  # the next one makes the same commit
    s.let_go()
    await s.rest()
    s.ends("FINISHED")
    shows(s)


@window("P04", PAIR)
async def two_pipelines_write_one_table(s: Scene) -> None:
    fill(s)
    s.hold_commits(lambda order: order.user.startswith("j.i1.1."))
    await s.saw(moments.pipeline(moments.committed(1), number=2))
    s.let_go()
    await s.rest()
    s.ends("FINISHED")
    shows(s)


@window("P05", LONG, own_rows=True)
async def what_a_savepoint_knows_is_kept(s: Scene) -> None:
    fill(s)
    await s.saw(moments.pipeline(moments.committed(1)))
    await save(s)
    await s.saw(moments.job("SAVEPOINT_DONE"))
    s.claim(not await go_on(s), "it was refused")
    await s.rest()
    s.claim(
        [j.status.value for j in s.records(JobRecord)][-1] == "FINISHED", "the second life failed"
    )
    shows(s)
