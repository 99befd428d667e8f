"""Place tasks on workers, and keep workers free of them: drained by an operator, or leaving.

An operator's wish is kept in the store by the worker's name, so that it outlives leaders and that
worker's restarts; a worker that was asked to end says so in every heartbeat.  Tasks move one
by one, each from a checkpoint of its own pipeline, and only once another worker has room for it.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.machine import Event
from holdfast.core.pipeline import may_move
from holdfast.core.placement import Placed, Waits, Wanted, place
from holdfast.core.task import TaskMoves, TaskPlaced, TaskRecord
from holdfast.errors import UserError
from holdfast.master.leader_store import LeaderStore
from holdfast.wire.messages import Heartbeat, TaskKey

if TYPE_CHECKING:
    from holdfast.master.leader import Leader
    from holdfast.master.pipeline_keeper import PipelineKeeper

DRAINS = "drains"
"""One key for all: a handful of names that change now and then."""

ENDS_HERE = "its job takes no checkpoint before its end, so it ends here"
ENDS_SOON = "its pipeline is about to end"
NAMES_MAX = 1000

log = logging.getLogger("holdfast")


class Drains:
    """What a leader knows of drained workers, and of tasks that cannot leave them yet."""

    def __init__(self, desk: LeaderStore) -> None:
        self.names: frozenset[str] = frozenset()
        self.stays: dict[TaskKey, str] = {}  # why a task is not on its way elsewhere
        self.placing = ""  # the worker incarnation that a task is being placed on right now
        self._desk = desk
        self._revision = 0
        self._one_at_a_time = asyncio.Lock()

    async def load(self) -> None:
        """Read which workers are drained."""
        item = await self._desk.read(DRAINS)
        if item is None:
            return
        self._revision = item.revision
        try:
            self.names = frozenset(msgspec.json.decode(item.value, type=list[str]))
        except msgspec.DecodeError as error:
            log.warning("no worker counts as drained: %s cannot be read: %s", DRAINS, error)

    async def wish(self, leader: "Leader", worker: str, *, drained: bool) -> None:
        """Make it durable that a worker is to be drained, or no more."""
        known = any(s.hello.worker == worker for s in leader.crew.seen.values())
        if drained and not known and worker not in self.names:
            there = ", ".join(sorted(s.hello.worker for s in leader.crew.seen.values()))
            raise UserError(
                f"There is no worker {worker} in contact. These are: {there or 'none'}.",
                code="worker.unknown",
            )
        async with self._one_at_a_time:
            await self._wish(worker, drained=drained)

    async def _wish(self, worker: str, *, drained: bool) -> None:
        if drained == (worker in self.names):
            # A yes counts only from the present leader.
            await self._desk.confirm(DRAINS, self._revision)
            return
        names = self.names | {worker} if drained else self.names - {worker}
        if len(names) > NAMES_MAX:
            raise UserError(
                f"{NAMES_MAX} workers are drained already. End drains of workers that are gone.",
                code="drain.many",
            )
        value = msgspec.json.encode(sorted(names))
        self._revision = await self._desk.save(DRAINS, value, self._revision, "drain.wish")
        self.names = names

    def incarnations(self, leader: "Leader") -> set[str]:
        """Return the worker processes that get nothing new."""
        return {i for i, s in leader.crew.seen.items() if self.reason(s.hello)}

    def reason(self, hello: Heartbeat) -> str:
        """Say why a worker gets nothing new; "" for one that does."""
        if hello.leaving:
            return "it was asked to end"
        return "an operator drains it" if hello.worker in self.names else ""

    def moves(self, key: TaskKey, task: TaskRecord) -> str:
        """Say where a task of such a worker moves, or why it cannot leave yet."""
        if task.to:
            return f"moves to worker {task.to.worker} at the next checkpoint"
        why = self.stays.get(key)
        return f"stays: {why}" if why else ""

    def wanted(self, leader: "Leader", draining: set[str]) -> Iterator[Wanted]:
        """Yield the tasks that could move; note why others cannot."""
        self.stays = {}
        for incarnation in sorted(draining):
            for key, task in list(leader.roster.on(incarnation).items()):
                keeper = leader.find(key)
                if keeper is None or (task.to and task.to.incarnation not in draining):
                    continue
                if may_move(keeper.state, task.id):
                    job = leader.jobs[key.job]
                    yield Wanted(
                        key.job, job.order, key.pipeline, task.id, task.attempt, task.slots,
                        job.state.tags, starting=False, moving=True,
                    )  # fmt: skip
                else:
                    self.stays[key] = ENDS_SOON if keeper.state.policy.periodic else ENDS_HERE

    def note(self, leader: "Leader", waits: tuple[Waits, ...]) -> None:
        """Note the tasks for which no other worker has room."""
        for wait in waits:
            key = _part(leader, wait.wanted).task_key(wait.wanted.task)
            self.stays[key] = f"no other worker has room for it: {wait.why}"

    def undone(
        self, leader: "Leader", draining: set[str]
    ) -> Iterator[tuple["PipelineKeeper", TaskMoves]]:
        """Yield the orders by which tasks stay: their worker does, or the next one leaves, too."""
        for key, task in leader.roster.moving():
            keeper = leader.find(key)
            assert task.to
            stuck = task.to.incarnation in draining and key in self.stays
            if keeper and task.place and (task.place.incarnation not in draining or stuck):
                yield keeper, TaskMoves(task.id, task.attempt, task.place, None)

    def may_leave(self, leader: "Leader", incarnation: str) -> bool:
        """Say whether a worker that wants to end may: no task is still to move off it.

        A task that ends here is waited for, and so is one that is on its way; one for which no
        worker has room is not: a worker that was asked to end does not stay up for it.
        """
        if self.placing == incarnation or leader.roster.comes(incarnation):
            return False
        on = leader.roster.on(incarnation)
        return all(self.stays.get(key, "").startswith("no other worker") for key in on)


async def place_tasks(leader: "Leader") -> bool:
    """Place every task that waits or is to move; say whether to look again at once."""
    drains = leader.drains
    jobs = dict.fromkeys(k.state.job for k in leader.roster.waiting.values())
    wanted = [w for j in jobs if not leader.jobs[j].terminal for w in leader.jobs[j].wanted()]
    draining = drains.incarnations(leader)
    wanted += drains.wanted(leader, draining)
    rooms = leader.crew.rooms(leader.roster.taken(), draining) if wanted else []
    placed, waits = place(wanted, rooms) if wanted else ((), ())
    still = [w for w in waits if not w.wanted.moving]
    leader.waits = {_part(leader, w.wanted).task_key(w.wanted.task): w.why for w in still}
    drains.note(leader, tuple(w for w in waits if w.wanted.moving))
    again = False
    for choice in placed:
        again |= not await _put(leader, choice)
    for keeper, stays in list(drains.undone(leader, draining)):
        await keeper.handle(stays)
    return again


async def _put(leader: "Leader", choice: Placed) -> bool:
    """Make a choice durable; False if its worker has begun to drain meanwhile."""
    drains = leader.drains
    if choice.place.incarnation in drains.incarnations(leader):
        return False
    wanted, keeper = choice.wanted, _part(leader, choice.wanted)
    event: Event = TaskPlaced(wanted.task, wanted.attempt, choice.place)
    if wanted.moving:
        task = next((t for t in keeper.state.tasks if t.id == wanted.task), None)
        if task is None or task.place is None or task.attempt != wanted.attempt:
            return True
        event = TaskMoves(task.id, task.attempt, task.place, choice.place)
    drains.placing = choice.place.incarnation
    try:
        await keeper.handle(event)
    finally:
        drains.placing = ""
    return True


def _part(leader: "Leader", wanted: Wanted) -> "PipelineKeeper":
    return leader.jobs[wanted.job].pipelines[wanted.pipeline]
