"""Groups E and H: the bounded end, the tombstone, and the cleanup."""

import asyncio
from time import monotonic

from tests.chaos.engine.jobs import ONCE, ONE, PAIR, SHORT, STREAM, THREE, UNEVEN
from tests.chaos.engine.moments import attempt, complete, final, ready
from tests.chaos.engine.scene import Scene, kill_at, window

kill_at("E01", "before:pipeline.SourceEnded")
kill_at("E02", "after:pipeline.SourceEnded", shape=THREE)
kill_at("E03", ("after:pipeline.SourceEnded", 2))
kill_at("E05", "after:pipeline.CheckpointStored", shape=ONCE)
kill_at("E06", "after:table.commit", shape=ONCE)
kill_at("E08", "after:pipeline.SourceEnded", "before:pipeline.SourceEnded", shape=THREE)
kill_at("H05", "after:table.sweep")
kill_at("H05", ("after:blob.drop", 2))
kill_at("H06", "before:job.bury")
kill_at("H06", "after:job.bury")


@window("E04", ONCE)
async def final_barrier_is_out(s: Scene) -> None:
    number = s.arm("before:worker.ack", "hold")
    await s.submit()
    await s.hit(number)
    record = s.cluster.ledger.pipeline(s.jobs["j"].id)
    s.prove(record and record.final is None, "the final one was complete")
    await s.kill_leader()
    s.release(number)
    await s.rest()
    s.untouched()


async def _armed_end(s: Scene) -> None:
    """Kill the leader at the very write that makes the job FINISHED."""
    await s.submit()
    # The write that made it RUNNING had the same label, and its "after:" may still be to come.
    await s.until(complete(1))
    ledger = s.cluster.ledger
    number, term = s.arm("after:job.PipelinesChanged"), ledger.term()
    name = await s.hit(number)
    # What is known here of the store may be a moment behind.
    await s.until_job("FINISHED")
    s.prove(ledger.term() == term, "the job had not ended: a later leader did that")
    await s.start_again(name)


@window("E07")
async def finished_before_tasks_are_told(s: Scene) -> None:
    await _armed_end(s)
    await s.rest()
    s.untouched()


@window("E12", UNEVEN)
async def worker_of_an_ended_source_is_killed(s: Scene) -> None:
    await s.submit()
    record = await s.until(ready(1))
    s.kill(s.worker_of(record))
    s.hits += 1
    lost = await s.until(attempt(2, "p1-t1"))
    void = [r for r in lost.completion.ready if r.source in record.tasks[0].sources]
    s.claim(not void, f"the entry outlived its attempt: {void}")
    await s.rest()


@window("E13", UNEVEN)
async def its_worker_and_the_leader_are_killed(s: Scene) -> None:
    await s.submit()
    record = await s.until(ready(1))
    s.kill(s.worker_of(record), await s.leader())
    s.hits += 1
    lost = await s.until(attempt(2, "p1-t1"))
    void = [r for r in lost.completion.ready if r.source in record.tasks[0].sources]
    s.claim(not void, f"the entry outlived its attempt: {void}")
    await s.rest()


@window("E14", PAIR)
async def one_of_two_pipelines_is_at_its_end(s: Scene) -> None:
    number = s.arm("after:pipeline.SourceEnded")
    await s.submit()
    await s.killed(number)
    await s.until(final)
    other = s.cluster.ledger.pipeline(s.jobs["j"].id, 2)
    s.claim(other and not other.completion.ready, "counted across pipelines")
    await s.rest()
    s.untouched()


@window("E15", PAIR)
async def one_of_two_pipelines_is_final(s: Scene) -> None:
    await s.submit()
    await s.until(lambda p: p.status.value == "finished")
    other = s.cluster.ledger.pipeline(s.jobs["j"].id, 2)
    assert other
    s.kill(s.worker_of(other), await s.leader())
    s.hits += 1
    await s.until(attempt(2), number=2)
    job = s.cluster.ledger.job(s.jobs["j"].id)
    s.claim(job and job.status == "RUNNING", "the job is not RUNNING")
    await s.rest()
    s.claim(s.starts("p1-t1") == [1], "a finished pipeline ran again")


@window("E20", ONCE)
async def workers_are_killed_after_the_final_checkpoint(s: Scene) -> None:
    number = s.arm("before:table.commit", "hold")
    await s.submit()
    await s.hit(number)
    s.kill(*s.cluster.workers)
    s.release(number)
    await s.rest()
    s.untouched()


@window("H03")
async def takeover_before_the_cleanup(s: Scene) -> None:
    await s.submit()
    await s.until_job("FINISHED")
    begun, term = len(s.events("start")), s.cluster.ledger.term()
    await s.kill_leader()
    s.hits += 1
    await s.elected(term)
    s.claim(s.cluster.ledger.job(s.jobs["j"].id), "the record went with the leader")
    await s.rest()
    s.claim(len(s.events("start")) == begun, "a finished job ran again")


@window("H04")
async def second_leader_is_killed_before_the_cleanup(s: Scene) -> None:
    await s.submit()
    await s.until_job("FINISHED")
    for _ in range(2):
        term = s.cluster.ledger.term()
        s.prove(s.cluster.ledger.job(s.jobs["j"].id), "it was cleaned up before")
        await s.kill_leader()
        s.hits += 1
        await s.elected(term)
    await s.rest()
    s.untouched()


@window("H07", STREAM)
async def reports_while_the_tombstone_stands(s: Scene) -> None:
    """A worker that stood still wakes when the job is over, and says what it has."""
    await s.submit()
    record = await s.until(complete(2))
    name = s.worker_of(record)
    s.note_fault("pause", name)
    s.cluster.process(name).stop()
    s.hits += 1
    await s.cancel()
    await s.until_job("CANCELED")
    woken_s = monotonic()
    s.cluster.process(name).go_on()
    await s.saw(
        lambda e: e["kind"] == "took" and e["process"].startswith(name) and e["at"] > woken_s
    )
    s.prove(s.cluster.ledger.job(s.jobs["j"].id), "the tombstone was gone")
    await s.rest()


@window("H09", SHORT)
async def same_id_while_the_tombstone_stands(s: Scene) -> None:
    job = await s.submit()
    await s.until_job("FINISHED")
    answer = await s.client.submit(job.id, job.spec, "another-token")
    s.prove(s.cluster.ledger.job(job.id), "the tombstone was gone")
    s.hits += 1
    s.claim(not answer.yes, "it was accepted")
    s.claim("not free yet" in answer.message, f"the answer was {answer.message}")
    await s.rest()
    s.untouched()


@window("H10", ONE)
async def old_cleanup_of_a_leader_that_stood_still(s: Scene) -> None:
    job = await s.submit("old", SHORT)
    number = s.arm("before:job.bury", "stop")
    name = await s.hit(number)
    term = s.cluster.ledger.term()
    if len(s.cluster.masters) > 1:
        await s.elected(term)
    else:
        await asyncio.sleep(1.5 * s.cluster.settings["lease_s"])
        s.cluster.process(name).go_on()
    await s.rest()
    await s.submit("new", id=job.id)
    s.cluster.process(name).go_on()
    await s.rest()
