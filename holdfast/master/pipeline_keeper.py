"""Keep one pipeline: place and deploy its tasks, gather its checkpoints, commit in order."""

import asyncio
import math
import zlib
from collections.abc import Callable
from typing import Any

from holdfast.core import effects, gather
from holdfast.core.checkpoint import (
    BlobDropped,
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointLost,
    CheckpointStored,
    Completed,
    LeaderChanged,
)
from holdfast.core.commit import Committed, HooksFinished, later
from holdfast.core.completion import SourceEnded
from holdfast.core.effects import (
    CollectAcks,
    Commit,
    Deploy,
    DropBlob,
    FinishFormer,
    Listen,
    PlaceTask,
    RestartStuckTask,
    StartCheckpoint,
)
from holdfast.core.gather import CheckpointRound, StagedCommittable, TaskAck
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.machine import Event
from holdfast.core.pipeline import ACTIVE, PipelineFailed, PipelineRecord, step, wanted
from holdfast.core.task import TaskFailed
from holdfast.errors import Fenced, OutcomeUnknown, Unavailable, UserError
from holdfast.master import checkpoint_content, health
from holdfast.master.commit_loop import finish, finish_former, listen, publish
from holdfast.master.event_log import EventHistory, follow_pipeline
from holdfast.master.keeper import Keeper
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import (
    BlobBad,
    Clock,
    CommitHookRequest,
    CommitRequest,
    Incarnation,
    by_sink,
    commit_user,
)
from holdfast.master.wait import wait
from holdfast.wire.messages import Barrier, DeployTask, TaskKey


class PipelineKeeper(Keeper[PipelineRecord]):
    """The keeper of one pipeline record."""

    def __init__(
        self,
        desk: LeaderStore,
        key: str,
        state: PipelineRecord,
        revision: int,
        job: Callable[[], JobRecord],
        changed: Callable[[], None],
        stood_since: Callable[[str, TaskKey, int, float], bool],
    ) -> None:
        super().__init__(desk, key, state, revision)
        self.job = job
        self.changed = changed
        self.stood_since = stood_since
        self.gathering: CheckpointRound | None = None
        self.all_in = asyncio.Event()
        self.taken_over = False
        self.trouble = ""  # why the oldest owed commit is not made, or its listeners have not run
        self.rests = RestartBackoff(desk.ports.clock)
        # Numbers of checkpoints that this leader made complete, began to commit, and gave up.
        self.made: set[int] = set()
        self.begun: set[int] = set()
        self.condemned: set[int] = set()
        # Blobs that are gone, which the record says with its next change: not worth a write alone.
        self.dropped: set[int] = set()
        self.deaf = False  # whether nobody listens to the commit that is being made
        self.taken_s = desk.time.now()

    def decide(self, event: Event) -> PipelineRecord:
        if isinstance(event, CheckpointStored) and self.job().status is JobStatus.CANCELING:
            # The cancel came first, and nothing that was not complete by then may become visible.
            event = CheckpointFailed(event.number, "the job is being cancelled")
        new = step(self.state, event)
        if new == self.state:
            return self.state
        if isinstance(event, Committed) and self.deaf and new.commits.through == event.number:
            new = step(new, HooksFinished(event.number, new.commits.listeners))
        for gone in map(BlobDropped, sorted(self.dropped)):
            new = step(new, gone)
        return new

    def owed(self) -> tuple[effects.Effect, ...]:
        due = effects.owed(self.state) if self.taken_over else ()
        return tuple(e for e in due if not isinstance(e, DropBlob) or e.number not in self.dropped)

    def follow(self, new: PipelineRecord, event: Event) -> EventHistory:
        return follow_pipeline(self.trail, self.state, new, event, self.seen())

    def saved(self) -> None:
        self.dropped &= {c.number for c in self.state.checkpoints.kept}
        self.changed()

    @property
    def life(self) -> Incarnation:
        """Whose pipeline this is."""
        return Incarnation(self.state.job, self.state.incarnation, self.job().spec)

    @property
    def interval_s(self) -> float:
        """How often a checkpoint is due."""
        return self.state.policy.interval_s or self.desk.settings.interval_s

    def task_key(self, task: str) -> TaskKey:
        """Return a task's name in messages."""
        return TaskKey(self.state.job, self.state.incarnation, self.state.number, task)

    async def perform(self, effect: Any) -> None:
        match effect:
            case PlaceTask(task):
                await self.rests.wait(self.state, task)
                self.changed()
            case Deploy():
                await self._deploy(effect)
            case RestartStuckTask(task, attempt, place, times):
                reason = f"it stood still and did not answer {times} checkpoints in a row"
                await self.handle(TaskFailed(task, attempt, place, reason))
            case StartCheckpoint(kind):
                await self.handle(CheckpointDue(kind, self.desk.term))
            case CollectAcks():
                await self._gather(effect)
            case Commit():
                await self._commit(effect)
            case Listen():
                await self._listen(effect)
            case DropBlob(number, name):
                await self._drop(number, name)
            case FinishFormer():
                await finish_former(self, effect)

    def rested(self, task: str) -> bool:
        """Say whether a task that failed has waited as long as its job file asks for."""
        return self.rests.over(self.state, task)

    def health(self, waits: dict[str, str]) -> health.HealthReport:
        """Judge how this pipeline gets on."""
        missing = ", ".join(self.gathering.waiting) if self.gathering else ""
        ages = health.ages(self.state, self.desk.time.now(), self.taken_s)
        return health.report(self.state, ages, self.interval_s, waits, missing, self.trouble)

    async def take_over(self) -> None:
        """Begin to keep the record: nothing of it is ours to do before it says that we lead.

        Else we would send barriers for a checkpoint that a former leader gathers for.
        """
        await self.handle(LeaderChanged(self.desk.term))
        self.taken_over = True
        self.resume()
        await self.tick()

    async def tick(self) -> None:
        """Start a periodic checkpoint every interval, for as long as the pipeline is active.

        A new leader has many of them to start; each has its own moment of the first interval.
        """
        if not self.state.policy.periodic:
            return
        begun = self.state.checkpoints.next > 1
        rest_s = self.interval_s * (zlib.crc32(self.key.encode()) / 2**32 if begun else 1.0)
        while not self.closed and self.state.status is ACTIVE:
            await self.desk.ports.clock.sleep(rest_s)
            rest_s = self.interval_s
            if wanted(self.state, CheckpointKind.PERIODIC):
                await self.handle(CheckpointDue(CheckpointKind.PERIODIC, self.desk.term))

    async def acked(self, ack: TaskAck) -> None:
        """Take in a task's answer to a barrier."""
        if self.gathering is None:
            return
        taken = gather.take(self.gathering, ack, self.state.tasks)
        if isinstance(taken, str):
            await self.handle(CheckpointFailed(ack.number, taken))
            return
        self.gathering = taken
        if taken.complete:
            self.all_in.set()

    async def source_ended(self, event: SourceEnded) -> bool:
        """Record that a source is at its end; say whether the report may be confirmed.

        Where nothing had to be written, the record is proven to be ours still: a deposed leader's
        yes would make a worker stop asking the one that leads.
        """
        before = self.revision
        await self.handle(event)
        if not self.state.completion.has(event):
            return False
        if self.revision == before and not await self.confirm():
            return False
        return self.state.completion.has(event)  # it may have been taken back meanwhile

    async def _deploy(self, order: Deploy) -> None:
        """Send the order until the task reports that it runs."""
        start = checkpoint_content.FRESH
        if order.restore:
            content = await self._restored(order.restore)
            if content is None:
                return
            start = content.start(next(t for t in self.state.tasks if t.id == order.task))
        message = DeployTask(
            self.desk.term, self.task_key(order.task), order.attempt, self.job().spec,
            start.positions, self.state.commits.through, self.state.checkpoints.complete,
            start.counts, start.opened,
        )  # fmt: skip
        while True:
            self.desk.check()
            self.desk.ports.workers.send(order.place.incarnation, message)
            await self.desk.ports.clock.sleep(self.desk.settings.resend_s)

    async def _restored(self, name: str) -> checkpoint_content.Content | None:
        """Return where tasks start, or decide what a bad blob means for this pipeline."""
        own = next((c for c in self.state.checkpoints.kept if c.blob == name), None)
        try:
            stored = await self.blob_of(name)
            return (
                checkpoint_content.read_for(stored, self.state, own)
                if own
                else checkpoint_content.read(stored)
            )
        except BlobBad as error:
            if own:
                await self._lost(own.number, error)
            else:
                reason = f"The savepoint {name} that it was to start from is lost. {error}"
                await self.handle(PipelineFailed(reason))
            return None

    async def _lost(self, number: int, error: BlobBad) -> None:
        """Decide about a checkpoint that is bad.  From now on its commit does not begin.

        Only the leader that made it complete, and has not begun its commit, knows that nobody has.
        """
        untouched = number in self.made and number not in self.begun
        if untouched:
            self.condemned.add(number)
        await self.handle(CheckpointLost(number, str(error), untouched))

    async def _gather(self, order: CollectAcks) -> None:
        """Send barriers until every task has answered; store the blob; or give the number up."""
        clock, settings = self.desk.ports.clock, self.desk.settings
        pending = self.state.checkpoints.pending
        assert pending
        self.gathering, self.all_in = gather.begin(pending, self.state.tasks), asyncio.Event()
        timeout_s = self.state.policy.timeout_s or settings.timeout_s
        began_s, rest_s = clock.now(), settings.resend_s / 5
        while not self.gathering.complete:
            if clock.now() >= began_s + timeout_s:
                missing = ", ".join(self.gathering.waiting)
                reason = f"no answer from {missing} within {timeout_s:g} s"
                await self.handle(CheckpointFailed(order.number, reason, self._silent(began_s)))
                return
            self._send_barriers(order)
            await wait(clock, self.all_in, rest_s)
            # A barrier may be lost; but most tasks that have not answered are in a slice.
            rest_s = min(2 * rest_s, settings.resend_s)
        content = checkpoint_content.write(self.state, self.gathering)
        name = checkpoint_content.blob_name(self.state, order.number, self.desk.term)
        try:
            ports = self.desk.ports
            await ports.durable("blob.put", lambda: ports.blobs.put(name, content))
        except (Unavailable, OutcomeUnknown) as error:
            reason = f"its blob was not stored: {error}"
            await self.handle(CheckpointFailed(order.number, reason, silent=()))
            return
        try:
            self.desk.check()
        except Fenced:
            await self.desk.take_back(name)
            raise
        self.made.add(order.number)
        totals = gather.totals(self.gathering.acks)
        stored = CheckpointStored(
            order.number, name, clock.date(), totals, len(content), self.desk.time.now()
        )
        await self.handle(stored)

    def _silent(self, since_s: float) -> tuple[tuple[str, int], ...]:
        """Return the attempts that do not answer and stand still.

        One that gets on is busy with a long slice: to start it anew would make it later still.
        """
        assert self.gathering
        return tuple(
            (t.id, t.attempt)
            for t in self.state.tasks
            if t.id in self.gathering.waiting
            and t.place
            and self.stood_since(t.place.incarnation, self.task_key(t.id), t.attempt, since_s)
        )

    def _send_barriers(self, order: CollectAcks) -> None:
        self.desk.check()
        assert self.gathering
        for task in self.state.tasks:
            if task.id in self.gathering.waiting and task.place:
                barrier = Barrier(
                    self.desk.term, self.task_key(task.id), task.attempt, order.number, order.kind,
                    self.state.commits.through, self.state.checkpoints.complete,
                )  # fmt: skip
                self.desk.ports.workers.send(task.place.incarnation, barrier)

    async def _commit(self, effect: Commit) -> None:
        """Publish a complete checkpoint, sink by sink; repeat until each has it."""
        completed = effect.completed
        try:
            content = checkpoint_content.read_for(
                await self.blob_of(completed.blob), self.state, completed
            )
        except BlobBad as error:
            await self._lost(completed.number, error)
            return
        if completed.number in self.condemned:
            return
        self.begun.add(completed.number)
        try:
            if completed.kind is CheckpointKind.FINAL:
                rows = {sink: content.rows(sink) for sink in self.state.sinks}
                await finish(self.desk, self.life, rows, self.failed)
            await self._publish(completed, content)
            self.deaf = not await self.listens()
        except UserError as error:
            await self.handle(PipelineFailed(f"Commit {completed.number} failed. {error}"))
            return
        self.trouble = ""
        await self.handle(Committed(completed.number, content.watermark))
        self.made.discard(completed.number)
        self.begun.discard(completed.number)

    async def listens(self) -> bool:
        """Say whether anybody listens to commits, or whether that is not known now."""
        try:
            return await self.desk.ports.tables.listens(self.life, self.state.sinks)
        except (Unavailable, OutcomeUnknown, UserError):
            return True  # then it is found out, and said, by whoever tells them

    async def _publish(self, completed: Completed, content: checkpoint_content.Content) -> None:
        for sink, staged in by_sink(content.to_commit(completed.previous)).items():
            user = commit_user(self.state.job, self.state.incarnation, self.state.number, sink)
            mark = later(self.state.commits.watermark, content.watermark)
            order = CommitRequest(self.life, user, completed.number, sink, staged, mark)
            self.trouble = f"sink {sink} has not answered"
            await publish(self.desk, order, self.failed)

    async def _listen(self, effect: Listen) -> None:
        """Have listeners hear of a commit.  It stays, whatever becomes of them."""
        # None is dropped before its listeners have run.
        done = next(c for c in self.state.checkpoints.kept if c.number == effect.number)
        order = CommitHookRequest(
            self.life,
            commit_user(self.state.job, self.state.incarnation, self.state.number, ""),
            done.number, done.kind, self.state.sinks, self.state.commits.watermark, effect.state,
        )  # fmt: skip
        try:
            heard = await listen(self.desk, order, lambda: self._shown(done), self.failed)
        except (UserError, BlobBad) as error:
            lost = "Its checkpoint is lost. " if isinstance(error, BlobBad) else ""
            said = f"Commit {done.number} is visible, but its listeners cannot run. {lost}{error}"
            await self.handle(PipelineFailed(said))
            return
        self.trouble = ""
        await self.handle(HooksFinished(done.number, heard))

    async def _shown(self, done: Completed) -> tuple[StagedCommittable, ...]:
        """Return what the commit of a checkpoint has made visible."""
        content = checkpoint_content.read_for(await self.blob_of(done.blob), self.state, done)
        return content.to_commit(done.previous)

    def failed(self, trouble: str) -> None:
        """Note why listeners have to be asked again."""
        self.trouble = trouble

    async def _drop(self, number: int, name: str) -> None:
        await self.desk.drop(name)
        self.dropped.add(number)

    async def blob_of(self, name: str) -> bytes:
        """Read a blob, waiting out an outage; only a bad one is an error."""
        while True:
            self.desk.check()
            try:
                return await self.desk.ports.blobs.get(name)
            except Unavailable:
                await self.desk.ports.clock.sleep(self.desk.settings.retry_s)


class RestartBackoff:
    """The rests of one pipeline's tasks.  A new leader waits anew: rather longer than shorter."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_s: dict[tuple[str, int], float] = {}

    def over(self, pipeline: PipelineRecord, task: str) -> bool:
        """Say whether a task has waited long enough; one whose rest has not begun has not."""
        if not _pause_s(pipeline, task):
            return True
        return self._clock.now() >= self._until_s.get(_try(pipeline, task), math.inf)

    async def wait(self, pipeline: PipelineRecord, task: str) -> None:
        """Wait before the next try."""
        clock, pause_s = self._clock, _pause_s(pipeline, task)
        if pause_s:
            until_s = self._until_s.setdefault(_try(pipeline, task), clock.now() + pause_s)
            await clock.sleep(max(0.0, until_s - clock.now()))


def _pause_s(pipeline: PipelineRecord, task: str) -> float:
    last = pipeline.failures[-1] if pipeline.failures else None
    return pipeline.policy.retry_interval_s if last and last.task == task else 0.0


def _try(pipeline: PipelineRecord, task: str) -> tuple[str, int]:
    return task, next(t.attempt for t in pipeline.tasks if t.id == task)
