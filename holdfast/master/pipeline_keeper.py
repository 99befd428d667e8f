"""Keep one pipeline: place and deploy its tasks, gather its checkpoints, commit in order."""

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.core import effects, gather
from holdfast.core.checkpoint import (
    BlobDropped,
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointLost,
    CheckpointStored,
    LeaderChanged,
)
from holdfast.core.commit import Committed, HooksFinished
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
from holdfast.core.gather import CheckpointRound, TaskAck
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.machine import Event
from holdfast.core.pipeline import ACTIVE, PipelineFailed, PipelineRecord, step, wanted
from holdfast.core.task import TaskFailed
from holdfast.errors import Fenced, OutcomeUnknown, Unavailable, UserError
from holdfast.master import checkpoint_content, commit_loop, health
from holdfast.master.event_log import EventHistory, Moment, trail_key
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import (
    BlobBad,
    Incarnation,
)
from holdfast.master.records import encode
from holdfast.master.wait import RestartBackoff, wait
from holdfast.store.contract import Delete, Put
from holdfast.wire.messages import Barrier, DeployTask, TaskKey

if TYPE_CHECKING:
    from holdfast.master.job_keeper import JobKeeper

S = TypeVar("S", JobRecord, PipelineRecord)


class Keeper(Generic[S]):
    """The loop around one record.  One coroutine at a time changes it."""

    state: S

    def __init__(self, desk: LeaderStore, key: str, state: S, revision: int) -> None:
        self.desk = desk
        self.key = key
        self.state = state
        self.revision = revision
        self._trail: EventHistory | None = None
        self.trailed = False  # whether the store has a trail of this record
        self.closed = False
        self.turn = asyncio.Lock()
        self._proof: asyncio.Task[bool | None] | None = None
        self._doing: dict[object, asyncio.Task[None]] = {}
        self._beside: set[asyncio.Task[None]] = set()

    def decide(self, event: Event) -> S:
        """Return the state after an event; the core's `step`."""
        raise NotImplementedError

    def owed(self) -> Iterable[object]:
        """Return what the state requires; the core's `owed`."""
        raise NotImplementedError

    async def perform(self, effect: Any) -> None:
        """Do one effect.  It may be cancelled when it is no longer owed."""
        raise NotImplementedError

    @property
    def trail(self) -> EventHistory:
        """What is known to have happened; built when it is asked for, there are thousands."""
        if self._trail is None:
            self._trail = EventHistory.begun(self.state, self.seen())
        return self._trail

    @trail.setter
    def trail(self, trail: EventHistory) -> None:
        self._trail = trail

    def follow(self, new: S, event: Event) -> EventHistory:
        """Return the trail of the record after this change."""
        raise NotImplementedError

    def take_up(self, told: Mapping[str, bytes]) -> None:
        """Take up the trail that a former leader has left in the store."""
        key = trail_key(self.key)
        self.trailed = key in told
        # What was never written down has no known term.
        self.trail = EventHistory.decoded(told.get(key), key) or EventHistory.begun(
            self.state, replace(self.seen(), term=0)
        )

    def seen(self) -> Moment:
        """Return this moment, for the trail."""
        clock = self.desk.ports.clock
        return Moment(clock.date(), clock.now(), self.desk.number, self.desk.numbers)

    def beside(self, new: S) -> list[Put | Delete]:
        """Return what is to be written in the same commit as a new state."""
        return []

    def saved(self) -> None:
        """Note that the state has changed durably."""

    async def handle(self, event: Event) -> None:
        """Take in an event: decide, save, then start what is owed."""
        async with self.turn:
            if self.closed:
                return
            new: S = self.decide(event)
            if new != self.state:
                # Raises Fenced if a later term has written; then nothing below may run.
                label = f"{new.record_name}.{event.label}"
                trail = self.follow(new, event)
                grown: list[Put] = trail.grown(self.trail, self.key)
                beside: list[Put | Delete] = [*self.beside(new), *grown]
                self.revision = await self.desk.save(
                    self.key, encode(new), self.revision, label, beside
                )
                self.state, self.trail = new, trail
                self.trailed = self.trailed or bool(grown)
                self.saved()
        self.resume()

    async def confirm(self) -> bool:
        """Prove that at some moment from now on the record was still ours, as we know it.

        False if it is no longer kept: then nothing is proven, and there is nothing to say.

        In turn: a write of our own in between would look like somebody else's, and end the term.
        All who ask before it begins share one proof: thousands may.
        """
        if self._proof is None:
            self._proof = asyncio.ensure_future(self._prove())
            self._proof.add_done_callback(self.desk.watch)
        proven = await asyncio.shield(self._proof)
        if proven is None:
            raise Fenced(f"It cannot be proven any more that {self.key} is ours.")
        return proven

    async def _prove(self) -> bool | None:
        """Prove it for all who ask; None if this term is over, whether or not they still wait."""
        async with self.turn:
            self._proof = None
            try:
                self.desk.check()
                if self.closed:
                    return False
                await self.desk.confirm(self.key, self.revision)
            except Fenced:
                self.desk.abandon()
                return None
            return True

    def resume(self) -> None:
        """Start what is owed and not yet under way; give up what is no longer owed."""
        if self.closed:
            return
        due = list(self.owed())
        for effect in [e for e in self._doing if e not in due]:
            task = self._doing.pop(effect)
            if task is not asyncio.current_task():  # it is just ending, having done its work
                task.cancel()
        for effect in due:
            if effect not in self._doing:
                task = asyncio.ensure_future(self._guarded(effect))
                task.add_done_callback(self.desk.watch)
                self._doing[effect] = task

    def close(self) -> None:
        """Stop for good: the term is over, or the record is gone."""
        self.closed = True
        for task in (*self._doing.values(), *self._beside):
            if task is not asyncio.current_task():
                task.cancel()
        self._doing.clear()

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something of this keeper's next to its effects, such as its timer."""
        task = asyncio.ensure_future(self._until_fenced(work))
        self._beside.add(task)
        task.add_done_callback(self.desk.watch)
        task.add_done_callback(self._beside.discard)

    async def _guarded(self, effect: object) -> None:
        await self._until_fenced(lambda: self.perform(effect))
        # Done but still owed means that it must be done again; `resume` decides.
        if self._doing.get(effect) is asyncio.current_task():
            del self._doing[effect]

    async def _until_fenced(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Fenced:
            self.desk.abandon()


class PipelineKeeper(Keeper[PipelineRecord]):
    """The keeper of one pipeline record."""

    def __init__(
        self,
        desk: LeaderStore,
        key: str,
        state: PipelineRecord,
        revision: int,
        job: "JobKeeper",
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
        self.trouble = ""  # why the oldest owed commit is missing, or its listeners have not run
        self.rests = RestartBackoff(desk.ports.clock)
        # Numbers of checkpoints that this leader completed, began to commit, and gave up.
        self.made: set[int] = set()
        self.begun: set[int] = set()
        self.condemned: set[int] = set()
        # Blobs that are gone, which the record says with its next change: not worth a write alone.
        self.dropped: set[int] = set()
        self.deaf = False  # whether the commit under way has no listeners
        self.taken_s = desk.time.now()

    def decide(self, event: Event) -> PipelineRecord:
        if isinstance(event, CheckpointStored) and self.job.state.status is JobStatus.CANCELING:
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
        return self.trail.after_pipeline(self.state, new, event, self.seen())

    def saved(self) -> None:
        self.dropped &= {c.number for c in self.state.checkpoints.kept}
        self.changed()

    @property
    def life(self) -> Incarnation:
        """Whose pipeline this is."""
        return Incarnation(self.state.job, self.state.incarnation, self.job.state.spec)

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
                await commit_loop.commit(self, effect)
            case Listen():
                await commit_loop.run_hooks(self, effect)
            case DropBlob(number, name):
                await self._drop(number, name)
            case FinishFormer():
                await commit_loop.finish_former(self, effect)

    def rested(self, task: str) -> bool:
        """Say whether a task that failed has waited as long as its job file asks for."""
        return self.rests.over(self.state, task)

    def health(self, waits: dict[str, str]) -> health.HealthReport:
        """Report this pipeline's health."""
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
        if ack.staged and (why := await self._refusal(ack)):
            await self.handle(TaskFailed(ack.task, ack.attempt, ack.place, why))
            return
        if self.gathering is None:
            return  # nobody asks for it, or no longer
        taken = gather.take(self.gathering, ack, self.state.tasks)
        if isinstance(taken, str):
            await self.handle(CheckpointFailed(ack.number, taken))
            return
        self.gathering = taken
        if not taken.waiting:
            self.all_in.set()

    async def _refusal(self, ack: TaskAck) -> str:
        """Return why what a task says it has staged is not taken; nothing if it is."""
        try:
            await self.desk.ports.tables.admit(self.life, ack.staged)
        except UserError as error:
            about = f"task {ack.task} of job {self.state.job} to checkpoint {ack.number}"
            return f"The answer of {about} is refused. {error}"
        except (Unavailable, OutcomeUnknown):
            pass  # the sinks cannot be built now; the commit asks again, and says so
        return ""

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
            self.desk.term, self.task_key(order.task), order.attempt, self.job.state.spec,
            start.positions, self.state.checkpoints.complete,
            start.counts, start.opened,
        )  # fmt: skip
        while True:
            self.desk.check()
            self.desk.ports.workers.send(order.place.incarnation, message)
            await self.desk.ports.clock.sleep(self.desk.settings.resend_s)

    async def _restored(self, name: str) -> checkpoint_content.CheckpointContent | None:
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
                await self.lost(own.number, error)
            else:
                reason = f"The savepoint {name} that it was to start from is lost. {error}"
                await self.handle(PipelineFailed(reason))
            return None

    async def lost(self, number: int, error: BlobBad) -> None:
        """Decide about a checkpoint that is bad.  From now on its commit does not begin.

        Only the leader that completed it, and has not begun its commit, knows that none has.
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
        while self.gathering.waiting:
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
            await ports.durable("blob.put", partial(ports.blobs.put, name, content))
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

        One that makes progress is busy with a long slice: a restart would make it later still.
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
                    self.desk.term, self.task_key(task.id), task.attempt, order.number,
                    self.state.commits.through, self.state.checkpoints.complete,
                )  # fmt: skip
                self.desk.ports.workers.send(task.place.incarnation, barrier)

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
