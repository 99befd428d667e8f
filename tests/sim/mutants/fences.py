"""Mutants of fencing: terms, leases, answers, the order of saving and acting."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.election import Election, Standing
from holdfast.core.machine import Event
from holdfast.master.leader import Leader
from holdfast.master.leader_store import LEADER, LeaderStore
from holdfast.master.pipeline_keeper import Keeper
from holdfast.master.records import encode
from holdfast.store.contract import Delete, Guard, Put
from holdfast.wire.messages import ToWorker
from tests.sim.engine.faults import Faults
from tests.sim.engine.plan import Plan
from tests.sim.engine.stages import bounded, some_leader, until
from tests.sim.engine.store import SimStore
from tests.sim.engine.worker import SimWorker
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import crash, mutant, scene, seeds, swapped

LONG = JobSpec("j", ((("a",), ("b",)),), rows=25)


def _wakes_up_as_the_next_begins() -> Plan:
    """A leader is paused before a write and wakes up just when its successor has begun."""
    crashes = {("before:pipeline.CheckpointDue", 2): "pause:100"}
    return Plan((LONG,), crashes=crashes, script=_wake_when_another_leads)


async def _wake_when_another_leads(world: World) -> None:
    await until(world, lambda w: any("at_point" in e for e in w.history.of("fault")))
    paused = next(e for e in world.history.of("fault") if "at_point" in e)["process"]
    name, _, start = paused.partition("#")
    await until(world, lambda w: _leads(w, name))
    world.loop.resume((name, int(start)))


def _leads(world: World, but: str) -> bool:
    leading = world.leader()
    return bool(leading and leading.name != but and leading.leader and leading.leader.loaded)


def _leaders_die() -> Plan:
    """Leaders die one after the other."""
    return Plan((LONG,), script=_kill_leaders)


async def _kill_leaders(world: World) -> None:
    for _ in range(4):
        await asyncio.sleep(1.7)
        world.kill(await some_leader(world))


def _cut_off_from_the_store() -> Plan:
    """The leader is cut off from the store, and speaks to workers still."""
    return Plan((LONG,), script=_cut_store)


async def _cut_store(world: World) -> None:
    await asyncio.sleep(2.2)
    leader = await some_leader(world)
    for way in ((leader, "store"), ("store", leader)):
        world.network.cuts[way] = world.loop.time() + 8


def _answers_get_lost() -> Plan:
    """Some requests to the store, and some answers, get lost."""
    return replace(bounded(), faults=Faults(store_unknown=0.1))


def _late_orders() -> Plan:
    """Orders come late, and leaders die."""
    return Plan((LONG,), faults=Faults(message_slow_s=6.0), script=_kill_leaders)


@mutant("writes are not guarded by the term", "I2 I7", scene(_wakes_up_as_the_next_begins, 40),
        seeds(300))  # fmt: skip
def no_term_guard() -> Iterator[None]:
    commit = SimStore.commit

    async def any_term(
        self: SimStore, guards: Sequence[Guard], changes: Sequence[Put | Delete]
    ) -> int | None:
        standing = self.world.store.items.get(LEADER)
        now = standing.revision if standing else 0
        lax = [Guard(LEADER, now) if g.key == LEADER and g.revision else g for g in guards]
        return await commit(self, lax, changes)

    def always(self: LeaderStore) -> None:
        """Act whatever the term."""

    with swapped(SimStore, "commit", any_term), swapped(LeaderStore, "check", always):
        yield


@mutant("a yes is given without proof that one still leads", "I4", seeds(60))
def answer_without_proof() -> Iterator[None]:
    async def believe(self: LeaderStore, key: str, revision: int) -> None:
        """Ask nobody."""

    with swapped(LeaderStore, "confirm", believe):
        yield


@mutant("effects start before the state that requires them is saved", "I11 I13 I26 I29 I48 I51",
        crash("before:pipeline.CheckpointStored"), seeds(100))  # fmt: skip
def acting_before_saving() -> Iterator[None]:
    async def hasty(self: Keeper[Any], event: Event) -> None:
        async with self.turn:
            if self.closed:
                return
            new = self.decide(event)
            if new != self.state:
                label = f"{new.record_name}.{event.label}"
                self.state = new
                self.resume()
                self.revision = await self.desk.save(self.key, encode(new), self.revision, label)
                self.saved()
        self.resume()

    with swapped(Keeper, "handle", hasty):
        yield


@mutant("a new leader acts before it has loaded its records", "E I9 I20 L3",
        scene(_leaders_die, 100))  # fmt: skip
def acts_before_loading() -> Iterator[None]:
    begin = Leader.begin

    async def eager(self: Leader) -> None:
        self.loaded = True
        await begin(self)

    with swapped(Leader, "begin", eager):
        yield


@mutant("an answer that never came is taken for a yes", "I4 I7 I9 I38 L3 L7",
        scene(_answers_get_lost, 40), seeds(200))  # fmt: skip
def unknown_taken_for_done() -> Iterator[None]:
    async def guess(
        self: LeaderStore, guards: Sequence[Guard], changes: Sequence[Put | Delete], key: str
    ) -> int | None:
        return self.term + 1

    with swapped(LeaderStore, "_read_back", guess):
        yield


@mutant("a leader acts on though its lease was not confirmed", "I5",
        scene(_cut_off_from_the_store))  # fmt: skip
def acts_without_a_lease() -> Iterator[None]:
    def bold(self: Election, now_s: float) -> bool:
        return self.standing is Standing.LEADING

    with swapped(Election, "may_act", bold):
        yield


@mutant("a worker obeys orders of a former leader", "I3", scene(_late_orders, 60), seeds(200))
def orders_of_former_terms_obeyed() -> Iterator[None]:
    hear = SimWorker.hear

    async def obey(self: SimWorker, message: ToWorker) -> None:
        self.term = min(self.term, message.term)
        await hear(self, message)

    with swapped(SimWorker, "hear", obey):
        yield
