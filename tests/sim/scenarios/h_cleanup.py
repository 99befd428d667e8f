"""Group H: the end of a job, its tombstone, and the cleanup."""

from holdfast.core import job, pipeline
from holdfast.core.job import TERMINAL, JobCancelRequested, JobRecord, PipelinesChanged
from holdfast.core.pipeline import PipelineRecord, StopRequested
from holdfast.master.ports import MasterSettings
from holdfast.master.records import encode, job_key, pipeline_key
from holdfast.store.contract import Guard, Item, Put
from holdfast.wire.messages import BarrierAck, Heartbeat, SourceEndReport
from tests.sim.engine.world import WORKERS, JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import fail
from tests.sim.scenarios.g_savepoints import go_on, save, whole
from tests.sim.scenarios.scene import JOB, LEASE_S, Scene, kill_at, window

LONG = JobSpec("j", rows=24)
FRAIL = JobSpec("j", rows=24, retry_times=1)

kill_at("H05", "after:table.sweep")
kill_at("H05", ("after:blob.drop", 2), jobs=(LONG,))
kill_at("H06", "before:job.bury")


@window("H06")
async def leader_dies_with_the_last_deletion(s: Scene) -> None:
    s.arm("after:job.bury", 1, "kill")
    await s.saw(moments.elected)
    await s.saw(moments.elected)
    await s.rest()
    s.claim(_history(s) == ["history/j/i1"], "history is not what it should be")
    s.ends("FINISHED")


@window("H01", FRAIL)
async def leader_dies_before_the_failure_is_recorded(s: Scene) -> None:
    for attempt in (1, 2):
        await s.saw(moments.pipeline(moments.attempt("p1t1", attempt)))
        if attempt == 2:
            s.world.when(
                moments.pipeline(lambda p: p.status in ("failing", "failed")),
                lambda e: s.kill_leader(),
            )
        fail(s)
    await s.saw(moments.elected)
    await s.rest()
    s.ends("FAILED")
    ends = {j.status for j in s.records(JobRecord) if j.status in TERMINAL}
    s.claim(len(ends) == 1, f"ends {ends}")


@window("H02")
async def end_and_duty_to_clean_up_are_one(s: Scene) -> None:
    await s.kills_leader(moments.job("FINISHED"))
    await s.saw(moments.elected)
    s.claim("job/j" in s.world.store.items, "the record is gone")
    await s.saw(moments.gone("j"))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("H03")
async def takeover_before_the_cleanup(s: Scene) -> None:
    await s.kills_leader(moments.job("FINISHED"))
    begun = len(s.world.history.of("start"))
    await s.saw(moments.elected)
    await s.until(lambda: bool(s.world.leader()) and s.leader().loaded)
    s.claim(s.leader().jobs["j"].terminal, "it is shown as running")
    await s.rest()
    s.claim(len(s.world.history.of("start")) == begun, "a finished job ran again")
    s.ends("FINISHED")


@window("H04")
async def second_leader_dies_before_the_cleanup(s: Scene) -> None:
    await s.kills_leader(moments.job("FINISHED"))
    await s.saw(moments.elected)
    await s.until(lambda: bool(s.world.leader()) and s.leader().loaded)
    s.kill_leader()
    s.prove("job/j" in s.world.store.items, "it was cleaned up before")
    await s.rest()
    s.takeovers(2)
    s.ends("FINISHED")


async def _late(s: Scene, moment: str) -> None:
    late = [s.tap("copy", kind, left=20) for kind in (Heartbeat, SourceEndReport, BarrierAck)]
    await s.saw(moments.job("FINISHED") if moment == "within" else moments.gone("j"))
    writes = len(s.records(PipelineRecord)) + len(s.records(JobRecord))
    for tap in late:
        s.release(tap)
    s.prove(all(t.taken for t in late), "nothing was late")
    await s.sleep(1)
    s.claim(
        len(s.records(PipelineRecord)) + len(s.records(JobRecord)) == writes, "it changed something"
    )
    await s.rest()
    s.ends("FINISHED")


@window("H07")
async def reports_while_the_tombstone_stands(s: Scene) -> None:
    await _late(s, "within")


@window("H08")
async def reports_after_the_cleanup(s: Scene) -> None:
    await _late(s, "after")


@window("H09")
async def same_id_while_the_tombstone_stands(s: Scene) -> None:
    await s.saw(moments.job("FINISHED"))
    records = JOB.records("i2")
    said = await s.ask(lambda leader: leader.submit(*records))
    s.claim("not free yet" in said and "5 s" in said, f"the answer was {said}")
    await s.rest()
    s.claim(all(j.incarnation == "i1" for j in s.records(JobRecord)), "it was accepted")
    s.ends("FINISHED")


@window("H10", lives=2)
async def old_cleanup_of_a_paused_leader(s: Scene) -> None:
    s.arm("before:job.bury", 1, "pause:14")
    await s.saw(moments.pipeline(lambda p: p.incarnation == "i2" and moments.running(p)))
    await s.rest()
    s.takeovers(1)
    s.ends("FINISHED")
    kept = [j for j in s.records(JobRecord) if j.incarnation == "i2"]
    s.claim(bool(kept) and kept[-1].status in TERMINAL, "the new life was cut off")


@window("H11", LONG, own_rows=True)
async def same_id_from_its_savepoint_at_once(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    await save(s)
    over = await s.saw(moments.job("SAVEPOINT_DONE"))
    said = await s.ask(lambda leader: leader.submit(*LONG.records("i2")))
    s.claim("not free yet" in said, f"the answer was {said}")
    s.claim(not await go_on(s, "i3"), "it was refused")
    handed = [e for e in s.world.history.of("write") if e["key"] == "grave/j/i1"]
    s.prove(bool(handed) and handed[0]["at"] - over["at"] < 5, "the tombstone was gone")
    await s.rest()
    s.ends("FINISHED")
    whole(s, "i1", "i3")
    gone = [e for e in s.world.history.of("write") if e["key"] == "grave/j/i1"][-1]
    s.claim(gone["at"] - over["at"] >= s.world.settings.tombstone_s, "it stood too short")


@window("H12")
async def date_jumps_by_a_day(s: Scene) -> None:
    over = await s.saw(moments.job("FINISHED"))
    for name in s.world.masters:
        s.world.dates[name] = 86400
    gone = await s.saw(moments.gone("j"))
    stood_s = gone["at"] - over["at"]
    s.claim(stood_s >= s.world.settings.tombstone_s, f"it stood for {stood_s} s")
    await s.rest()
    s.ends("FINISHED")


@window("H13", LONG)
async def nothing_stays(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    await s.rest()
    left = sorted(k for k in s.world.store.items if k not in ("leader", "clock", "led", "terms"))
    s.claim(left == ["history/j/i1", "past/j/i1"], f"left {left}")
    s.ends("FINISHED")


@window("H14", LONG)
async def many_tombstones_at_a_takeover(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    for number in range(120):
        _tombstone(s, f"t{number:03}")
    s.kill_leader()
    await s.saw(moments.elected)
    at_s = s.now
    await s.until(lambda: bool(s.world.leader()) and s.leader().loaded)
    s.claim(s.now - at_s < 2, "the records took too long")
    await s.saw(moments.pipeline(lambda p: p.checkpoints.latest))
    s.claim(s.now - at_s < 3, "a job waited for the tombstones")
    await s.rest()
    s.ends("FINISHED")


def _tombstone(s: Scene, name: str) -> None:
    """Bring a job to its end step by step, as a leader would have done."""
    new, (part,) = JobSpec(name, ((("a",),),)).records("i0")
    stopping, stopped = job.step(new, JobCancelRequested()), pipeline.step(part, StopRequested())
    over = job.step(stopping, PipelinesChanged((stopped,)))
    key, part_key = job_key(name), pipeline_key(name, 1)
    steps = [[Put(key, encode(new)), Put(part_key, encode(part))]]
    steps += [[Put(key, encode(stopping))], [Put(part_key, encode(stopped))]]
    steps += [[Put(key, encode(over))]]
    s.world.writer = s.world.process_of(s.holder())
    term = s.world.store.items["leader"].revision
    items = s.world.store.items
    for puts in steps:
        stands = [Guard(p.key, items[p.key].revision if p.key in items else 0) for p in puts]
        s.world.store.commit([Guard("leader", term), *stands], puts)


@window("H15", LONG)
async def job_without_its_pipeline(s: Scene) -> None:
    zombie, _ = JobSpec("zombie").records("i1")
    s.world.store.items["job/zombie"] = Item("job/zombie", encode(zombie), 1, 1)
    await s.kills_leader(moments.pipeline(moments.complete(1)))
    await s.saw(moments.elected)
    await s.until(lambda: bool(s.world.leader()) and s.leader().loaded)
    s.claim("zombie" in s.leader().quarantined, "it is not reported")
    records = JobSpec("zombie").records("i2")
    said = await s.ask(lambda leader: leader.submit(*records))
    s.claim("unreadable" in said, f"the answer was {said}")
    await s.saw(moments.job("FINISHED"))
    s.claim(not [j for j in s.records(JobRecord) if j.id == "zombie"], "it was restored")
    del s.world.store.items["job/zombie"]
    await s.rest()
    s.ends("FINISHED")


@window("H16")
async def records_cannot_be_read_at_takeover(s: Scene) -> None:
    await s.kills_leader(moments.job("FINISHED"))
    begun = len(s.world.history.of("start"))
    await s.saw(moments.elected, lambda e: s.store_down(1.0))
    await s.rest()
    s.claim(len(s.world.history.of("start")) == begun, "a finished job ran again")
    s.ends("FINISHED")


@window("H17")
async def takeover_without_workers(s: Scene) -> None:
    await s.kills_leader(moments.job("FINISHED"))
    s.kill(*WORKERS, revive=False)
    await s.saw(moments.elected)
    elected_s = s.now
    await s.saw(moments.gone("j"))
    bound_s = s.world.settings.tombstone_s + LEASE_S
    s.claim(s.now - elected_s < bound_s, "it waited for workers")
    await s.rest()
    s.ends("FINISHED")


@window("H18", JobSpec("j", rows=2), lives=5, settings=MasterSettings(history=2))
async def history_is_bounded(s: Scene) -> None:
    await s.saw(moments.job("FINISHED", life="i5"))
    await s.rest()
    await s.until(lambda: len(_history(s)) <= 2, 5)
    s.claim(_history(s) == ["history/j/i4", "history/j/i5"], f"history {_history(s)}")
    s.ends("FINISHED")


def _history(s: Scene) -> list[str]:
    return sorted(k for k in s.world.store.items if k.startswith("history/"))
