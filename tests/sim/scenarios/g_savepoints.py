"""Group G: savepoints, and jobs that go on from one.  Two windows of group F belong to them."""

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import UserError
from holdfast.master.leader import Leader
from holdfast.wire.messages import Barrier, BarrierAck
from tests.sim.engine.client import resume
from tests.sim.engine.world import JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import worker_of
from tests.sim.scenarios.scene import Scene, window

LONG = JobSpec("j", rows=30)
PAIR = JobSpec("j", ((("a",),), (("b",),)), rows=30)
FRAIL = JobSpec("j", rows=30, retry_times=0)


async def save(s: Scene, request: str = "s1") -> str:
    """Ask for a savepoint once the job has a checkpoint."""
    return await s.ask(lambda leader: leader.savepoint("j", request))


async def go_on(
    s: Scene, incarnation: str = "i2", life: str = "i1", *, write_again: bool = False
) -> str:
    """Submit the next life of the job from what a life has left; return why it was refused."""

    async def ask(leader: Leader) -> None:
        saved = leader.vault.keeps("j", life)
        if saved is None:
            raise UserError(f"{life} has left nothing")
        spec = s.scenario.jobs[0]
        await resume(spec, incarnation, leader, saved, write_again=write_again)

    return await s.ask(ask)


def read(s: Scene, *lives: str) -> list[object]:
    """Return all rows that some lives have made visible."""
    found = []
    for event in s.world.history.of("snapshot"):
        if event["user"].split(".")[1] in lives:
            found += [row for f in event["files"] for row in s.world.tables.files[f]]
    return found


def whole(s: Scene, *lives: str) -> None:
    """Claim that some lives together show every row once."""
    spec = s.scenario.jobs[0]
    wanted = {(x, n) for p in spec.pipelines for t in p for x in t for n in range(spec.length(x))}
    rows = read(s, *lives)
    s.claim(len(rows) == len(set(rows)), "a row twice")
    s.claim(set(rows) == wanted, f"{len(wanted - set(rows))} rows are missing")


@window("G01", LONG)
async def leader_dies_with_the_wish(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.arm("after:job.JobSavepointRequested", 1, "kill")
    await save(s)
    await s.rest()
    s.ends("SAVEPOINT_DONE")
    s.untouched()


@window("G02", LONG)
async def leader_dies_with_some_answers(s: Scene) -> None:
    s.tap("drop", BarrierAck, lambda m: m.key.task == "p1t2" and bool(s.job().request))
    await s.saw(moments.pipeline(moments.complete(1)))
    await save(s)
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.SAVEPOINT)))
    await s.sleep(0.3)
    s.kill_leader()
    s.mend()
    await s.rest()
    s.ends("SAVEPOINT_DONE")
    s.untouched()


@window("G02", LONG)
async def worker_dies_with_some_answers(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.when(
        moments.pipeline(moments.pending(CheckpointKind.SAVEPOINT)), lambda e: s.kill(worker_of(s))
    )
    await save(s)
    await s.saw(moments.pipeline(lambda p: p.savepoint and p.savepoint.failures))
    await s.rest()
    s.ends("SAVEPOINT_DONE")


@window("G03", LONG)
async def saved_and_not_yet_over(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.when(
        lambda e: isinstance(e.get("record"), JobRecord) and bool(e["record"].saved),
        lambda e: s.kill_leader(),
    )
    await save(s)
    await s.saw(moments.elected)
    await s.rest()
    s.ends("SAVEPOINT_DONE")
    s.untouched()
    s.takeovers(1)


@window("G04", JobSpec("j", rows=6))
async def savepoint_at_the_end_of_the_input(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.ready(1)))
    await save(s)
    await s.rest()
    s.ends("FINISHED", "SAVEPOINT_DONE")
    kinds = {c.kind for p in s.records(PipelineRecord) for c in p.checkpoints.kept}
    s.claim(
        not {CheckpointKind.FINAL, CheckpointKind.SAVEPOINT} <= kinds,
        "both a final one and a savepoint",
    )


@window("G05", LONG)
async def source_too_busy_for_a_savepoint(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.tap("drop", Barrier, lambda m: m.key.task == "p1t2")
    await save(s)
    await s.saw(lambda e: moments.job("RUNNING")(e) and "savepoint" in e["record"].reason)
    s.mend()
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("G06", LONG)
async def two_wishes_for_a_savepoint(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    await save(s, "s1")
    await save(s, "s2")
    await s.rest()
    s.ends("SAVEPOINT_DONE")
    saved = {c.number for p in s.records(PipelineRecord) for c in p.checkpoints.kept
             if c.kind is CheckpointKind.SAVEPOINT}  # fmt: skip
    s.claim(len(saved) == 1 and s.job().request == "s1", "two savepoints")


@window("G07", LONG, own_rows=True)
async def takeover_before_the_first_own_checkpoint(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    await save(s)
    await s.saw(moments.job("SAVEPOINT_DONE"))
    s.world.when(
        moments.pipeline(lambda p: p.incarnation == "i2" and moments.running(p)),
        lambda e: s.kill(s.holder(), worker_of(s)),
    )
    s.claim(not await go_on(s), "it was refused")
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.prove(_last_start(s, "i2") == 0, "it had a checkpoint of its own")
    await s.rest()
    s.ends("FINISHED")
    whole(s, "i1", "i2")


@window("G08", LONG, own_rows=True)
async def takeover_after_the_first_own_checkpoint(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    await save(s)
    await s.saw(moments.job("SAVEPOINT_DONE"))
    s.world.when(
        moments.pipeline(lambda p: p.incarnation == "i2" and moments.complete(1)(p)),
        lambda e: s.kill(s.holder(), worker_of(s)),
    )
    s.claim(not await go_on(s), "it was refused")
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.prove(_last_start(s, "i2") > 0, "it had no checkpoint of its own")
    await s.rest()
    s.ends("FINISHED")
    whole(s, "i1", "i2")


def _last_start(s: Scene, life: str) -> int:
    """Return the complete checkpoints a life had when its last attempt was placed."""
    latest = [p.checkpoints.latest for p in s.records(PipelineRecord) if p.incarnation == life]
    return latest[-1].number if latest and latest[-1] else 0


@window("G09", LONG, own_rows=True)
async def savepoint_is_damaged(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    await save(s)
    await s.saw(moments.job("SAVEPOINT_DONE"))
    s.world.blobs.torn.update(name for _, name in s.job().saved)
    said = await go_on(s)
    s.claim("is lost" in said, f"the answer was {said}")
    s.world.blobs.torn.clear()
    s.claim(not await go_on(s, "i3"), "the savepoint was used up")
    await s.rest()
    begun = [e for e in s.world.history.of("start") if e["incarnation"] == "i2"]
    s.claim(not begun, "a task started from a damaged savepoint")
    s.ends("FINISHED")
    whole(s, "i1", "i3")


def _is_of_savepoint(s: Scene, barrier: Barrier) -> bool:
    pending = s.pipeline(number=barrier.key.pipeline).checkpoints.pending
    return (
        pending is not None
        and pending.number == barrier.number
        and pending.kind is CheckpointKind.SAVEPOINT
    )


@window("G10", PAIR)
async def savepoint_of_one_pipeline_fails(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.tap("drop", Barrier, lambda m: m.key.pipeline == 2 and _is_of_savepoint(s, m))
    await save(s)
    await s.saw(moments.pipeline(lambda p: p.savepoint and p.savepoint.number))
    await s.saw(lambda e: moments.job("RUNNING")(e) and "savepoint" in e["record"].reason)
    s.claim(not s.job().saved, "half a savepoint")
    s.mend()
    await s.rest()
    s.ends("FINISHED")


@window("G11", LONG, own_rows=True)
async def savepoint_outlives_the_job_that_took_it(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    await save(s)
    await s.saw(moments.job("SAVEPOINT_DONE"))
    name = s.job().saved[0][1]
    s.claim(not await go_on(s), "it was refused")
    await s.saw(moments.pipeline(lambda p: p.incarnation == "i2" and moments.complete(5)(p)))
    s.claim(name in s.world.blobs.objects, "the savepoint is gone")
    await s.rest()
    s.claim(name in s.world.blobs.objects, "the savepoint is gone")
    s.ends("FINISHED")
    whole(s, "i1", "i2")


@window("G12", LONG, own_rows=True)
async def cancelled_and_gone_on(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(2)))
    await s.ask(lambda leader: leader.cancel("j"))
    await s.kills_leader(moments.job("CANCELED"))
    await s.saw(moments.elected)
    s.claim(not await go_on(s), "it was refused")
    await s.rest()
    s.claim(
        [j.status.value for j in s.records(JobRecord)][-1] == "FINISHED", "the second life failed"
    )
    whole(s, "i1", "i2")


@window("G13", FRAIL, own_rows=True)
async def failed_and_gone_on(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(2)), lambda e: s.kill(worker_of(s)))
    await s.kills_leader(moments.job("FAILED"))
    await s.saw(moments.elected)
    s.claim(not await go_on(s), "it was refused")
    await s.rest()
    s.claim(
        [j.status.value for j in s.records(JobRecord)][-1] == "FINISHED", "the second life failed"
    )
    whole(s, "i1", "i2")


@window("G14", LONG, own_rows=True)
async def what_could_not_be_shown_is_finished_by_the_next_life(s: Scene) -> None:
    table = s.world.tables.table("t")
    await s.saw(moments.pipeline(moments.committed(1)))
    table.refuses = "The table has other columns."
    await s.kills_leader(moments.job("FAILED"))
    table.refuses = ""
    await s.saw(moments.elected)
    s.claim(not await go_on(s), "it was refused")
    await s.rest()
    left = [f for p in s.records(PipelineRecord) if p.incarnation == "i2" for f in p.formers]
    s.prove(any(f.waiting for f in left), "no commit was left to the next life")
    s.claim(
        [j.status.value for j in s.records(JobRecord)][-1] == "FINISHED", "the second life failed"
    )
    whole(s, "i1", "i2")


@window("F21", LONG, own_rows=True)
async def older_savepoint_is_used_again(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    await save(s)
    await s.saw(moments.job("SAVEPOINT_DONE"))
    s.claim(not await go_on(s), "it was refused")
    await s.saw(moments.job("FINISHED", life="i2"))
    said = await go_on(s, "i3")
    s.claim("rows more" in said, f"the answer was {said}")
    s.claim(not await go_on(s, "i4", write_again=True), "it was refused")
    await s.rest()
    whole(s, "i1", "i2")
    s.claim(sorted(map(str, read(s, "i4"))) == sorted(map(str, read(s, "i2"))), "rows were masked")


@window("F33", LONG, own_rows=True)
async def forced_end_with_a_commit_on_its_way(s: Scene) -> None:
    s.hold_commits(lambda order: ".i1." in order.user and order.number == 2)
    await s.saw(moments.event("held", number=2))
    await s.ask(lambda leader: leader.cancel("j"))
    await s.sleep(4)
    s.claim(str(s.job().status) == "CANCELING", "it did not wait for its commit")
    await s.ask(lambda leader: leader.cancel("j", force=True))
    await s.until(lambda: str(s.job().status) == "CANCELED", 1.0)
    (left,) = s.job().abandoned
    s.claim(left.begun and left.waiting[0].number == 2, f"it says {left.words}")
    s.let_go()
    landed = moments.event("snapshot", number=2)
    if not any(landed(e) for e in s.world.history.of("snapshot")):
        await s.saw(landed)
    s.claim(not await go_on(s), "it was refused")
    await s.rest()
    s.ends("FINISHED")
    whole(s, "i1", "i2")


@window("F34", LONG, own_rows=True)
async def forced_end_before_a_former_commit_is_made(s: Scene) -> None:
    s.hold_commits()
    await s.saw(moments.event("held"))
    await s.ask(lambda leader: leader.cancel("j", force=True))
    await s.saw(moments.job("CANCELED"))
    s.claim(not await go_on(s), "it was refused")
    await s.saw(moments.event("held"))
    await s.ask(lambda leader: leader.cancel("j", force=True))
    await s.saw(moments.job("CANCELED", life="i2"))
    (left,) = s.job().abandoned
    s.claim(left.life == "j/i1" and left.waiting[0].number == 1, f"it says {left.words}")
    s.let_go()
    s.claim(not await go_on(s, "i3"), "it was refused")
    await s.rest()
    s.ends("FINISHED")
    whole(s, "i1", "i2", "i3")
