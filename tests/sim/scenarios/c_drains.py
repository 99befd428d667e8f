"""Group C, too: workers that are drained, or told to end."""

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.pipeline import PipelineRecord
from tests.sim.engine.world import WORKERS, JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import worker_of
from tests.sim.scenarios.scene import Scene, window

LONG = JobSpec("j", rows=24)
WIDE = JobSpec("j", ((("a",), ("b",), ("c",)),), rows=24)


def on(s: Scene, worker: str, pipeline: PipelineRecord | None = None) -> list[str]:
    """Return the tasks that are placed on a worker."""
    tasks = (pipeline or s.pipeline()).tasks
    return [t.id for t in tasks if t.place and t.place.worker == worker]


def leaves(pipeline: PipelineRecord) -> bool:
    """A task is on its way to another worker."""
    return any(t.to for t in pipeline.tasks)


async def drain(s: Scene, worker: str, *, drained: bool = True) -> None:
    """Have a worker drained, or no more."""
    said = await s.ask(lambda leader: leader.drain(worker, drained=drained))
    s.prove(not said, f"the order was refused: {said}")


def nothing_failed(s: Scene) -> None:
    """Claim that no attempt failed, none was lost, no checkpoint failed and no retry was used."""
    seen = s.records(PipelineRecord)
    last = s.pipeline()
    s.claim(not last.failures, f"failures: {[f.reason for f in last.failures]}")
    s.claim(not last.retries, f"{last.retries} retries were used")
    restarts = {t.id: t.restarts for p in seen for t in p.tasks if t.restarts}
    s.claim(not restarts, f"restarts: {restarts}")
    failed = [p.checkpoints.last_failure for p in seen if p.checkpoints.failed_in_a_row]
    s.claim(not failed, f"checkpoints failed: {failed}")


@window("C23", WIDE)
async def drained_at_work(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    theirs, before_s = on(s, name), s.now
    await drain(s, name)
    await s.saw(moments.pipeline(lambda p: not on(s, name, p)))
    s.claim(s.now - before_s < 3.0, "it waited for more than a checkpoint of its own")
    last = s.pipeline()
    latest = last.checkpoints.latest
    s.prove(
        latest is not None and latest.kind is CheckpointKind.PERIODIC, "no checkpoint was taken"
    )
    moved = {t.id: t.moves for t in last.tasks}
    s.claim(all((moved[t] == 1) == (t in theirs) for t in moved), f"moves: {moved}")
    await s.rest()
    s.ends("FINISHED")
    nothing_failed(s)


@window("C23", LONG, lives=2)
async def drained_is_remembered(s: Scene) -> None:
    """A drain outlives the worker's process and a leader, and ends with its undoing."""
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    await drain(s, name)
    await s.saw(moments.pipeline(lambda p: not on(s, name, p)))
    s.kill_leader()
    s.reboot(name)
    await s.saw(moments.pipeline(lambda p: p.incarnation == "i2" and moments.running(p)))
    s.claim(not on(s, name), "a drained worker got a task")
    await drain(s, name, drained=False)
    for other in WORKERS:
        if other != name:
            await drain(s, other)
    await s.saw(moments.pipeline(lambda p: all(t.place and t.place.worker == name
                                               for t in p.tasks)))  # fmt: skip
    await s.rest()
    s.ends("FINISHED")


@window("C24", LONG)
async def leader_dies_as_tasks_leave(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    s.arm("after:pipeline.TaskMoves", 1, "kill")
    await s.ask(lambda leader: leader.drain(name, drained=True))
    await s.saw(moments.pipeline(lambda p: not on(s, name, p)))
    await s.rest()
    s.takeovers(1)
    s.ends("FINISHED")
    s.claim(max(t.moves for t in s.pipeline().tasks) <= 1, "handed over twice")
    s.claim(not s.pipeline().retries, "a retry was used")
    s.claim(not any(t.restarts for t in s.pipeline().tasks), "a task was restarted")


@window("C24", LONG)
async def leader_dies_with_the_checkpoint(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    await drain(s, name)
    await s.kills_leader(moments.pipeline(leaves))
    await s.saw(moments.pipeline(lambda p: not on(s, name, p)))
    await s.rest()
    s.takeovers(1)
    s.ends("FINISHED")
    s.claim(not any(t.restarts for t in s.pipeline().tasks), "a task was restarted")


@window("C25", LONG)
async def next_worker_dies(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name, killed = worker_of(s), []

    def strike(event: object) -> None:
        to = next(t.to for t in s.pipeline().tasks if t.to)
        killed.append(to.worker)
        s.kill(to.worker)

    await drain(s, name)
    await s.saw(moments.pipeline(leaves), strike)
    await s.saw(moments.pipeline(lambda p: not on(s, name, p)))
    await s.rest()
    s.prove(bool(killed) and killed[0] != name, "it was to stay where it is")
    s.ends("FINISHED")
    s.claim(not s.pipeline().retries, "a retry was used")


@window("C26", WIDE)
async def told_to_end(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    s.world.workers[name].leave()
    left = await s.saw(moments.event("departed"))
    s.claim(not on(s, name), "it ended with tasks on it")
    s.prove(left["worker"].startswith(name), "another one ended")
    await s.rest()
    s.ends("FINISHED")
    nothing_failed(s)


@window("C26", LONG)
async def told_to_end_and_nobody_has_room(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    for other in WORKERS:
        if other != name:
            await drain(s, other)
    await s.saw(moments.pipeline(lambda p: all(t.place and t.place.worker == name
                                               for t in p.tasks)))  # fmt: skip
    s.world.workers[name].leave()
    await s.saw(moments.event("departed"))
    for other in WORKERS:
        if other != name:
            await drain(s, other, drained=False)
    await s.rest()
    s.ends("FINISHED")
    s.claim(not s.pipeline().retries, "a retry was used")


@window("C27", LONG, slots=1)
async def nobody_has_room(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = worker_of(s)
    s.prove(len(on(s, name)) == 1, "there is room")
    await drain(s, name)
    await s.until(lambda: bool(s.leader().drains.stays))
    said = " ".join(s.leader().drains.stays.values())
    s.claim("no other worker has room" in said and name in said, f"it says: {said}")
    await s.saw(moments.pipeline(moments.complete(4)))
    s.claim(on(s, name) == ["p1t1"], "it does not run there any more")
    await drain(s, name, drained=False)
    await s.rest()
    s.ends("FINISHED")
    nothing_failed(s)
    s.untouched()
