"""Group B: submit and start."""

import asyncio

from tests.chaos.engine.jobs import LONG, ONE, PAIR, SHORT, From, Shape
from tests.chaos.engine.moments import attempt, complete
from tests.chaos.engine.scene import Scene, kill_at, window

kill_at("B01", "before:job.submit")
kill_at("B02", "after:job.submit")
kill_at("B03", "after:job.submit", shape=PAIR)
kill_at("B04", "before:pipeline.TaskPlaced")
kill_at("B05", "after:pipeline.TaskPlaced")

WIDE = Shape(((From(6), From(6)),), parallelism=4)


@window("B02")
async def submit_without_an_answer(s: Scene) -> None:
    number = s.arm("after:job.submit", "unknown")
    await s.submit()
    await s.hit(number)
    await s.rest()
    s.untouched()


@window("B06")
async def one_submit_twice_at_once(s: Scene) -> None:
    """The same submit at a leader that stands still, and at the next one."""
    number = s.arm("before:job.submit", "stop")
    job = await s.submit_soon()
    name = await s.hit(number)
    if len(s.cluster.masters) > 1:
        await s.elected(s.cluster.ledger.term())
    else:
        await asyncio.sleep(2 * s.cluster.settings["lease_s"])
    s.cluster.process(name).go_on()
    answers = await asyncio.gather(
        *(s.client.submit(job.id, job.spec, job.token) for _ in range(2))
    )
    s.claim(all(a.yes for a in answers), f"refused: {[a.message for a in answers]}")
    await s.answered()
    await s.rest()
    lives = [k for k in s.cluster.ledger.values if k.startswith(f"history/{job.id}/")]
    s.claim(len(lives) == 1, f"lives: {lives}")
    s.untouched()


@window("B07", WIDE)
async def waiting_jobs_keep_their_order(s: Scene) -> None:
    order = ("j", "k", "m")
    for name in order:
        await s.submit(name)
    await s.until_job("RUNNING")
    waiting = [s.cluster.ledger.job(s.jobs[n].id) for n in order[1:]]
    s.prove(all(w and w.status == "PENDING" for w in waiting), "nobody waits")
    term = s.cluster.ledger.term()
    await s.kill_leader()
    s.hits += 1
    await s.elected(term)
    await s.rest()
    begun = [e["job"] for e in s.events("start")]
    wanted = [s.jobs[n].id for n in order]
    s.claim(list(dict.fromkeys(begun)) == wanted, f"started out of order: {begun}")
    s.untouched()


@window("B08", LONG)
async def one_job_cannot_be_restored(s: Scene) -> None:
    """A job whose next attempts find something in their way fails alone."""
    bad = await s.submit("bad", Shape(((From(60),),), retries=1), ends="FAILED")
    await s.submit("good", LONG)
    record = await s.until(complete(1), "bad")
    await s.until(complete(1), "good")
    for number in (2, 3):
        name = f"{bad.id}.{record.incarnation}-p1-t1-a{number}-s0-t0"
        (bad.out / "p1" / ".holdfast" / name).mkdir()
    await s.kill_leader()
    s.kill(s.worker_of(record))
    s.hits += 1
    ended = await s.until_job("FAILED", name="bad")
    s.claim("exists" in ended.reason, f"the reason is {ended.reason}")
    await s.rest()


@window("B09", SHORT)
async def submit_while_the_store_is_down(s: Scene) -> None:
    await asyncio.to_thread(s.cluster.server.kill)
    s.hits += 1
    s.note_fault("store down")
    await s.submit_soon()
    await asyncio.sleep(s.cluster.settings["lease_s"])
    await asyncio.to_thread(s.cluster.server.start)
    await s.answered()
    await s.rest()


@window("C11", ONE)
async def worker_and_leader_are_killed(s: Scene) -> None:
    await s.submit()
    record = await s.until(complete(1))
    s.kill(s.worker_of(record), await s.leader())
    s.hits += 1
    await s.until(attempt(2))
    await s.rest()
