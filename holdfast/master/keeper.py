"""A keeper owns one record: it feeds the core, saves, and then does what is owed.

The same thirty lines serve every record.  After a crash, `resume` on the loaded record is all of
recovery.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from holdfast.core.job import JobRecord
from holdfast.core.machine import Event
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import Fenced
from holdfast.master import event_log as trails
from holdfast.master.event_log import EventHistory, Moment, trail_key
from holdfast.master.leader_store import LeaderStore
from holdfast.master.records import encode
from holdfast.store.contract import Delete, Put

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
            self._trail = trails.begin(self.state, self.seen())
        return self._trail

    @trail.setter
    def trail(self, trail: EventHistory) -> None:
        self._trail = trail

    def follow(self, new: S, event: Event) -> EventHistory:
        """Return what is to be told of the record once it stands so."""
        raise NotImplementedError

    def take_up(self, told: Mapping[str, bytes]) -> None:
        """Take up the trail that a former leader has left in the store."""
        key = trail_key(self.key)
        self.trailed = key in told
        # Of what nobody has told it is not known in whose term it was.
        self.trail = trails.decode(told.get(key), key) or trails.begin(
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
        """Hear that the state has changed durably."""

    async def handle(self, event: Event) -> None:
        """Take in an event: decide, save, then start what is owed."""
        async with self.turn:
            if self.closed:
                return
            new = self.decide(event)
            if new != self.state:
                # Raises Fenced if a later term has written; then nothing below may run.
                label = f"{new.record_name}.{event.label}"
                trail = self.follow(new, event)
                tells = trail.grown(self.trail)
                beside = self.beside(new)
                if tells:
                    beside.append(Put(trail_key(self.key), trails.encode(trail)))
                self.revision = await self.desk.save(
                    self.key, encode(new), self.revision, label, beside
                )
                self.state, self.trail = new, trail
                self.trailed = self.trailed or tells
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
        """Run something of this keeper's beside its effects, such as its timer."""
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
