"""Mutants of checkpoints and commits: the filter, numbers, staged files, watermarks, listeners."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.core import checkpoint, commit, effects, saved_state
from holdfast.core.checkpoint import Checkpoints, Completed, LeaderChanged
from holdfast.core.commit import Commits, CommitStatus, Committed, HooksFinished
from holdfast.core.effects import Commit, DropBlob
from holdfast.core.gather import CheckpointRound, TaskAck
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.master import checkpoint_content, commit_loop
from holdfast.master.checkpoint_content import CheckpointContent
from holdfast.master.commit_loop import commit_user
from holdfast.master.leader_store import LeaderStore
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.ports import CommitRequest
from holdfast.wire.messages import Barrier
from tests.sim.engine.faults import Faults
from tests.sim.engine.plan import Plan, Wish
from tests.sim.engine.stages import bounded, until
from tests.sim.engine.worker import Running, SimWorker
from tests.sim.engine.world import WORKERS, JobSpec, World
from tests.sim.mutants.planting import crash, mutant, scene, seeds, swapped

LONG = JobSpec("j", ((("a",), ("b",)),), rows=30)


def _commit_wakes_in_between() -> Plan:
    """A paused leader's commit lands while its successor's is on its way."""
    crashes = {("before:table.commit", 1): "pause:100", ("before:table.commit", 2): "pause:1"}
    return replace(bounded(), crashes=crashes, script=_wake_the_first)


async def _wake_the_first(world: World) -> None:
    await until(world, lambda w: w.hits.get("before:table.commit", 0) >= 2)
    first = next(e for e in world.history.of("fault") if e.get("count") == 1)
    name, _, start = first["process"].partition("#")
    world.loop.resume((name, int(start)))


def _table_is_busy() -> Plan:
    """Another writer takes every version of the table: commits wait, checkpoints go on."""
    return Plan(jobs=(LONG,), faults=Faults(foreign_commit=1.0), faulty_s=12.0)


def _blobs_fail() -> Plan:
    """Every third checkpoint cannot be stored."""
    return Plan(jobs=(LONG,), faults=Faults(blob_error=0.3))


def _failing_tasks() -> Plan:
    """Tasks fail now and then, and some checkpoints too."""
    return Plan(jobs=(LONG,), faults=Faults(task_failure=0.03, blob_error=0.3))


def _late_messages() -> Plan:
    """Messages come late and twice."""
    faults = Faults(message_slow_s=4.0, message_twice=0.3)
    return Plan(jobs=(LONG,), faults=faults)


def _deaf_listeners() -> Plan:
    """Listeners do not answer for long, while checkpoints go on."""
    return Plan(jobs=(LONG,), script=_go_deaf)


async def _go_deaf(world: World) -> None:
    await until(world, lambda w: bool(w.tables.heard))
    world.tables.deaf = 8


def _resumed() -> Plan:
    """A job goes on from a savepoint, and loses its workers after its own first checkpoints."""
    wishes = (Wish("j", 3.0, "savepoint"),)
    return Plan(jobs=(LONG,), lives=2, wishes=wishes, script=_kill_workers_of_the_second_life)


async def _kill_workers_of_the_second_life(world: World) -> None:
    begun = {"did": "submitted", "incarnation": "i2"}
    await until(world, lambda w: any(begun.items() <= e.items() for e in w.history.of("client")))
    await asyncio.sleep(4)
    for name in WORKERS:
        world.kill(name)


@mutant("a commit is repeated after a takeover without asking the table", "I44 I45 I46 I48 I52",
        crash("after:table.commit"))  # fmt: skip
def commit_without_filter() -> Iterator[None]:
    async def publish(
        desk: LeaderStore, order: CommitRequest, failed: Callable[[str], None]
    ) -> None:
        while True:
            desk.check()
            try:
                table = await desk.ports.tables.read(order)
                attempt = partial(desk.ports.tables.publish, table.version, order)
                if await desk.ports.durable("table.commit", attempt):
                    return
            except (Unavailable, OutcomeUnknown):
                await desk.ports.clock.sleep(desk.settings.retry_s)

    with swapped(commit_loop, "publish", publish):
        yield


@mutant("the table is asked once, and the commit then repeated on conflict", "I44 I45 I48",
        scene(_commit_wakes_in_between))  # fmt: skip
def filter_outside_the_loop() -> Iterator[None]:
    async def publish(
        desk: LeaderStore, order: CommitRequest, failed: Callable[[str], None]
    ) -> None:
        table = await desk.ports.tables.read(order)
        while table.committed < order.number:
            desk.check()
            try:
                attempt = partial(desk.ports.tables.publish, table.version, order)
                if await desk.ports.durable("table.commit", attempt):
                    return
                now = await desk.ports.tables.read(order)
                table = replace(table, version=now.version)
            except (Unavailable, OutcomeUnknown):
                await desk.ports.clock.sleep(desk.settings.retry_s)

    with swapped(commit_loop, "publish", publish):
        yield


@mutant("PIP-30: the watermark of a commit is the greatest of its writers'", "I50", seeds(30))
def watermark_is_the_greatest() -> Iterator[None]:
    def greatest(acks: tuple[TaskAck, ...]) -> int | None:
        return max((a.watermark for a in acks if a.watermark is not None), default=None)

    with swapped(checkpoint_content, "watermark", greatest):
        yield


@mutant("PIP-30: what a failed attempt staged is committed with the next checkpoint",
        "I28 I44 I49", scene(_failing_tasks))  # fmt: skip
def staged_files_of_failed_attempts_kept() -> Iterator[None]:
    heard, write = PipelineKeeper.acked, checkpoint_content.write
    kept: dict[tuple[str, str, int], dict[str, Any]] = {}

    async def acked(self: PipelineKeeper, ack: TaskAck) -> None:
        mine = kept.setdefault((self.state.job, self.state.incarnation, self.state.number), {})
        mine.update({str(s.content): s for s in ack.staged})
        await heard(self, ack)

    def with_kept(pipeline: PipelineRecord, gathering: CheckpointRound) -> bytes:
        mine = kept.get((pipeline.job, pipeline.incarnation, pipeline.number), {})
        first, *others = gathering.acks
        named = {str(s.content) for a in gathering.acks for s in a.staged}
        more = tuple(s for name, s in sorted(mine.items()) if name not in named)
        acks = (replace(first, staged=(*first.staged, *more)), *others)
        return write(pipeline, replace(gathering, acks=acks))

    with swapped(PipelineKeeper, "acked", acked), swapped(checkpoint_content, "write", with_kept):
        yield


@mutant("PIP-30: a writer that has not heard of a commit reports its files again, and they are"
        " committed again", "I8 I44 I48 I49", seeds(60))  # fmt: skip
def files_carried_forward() -> Iterator[None]:
    def everything(self: CheckpointContent, previous: int) -> Any:
        return filtered(self, 0)

    filtered = CheckpointContent.to_commit
    with _told_complete(lambda barrier: 0), swapped(CheckpointContent, "to_commit", everything):
        yield


@mutant("answers say again whatever is not visible: they grow while commits wait", "I35",
        scene(_table_is_busy))  # fmt: skip
def answers_that_grow() -> Iterator[None]:
    def stage(self: SimWorker, running: Running, number: int) -> None:
        again = set(running.answered.staged if running.answered else ()) - set(running.carried)
        running.carried = [*again, *running.carried]
        real(self, running, number)

    real = SimWorker._stage
    with swapped(SimWorker, "_stage", stage):
        yield


@mutant("a barrier confirms a checkpoint that was given up", "I32 I43", scene(_blobs_fail))
def every_number_confirmed() -> Iterator[None]:
    with _told_complete(lambda barrier: barrier.number - 1):
        yield


@contextmanager
def _told_complete(complete: Callable[[Barrier], int]) -> Iterator[None]:
    """Have barriers name another checkpoint as the latest complete one."""

    def barrier(self: SimWorker, message: Barrier) -> None:
        real(self, replace(message, complete=complete(message)))

    real = SimWorker._barrier
    with swapped(SimWorker, "_barrier", barrier):
        yield


@mutant("PIP-30: a writer throws away what it staged for a checkpoint that failed", "I32 I35 I43",
        scene(_blobs_fail))  # fmt: skip
def aborted_means_discarded() -> Iterator[None]:
    stage = SimWorker._stage

    def anew(self: SimWorker, running: Running, number: int) -> None:
        running.carried = []
        stage(self, running, number)

    with swapped(SimWorker, "_stage", anew):
        yield


@mutant("PIP-30: listeners do not run for a commit that is found already done", "I53",
        crash("after:table.commit"), seeds(100))  # fmt: skip
def listeners_skipped_for_commits_found() -> Iterator[None]:
    make = commit_loop.commit

    async def quick(self: PipelineKeeper, effect: Commit) -> None:
        content = checkpoint_content.read(await self.blob_of(effect.completed.blob))
        state, number = self.state, effect.completed.number
        for sink in {s.sink for s in content.staged}:
            user = commit_user(state.job, state.incarnation, state.number, sink)
            order = CommitRequest(self.life, user, number, sink, (), None)
            table = await self.desk.ports.tables.read(order)
            if table.committed >= number:
                await self.handle(Committed(number, content.watermark))
                await self.handle(HooksFinished(number, state.commits.listeners))
                return
        await make(self, effect)

    with swapped(commit_loop, "commit", quick):
        yield


@mutant("listeners hear again of what earlier commits have shown", "I53", seeds(60))
def listeners_hear_of_everything() -> Iterator[None]:
    async def everything(self: PipelineKeeper, done: Completed) -> Any:
        return checkpoint_content.read(await self.blob_of(done.blob)).to_commit(0)

    with _told_complete(lambda barrier: 0), swapped(commit_loop, "_shown", everything):
        yield


@mutant("a checkpoint is removed though its listeners have not run", "I33", scene(_deaf_listeners))
def blob_dropped_before_its_listeners() -> Iterator[None]:
    droppable = effects._droppable

    def eager(pipeline: PipelineRecord) -> list[Any]:
        commits = replace(pipeline.commits, listened=pipeline.commits.through)
        return droppable(replace(pipeline, commits=commits))

    with swapped(effects, "_droppable", eager):
        yield


@mutant("what listeners remember does not go with a savepoint", "I53", scene(_resumed))
def listeners_forget_at_a_savepoint() -> Iterator[None]:
    part = saved_state._part

    def forgetful(pipeline: PipelineRecord) -> Any:
        return replace(part(pipeline), listeners="")

    with swapped(saved_state, "_part", forgetful):
        yield


@mutant("a late barrier is answered after a later one", "I32 I34 I43", scene(_late_messages, 60))
def late_barrier_accepted() -> Iterator[None]:
    hear = SimWorker._barrier

    def deaf(self: SimWorker, barrier: Barrier) -> None:
        running = self.tasks.get(barrier.key)
        if running and running.answered and running.answered.number > barrier.number:
            running.answered = None
        hear(self, barrier)

    with swapped(SimWorker, "_barrier", deaf):
        yield


@mutant("a new leader uses the number of the checkpoint that its predecessor began", "I26",
        crash("after:pipeline.CheckpointDue"))  # fmt: skip
def checkpoint_number_used_again() -> Iterator[None]:
    step = checkpoint.step

    def back(old: Checkpoints, event: object) -> Checkpoints:
        new = step(old, event)
        again = isinstance(event, LeaderChanged) and old.pending and not new.pending
        return replace(new, next=old.pending.number) if again and old.pending else new

    with swapped(checkpoint, "step", back):
        yield


@mutant("a new leader completes the checkpoint that its predecessor began", "I26 I28",
        crash("before:blob.put"))  # fmt: skip
def checkpoint_of_a_former_leader_completed() -> Iterator[None]:
    step = checkpoint.step

    def keep(old: Checkpoints, event: object) -> Checkpoints:
        return old if isinstance(event, LeaderChanged) else step(old, event)

    with swapped(checkpoint, "step", keep):
        yield


@mutant("a checkpoint is removed though its commit is still owed", "I33", scene(_table_is_busy))
def blob_dropped_before_its_commit() -> Iterator[None]:
    def eager(pipeline: PipelineRecord) -> list[Any]:
        return [DropBlob(c.number, c.blob) for c in pipeline.checkpoints.kept[:-1]]

    with swapped(effects, "_droppable", eager):
        yield


@mutant("of several checkpoints that wait for their commit only the last is committed",
        "I13 I32 I43 I51 I55", scene(_table_is_busy))  # fmt: skip
def only_the_newest_is_committed() -> Iterator[None]:
    step = commit.step

    def newest(pipeline: PipelineRecord) -> list[Any]:
        owed = commits(pipeline)
        waiting = pipeline.commits.waiting
        return [Commit(waiting[-1])] if owed and isinstance(owed[0], Commit) else owed

    def settle(old: Commits, event: object) -> Commits:
        numbers = [c.number for c in old.waiting]
        if not isinstance(event, Committed) or event.number not in numbers:
            return step(old, event)
        waiting = tuple(c for c in old.waiting if c.number > event.number)
        listening = old.status is CommitStatus.LISTENING
        return old if listening else replace(old, waiting=waiting, through=event.number)

    commits = effects._commits
    with swapped(effects, "_commits", newest), swapped(commit, "step", settle):
        yield


@mutant("an attempt starts from nothing though there is a checkpoint", "I16 I32 I44", seeds(60))
def restore_from_nothing() -> Iterator[None]:
    def nothing(pipeline: PipelineRecord) -> str | None:
        return pipeline.restore

    with swapped(effects, "restore_from", nothing):
        yield


@mutant(
    "#12387: a life that began from a savepoint goes back to it, past its own checkpoints",
    "I16 I32 I44",
    scene(_resumed),
)
def back_to_the_savepoint() -> Iterator[None]:
    latest = effects.restore_from

    def declared(pipeline: PipelineRecord) -> str | None:
        return pipeline.restore or latest(pipeline)

    with swapped(effects, "restore_from", declared):
        yield


@mutant(
    "#12385: a life that is to begin from a savepoint begins from nothing",
    "I16 I32 I44",
    scene(_resumed),
)
def savepoint_not_used() -> Iterator[None]:
    def own(pipeline: PipelineRecord) -> str | None:
        return pipeline.checkpoints.latest.blob if pipeline.checkpoints.latest else None

    with swapped(effects, "restore_from", own):
        yield
