"""Group F: commits to tables, with every kind of sink; first what is staged, and by whom."""

import asyncio
from time import monotonic

from tests.chaos.engine.commits import fresh, made_by, never, once, published
from tests.chaos.engine.jobs import LONG, STREAM, From, Shape
from tests.chaos.engine.moments import attempt, committed, complete, running
from tests.chaos.engine.scene import Scene, window
from tests.chaos.engine.sinks import KINDS
from tests.chaos.engine.tail import Facts

STEADY = Shape(((From(36), From(36)),))
HASTY = Shape(((From(18), From(18)),), timeout_ms=2_500)
FAILS = Shape(((From(60), From(60)),))


async def one_has_answered(s: Scene) -> tuple[int, Facts]:
    """Hold one task before its answer to a barrier; return that and the other task's answer."""
    number = s.arm("before:worker.ack", "hold")
    held = await s.hit(number)
    record = await s.until(lambda p: p.checkpoints.pending is not None)
    pending = record.checkpoints.pending
    assert pending
    ack = await s.saw(
        lambda e: (
            e["kind"] == "ack"
            and e["job"] == s.jobs["j"].id
            and e["number"] == pending.number
            and not made_by(e["process"], held)
        )
    )
    return number, ack


async def fail(s: Scene, process: str = "") -> Facts:
    """Let a task fail at its next slice; return its end."""
    number = s.arm("before:worker.slice", "error", process=process)
    name = await s.hit(number)
    return await s.saw(
        lambda e: e["kind"] == "end" and made_by(e["process"], name) and e["at"] > s.hit_s
    )


@window("F01", LONG, sinks=KINDS)
async def staged_and_in_no_answer(s: Scene) -> None:
    job = await s.submit()
    await s.until(complete(1))
    number = s.arm("after:worker.stage", process="W.")
    name = await s.hit(number)
    s.prove(await asyncio.to_thread(s.sink.left, job.out), "nothing was staged")
    await s.start_again(name)
    await s.until(attempt(2))
    await s.rest()
    once(s)


@window("F02", STEADY, sinks=KINDS)
async def answered_and_the_attempt_fails(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number, ack = await one_has_answered(s)
    await fail(s, ack["process"].partition("#")[0])
    await s.until(attempt(2, ack["task"]))
    s.release(number)
    await s.rest()
    never(s, fresh(ack), "an attempt that failed")
    once(s)


@window("F03", STEADY, sinks=KINDS)
async def all_have_answered_and_one_attempt_fails(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:blob.put", "hold")
    await s.hit(number)
    record = await s.until(lambda p: p.checkpoints.pending is not None)
    assert record.checkpoints.pending
    acks = s.events("ack", job=s.jobs["j"].id, number=record.checkpoints.pending.number)
    s.prove(len(acks) == len(record.tasks), "not all have answered")
    end = await fail(s)
    await s.until(attempt(2, end["task"]))
    s.release(number)
    await s.rest()
    mine = [a for a in acks if (a["task"], a["attempt"]) == (end["task"], end["attempt"])]
    never(s, [f for a in mine for f in fresh(a)], "an attempt that failed")
    once(s)


@window("F04", HASTY, sinks=KINDS)
async def checkpoint_given_up_with_writers_alive(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number, ack = await one_has_answered(s)
    await s.until(lambda p: p.checkpoints.failed_in_a_row > 0)
    s.release(number)
    await s.rest()
    files = fresh(ack)
    s.prove(files, "nothing was staged")
    numbers = {f: published(s).get(f, set()) for f in files}
    carried = all(len(n) == 1 and min(n) > ack["number"] for n in numbers.values())
    s.claim(carried, f"files of checkpoint {ack['number']} were committed under {numbers}")
    s.untouched()
    once(s)


@window("F19", STREAM, sinks=KINDS)
async def all_masters_stand_still(s: Scene) -> None:
    job = await s.submit()
    await s.until(committed(2))
    for name in s.cluster.masters:
        s.note_fault("pause", name)
        s.cluster.process(name).stop()
    s.hits += 1
    at_s, before = monotonic(), await asyncio.to_thread(s.sink.hidden, job.out)
    while monotonic() < at_s + 3 * s.cluster.settings["lease_s"]:
        await asyncio.sleep(0.1)
    after = await asyncio.to_thread(s.sink.hidden, job.out)
    for name in s.cluster.masters:
        s.cluster.process(name).go_on()
    grown = [sum(first <= i < first + 10**7 for i in after - before) for first in (1, 10**7 + 1)]
    s.claim(all(grown), f"staged by each writer while nobody led: {grown}")
    s.say(f"rows staged by each writer in {monotonic() - at_s:.0f} s while nobody led: {grown}")
    await s.further(2)
    s.untouched()


@window("F20", FAILS, sinks=KINDS)
async def older_checkpoint_is_whole_but_behind(s: Scene) -> None:
    """The latest checkpoint is damaged, and committed: going back would show rows twice."""
    job = await s.submit(ends="FAILED")
    await s.until(committed(3))
    number, ack = await one_has_answered(s)
    record = await s.until(
        lambda p: p.checkpoints.latest and p.checkpoints.latest.number <= p.commits.listened
    )
    s.prove(len(record.checkpoints.kept) > 1, "there is no older one")
    assert record.checkpoints.latest
    path = s.cluster.folder / "blobs" / record.checkpoints.latest.blob
    path.write_bytes(path.read_bytes()[:-20])
    await fail(s, ack["process"].partition("#")[0])
    ended = await s.until_job("FAILED")
    s.claim("is lost" in ended.reason, f"the reason is {ended.reason}")
    s.claim(s.starts(ack["task"]) == [1], f"committed rows were read again by {job.id}")
    s.release(number)
    await s.rest()


@window("F23", STEADY, sinks=KINDS)
async def files_are_reported_again(s: Scene) -> None:
    number = s.arm("before:table.commit", "hold")
    await s.submit()
    await s.hit(number)
    await s.until(lambda p: len(p.commits.waiting) >= 3)
    s.release(number)
    end = await fail(s)
    await s.until(attempt(2, end["task"]))
    await s.rest()
    acks = s.events("ack", job=s.jobs["j"].id)
    again = [a for a in acks if len(a["staged"]) > len(fresh(a))]
    s.prove(again, "nothing was reported again")
    once(s)


@window("F24", STREAM, sinks=KINDS)
async def answer_of_a_stale_attempt(s: Scene) -> None:
    """A worker is cut off while it answers; its answer arrives when another attempt runs."""
    await s.submit()
    await s.until(complete(2))
    number = s.arm("before:worker.ack", "hold")
    name = await s.hit(number)
    for link in s.links(name):
        link.freeze()
    s.note_fault("cut from masters", name)
    s.release(number)
    ack = await s.saw(
        lambda e: e["kind"] == "ack" and made_by(e["process"], name) and e["at"] > s.hit_s
    )
    await s.until(lambda p: attempt(2)(p) and running(p))
    for link in s.links(name):
        link.heal()
    await s.saw(lambda e: e["kind"] == "end" and made_by(e["process"], name))
    await s.further(2)
    never(s, fresh(ack), "a stale attempt")
    once(s)


@window("F31", LONG, sinks=KINDS)
async def checkpoint_that_cannot_be_stored(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("before:blob.put", "error")
    await s.hit(number)
    failed = await s.until(lambda p: p.checkpoints.failed_in_a_row > 0)
    s.claim("not stored" in failed.checkpoints.last_failure, failed.checkpoints.last_failure)
    await s.rest()
    s.untouched()
    once(s)
