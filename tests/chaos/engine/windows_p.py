"""Group P: save modes, which empty a table once, with the first commit of a job's life.

Every kind of sink is struck, with a table for each of its save modes and formats of files.  There
are rows of another job in all of them, which stay in sight until the first commit.
"""

import asyncio
from collections import Counter
from time import monotonic

from tests.chaos.engine.jobs import From, Shape
from tests.chaos.engine.modes import EVERY
from tests.chaos.engine.moments import attempt
from tests.chaos.engine.scene import Scene, window
from tests.oracle.events import Removed

FILLS = Shape(((From(1, 4, 0),),), first=1, modes="fills")
EMPTIES = Shape(((From(6, 10),),), modes="empties")

Shown = dict[str, Counter[int]]
"""The rows that a reader sees in each table."""


async def shown(s: Scene, name: str = "j") -> Shown:
    """Return the rows that a reader sees."""
    job = s.jobs[name]
    tables = job.shape.tables_of(1, job.sink)
    return {t: await asyncio.to_thread(job.sink.shown, job.out, t) for t in tables}


def each(rows: Shown) -> set[int]:
    """Return how many rows the tables show: one number, if all have the same."""
    return {table.total() for table in rows.values()}


async def filled(s: Scene) -> Shown:
    """Have rows of another job in every table."""
    old = await s.submit("old", FILLS)
    await s.until_job("FINISHED", name="old")
    rows = await shown(s, "old")
    s.claim(each(rows) == {FILLS.sources[0].total}, f"the tables were filled with {rows}")
    old.emptied = True
    return rows


async def emptied(s: Scene, old: Shown) -> Shown:
    """Claim that the job has removed the old rows, all its own are there; return those."""
    rows = await shown(s)
    s.claim(each(rows) == {EMPTIES.sources[0].total}, f"rows are shown: {each(rows)}")
    s.claim(not any(rows[t] & old[t] for t in rows), "old rows are still shown")
    return rows


async def note_removed(s: Scene, before: Shown) -> None:
    """Tell the oracle which rows were shown before and are not any more."""
    now, lost = await shown(s), 0
    for table, rows in before.items():
        gone = tuple(str(i) for i in sorted((rows - now[table]).elements()))
        s.noted.append(Removed(at=monotonic(), process="world", table=table, files=gone))
        lost += len(gone)
    total = sum(rows.total() for rows in before.values())
    s.say(f"{total} rows were shown in {len(before)} tables when the job was over, {lost} went")


@window("P01", EMPTIES, sinks=EVERY)
async def worker_wakes_when_the_job_is_over(s: Scene) -> None:
    old = await filled(s)
    number = s.arm("before:worker.prepare", "stop")
    await s.submit("j", into="old")
    name = await s.hit(number)
    s.claim(await shown(s) == old, "old rows went before the first commit")
    await s.until_job("FINISHED")
    before = await emptied(s, old)
    s.cluster.process(name).go_on()
    await s.saw(lambda e: e["kind"] == "end" and e["process"].startswith(name))
    await s.rest()
    await note_removed(s, before)
    s.claim(max(s.starts("p1-t1")) > 1, "no other attempt was made")


@window("P02", EMPTIES, sinks=EVERY)
async def thread_goes_on_when_the_job_is_over(s: Scene) -> None:
    old = await filled(s)
    number = s.arm("before:worker.prepare", "hold")
    await s.submit("j", into="old")
    await s.hit(number)
    record = await s.until(attempt(2))
    said = [f.reason for f in record.failures]
    s.prove(any("no progress" in r for r in said), f"the first attempt ended with {said}")
    await s.until_job("FINISHED")
    before = await emptied(s, old)
    s.release(number)
    await s.rest()
    await note_removed(s, before)
