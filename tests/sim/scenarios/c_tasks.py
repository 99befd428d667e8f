"""Group C: deploying, workers, tasks."""

from holdfast.wire.messages import BarrierAck, DeployTask, Heartbeat, SourceEndReport, StopTask
from tests.sim.engine.world import WORKERS, JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.scene import Scene, kill_at, window

LONG = JobSpec("j", rows=24)

kill_at("C02", "before:pipeline.TaskStarted")


def worker_of(s: Scene, task: str = "p1t1") -> str:
    """Return the worker on which a task is placed."""
    place = next(t.place for t in s.pipeline().tasks if t.id == task)
    assert place
    return place.worker


def fail(s: Scene, task: str = "p1t1", why: str = "a row could not be read") -> None:
    """Let a task fail where it runs."""
    s.world.note_by(None, "fault", fault="task failed", task=task)
    s.world.workers[worker_of(s, task)].fail(task, why)


def starts(s: Scene, task: str) -> list[int]:
    """Return the attempts of a task that were started, in order."""
    return [e["attempt"] for e in s.world.history.of("start") if e["task"] == task]


@window("C01")
async def started_but_not_answered(s: Scene) -> None:
    await s.kills_leader(moments.event("start"))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()
    s.takeovers(1)


@window("C03")
async def half_of_the_tasks_started(s: Scene) -> None:
    s.tap("drop", DeployTask, lambda m: m.key.task == "p1t2")
    await s.kills_leader(moments.event("start", task="p1t1"))
    s.prove(not starts(s, "p1t2"), "both had started")
    s.mend()
    await s.rest()
    s.ends("FINISHED")
    s.untouched()
    s.claim(starts(s, "p1t1") == starts(s, "p1t2") == [1], "a task was started twice")


@window("C04")
async def two_orders_for_one_attempt(s: Scene) -> None:
    held = s.tap("copy", DeployTask, lambda m: True, 2)
    again = s.tap("twice", DeployTask)
    await s.kills_leader(moments.event("start"))
    await s.saw(moments.elected)
    s.release(held)
    await s.rest()
    s.prove(len(again.taken) > 1, "nothing was repeated")
    s.ends("FINISHED")
    s.untouched()


@window("C05", LONG)
async def late_order_for_an_attempt_that_is_over(s: Scene) -> None:
    held = s.tap("copy", DeployTask, lambda m: m.key.task == "p1t1" and m.attempt == 1, 1)
    await s.saw(moments.pipeline(moments.complete(1)))
    fail(s)
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.release(held)
    s.prove(bool(held.taken), "no order was captured")
    await s.rest()
    s.claim(starts(s, "p1t1") == [1, 2], f"attempts started: {starts(s, 'p1t1')}")
    s.ends("FINISHED")


@window("C06", LONG)
async def task_is_alive_and_stands_still(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.hangs.add(("p1t1", 1))
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    said = [f.reason for f in s.pipeline().failures]
    s.claim(any("no progress" in r for r in said), f"the reason is {said}")
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)


@window("C07", LONG)
async def worker_dies(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    name = worker_of(s)
    s.kill(name, revive=False)
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.claim(worker_of(s) != name, "it was placed on a dead worker")
    await s.rest()
    s.ends("FINISHED")


@window("C08", LONG)
async def worker_is_back_at_once(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    at_s = s.now
    s.reboot(worker_of(s))
    await s.saw(moments.pipeline(lambda p: p.tasks[0].attempt > 1))
    s.claim(s.now - at_s < s.world.settings.worker_lost_s, "found by silence, not by incarnation")
    await s.rest()
    s.ends("FINISHED")


async def _cut_worker(s: Scene) -> str:
    await s.saw(moments.pipeline(moments.committed(1)))
    name = worker_of(s)
    for master in ("M1", "M2", "M3"):
        s.cut(master, name, 9)
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    return name


@window("C09", LONG)
async def worker_cut_off_still_reads(s: Scene) -> None:
    name = await _cut_worker(s)
    s.prove(bool(s.world.workers[name].tasks), "the old attempt had stopped")
    await s.rest()
    s.ends("FINISHED")
    first = [e for e in s.world.history.of("snapshot") if e["number"] > 6]
    s.claim(not [f for e in first for f in e["files"] if f"p1t1/a1-{name}" in f], "stale files")


@window("C10", LONG)
async def cut_heals_after_the_new_attempt(s: Scene) -> None:
    name = await _cut_worker(s)
    s.mend()
    await s.until(lambda: not [k for k in s.world.workers[name].tasks.values() if k.attempt == 1])
    s.prove(bool(s.sent(StopTask, lambda p: p.receiver == name)), "it was not told to stop")
    await s.rest()
    s.ends("FINISHED")


@window("C11", LONG)
async def worker_and_leader_die(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    s.kill(worker_of(s))
    s.kill_leader()
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(1)


@window("C12", LONG)
async def all_workers_die(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    s.kill(*WORKERS, revive=False)
    await s.until(lambda: "no worker is connected" in s.leader().waits.values())
    for name in WORKERS:
        s.world.boot(name)
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)


@window("C13", LONG)
async def failure_told_to_a_dying_leader(s: Scene) -> None:
    s.arm("before:pipeline.TaskFailed", 1, "kill")
    await s.saw(moments.pipeline(moments.complete(1)))
    fail(s)
    await s.rest()
    s.restarted("p1t1")
    s.claim(s.pipeline().retries == 1, f"{s.pipeline().retries} retries")
    s.ends("FINISHED")


@window("C14")
async def reports_arrive_while_the_job_is_cleaned_up(s: Scene) -> None:
    late = [s.tap("copy", kind, left=12) for kind in (Heartbeat, SourceEndReport, BarrierAck)]
    await s.saw(moments.job("FINISHED"))
    s.kill("W1")
    for tap in late:
        s.release(tap)
    await s.saw(moments.gone("j"))
    for tap in late:
        s.release(tap)
    s.prove(all(t.taken for t in late), "nothing was late")
    await s.rest()
    s.ends("FINISHED")


@window("C15", JobSpec("j", rows=24, retry_times=0))
async def job_without_retries_loses_its_worker(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.running))
    s.kill(worker_of(s))
    await s.rest()
    s.ends("FAILED")
    s.claim("worker" in s.job().reason, f"the reason is {s.job().reason}")


@window("C15", JobSpec("j", rows=24, retry_times=0))
async def job_without_retries_and_a_commit_owed(s: Scene) -> None:
    s.hold_commits()
    await s.saw(moments.event("held"))
    s.kill(worker_of(s))
    await s.saw(moments.pipeline(lambda p: p.status == "failing"))
    s.let_go()
    await s.rest()
    s.ends("FAILED")


@window("C16", LONG)
async def leader_dies_with_a_cancel(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.arm("after:job.JobCancelRequested", 1, "kill")
    await s.ask(lambda leader: leader.cancel("j"))
    await s.rest()
    s.ends("CANCELED")


@window("C17", LONG, lives=2)
async def leftover_task_of_a_former_life(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    worker = worker_of(s)
    for name in ("M1", "M2", "M3"):
        s.cut(name, worker)
    await s.ask(lambda leader: leader.cancel("j"))
    await s.saw(moments.pipeline(lambda p: p.incarnation == "i2" and moments.running(p)))
    left = [k for k in s.world.workers[worker].tasks if k.incarnation == "i1"]
    s.prove(bool(left), "no task was left over")
    s.mend()
    await s.until(lambda: not [k for k in s.world.workers[worker].tasks if k.incarnation == "i1"])
    await s.rest()
    s.ends("FINISHED")


@window("C18", LONG)
async def executors_linger(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    name = worker_of(s)
    s.kill(name)
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.world.tables.stage(f"j/i1/1/p1t1/a1-{name}#1-99-t", (("a", 0),))
    await s.rest()
    s.ends("FINISHED")


@window("C19", LONG)
async def slower_twin_of_a_spark_task(s: Scene) -> None:
    staged = await s.saw(moments.event("stage"))
    s.world.tables.stage(staged["file"] + ".twin", s.world.tables.files[staged["file"]])
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("C20", LONG)
async def worker_dies_while_it_answers(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    name = worker_of(s)
    number = (await s.saw(moments.event("stage"), lambda e: s.kill(name)))["file"]
    await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row))
    s.prove(bool(number), "nothing was staged")
    await s.saw(moments.pipeline(moments.complete(4)))
    await s.rest()
    s.ends("FINISHED")


@window("C21", JobSpec("j", rows=4), JobSpec("k", rows=4), slots=1)
async def slots_are_free_after_a_takeover(s: Scene) -> None:
    first = await s.saw(lambda e: moments.job("FINISHED")(e) or moments.job("FINISHED", id="k")(e))
    s.kill_leader()
    s.prove("record" in first, "no job ended")
    await s.rest()
    s.ends("FINISHED")
    s.ends("FINISHED", job="k")
    for worker in s.world.workers.values():
        s.claim(not worker.tasks, "a slot is still taken")
