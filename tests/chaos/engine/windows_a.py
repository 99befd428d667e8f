"""Groups A, S and U: leading, the store, and what users are shown."""

import asyncio
from time import monotonic

from tests.chaos.engine.jobs import LONG, ONE, STREAM, From, Shape
from tests.chaos.engine.ledger import late_writes
from tests.chaos.engine.moments import committed, complete
from tests.chaos.engine.scene import Scene, window

LONGER = Shape(((From(40), From(40)),))


@window("A01", STREAM)
async def idle_leader_is_killed(s: Scene) -> None:
    await s.submit()
    await s.until(committed(2))
    term = s.cluster.ledger.term()
    await s.kill_leader()
    killed_s = monotonic()
    await s.elected(term)
    s.say(f"a new leader {monotonic() - killed_s:.1f} s after the kill")
    await s.further(2)
    s.untouched()


@window("A02", LONG)
async def new_leader_is_killed_at_its_election(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    number = s.arm("after:leader.elect")
    await s.kill_leader()
    await s.killed(number)
    await s.rest()
    s.untouched()


@window("A03", LONG)
async def second_leader_is_killed_while_it_takes_over(s: Scene) -> None:
    for name in ("j", "k", "m"):
        await s.submit(name, ONE)
    await s.until(complete(1), "k")
    number = s.arm("after:pipeline.LeaderChanged")
    await s.kill_leader()
    await s.killed(number)
    await s.rest()
    s.untouched()


@window("A04", LONGER)
async def leader_stands_still_before_a_write(s: Scene) -> None:
    await s.submit()
    number = s.arm("before:pipeline.CheckpointDue", "stop", 2)
    name = await s.hit(number)
    await _three_leases(s, name)
    await s.rest()
    s.untouched()


@window("A04", STREAM)
async def leader_stands_still_for_three_leases(s: Scene) -> None:
    """Whatever a leader does after its lease has lapsed is not applied: the logs show it."""
    await s.submit()
    await s.until(complete(2))
    number = s.arm("before:pipeline.CheckpointStored", "stop")
    name = await s.hit(number)
    await _three_leases(s, name)
    await s.further(2)
    s.untouched()


async def _three_leases(s: Scene, name: str) -> None:
    """Let a stopped leader's lease lapse, wake it, and claim that nothing of it is applied."""
    term = s.cluster.ledger.term()
    await asyncio.sleep(3 * s.cluster.settings["lease_s"])
    others = len(s.cluster.masters) > 1
    if others:
        await s.elected(term)
        s.claim(s.cluster.ledger.leader() != name, "the one that stands still leads")
    woken_s = monotonic()
    s.cluster.process(name).go_on()
    await s.elected(term)
    await s.further(1)
    tried, applied = late_writes(s.cluster.ledger, s.cluster.events, term, woken_s)
    s.claim(not applied, f"written by a deposed leader: {applied}")
    s.say(f"after it woke, the deposed leader tried {tried} writes; applied: {len(applied)}")


@window("A10", STREAM)
async def leader_is_cut_from_the_store(s: Scene) -> None:
    await s.submit()
    await s.until(complete(2))
    term, name = s.cluster.ledger.term(), await s.leader()
    cut_s = monotonic()
    s.note_fault("cut from store", name)
    if s.cluster.to_store:
        s.cluster.to_store[name].freeze()
        await s.elected(term)
        s.claim(s.cluster.ledger.leader() != name, "the one that is cut off leads")
        s.cluster.to_store[name].heal()
    else:
        await asyncio.to_thread(s.cluster.server.kill)
        await asyncio.sleep(2 * s.cluster.settings["lease_s"])
        await asyncio.to_thread(s.cluster.server.start)
        await s.elected(term)
    s.hits += 1
    act_s = s.cluster.setting().act_s
    late = [e for e in s.events("order", term=term) if e["at"] > cut_s + act_s + 0.5]
    s.claim(not late, f"it commanded without a lease: {late[:1]}")
    await s.further(2)
    s.untouched()


@window("S01", STREAM)
async def store_is_down_for_a_while(s: Scene) -> None:
    await s.submit()
    await s.until(complete(2))
    before = await s.shown()
    s.note_fault("store down")
    await asyncio.to_thread(s.cluster.server.kill)
    s.hits += 1
    await asyncio.sleep(4 * s.cluster.settings["lease_s"])
    await asyncio.to_thread(s.cluster.server.start)
    await s.further(2)
    after = await s.shown()
    s.claim(after["read"] > before["read"], "the tasks stood still")
    s.untouched()


@window("U01", STREAM)
async def no_checkpoint_completes(s: Scene) -> None:
    await s.submit()
    await s.until(complete(2))
    number = s.arm("before:worker.ack", "hold")
    await s.hit(number)
    while (shown := await s.shown())["health"] != "STALLED":
        await asyncio.sleep(0.1)
    first = shown["pipelines"][0]
    later = (await s.shown())["pipelines"][0]
    s.claim(later["checkpoint_age_s"] > first["checkpoint_age_s"], "the age does not grow")
    s.claim("p1-t" in first["reason"], f"the reason is {first['reason']}")
    s.claim(shown["status"] == "RUNNING", f"the status is {shown['status']}")
    s.release(number)
    while (await s.shown())["health"] != "OK":
        await asyncio.sleep(0.1)


@window("U02", STREAM)
async def checkpoint_time_goes_on_over_a_takeover(s: Scene) -> None:
    await s.submit()
    await s.until(complete(2))
    number = s.arm("before:worker.ack", "hold")
    await s.hit(number)
    before = (await s.shown())["pipelines"][0]
    at_s, term = monotonic(), s.cluster.ledger.term()
    await s.kill_leader()
    await s.elected(term)
    after = (await s.shown())["pipelines"][0]
    s.claim(after["checkpoint"] == before["checkpoint"], "another checkpoint is shown")
    s.claim(after["checkpoint_at_s"] == before["checkpoint_at_s"], "another time is shown")
    grown, passed = after["checkpoint_age_s"] - before["checkpoint_age_s"], monotonic() - at_s
    s.claim(abs(grown - passed) < 1.0, f"the age grew by {grown} s in {passed} s")
    s.release(number)
    s.untouched()
