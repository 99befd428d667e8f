"""Group B: submit and start."""

from holdfast.core.pipeline import PipelineRecord
from tests.sim.engine.world import JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.scene import Scene, kill_at, window

kill_at("B01", "before:job.submit")
kill_at("B02", "after:job.submit")
kill_at("B04", "before:pipeline.TaskPlaced")
kill_at("B05", "after:pipeline.TaskPlaced")


@window("B02")
async def submit_without_an_answer(s: Scene) -> None:
    s.silence("commit", lambda changes: any(c.key == "job/j" for c in changes))
    await s.saw(moments.event("fault", fault="store answer lost", op="commit"))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("B03", JobSpec("j", ((("a",),), (("b",),)), rows=6))
async def job_and_pipelines_are_one_step(s: Scene) -> None:
    s.arm("after:job.submit", 1, "kill")
    await s.rest()
    made = [e for e in s.world.history.of("write") if e["key"].startswith(("job/", "pipeline/"))]
    s.claim(len({e["revision"] for e in made[:3]}) == 1, "the records were written apart")
    s.ends("FINISHED")
    s.untouched()


@window("B06")
async def one_submit_at_two_leaders(s: Scene) -> None:
    s.arm("before:job.submit", 1, "pause")
    await s.saw(lambda e: e["kind"] == "refused" and "job/j" in e["keys"])
    s.prove(s.terms() > 1, "no second leader")
    await s.rest()
    s.ends("FINISHED")


@window("B07", *(JobSpec(f"j{i}", rows=4) for i in (1, 2, 3)), slots=1)
async def waiting_jobs_keep_their_order(s: Scene) -> None:
    await s.until(lambda: len(s.world.store.items) >= 7 and _waiting(s) == 2)
    order = sorted(("j1", "j2", "j3"), key=lambda j: s.world.store.items[f"job/{j}"].created)
    s.kill_leader()
    await s.saw(moments.elected)
    await s.until(lambda: _waiting(s) == 2)
    last = s.leader()
    s.claim(
        all("waits behind" in w or "slots" in w or "worker" in w for w in last.waits.values()),
        "no reason",
    )
    await s.rest()
    starts = [e["job"] for e in s.world.history.of("start")]
    s.claim(list(dict.fromkeys(starts)) == order, f"started out of order: {starts}")
    s.untouched()
    for job in order:
        s.ends("FINISHED", job=job)


def _waiting(s: Scene) -> int:
    master = s.world.leader()
    waits = master.leader.waits if master and master.leader else {}
    return len({key.job for key in waits})


@window("B08", JobSpec("bad", rows=40, retry_times=2), JobSpec("good", rows=12))
async def one_job_cannot_be_restored(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.complete(1), "good"))
    s.world.poisoned["bad"] = "the secret of its source is missing"
    s.kill("W1", "W2")
    await s.rest()
    s.ends("FAILED", job="bad")
    s.claim("secret" in s.job("bad").reason, "the reason is not kept")
    s.ends("FINISHED", job="good")


@window("B09")
async def submit_while_the_store_is_down(s: Scene) -> None:
    s.arm("before:job.submit", 1, lambda name: s.store_down(5))
    await s.saw(moments.event("fault", fault="store down"))
    await s.sleep(4.5)
    s.claim("job/j" not in s.world.store.items, "something was written")
    await s.rest()
    s.ends("FINISHED")


CROWD = tuple(JobSpec(f"n{i:02}", ((("a",),),), rows=1) for i in range(30))


@window("B10", *CROWD, slots=40)
async def many_submits_and_the_leader_dies(s: Scene) -> None:
    s.arm("after:job.submit", 12, "kill")
    await s.rest()
    made = {p.job for p in s.records(PipelineRecord)}
    s.claim(len(made) == len(CROWD), "a submit was lost")
    for job in CROWD:
        s.ends("FINISHED", job=job.id)
