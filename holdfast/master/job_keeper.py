"""Keep one job: watch its pipelines, pass on what its user wants, and clean up when it is over."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from holdfast.core.job import (
    TERMINAL,
    AskAbandon,
    AskSavepoint,
    AskStop,
    CleanUp,
    DropSavepoint,
    Effect,
    JobRecord,
    JobStatus,
    PipelinesChanged,
    owed,
    step,
)
from holdfast.core.machine import Event
from holdfast.core.pipeline import (
    ACTIVE,
    AbandonRequested,
    PipelineRecord,
    SavepointDropped,
    SavepointRequested,
    StopRequested,
)
from holdfast.core.placement import Wanted
from holdfast.core.task import TaskStatus
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.master.event_log import (
    REASON_MAX,
    TRAIL,
    EventHistory,
    StatusChange,
    encode_past,
    leads,
    past_key,
    trail_key,
)
from holdfast.master.leader_store import LeaderStore
from holdfast.master.pipeline_keeper import Keeper, PipelineKeeper
from holdfast.master.ports import Incarnation
from holdfast.master.records import encode, history_key
from holdfast.master.saved_states import Vault
from holdfast.master.wait import unhurried
from holdfast.store.contract import Delete, Guard, Put

log = logging.getLogger("holdfast")

TOLD_MAX = 50
"""How many lines of one kind the trail keeps of what was said as a job came."""


class JobKeeper(Keeper[JobRecord]):
    """The keeper of one job record, and of its pipelines' keepers."""

    def __init__(
        self,
        desk: LeaderStore,
        key: str,
        state: JobRecord,
        revision: int,
        order: int,
        changed: Callable[[], None],
        held: Callable[[str, str], bool],
        vault: Vault,
    ) -> None:
        super().__init__(desk, key, state, revision)
        self.order = order
        self.held = held
        self.vault = vault
        self.pipelines: dict[int, PipelineKeeper] = {}
        self.changed = changed
        self.gone = False

    @property
    def terminal(self) -> bool:
        """Whether the job is over; its record is then its tombstone."""
        return self.state.status in TERMINAL

    def decide(self, event: Event) -> JobRecord:
        return step(self.state, event)

    def owed(self) -> tuple[Effect, ...]:
        return owed(self.state, self._pipelines())

    def follow(self, new: JobRecord, event: Event) -> EventHistory:
        return self.trail.after_job(self.state, new, self.seen())

    async def tell(self, **said: list[str]) -> None:
        """Tell in the trail what was said as the job came; it is kept with the next change."""
        async with self.turn:  # a change that is being saved has its trail already
            at_s, term = round(self.seen().at_s, 3), self.desk.number
            for what, lines in said.items():
                short = (one[:REASON_MAX] for one in lines[:TOLD_MAX])
                events = (StatusChange(at_s, "job", what, term, one) for one in short)
                self.trail = self.trail.noting(*events)

    def beside(self, new: JobRecord) -> list[Put | Delete]:
        return self.vault.ending(new, self._pipelines())

    def saved(self) -> None:
        if self.terminal:
            self.vault.ended(f"{self.state.id}/{self.state.incarnation}", self.revision)
        self.changed()

    async def handle(self, event: Event) -> None:
        """Decide about the job while no pipeline of it changes.

        The step to a terminal status must see how the pipelines stand, and be the last thing that
        is written of them: a pipeline's write on its way must land before, or never.
        """
        async with AsyncExitStack() as still:
            for number in sorted(self.pipelines):
                await still.enter_async_context(self.pipelines[number].turn)
            if isinstance(event, PipelinesChanged):
                event = PipelinesChanged(self._pipelines(), self.desk.ports.clock.date())
            await super().handle(event)
            if self.terminal:
                for pipeline in self.pipelines.values():
                    pipeline.close()

    def close(self) -> None:
        super().close()
        for pipeline in self.pipelines.values():
            pipeline.close()

    def in_use(self) -> str:
        """Say why another job cannot have this one's id."""
        job = self.state
        if self.terminal:
            wait_s = self.desk.settings.tombstone_s
            return (
                f"Job id {job.id} is not free yet: the last job of that id is {job.status} and is"
                f" cleaned up about {wait_s:.0f} s after its end. Wait, or use another id."
            )
        return f"Job id {job.id} is in use: that job is {job.status}. Use another id."

    def wanted(self) -> Iterator[Wanted]:
        """Yield the tasks that need a worker now."""
        job, starting = self.state, self.state.status is JobStatus.PENDING
        if any(k.state.owes_former for k in self.pipelines.values()):
            return  # what a former incarnation has left unfinished comes before the first row
        for keeper in self.pipelines.values():
            if keeper.state.status is not ACTIVE:
                continue
            for task in keeper.state.tasks:
                if task.status is TaskStatus.WAITING and keeper.rested(task.id):
                    yield Wanted(
                        job.id, self.order, keeper.state.number, task.id, task.attempt,
                        task.slots, job.tags, starting,
                    )  # fmt: skip

    def at_rest(self) -> bool:
        """Say whether looking would change nothing: most of what pipelines do is not the job's.

        No lock is taken: whatever changes a pipeline after this has the job looked at again.
        """
        seen = PipelinesChanged(self._pipelines())
        return self.decide(seen) == self.state and set(self._doing) == set(self.owed())

    async def look(self) -> None:
        """Decide again from the state of the pipelines."""
        await self.handle(PipelinesChanged(self._pipelines()))

    async def perform(self, effect: Any) -> None:
        match effect:
            case AskStop(number):
                await self.pipelines[number].handle(StopRequested())
            case AskAbandon(number):
                await self.pipelines[number].handle(AbandonRequested())
            case AskSavepoint(number, request):
                await self.pipelines[number].handle(SavepointRequested(request))
            case DropSavepoint(number):
                await self.pipelines[number].handle(SavepointDropped())
            case CleanUp():
                await self._clean_up()

    def _pipelines(self) -> tuple[PipelineRecord, ...]:
        return tuple(self.pipelines[n].state for n in sorted(self.pipelines))

    async def _clean_up(self) -> None:
        """Remove what is left, the records last, once the tombstone has stood long enough.

        The time starts again with each leader: the tombstone may stay longer, never shorter.  No
        clock but this process's own decides it.
        """
        ports, job = self.desk.ports, self.state
        await ports.clock.sleep(self.desk.settings.tombstone_s)
        life = Incarnation(job.id, job.incarnation, job.spec)
        while not await self._cleaned(life):
            await ports.clock.sleep(self.desk.settings.retry_s)

    async def _cleaned(self, life: Incarnation) -> bool:
        """Remove everything, in turn with other jobs; say whether that could be done now."""
        async with self.desk.cleaning:
            self.desk.check()
            # A task that still runs could stage something after the sweep.
            if self.held(life.job, life.incarnation):
                return False
            try:
                if self.vault.may_sweep(life.job, life.incarnation):
                    await self._sweep(life)
                await self._drop_blobs()
            except (Unavailable, OutcomeUnknown):
                return False  # it is tried again
            await self.remember()
            await self._bury()
            return True

    async def _sweep(self, life: Incarnation) -> None:
        """Remove what is staged.  Where no sink can be built any more it stays, and that is said.

        The records must go all the same: no retry would ever help.
        """
        ports = self.desk.ports
        try:
            await ports.durable("table.sweep", lambda: ports.tables.sweep(life))
        except UserError as error:
            log.warning("What job %s has staged is not removed: %s", life.job, error)

    async def _drop_blobs(self) -> None:
        """Remove checkpoints that nothing can start from, also of incarnations that never began."""
        ports, job = self.desk.ports, self.state
        there = await ports.blobs.names(f"{job.id}/")
        unwanted = self.vault.unwanted(job.id, job.incarnation, there)
        if unwanted:
            await ports.durable("blob.drop", partial(ports.blobs.drop, *unwanted))

    async def remember(self) -> None:
        """Make one key of all trails: what happened outlives the records, as long as the history.

        It is a commit of its own, because a job of many pipelines has too many keys for one.
        """
        keepers: dict[int, Keeper[Any]] = {0: self, **self.pipelines}
        told = {number: k for number, k in keepers.items() if k.trailed}
        if not told:
            return  # a former leader did so, and then died
        past = past_key(self.state.id, self.state.incarnation)
        changes: list[Put | Delete] = [Delete(trail_key(k.key)) for k in told.values()]
        changes.append(Put(past, encode_past({number: k.trail for number, k in told.items()})))
        await self.desk.write([Guard(self.key, self.revision)], changes, past, "trail.past")
        for keeper in told.values():
            keeper.trailed = False

    async def _bury(self) -> None:
        """Delete the records of this incarnation and leave a line of history, in one step."""
        parts = [self, *self.pipelines.values()]
        # Each guard names the revision of this incarnation's record: a record of a later
        # one has another, and nothing is deleted then.
        guards = [Guard(p.key, p.revision) for p in parts]  # type: ignore[attr-defined]
        changes: list[Put | Delete] = [Delete(p.key) for p in parts]  # type: ignore[attr-defined]
        history = history_key(self.state.id, self.state.incarnation)
        changes.append(Put(history, encode(self.state)))
        async with self.turn:
            await self.desk.write(guards, changes, self.key, "job.bury")
            self.gone = True
        self.changed()


async def load_trails(desk: LeaderStore, jobs: Iterable[JobKeeper]) -> None:
    """Take up what former leaders have written about jobs, and note the new leader."""
    told = {i.key: i.value for i in await desk.read_range(TRAIL)}
    async for job in unhurried(jobs):
        job.take_up(told)
        for pipeline in job.pipelines.values():
            pipeline.take_up(told)
        job.trail = job.trail.noting(leads(desk.name, job.seen()))
