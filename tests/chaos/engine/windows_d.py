"""Group D: the checkpoints of a pipeline."""

from tests.chaos.engine.jobs import LONG, STREAM
from tests.chaos.engine.moments import attempt, complete, running
from tests.chaos.engine.scene import Scene, kill_at, window

kill_at("D01", ("after:pipeline.CheckpointDue", 2), shape=LONG)
kill_at("D03", ("before:blob.put", 2), shape=LONG)
kill_at("D04", ("after:blob.put", 2), shape=LONG)
kill_at("D05", ("after:pipeline.CheckpointStored", 2), shape=LONG)
kill_at("D05", "after:pipeline.CheckpointStored", ("before:table.commit", 2), shape=LONG)
kill_at("D06", "after:table.commit", shape=LONG)
kill_at("D06", "after:pipeline.Committed", shape=LONG)


async def _some_know(s: Scene, through: int) -> int:
    """Wait until one task has answered a barrier and the other is held before its answer."""
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:worker.ack", "hold", count=2)
    held = await s.hit(number)
    record = await s.until(lambda p: p.checkpoints.pending is not None)
    pending = record.checkpoints.pending
    assert pending
    await s.saw(
        lambda e: (
            e["kind"] == "ack"
            and not e["process"].startswith(held)
            and e["number"] == pending.number
            and e["through"] >= through
        )
    )
    return number


@window("D02", STREAM)
async def some_tasks_have_answered_the_barrier(s: Scene) -> None:
    number = await _some_know(s, 0)
    await s.kill_leader()
    s.release(number)
    await s.further(2)
    s.untouched()


@window("D07", STREAM)
async def some_tasks_know_of_the_commit(s: Scene) -> None:
    number = await _some_know(s, 1)
    await s.kill_leader()
    s.release(number)
    await s.further(2)
    s.untouched()


@window("D08", LONG)
async def completion_without_an_answer(s: Scene) -> None:
    number = s.arm("after:pipeline.CheckpointStored", "unknown")
    await s.submit()
    await s.hit(number)
    await s.rest()
    s.untouched()


@window("D09", STREAM)
async def answer_of_a_lost_attempt(s: Scene) -> None:
    """A worker is cut off while it answers; its answer arrives when another attempt runs."""
    await s.submit()
    await s.until(complete(2))
    number = s.arm("before:worker.ack", "hold")
    name = await s.hit(number)
    for link in s.links(name):
        link.freeze()
    s.note_fault("cut from masters", name)
    s.release(number)
    await s.saw(
        lambda e: e["kind"] == "ack" and e["process"].startswith(name) and e["at"] > s.hit_s
    )
    await s.until(lambda p: attempt(2)(p) and running(p))
    for link in s.links(name):
        link.heal()
    await s.further(2)
