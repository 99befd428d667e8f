"""Group C: deploying, workers, tasks."""

import asyncio

from tests.chaos.engine.jobs import LONG, ONE, SHORT, STREAM, From, Shape
from tests.chaos.engine.moments import attempt, committed, complete, running
from tests.chaos.engine.scene import Scene, kill_at, window

FRAIL = Shape(((From(40),),), retries=0)
LONGER = Shape(((From(50),),))

kill_at("C02", "before:pipeline.TaskStarted")
kill_at("C02", "after:pipeline.TaskStarted")


@window("C01")
async def started_but_not_answered(s: Scene) -> None:
    number = s.arm("after:worker.start", "hold")
    await s.submit()
    await s.hit(number)
    await s.kill_leader()
    s.release(number)
    await s.rest()
    s.untouched()


@window("C03")
async def half_of_the_tasks_started(s: Scene) -> None:
    number = s.arm("before:worker.start", "hold")
    await s.submit()
    held = await s.hit(number)
    await s.saw(lambda e: e["kind"] == "start" and not e["process"].startswith(held))
    await s.kill_leader()
    s.release(number)
    await s.rest()
    s.untouched()


@window("C04")
async def two_orders_for_one_attempt(s: Scene) -> None:
    """A worker is told twice, by two leaders, to start what it starts already."""
    number = s.arm("before:pipeline.TaskStarted", "stop")
    await s.submit()
    name, term = await s.hit(number), s.cluster.ledger.term()
    await asyncio.sleep(1.2 * s.cluster.settings["lease_s"])
    if len(s.cluster.masters) == 1:
        s.cluster.process(name).go_on()
    await s.elected(term)
    await s.until(complete(1))
    s.cluster.process(name).go_on()
    await s.rest()
    orders = s.events("order", order="DeployTask", task="p1-t1")
    s.say(f"{len(orders)} orders to deploy p1-t1, started {len(s.starts('p1-t1'))} times")
    s.untouched()


@window("C05", LONG)
async def late_order_for_an_attempt_that_is_over(s: Scene) -> None:
    """The leader's words to a worker are held up until the attempt they are about has failed."""
    await s.submit()
    record = await s.until(complete(1))
    worker = s.worker_of(record)
    for link in s.links(worker):
        link.freeze()
    number = s.arm("before:worker.slice", "error", process=worker)
    await s.hit(number)
    await s.saw(lambda e: e["kind"] == "end" and e["process"].startswith(worker))
    for link in s.links(worker):
        link.heal()
    await s.until(attempt(2))
    await s.rest()
    task = next(t.id for t in record.tasks if t.place and t.place.worker == worker)
    s.claim(s.starts(task) == [1, 2], f"attempts started: {s.starts(task)}")


@window("C06", STREAM)
async def task_is_alive_and_stands_still(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:worker.slice", "hold")
    await s.hit(number)
    record = await s.until(attempt(2))
    said = [f.reason for f in record.failures]
    s.claim(any("progress" in r for r in said), f"the reason is {said}")
    s.release(number)
    await s.further(2)


@window("C07", LONGER)
async def worker_is_killed(s: Scene) -> None:
    await s.submit()
    record = await s.until(committed(1))
    name = s.worker_of(record)
    s.kill(name, revive=False)
    s.hits += 1
    again = await s.until(lambda p: attempt(2)(p) and running(p))
    s.claim(s.worker_of(again) != name, "it was placed on a dead worker")
    s.cluster.process(name).start()
    await s.rest()


@window("C08", LONGER)
async def worker_is_back_at_once(s: Scene) -> None:
    await s.submit()
    record = await s.until(committed(1))
    s.kill(s.worker_of(record))
    s.hits += 1
    again = await s.until(attempt(2))
    s.say(f"found because {again.failures[-1].reason}")
    await s.rest()


async def _cut_off(s: Scene) -> str:
    await s.submit()
    record = await s.until(committed(1))
    name = s.worker_of(record)
    s.note_fault("cut from masters", name)
    for link in s.links(name):
        link.freeze()
    s.hits += 1
    await s.until(lambda p: attempt(2)(p) and running(p))
    return name


@window("C09", LONGER)
async def worker_that_is_cut_off_still_reads(s: Scene) -> None:
    name = await _cut_off(s)
    await s.further(2)
    # It may fail in the middle of a write: the new attempt sweeps away what it stages.
    ended = [e for e in s.events("end") if e["process"].startswith(name) and e["why"] != "failed"]
    s.prove(not ended, "the old attempt had stopped")
    for link in s.links(name):
        link.heal()
    await s.rest()


@window("C10", STREAM)
async def cut_heals_after_the_new_attempt(s: Scene) -> None:
    name = await _cut_off(s)
    for link in s.links(name):
        link.heal()
    await s.saw(lambda e: e["kind"] == "end" and e["process"].startswith(name))
    await s.further(2)


@window("C13", LONG)
async def failure_told_to_a_dying_leader(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    killing = s.arm("before:pipeline.TaskFailed")
    failing = s.arm("before:worker.slice", "error")
    await s.hit(failing)
    await s.killed(killing)
    record = await s.until(attempt(2))
    s.claim(record.retries == 1, f"{record.retries} retries")
    await s.rest()


@window("C14", SHORT)
async def worker_is_killed_while_the_job_is_cleaned_up(s: Scene) -> None:
    number = s.arm("before:table.sweep", "hold")
    await s.submit()
    await s.hit(number)
    s.kill("W1")
    s.release(number)
    await s.rest()


@window("C15", FRAIL)
async def job_without_retries_loses_its_worker(s: Scene) -> None:
    await s.submit(ends="FAILED")
    record = await s.until(lambda p: running(p) and complete(1)(p))
    s.kill(s.worker_of(record))
    s.hits += 1
    ended = await s.until_job("FAILED")
    s.claim("orker" in ended.reason, f"the reason is {ended.reason}")


@window("C16", STREAM)
async def leader_is_killed_with_a_cancel(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("after:job.JobCancelRequested")
    asking = asyncio.ensure_future(s.cancel())
    await s.killed(number)
    await asking
    await s.rest()


@window("C17", LONGER)
async def leftover_task_of_a_former_life(s: Scene) -> None:
    job = await s.submit(ends="CANCELED")
    record = await s.until(committed(1))
    name = s.worker_of(record)
    for link in s.links(name):
        link.freeze()
    s.hits += 1
    await s.cancel()
    await s.rest()
    await s.submit("again", ONE, id=job.id)
    await s.until(running, "again")
    for link in s.links(name):
        link.heal()
    await s.saw(
        lambda e: e["kind"] == "end" and e.get("incarnation") == record.incarnation
        and e["process"].startswith(name)
    )  # fmt: skip
    await s.rest()
