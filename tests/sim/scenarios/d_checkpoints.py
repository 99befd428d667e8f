"""Group D: the checkpoints of a pipeline."""

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.health import Health
from holdfast.master.ports import MasterSettings
from holdfast.wire.messages import Barrier, BarrierAck, DeployTask, SourceEndReport
from tests.sim.engine.world import JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import fail, starts, worker_of
from tests.sim.scenarios.scene import UNEVEN, Scene, kill_at, window

ANSWERS, BURSTS = 10_000, 100
"""So many answers come at once, in so many bursts, each of which makes the leader late."""

LONG = JobSpec("j", rows=24)

kill_at("D03", ("before:blob.put", 2), jobs=(LONG,))
kill_at("D04", ("after:blob.put", 2), jobs=(LONG,))
kill_at("D05", ("after:pipeline.CheckpointStored", 2), jobs=(LONG,))
kill_at("D05", "after:pipeline.CheckpointStored", ("before:table.commit", 2), jobs=(LONG,))
kill_at("D06", "after:pipeline.Committed", jobs=(LONG,))


def numbers(s: Scene) -> list[int]:
    """Return the numbers of the complete checkpoints, in order."""
    found = [p.checkpoints.latest.number for p in s.records(PipelineRecord) if p.checkpoints.latest]
    return sorted(set(found))


@window("D01", LONG)
async def number_is_skipped(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.pending(CheckpointKind.PERIODIC, 2)))
    await s.rest()
    s.claim(2 not in numbers(s), "a number was used again")
    s.ends("FINISHED")
    s.untouched()


@window("D02", LONG)
async def some_tasks_have_the_barrier(s: Scene) -> None:
    s.tap("drop", Barrier, lambda m: m.key.task == "p1t2" and m.number == 2)
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC, 2)))
    await s.until(lambda: bool(s.sent(BarrierAck, lambda p: p.message.acked.number == 2)))
    s.kill_leader()
    s.mend()
    await s.rest()
    s.claim(2 not in numbers(s), "a checkpoint with mixed answers")
    s.ends("FINISHED")
    s.untouched()


@window("D07", LONG)
async def some_tasks_know_of_the_commit(s: Scene) -> None:
    s.tap("drop", Barrier, lambda m: m.key.task == "p1t2" and m.through >= 1)
    await s.until(
        lambda: bool(
            s.sent(Barrier, lambda p: p.message.through >= 1 and p.message.key.task == "p1t1")
        )
    )
    await s.sleep(0.1)
    s.kill_leader()
    s.mend()
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D08", LONG)
async def completion_without_an_answer(s: Scene) -> None:
    s.silence("commit", lambda changes: any(b'"latest":{' in c.value for c in changes))
    await s.saw(moments.event("fault", fault="store answer lost", op="commit"))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()
    s.takeovers(0, 0)


@window("D09", LONG)
async def answer_of_a_failed_attempt(s: Scene) -> None:
    held = s.tap("hold", BarrierAck, lambda m: m.acked.number == 2 and m.key.task == "p1t1")
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC, 2)))
    await s.until(lambda: bool(held.taken))
    s.reboot(worker_of(s))
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.release(held)
    await s.rest()
    shown = [f for e in s.world.history.of("snapshot") for f in e["files"]]
    s.claim(not [f for f in shown if "p1t1/a1-" in f and "-2-t" in f], "a lost attempt's files")
    s.ends("FINISHED")


@window("D10", LONG)
async def answers_come_twice(s: Scene) -> None:
    tap = s.tap("twice", BarrierAck)
    await s.rest()
    s.prove(len(tap.taken) > 4, "nothing was repeated")
    s.ends("FINISHED")
    s.untouched()


@window("D11", LONG)
async def barrier_after_a_later_one(s: Scene) -> None:
    held = s.tap("copy", Barrier, lambda m: m.number == 1, 2)
    await s.saw(moments.pipeline(moments.complete(2)))
    s.release(held)
    await s.sleep(0.2)
    asked = [w.tasks[k].answered for w in s.world.workers.values() for k in w.tasks]
    s.claim(all(a and a.number >= 2 for a in asked), "an old barrier was taken")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D12", LONG)
async def last_answer_at_the_deadline(s: Scene) -> None:
    held = s.tap("hold", BarrierAck, lambda m: m.acked.number == 1 and m.key.task == "p1t2")
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC)))
    await s.sleep(s.world.settings.timeout_s + s.world.loop.random.uniform(-0.15, 0.1))
    s.prove(bool(held.taken), "no answer was held")
    s.release(held)
    await s.saw(moments.pipeline(moments.complete(2)))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D12", JobSpec("j", rows=90), settings=MasterSettings(progress_s=120.0))
async def one_task_stands_still_and_never_answers(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.hangs.add(("p1t1", 1))
    s.tap("drop", BarrierAck, lambda m: m.acked.task == "p1t1" and m.acked.attempt == 1)
    await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row == 2))
    s.claim(starts(s, "p1t1") == [1], "it was not given its chances")
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    said = [f.reason for f in s.pipeline().failures]
    wanted = "it stood still and did not answer 3 checkpoints in a row"
    s.claim(wanted in said, f"the reason is {said}")
    s.claim(s.pipeline().retries == 1, "it cost no retry")
    await s.rest()
    s.claim(starts(s, "p1t1") == [1, 2] and starts(s, "p1t2") == [1], "others were restarted")
    s.ends("FINISHED")
    s.takeovers(0, 0)


@window("D12", JobSpec("j", rows=160))
async def one_slice_takes_very_long(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.busy.add("p1t1")
    await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row == 5))
    s.claim(s.leader().health("j")[0].health is Health.STALLED, "nobody is told")
    s.world.busy.clear()
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D13", LONG)
async def blob_store_refuses_five_times(s: Scene) -> None:
    s.world.blobs.refused_puts = 5
    await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row == 5))
    await s.saw(moments.pipeline(moments.complete(6)))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


async def _bad_latest(s: Scene, spoil: bool) -> None:
    await s.saw(moments.pipeline(moments.committed(2)))
    name = s.latest_blob()
    if spoil:
        s.world.blobs.torn.add(name)
    else:
        s.world.blobs.objects.pop(name)
    s.world.note_by(None, "fault", fault="blob spoilt", name=name)
    fail(s)
    await s.rest()
    s.ends("FAILED")
    s.claim("is lost" in s.job().reason, f"the reason is {s.job().reason}")
    s.claim(starts(s, "p1t1") == [1], "it was started from something else")


@window("D14", LONG)
async def latest_blob_is_cut_short(s: Scene) -> None:
    await _bad_latest(s, spoil=True)


@window("D14", LONG)
async def blob_is_spoilt_before_its_commit(s: Scene) -> None:
    s.arm("before:pipeline.CheckpointStored", 2, "pause:0.01")
    blob = await s.saw(lambda e: e["kind"] == "blob" and "/00000002-" in e["name"])
    s.world.blobs.torn.add(blob["name"])
    s.world.note_by(None, "fault", fault="blob spoilt", name=blob["name"])
    await s.rest()
    shown = [e["number"] for e in s.world.history.of("snapshot")]
    s.claim(2 not in shown, "a spoilt checkpoint was committed")
    s.claim(s.pipeline().checkpoints.lost == (2,), "it was not given up")
    s.claim(starts(s, "p1t1") == [1, 2], "its tasks did not go back")
    s.ends("FINISHED")


@window("D14", LONG)
async def first_blob_is_spoilt_before_its_commit(s: Scene) -> None:
    s.arm("before:pipeline.CheckpointStored", 1, "pause:0.01")
    blob = await s.saw(lambda e: e["kind"] == "blob" and "/00000001-" in e["name"])
    s.world.blobs.torn.add(blob["name"])
    s.world.note_by(None, "fault", fault="blob spoilt", name=blob["name"])
    await s.rest()
    s.ends("FAILED")
    s.claim("There is none before it" in s.job().reason, f"the reason is {s.job().reason}")
    s.claim(starts(s, "p1t1") == [1], "it was started from nothing")


@window("D14", LONG)
async def a_commit_may_have_begun_by_a_former_leader(s: Scene) -> None:
    s.hold_commits(lambda order: order.number == 2)
    await s.saw(moments.event("held", number=2))
    s.world.blobs.torn.add(s.latest_blob())
    s.world.note_by(None, "fault", fault="blob spoilt", name=s.latest_blob())
    s.kill_leader()
    await s.saw(moments.elected)
    s.let_go()
    await s.rest()
    s.ends("FAILED")
    s.claim("may have begun" in s.job().reason, f"the reason is {s.job().reason}")


@window("D15", LONG)
async def a_later_blob_goes_missing_before_its_turn(s: Scene) -> None:
    s.hold_commits(lambda order: order.number == 1)
    await s.saw(moments.pipeline(moments.complete(3)))
    name = s.latest_blob()
    s.world.blobs.objects.pop(name)
    s.world.note_by(None, "fault", fault="blob spoilt", name=name)
    fail(s)
    await s.saw(moments.pipeline(lambda p: p.checkpoints.lost))
    s.let_go()
    await s.rest()
    shown = {e["number"] for e in s.world.history.of("snapshot")}
    s.claim(shown >= {1, 2}, "what was whole was not committed")
    s.claim(not shown & set(s.pipeline().checkpoints.lost), "a lost checkpoint was committed")
    s.ends("FINISHED")


@window("D15", LONG)
async def latest_blob_is_missing(s: Scene) -> None:
    await _bad_latest(s, spoil=False)


@window("D17", LONG)
async def no_space_for_blobs(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.blobs.full_until = s.now + 4
    await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row >= 2))
    s.claim("no space" in s.pipeline().checkpoints.last_failure, "the reason is not kept")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D18", LONG)
async def blob_takes_very_long(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.blobs.put_s = 6.0
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC)))
    before = s.world.workers[worker_of(s)].sequence, _rows(s)
    await s.sleep(4)
    s.prove(s.pipeline().checkpoints.pending is not None, "it was not slow")
    s.claim(_rows(s) >= before[1] + 6, "the tasks stood still")
    s.claim(len(s.world.history.of("blob")) == 1, "two checkpoints overlapped")
    s.world.blobs.put_s = 0.0
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


def _rows(s: Scene) -> int:
    tasks = [t for w in s.world.workers.values() for t in w.tasks.values()]
    return sum(sum(t.positions.values()) for t in tasks)


@window("D19", UNEVEN)
async def source_at_its_end_and_a_takeover(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.ready(1)))
    number = s.pipeline().checkpoints.next
    await s.saw(moments.pipeline(moments.complete(number + 1)))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D21", JobSpec("j", rows=110))
async def checkpoints_kept_after_many_takeovers(s: Scene) -> None:
    for _ in range(5):
        before = s.pipeline().checkpoints.next if s.records(PipelineRecord) else 1
        await s.kills_leader(moments.pipeline(moments.complete(before + 1)))
    await s.rest()
    s.takeovers(5)
    most = max(len(p.checkpoints.kept) for p in s.records(PipelineRecord))
    s.claim(most <= s.pipeline().retained + 2, f"{most} checkpoints were kept")
    s.ends("FINISHED")


@window("D22", LONG)
async def date_goes_back_between_checkpoints(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    at_s = s.now
    s.world.dates[s.holder()] = -7200
    await s.saw(moments.pipeline(moments.complete(2)))
    s.claim(s.now - at_s < 2.5, "the next checkpoint waited for the date")
    await s.rest()
    s.ends("FINISHED")


@window("D23", LONG)
async def answers_come_by_the_thousand(s: Scene) -> None:
    answers = s.tap("copy", BarrierAck)
    await s.saw(moments.pipeline(moments.complete(2)))
    answers.end()
    copies = [p for p in answers.taken if p.receiver == s.holder()]
    for _ in range(BURSTS):
        for n in range(ANSWERS // BURSTS):
            s.world.network.release(copies[n % len(copies)])
        s.pause(s.holder(), 0.04)
        await s.sleep(0.045)
    latest = numbers(s)[-1]
    await s.saw(moments.pipeline(moments.complete(latest + 2)))
    await s.rest()
    s.takeovers(0, 0)
    s.untouched()
    s.ends("FINISHED")


@window("D23", UNEVEN, settings=MasterSettings(lease_s=30.0))
async def reports_wait_for_the_store_by_the_thousand(s: Scene) -> None:
    reports = s.tap("copy", SourceEndReport)
    await s.saw(moments.pipeline(moments.ready(1)))
    reports.end()
    copy = next(p for p in reports.taken if p.receiver == s.holder())
    slow_s = 2 * s.scenario.settings.worker_lost_s
    s.world.store.stall_until = s.now + slow_s
    refused = 0
    for _ in range(BURSTS):
        for _ in range(ANSWERS // BURSTS):
            s.world.network.release(copy)
        await s.sleep(slow_s / BURSTS)
        refused += not s.leader().has_time("")
    s.prove(refused > BURSTS // 2, f"the leader had no time at {refused} of {BURSTS} moments")
    await s.rest()
    s.takeovers(0, 0)
    s.untouched()
    s.ends("FINISHED")


@window("D24", LONG)
async def tasks_start_anew_while_a_commit_runs(s: Scene) -> None:
    s.hold_commits(lambda order: order.number == 2)
    await s.saw(moments.event("held", number=2))
    s.reboot(worker_of(s))
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.let_go()
    await s.rest()
    s.ends("FINISHED")


@window("D24", LONG)
async def leader_changes_while_a_commit_runs(s: Scene) -> None:
    s.hold_commits(lambda order: order.number == 2)
    await s.kills_leader(moments.event("held", number=2))
    await s.saw(moments.elected)
    s.let_go()
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("D25", LONG)
async def no_checkpoint_before_every_task_is_back(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    s.tap("drop", DeployTask, lambda m: m.key.task == "p1t1")
    fail(s)
    await s.saw(moments.pipeline(lambda p: p.tasks[0].attempt > 1))
    before = numbers(s)
    await s.sleep(4)
    s.claim(numbers(s) == before, "a checkpoint without every task")
    s.prove(not starts(s, "p1t1")[1:], "it had started")
    s.mend()
    await s.rest()
    s.ends("FINISHED")
