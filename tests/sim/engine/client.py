"""A user: submits, perhaps cancels or takes a savepoint, waits for the end, comes again."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.core.saved_state import Saved
from holdfast.errors import Fenced, HoldfastError, UserError
from holdfast.master import checkpoint_content
from holdfast.master.accept import JobStart, contents_of
from holdfast.master.records import grave_key, history_key, job_key, saved_key
from holdfast.master.restored_checkpoints import opened_in, resumed
from tests.sim.engine.plan import Plan, Wish
from tests.sim.engine.world import JobSpec, World

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
        await self._insist("submit", lambda leader: begin(self.job, incarnation, leader))
        self.world.note("client", did="submitted", job=self.job.id, incarnation=incarnation)
        for wish in self.plan.wished(self.job, life):
            self.world.loop.spawn(("C", 9), self._later(wish, incarnation))
        while not self._gone(incarnation):
            if life < self.plan.lives and self._left(incarnation):
                # The next life need not wait until this one is cleaned up.
                await asyncio.sleep(self.plan.rest_s)
                break
            await asyncio.sleep(0.5)
        self.world.note("client", did="saw the end", job=self.job.id, incarnation=incarnation)

    async def _later(self, wish: Wish, incarnation: str) -> None:
        await asyncio.sleep(wish.after_s)
        what, _, worker = wish.what.partition(" ")
        if worker:
            drained = what == "drain"
            await self._insist(
                what, lambda leader: leader.drain(worker, drained=drained), of=worker
            )
            return
        if wish.what == "forget":
            states = [k for k in self.world.store.items if k.startswith(f"saved/{self.job.id}/")]
            for key in states[-1:]:
                name = key.removeprefix("saved/")
                forget = partial(_forget, name)
                await self._insist("forget", forget, of=name.rpartition("/")[2])
            return
        item = self.world.store.items.get(job_key(self.job.id))
        if item is None or incarnation.encode() not in item.value:
            return
        if wish.what in ("cancel", "force"):
            stop = partial(_cancel, self.job.id, wish.what == "force")
            await self._insist(wish.what, stop, incarnation)
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
        of: str = "",
    ) -> None:
        """Ask whoever leads until a definite answer comes; every request may be repeated."""
        about = {"what": what, "job": self.job.id, "incarnation": incarnation or of}
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
            if what == "forget" and done and answer.result() == "It is gone.":
                return
            if done and answer.result() is None:
                self.world.note("client", did="was answered", by=by, **about)
                return

    def _left(self, incarnation: str) -> bool:
        """Say whether a life has left something to go on from."""
        return saved_key(f"{self.job.id}/{incarnation}") in self.world.store.items

    def _gone(self, incarnation: str) -> bool:
        """Say whether this life was buried; its history may have been trimmed since."""
        items = self.world.store.items
        item = items.get(job_key(self.job.id)) or items.get(grave_key(self.job.id, incarnation))
        if item and f'"{incarnation}"'.encode() in item.value:
            return False
        key = history_key(self.job.id, incarnation)
        return any(e["key"] == key for e in self.world.history.of("write"))


async def _cancel(job: str, force: bool, leader: Any) -> None:
    """Have a job stop."""
    await leader.cancel(job, force=force)


async def _forget(name: str, leader: Any) -> None:
    """Remove a saved state; one that is gone has been removed before."""
    kept = leader.vault.states.get(name)
    if kept is None:
        raise UserError("It is gone.")
    await leader.remove_saved(kept.saved)


async def begin(job: JobSpec, incarnation: str, leader: Any) -> None:
    """Have a life begin: where the job's rows end, if a life has left that."""
    for saved in leader.vault.of(job.id):
        if not leader.vault.past(saved):
            await resume(job, incarnation, leader, saved)
            return
    await leader.submit(*job.records(incarnation))


async def resume(
    job: JobSpec, incarnation: str, leader: Any, saved: Saved, *, write_again: bool = False
) -> None:
    """Have a life begin from a saved state."""
    records, pipelines = job.records(incarnation)
    contents = await contents_of(leader.desk, saved)
    same = {s: s for part in saved.parts for s in (*part.sources, *part.sinks)}
    # A pipeline that has left nothing begins as a new one, but for what it knows of tables.
    opened, numbers = opened_in(list(contents.values()), same), [p.number for p in pipelines]
    none = {
        n: checkpoint_content.CheckpointContent(
            checkpoint_content.VERSION, job.id, incarnation, n, 0, {}, (), None
        )
        for n in numbers
    }
    own = partial(replace, job=job.id, incarnation=incarnation, number=0, staged=(), opened=opened)
    begun = tuple((n, checkpoint_content.pack(own(c))) for n, c in (none | contents).items())
    start = JobStart(saved, begun, write_again)
    await leader.submit(records, resumed(saved, same, pipelines), start)


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
