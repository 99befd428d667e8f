"""A user: submits, perhaps cancels or takes a savepoint, waits for the end, comes again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.core.commit import Carried
from holdfast.errors import Fenced, HoldfastError, UserError
from holdfast.master.records import history_key, job_key
from holdfast.testing.sim.plan import Plan, Wish
from holdfast.testing.sim.world import JobSpec, World

PATIENCE_S = 3.0


class Client:
    """The user of one job."""

    def __init__(self, world: World, job: JobSpec, plan: Plan) -> None:
        self.world = world
        self.job = job
        self.plan = plan

    async def live(self) -> None:
        """Run every life of the job."""
        for life in range(1, self.plan.lives + 1):
            await self._life(life)

    async def _life(self, life: int) -> None:
        incarnation = f"i{life}"
        records = self.job.records(incarnation, *self._saved(f"i{life - 1}"))
        await self._insist("submit", lambda leader: leader.submit(*records))
        self.world.note("client", did="submitted", job=self.job.id, incarnation=incarnation)
        for wish in self.plan.wished(self.job, life):
            self.world.loop.spawn(("C", 9), self._later(wish, incarnation))
        while not self._gone(incarnation):
            await asyncio.sleep(0.5)
        self.world.note("client", did="saw the end", job=self.job.id, incarnation=incarnation)

    async def _later(self, wish: Wish, incarnation: str) -> None:
        await asyncio.sleep(wish.after_s)
        item = self.world.store.items.get(job_key(self.job.id))
        if item is None or incarnation.encode() not in item.value:
            return
        if wish.what == "cancel":
            await self._insist("cancel", lambda leader: leader.cancel(self.job.id), incarnation)
        else:
            request = f"s-{incarnation}"
            await self._insist(
                "savepoint", lambda leader: leader.savepoint(self.job.id, request), incarnation
            )
        self.world.note("client", did=wish.what, job=self.job.id, incarnation=incarnation)

    async def _insist(
        self,
        what: str,
        ask: Callable[[Any], Coroutine[Any, Any, None]],
        incarnation: str | None = None,
    ) -> None:
        """Ask whoever leads until a definite answer comes; every request may be repeated."""
        about = {"what": what, "job": self.job.id, "incarnation": incarnation or ""}
        self.world.note("client", did="wants", **about)
        while True:
            await asyncio.sleep(0.1 + self.world.loop.random.random() * 0.3)
            master = self.world.leader()
            if master is None or master.leader is None:
                continue
            if incarnation and self._gone(incarnation):
                self.world.note("client", did="was told it is over", **about)
                return
            process = self.world.process_of(master.name)
            by = f"{process[0]}#{process[1]}" if process else ""
            self.world.note("client", did="asks", by=by, **about)
            answer: asyncio.Future[object] = self.world.loop.create_future()
            self.world.loop.spawn(process, _serve(ask, master.leader, answer))
            done, _ = await asyncio.wait([answer], timeout=PATIENCE_S)
            if done and answer.result() is None:
                self.world.note("client", did="was answered", by=by, **about)
                return

    def _saved(self, incarnation: str) -> tuple[dict[int, str], tuple[Carried, ...]]:
        """Return the savepoint that an earlier life has left: the next one goes on from it."""
        key = history_key(self.job.id, incarnation)
        ends = [e.get("record") for e in self.world.history.of("write") if e["key"] == key]
        return (dict(ends[0].saved), ends[0].carried) if ends and ends[0] else ({}, ())

    def _gone(self, incarnation: str) -> bool:
        """Say whether this life was buried; its history may have been trimmed since."""
        item = self.world.store.items.get(job_key(self.job.id))
        if item and f'"{incarnation}"'.encode() in item.value:
            return False
        key = history_key(self.job.id, incarnation)
        return any(e["key"] == key for e in self.world.history.of("write"))


async def _serve(
    ask: Callable[[Any], Coroutine[Any, Any, None]],
    leader: Any,
    answer: "asyncio.Future[object]",
) -> None:
    """Run a request in the master's process; the answer is None for yes, or the reason."""
    try:
        await ask(leader)
        result: object = None
    except (Fenced, UserError, HoldfastError) as error:
        result = str(error) or "no"
    if not answer.done():
        answer.set_result(result)
