"""Group P: save modes, which empty a table once, with the first commit of a job's life."""

import asyncio
from collections import Counter
from time import monotonic

from holdfast.testing.chaos.jobs import From, Shape
from holdfast.testing.chaos.moments import attempt
from holdfast.testing.chaos.scene import Scene, window
from holdfast.testing.chaos.sinks import KINDS
from holdfast.testing.oracle.events import Removed

EMPTIES = Shape(((From(6, 10),),), empties=True)
TABLE = "p1"


async def shown(s: Scene) -> Counter[int]:
    """Return the rows that a reader sees."""
    job = s.jobs["j"]
    return await asyncio.to_thread(job.sink.shown, job.out, TABLE)


async def note_removed(s: Scene, before: Counter[int]) -> None:
    """Tell the oracle which rows were shown before and are not any more."""
    gone = tuple(str(i) for i in sorted((before - await shown(s)).elements()))
    s.noted.append(Removed(at=monotonic(), process="world", table=TABLE, files=gone))
    s.say(f"{before.total()} rows were shown when the job was over, {len(gone)} of them went")


@window("P01", EMPTIES, sinks=KINDS)
async def worker_wakes_when_the_job_is_over(s: Scene) -> None:
    number = s.arm("before:worker.prepare", "stop")
    await s.submit()
    name = await s.hit(number)
    await s.until_job("FINISHED")
    before = await shown(s)
    s.claim(before.total() == EMPTIES.sources[0].total, f"{before.total()} rows are shown")
    s.cluster.process(name).go_on()
    await s.saw(lambda e: e["kind"] == "end" and e["process"].startswith(name))
    await s.rest()
    await note_removed(s, before)
    s.claim(max(s.starts("p1-t1")) > 1, "no other attempt was made")


@window("P02", EMPTIES, sinks=KINDS)
async def thread_goes_on_when_the_job_is_over(s: Scene) -> None:
    number = s.arm("before:worker.prepare", "hold")
    await s.submit()
    await s.hit(number)
    record = await s.until(attempt(2))
    said = [f.reason for f in record.failures]
    s.prove(any("no progress" in r for r in said), f"the first attempt ended with {said}")
    await s.until_job("FINISHED")
    before = await shown(s)
    s.claim(before.total() == EMPTIES.sources[0].total, f"{before.total()} rows are shown")
    s.release(number)
    await s.rest()
    await note_removed(s, before)
