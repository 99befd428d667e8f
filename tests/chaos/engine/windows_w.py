"""Group W: a worker and its neighbours, and everything at once.

These are no windows of a single step; they are what users see when machines go away.
"""

from typing import Any

from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.chaos.engine.moments import attempt, committed, complete, ready, running
from tests.chaos.engine.scene import Scene, window

STEADY = Shape(((From(60), From(60)),))
ALONE = Shape(((From(60),),))

FLOW = Shape(((From(ENDLESS, 3, 200),),), streaming=True)
HALVES = Shape(((From(2),), (From(60),)))
SLOPE = Shape(((From(2), From(60)),))
WAITING = Shape(((From(3),),), parallelism=4)


@window("W01", FLOW)
async def everything_is_killed_at_once(s: Scene) -> None:
    """Six jobs, each at another point of its life; then nobody is left, and all come back."""
    await s.submit("stream")
    await s.submit("gone")
    await s.submit("batch", STEADY)
    await s.submit("halves", HALVES)
    await s.submit("slope", SLOPE)
    await s.submit("waits", WAITING)
    await s.until(committed(1), "stream")
    await s.until(complete(1), "batch")
    await s.until(lambda p: p.status.value == "finished", "halves", 1)
    await s.until(complete(1), "halves", 2)
    await s.until(ready(1), "slope")
    waiting = s.cluster.ledger.job(s.jobs["waits"].id)
    s.prove(waiting and waiting.status == "PENDING", "nobody waits")
    await s.cancel("gone")
    s.kill(*s.cluster.masters, *s.cluster.workers)
    s.hits += 1
    for name, number in (("stream", 1), ("batch", 1), ("halves", 2), ("slope", 1)):
        await s.until(lambda p: attempt(2)(p) and running(p), name, number)
    await s.rest()
    s.claim(s.starts("p1-t1", "halves") == [1], "a finished pipeline ran again")
    s.claim(s.starts("p1-t1", "waits") == [1], "the job that waited was started twice")
    again = s.starts("p1-t1", "gone")
    s.claim(again == [1], f"a cancelled job came back: {again}")
    s.say("ends: " + ", ".join(f"{name} {job.ended}" for name, job in s.jobs.items()))


@window("W02", STEADY)
async def neighbours_of_a_killed_worker_go_on(s: Scene) -> None:
    """A worker dies; what ran there runs elsewhere, and nobody else notices."""
    await s.submit()
    await s.submit("k", ALONE)
    record = await s.until(lambda p: running(p) and complete(2)(p))
    await s.until(complete(2), "k")
    victim = s.worker_of(record)
    mine, others = _tasks(await _shown(s), victim)
    s.prove(mine and others, "all tasks run on one worker")
    s.kill(victim, revive=False)
    s.hits += 1
    before = _reads(await _shown(s), others)
    await s.until(lambda p: attempt(2)(p) and running(p))
    shown = await _shown(s)
    after = _reads(shown, others)
    s.claim(all(after[t] > before[t] for t in others), f"neighbours stood still: {before} {after}")
    places = {t: shown[t]["worker"] for t in mine}
    s.claim(victim not in places.values(), f"placed on a dead worker: {places}")
    s.cluster.process(victim).start()
    await s.rest()
    begun = {t: s.starts(t[1], t[0]) for t in (*mine, *others)}
    s.claim(all(begun[t] == [1] for t in others), f"neighbours were restarted: {begun}")
    s.claim(all(begun[t] == [1, 2] for t in mine), f"started: {begun}")
    grown = sum(after[t] - before[t] for t in others)
    s.say(f"{len(mine)} tasks moved; their {len(others)} neighbours read {grown} rows meanwhile")


Task = tuple[str, str]
"""The name of a job in the scenario, and a task."""


async def _shown(s: Scene) -> dict[Task, dict[str, Any]]:
    """Return all tasks of all jobs as the leader shows them."""
    return {
        (name, task["task"]): task
        for name in s.jobs
        for pipeline in (await s.shown(name))["pipelines"]
        for task in pipeline["tasks"]
    }


def _tasks(shown: dict[Task, dict[str, Any]], worker: str) -> tuple[list[Task], list[Task]]:
    """Return the tasks on a worker, and the others."""
    mine = [t for t, facts in shown.items() if facts["worker"] == worker]
    return mine, [t for t in shown if t not in mine]


def _reads(shown: dict[Task, dict[str, Any]], tasks: list[Task]) -> dict[Task, int]:
    return {t: int(shown[t]["read"]) for t in tasks}
