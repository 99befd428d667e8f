"""Group G: savepoints, and jobs that go on from one."""

import asyncio
from pathlib import Path

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.pipeline import PipelineRecord
from tests.chaos.engine.jobs import From, Shape
from tests.chaos.engine.modes import EVERY, bring_back, take_away
from tests.chaos.engine.moments import attempt, committed, complete, ready, running
from tests.chaos.engine.scene import Scene, window

LONG = Shape(((From(30), From(30)),))
ENDS = Shape(((From(3),),))
APART = Shape(((From(30),), (From(30),)))
FRAIL = Shape(((From(30), From(30)),), retries=0)
ALONE = Shape(((From(30),),), retries=0)


async def saved(s: Scene) -> str:
    """Ask for a savepoint; return why it was refused, "" if it was not."""
    answer = await s.client.ask(f"/api/jobs/{s.jobs['j'].id}/savepoint", {})
    return "" if answer.yes else answer.message


async def goes_on(s: Scene) -> str:
    """Have the job go on from what it has left, with the same file; return why it was refused."""
    answer = await s.client.ask(f"/api/jobs/{s.jobs['j'].id}/restart", {})
    return "" if answer.yes else answer.message


async def stopped(s: Scene) -> str:
    """Stop a job with a savepoint after two checkpoints; return the name of its life."""
    await s.submit()
    await s.until(complete(2))
    s.claim(not await saved(s), "the savepoint was refused")
    return (await s.until_job("SAVEPOINT_DONE")).incarnation


async def next_life(s: Scene, former: str) -> None:
    """Go on, and wait until the next life runs."""
    s.claim(not await goes_on(s), "it was refused")
    await s.until(lambda p: p.incarnation != former and running(p))


def saving(p: PipelineRecord) -> bool:
    """Whether a savepoint is on its way."""
    pending = p.checkpoints.pending
    return pending is not None and pending.kind is CheckpointKind.SAVEPOINT


@window("G01", LONG)
async def leader_dies_with_the_wish(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("after:job.JobSavepointRequested")
    asking = asyncio.ensure_future(saved(s))  # nobody answers where there is no other master
    await s.killed(number)
    s.claim(not await asking, "the savepoint was refused")
    former = (await s.until_job("SAVEPOINT_DONE")).incarnation
    s.untouched()
    await next_life(s, former)


@window("G02", LONG)
async def leader_dies_with_some_answers(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:worker.ack", "hold")
    await saved(s)
    await s.until(saving)
    await s.hit(number)
    await s.kill_leader()
    s.release(number)
    former = (await s.until_job("SAVEPOINT_DONE")).incarnation
    await next_life(s, former)


@window("G03", LONG)
async def saved_and_not_yet_over(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    await saved(s)
    await s.until(lambda p: p.savepoint is not None and p.savepoint.number is not None)
    await s.kill_leader()
    former = (await s.until_job("SAVEPOINT_DONE")).incarnation
    s.untouched()
    await next_life(s, former)


@window("G04", ENDS)
async def savepoint_at_the_end_of_the_input(s: Scene) -> None:
    await s.submit()
    await s.until(ready(1))
    s.hits += 1
    await saved(s)  # refused where the end came first
    over = await s.until_job("FINISHED", "SAVEPOINT_DONE")
    if over.status == "SAVEPOINT_DONE":
        s.claim(not await goes_on(s), "it was refused")


@window("G05", LONG)
async def source_too_busy_for_a_savepoint(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:worker.ack", "hold")
    await saved(s)
    await s.hit(number)
    await s.until(saving)
    s.release(number)
    former = (await s.until_job("SAVEPOINT_DONE")).incarnation
    await next_life(s, former)


@window("G06", LONG)
async def two_wishes_for_a_savepoint(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    s.hits += 1
    first, second = await saved(s), await saved(s)
    s.claim(not first, "the first was refused")
    s.say(f"the second was answered: {second or 'yes'}")
    former = await s.until_job("SAVEPOINT_DONE")
    s.claim(len(former.saved) == 1, "two savepoints")
    await next_life(s, former.incarnation)


@window("G07", LONG)
async def takeover_before_the_first_own_checkpoint(s: Scene) -> None:
    former = await stopped(s)
    number = s.arm("before:pipeline.CheckpointStored")
    s.claim(not await goes_on(s), "it was refused")
    record = await s.until(lambda p: p.incarnation != former and running(p))
    s.kill(s.worker_of(record))
    await s.killed(number)
    await s.until(lambda p: p.incarnation != former and attempt(2)(p))


@window("G08", LONG)
async def takeover_after_the_first_own_checkpoint(s: Scene) -> None:
    former = await stopped(s)
    s.claim(not await goes_on(s), "it was refused")
    record = await s.until(lambda p: p.incarnation != former and complete(1)(p))
    s.hits += 1
    s.kill(s.worker_of(record))
    await s.kill_leader()
    await s.until(lambda p: p.incarnation != former and attempt(2)(p))


@window("G09", LONG)
async def savepoint_is_damaged(s: Scene) -> None:
    await s.submit()
    await s.until(complete(2))
    await saved(s)
    former = await s.until_job("SAVEPOINT_DONE")
    blob = Path(s.cluster.folder) / "blobs" / former.saved[0][1]
    whole = blob.read_bytes()
    blob.write_bytes(whole[: len(whole) // 2])
    s.hits += 1
    said = await goes_on(s)
    s.claim("is lost" in said, f"the answer was: {said or 'yes'}")
    starts = [e for e in s.events("start") if e.get("incarnation") != former.incarnation]
    s.claim(not [e for e in starts if s._mine(e)], "a task started from a damaged savepoint")
    blob.write_bytes(whole)
    await next_life(s, former.incarnation)


@window("G10", APART)
async def one_of_two_pipelines_dies_while_both_save(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:worker.ack")
    await saved(s)
    await s.killed(number)
    over = await s.until_job("SAVEPOINT_DONE")
    s.claim(len(over.saved) == 2, "half a savepoint")
    await next_life(s, over.incarnation)


@window("G11", LONG)
async def state_is_removed_while_a_life_goes_on_from_it(s: Scene) -> None:
    former = await stopped(s)
    await next_life(s, former)
    s.hits += 1
    removed = await s.client.remove(f"/api/jobs/{s.jobs['j'].id}/savepoints/1")
    s.claim(removed.yes, f"it was not removed: {removed.message}")
    await s.kill_leader()


@window("G12", LONG, sinks=EVERY)
async def cancelled_and_gone_on(s: Scene) -> None:
    await s.submit()
    await s.until(committed(2))
    await s.cancel()
    former = (await s.until_job("CANCELED")).incarnation
    s.hits += 1
    await s.kill_leader()
    s.claim(not await goes_on(s), "it was refused")
    s.jobs["j"].ends = "FINISHED"
    record = await s.until(lambda p: p.incarnation != former)
    s.claim(record.restore, "the new life began from nothing")


@window("G13", FRAIL, sinks=EVERY)
async def failed_and_gone_on(s: Scene) -> None:
    await s.submit()
    record = await s.until(committed(2))
    s.kill(s.worker_of(record))
    former = (await s.until_job("FAILED")).incarnation
    s.hits += 1
    await s.kill_leader()
    s.claim(not await goes_on(s), "it was refused")
    record = await s.until(lambda p: p.incarnation != former)
    s.claim(record.restore, "the new life began from nothing")


@window("G14", ALONE, sinks=EVERY)
async def what_could_not_be_shown_is_finished_by_the_next_life(s: Scene) -> None:
    job = await s.submit()
    await s.until(committed(1))
    number = s.arm("before:table.commit", "hold")
    await s.hit(number)
    await s.until(lambda p: complete(p.commits.through + 2)(p))
    await asyncio.to_thread(take_away, job.sink, job.out, "p1")
    s.release(number)
    former = await s.until_job("FAILED")
    await asyncio.to_thread(bring_back, job.sink, job.out, "p1")
    await s.kill_leader()
    s.claim(not await goes_on(s), "it was refused")
    state = next(v for v in s.states() if v.incarnation == former.incarnation)
    left = [d.number for p in state.parts for d in p.waiting]
    s.prove(len(left) > 1, f"of the former life's commits these were to be finished: {left}")
    s.say(f"commits {left} were left to the next life; it failed of: {former.reason}")
