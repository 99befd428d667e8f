"""Group E: the bounded end."""

from dataclasses import replace

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.ports import MasterSettings
from holdfast.wire.messages import BarrierAck, SourceEndReport, StopTask
from tests.sim.engine.world import JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import worker_of
from tests.sim.scenarios.scene import PAIR, THREE, UNEVEN, Scene, kill_at, window

ONE_OF_THREE = JobSpec("j", THREE.pipelines, rows=5, lengths=(("b", 24), ("c", 26)))

kill_at("E01", "before:pipeline.SourceEnded")


def finals(s: Scene) -> set[int]:
    """Return the numbers of final checkpoints."""
    done = [p.checkpoints.latest for p in s.records(PipelineRecord) if p.checkpoints.latest]
    return {c.number for c in done if c.kind is CheckpointKind.FINAL}


def _finished(s: Scene) -> None:
    s.ends("FINISHED")
    s.untouched()
    s.takeovers(1)


def _no_resend(s: Scene) -> None:
    s.tap("drop", SourceEndReport, lambda m: m.source == "a")


@window("E02", ONE_OF_THREE)
async def one_of_three_is_at_its_end(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    _no_resend(s)
    number = s.pipeline().checkpoints.next
    await s.saw(moments.pipeline(moments.complete(number)))
    s.claim(not finals(s), "it was the final one")
    await s.rest()
    _finished(s)


@window("E03")
async def all_at_their_end_and_no_final_yet(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(lambda p: moments.ended(p) and not p.checkpoints.pending))
    _no_resend(s)
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.FINAL)))
    await s.rest()
    _finished(s)


@window("E04")
async def final_barrier_is_out(s: Scene) -> None:
    first = await s.saw(moments.pipeline(moments.pending(CheckpointKind.FINAL)))
    await s.until(lambda: bool(s.sent(BarrierAck, lambda p: p.at > first["at"])))
    s.kill_leader()
    s.prove(not finals(s), "the final one was complete")
    await s.rest()
    s.claim(len(finals(s)) == 1, f"final checkpoints: {finals(s)}")
    _finished(s)


@window("E05")
async def final_is_complete_and_not_committed(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(lambda p: p.final and p.commits.waiting))
    await s.rest()
    _finished(s)


@window("E06", settings=MasterSettings(interval_s=30))
async def final_commit_is_visible(s: Scene) -> None:
    await s.saw(moments.pipeline(lambda p: p.final))
    await s.kills_leader(lambda e: e["kind"] == "snapshot" and e["number"] in finals(s))
    await s.rest()
    last = [e for e in s.world.history.of("snapshot") if e["number"] in finals(s)]
    s.claim(len(last) == 1, "the final commit was made twice")
    _finished(s)


@window("E07")
async def finished_before_tasks_are_told(s: Scene) -> None:
    s.tap("drop", StopTask)
    await s.kills_leader(moments.job("FINISHED"))
    s.prove(any(w.tasks for w in s.world.workers.values()), "the tasks had stopped")
    s.mend()
    await s.rest()
    _finished(s)


@window("E08", ONE_OF_THREE)
async def second_leader_dies_before_the_others_report(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    _no_resend(s)
    blocked = s.tap("drop", SourceEndReport)
    await s.saw(moments.elected)
    await s.sleep(1.0)
    s.kill_leader()
    s.prove(len(s.pipeline().completion.ready) == 1, "the others had reported")
    blocked.end()
    await s.rest()
    s.takeovers(2)
    _finished(s)


@window("E09")
async def two_reports_at_once(s: Scene) -> None:
    held = s.tap("hold", SourceEndReport)
    await s.until(lambda: {p.message.source for p in held.taken} == {"a", "b"})
    held.taken.sort(key=lambda p: s.world.loop.random.random())
    s.release(held)
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("E10", UNEVEN, JobSpec("k", rows=6))
async def record_of_the_end_is_damaged(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    item = s.world.store.items["pipeline/j/0001"]
    spoilt = replace(item, value=item.value.replace(b'"ready":[{', b'"ready":[{{'))
    s.prove(spoilt.value != item.value, "nothing was damaged")
    s.world.store.items["pipeline/j/0001"] = spoilt
    await s.saw(moments.elected)
    await s.until(lambda: bool(s.world.leader()) and bool(s.leader().quarantined))
    said = await s.ask(lambda leader: leader.cancel("j"))
    s.claim("unreadable" in said, f"the answer was {said}")
    await s.saw(moments.gone("k"))
    s.ends("FINISHED", job="k")
    s.world.store.items["pipeline/j/0001"] = item
    s.kill_leader()
    await s.rest()
    s.ends("FINISHED")


@window("E11")
async def store_is_down_at_the_report(s: Scene) -> None:
    s.arm("before:pipeline.SourceEnded", 1, lambda name: s.store_down(1.2))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("E12", UNEVEN)
async def worker_of_an_ended_source_dies(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.ready(1)))
    s.kill(worker_of(s))
    lost = await s.saw(moments.pipeline(lambda p: p.tasks[0].attempt > 1))
    s.claim(not lost["record"].completion.ready, "the entry outlived its attempt")
    await s.rest()
    s.ends("FINISHED")


@window("E13", UNEVEN)
async def worker_and_leader_die_and_the_worker_is_back(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.ready(1)))
    s.reboot(worker_of(s))
    s.kill_leader()
    lost = await s.saw(moments.pipeline(lambda p: p.tasks[0].attempt > 1))
    s.claim(not lost["record"].completion.ready, "the entry outlived its attempt")
    await s.rest()
    s.takeovers(1)
    s.ends("FINISHED")


@window("E14", PAIR)
async def one_of_two_pipelines_is_at_its_end(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    await s.saw(moments.pipeline(lambda p: p.final))
    s.claim(not s.pipeline(number=2).completion.ready, "counted across pipelines")
    await s.rest()
    _finished(s)


@window("E15", PAIR)
async def one_of_two_pipelines_is_final(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(lambda p: p.status == "finished"))
    s.kill(*[t.place.worker for t in s.pipeline(number=2).tasks if t.place])
    await s.saw(moments.pipeline(moments.attempt("p2t1"), number=2))
    s.claim(str(s.job().status) == "RUNNING", "the job is not RUNNING")
    await s.rest()
    again = [e for e in s.world.history.of("start") if e["task"] == "p1t1"]
    s.claim(len(again) == 1, "a finished pipeline ran again")
    s.ends("FINISHED")


@window("E16")
async def periodic_checkpoint_on_its_way_at_the_end(s: Scene) -> None:
    held = s.tap("hold", BarrierAck, lambda m: m.key.task == "p1t1")
    s.world.when(moments.pipeline(moments.ended), lambda e: s.release(held))
    full = await s.saw(moments.pipeline(moments.ended))
    s.prove(full["record"].checkpoints.pending is not None, "no checkpoint was on its way")
    await s.rest()
    s.claim(len(finals(s)) == 1, "not one final checkpoint")
    s.ends("FINISHED")
    s.untouched()


@window("E17", lives=2)
async def report_reaches_the_next_life(s: Scene) -> None:
    held = s.tap("copy", SourceEndReport, lambda m: m.key.incarnation == "i1", 2)
    await s.saw(moments.pipeline(lambda p: p.incarnation == "i2" and moments.running(p)))
    term = s.world.store.items["leader"].revision
    for parcel in held.taken:
        s.world.network.release(parcel)
    await s.sleep(0.2)
    s.prove(bool(held.taken) and bool(term), "no report was late")
    s.claim(not s.pipeline().completion.ready, "it was counted")
    await s.rest()
    s.ends("FINISHED")


@window("E18", ONE_OF_THREE)
async def restored_again_and_again(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    known = s.pipeline().completion
    tap = s.tap("drop", SourceEndReport)
    for _ in range(2):
        await s.saw(moments.elected)
        await s.sleep(0.3)
        s.claim(s.pipeline().completion == known, "restoring changed the set")
        s.kill_leader()
    tap.end()
    await s.rest()
    s.takeovers(3)
    _finished(s)


@window("E19", UNEVEN, waived=("I39",))
async def record_of_an_older_version_lacks_the_set(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    item = s.world.store.items["pipeline/j/0001"]
    start = item.value.index(b',"ready":[')
    end = item.value.index(b"]", start) + 1
    s.world.store.items["pipeline/j/0001"] = replace(
        item, value=item.value[:start] + item.value[end:]
    )
    await s.saw(moments.elected)
    await s.saw(moments.pipeline(moments.ready(1)))
    await s.rest()
    _finished(s)


@window("E20")
async def worker_dies_after_the_final_checkpoint(s: Scene) -> None:
    await s.saw(moments.pipeline(lambda p: p.final), lambda e: s.kill("W1", "W2", revive=False))
    await s.saw(moments.job("FINISHED"))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("E21", UNEVEN)
async def set_is_kept_on_takeover_and_gone_at_the_end(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    await s.saw(moments.elected)
    s.claim(b'"ready":[{' in s.world.store.items["pipeline/j/0001"].value, "the set is gone")
    await s.rest()
    s.claim(not [k for k in s.world.store.items if k.startswith("pipeline/")], "it stayed")
    _finished(s)
