"""Group A: election, lease, fencing."""

from dataclasses import replace
from itertools import pairwise

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.election import ACT_SHARE
from holdfast.core.pipeline import PipelineRecord
from holdfast.store.contract import Put
from holdfast.wire.messages import Barrier, SourceEndAck, StopTask, TaskKey
from tests.sim.engine.world import WORKERS, JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.scene import FOREVER_S, LEASE_S, UNEVEN, Scene, kill_at, others, window

LONG = JobSpec("j", rows=40)

kill_at("A02", "after:leader.elect", ("after:leader.elect", 2))


@window("A01")
async def idle_leader_dies(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.committed(1)))
    died_s = s.now
    await s.saw(moments.elected)
    s.claim(s.now - died_s <= 2 * LEASE_S, "no leader within two leases")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("A03", *(JobSpec(f"j{i}", rows=12) for i in range(3)))
async def second_leader_dies_with_some_jobs_taken_over(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.pending(CheckpointKind.PERIODIC), "j1"))
    await s.saw(moments.elected)
    await s.kills_leader(lambda e: e["kind"] == "write" and e["key"].startswith("pipeline/"))
    await s.saw(moments.elected)
    await s.rest()
    for job in s.scenario.jobs:
        s.ends("FINISHED", job=job.id)
    s.untouched()


@window("A04")
async def paused_before_a_write(s: Scene) -> None:
    s.arm("before:pipeline.CheckpointDue", 2, "pause")
    paused = await s.saw(moments.event("fault", fault="pause"))
    await s.saw(moments.elected)
    s.claim(not paused["process"].startswith(s.holder()), "the paused one leads")
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(1)


@window("A04")
async def paused_in_a_put_until_its_job_is_buried(s: Scene) -> None:
    s.world.blobs.put_s = 1.0
    await s.until(lambda: s.world.hits.get("before:blob.put", 0) > 0)
    for worker in WORKERS:
        s.cut(s.holder(), worker)  # a word of theirs would end its term before the put lands
    await s.sleep(0.1)
    await s.until(lambda: not _asks_the_store(s))
    s.world.loop.in_order = True  # what was due first is done first when it wakes
    s.pause(s.holder(), FOREVER_S)
    s.world.blobs.put_s = 0.0
    await s.saw(lambda e: e["kind"] == "write" and e["key"].startswith("history/"))
    s.world.heal()
    late = await s.saw(moments.event("blob"))
    await s.saw(moments.event("drop", name=late["name"]))
    await s.rest()
    s.ends("FINISHED")


def _asks_the_store(s: Scene) -> bool:
    """Whether the leader waits for the store: woken there, it would step down at once."""
    hits = s.world.hits
    labels = ("clock.tell", "leader.keep")
    return any(hits.get(f"before:{one}", 0) > hits.get(f"after:{one}", 0) for one in labels)


@window("A05", LONG)
async def paused_with_a_commit_on_its_way(s: Scene) -> None:
    s.hold_commits(lambda order: order.number == 2)
    await s.saw(moments.event("held", number=2), lambda e: s.pause(s.holder()))
    s.world.tables.holds = None
    await s.saw(moments.event("snapshot", number=2))
    s.let_go()
    await s.saw(moments.event("conflict", number=2))
    await s.rest()
    s.ends("FINISHED")


@window("A06", UNEVEN)
async def deposed_leader_wakes_in_a_confirmation(s: Scene) -> None:
    s.silence("commit", lambda changes: any(b'"ready":[{' in c.value for c in _puts(changes)))
    old = await s.saw(moments.pipeline(moments.ready(1)), lambda e: s.pause(s.holder()))
    await s.saw(moments.elected)
    term = s.world.store.items["leader"].revision
    await s.rest()
    name = old["process"].split("#")[0]
    late = s.sent(SourceEndAck, lambda p: p.sender == name and p.message.term < term)
    s.claim(not late, "a deposed leader confirmed")
    s.ends("FINISHED")


@window("A07", LONG)
async def renewal_without_an_answer(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    s.silence("keep")
    await s.saw(moments.event("fault", fault="store answer lost", op="keep"))
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)


@window("A08")
async def election_without_an_answer(s: Scene) -> None:
    s.silence("commit", lambda changes: any(c.key == "leader" for c in changes))
    await s.saw(moments.event("fault", fault="store answer lost", op="commit"))
    holder = s.holder()
    await s.saw(moments.pipeline(moments.complete(1)))
    s.claim(s.holder() == holder, "the holder did not recognise itself")
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)


@window("A09")
async def candidates_race(s: Scene) -> None:
    s.world.when(moments.pipeline(moments.complete(1)), lambda e: s.kill_leader())
    await s.saw(lambda e: e["kind"] == "refused" and e["keys"] == ["leader"])
    await s.rest()
    s.ends("FINISHED")


async def _cut_off(s: Scene, one: str, other: str, both: bool) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = s.holder()
    at_s = s.now
    s.cut(name if one == "leader" else one, name if other == "leader" else other, 12, both=both)
    await s.saw(moments.elected)
    elected_s = s.now
    await s.saw(moments.pipeline(lambda p: p.checkpoints.pending))
    s.claim(s.holder() != name, "the leader that was cut off leads again")
    await s.rest()
    spoke = s.sent(Barrier, lambda p: p.sender == name and at_s < p.at < elected_s)
    late = [p for p in spoke if p.at > at_s + LEASE_S * ACT_SHARE + 0.1]
    s.claim(not late, "it commanded without a confirmed lease")
    s.ends("FINISHED")
    s.untouched()


@window("A10", LONG)
async def leader_cut_from_store(s: Scene) -> None:
    await _cut_off(s, "leader", "store", both=True)


@window("A12", LONG)
async def requests_to_store_lost(s: Scene) -> None:
    await _cut_off(s, "leader", "store", both=False)


@window("A12", LONG)
async def answers_of_store_lost(s: Scene) -> None:
    """Renewals arrive, so the store keeps the lease until the leader gives it up."""
    await s.saw(moments.pipeline(moments.complete(1)))
    name = s.holder()
    s.cut("store", name, 12, both=False)
    await s.until(lambda: not s.world.masters[name].leader)
    await s.saw(moments.elected)
    await s.rest()
    s.ends("FINISHED")


@window("A11", LONG)
async def leader_cut_from_workers(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    for worker in ("W1", "W2"):
        s.cut(s.holder(), worker, 6)
    await s.sleep(6)
    s.claim(all(not t.stopped for w in s.world.workers.values() for t in w.tasks.values()), "stop")
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)
    tasks = [t for p in s.records(PipelineRecord) for t in p.tasks]
    s.claim(max(t.attempt for t in tasks) <= 2, "a storm of restarts")


@window("A13", LONG)
async def date_of_leader_jumps(s: Scene) -> None:
    for n, step_s in enumerate((-3600, 3600, -3600, 3600), 1):
        await s.saw(moments.pipeline(moments.complete(n)))
        s.world.dates[s.holder()] = step_s
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)
    _steady(s)


@window("A14", LONG)
async def date_of_candidates_jumps(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    for name in others(s.holder()):
        s.world.dates[name] = 3600
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)
    _steady(s)


def _steady(s: Scene) -> None:
    """Claim that checkpoints came neither in bursts nor with gaps."""
    done = [e["at"] for e in s.world.history.of("blob")]
    gaps = [b - a for a, b in pairwise(done)]
    s.claim(max(gaps) < 3 and min(gaps[:-1]) > 0.5, f"checkpoints were not steady: {gaps}")


@window("A15", LONG)
async def store_stands_still(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.store.stall_until = s.now + 10
    await s.sleep(11)
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 2)


@window("A16", LONG)
async def store_failover_starts_leases_anew(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.complete(1)))
    await s.sleep(1.5)
    leases = s.world.store.leases
    s.prove(bool(leases), "no lease to extend")
    for lease, (_, ttl_s) in list(leases.items()):
        leases[lease] = (s.now + ttl_s, ttl_s)
    await s.saw(moments.elected)
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("A17", JobSpec("j", rows=120))
async def leaders_die_one_after_another(s: Scene) -> None:
    for _ in range(8):
        await s.until(lambda: s.world.leader() is not None)
        s.kill_leader()
        await s.sleep(LEASE_S * 1.2)
    before = s.pipeline().checkpoints.latest
    await s.saw(moments.pipeline(moments.complete((before.number if before else 0) + 1)))
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(8)


@window("A18", LONG)
async def record_of_a_newer_version(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.complete(1)))
    item = s.world.store.items["job/j"]
    newer = item.value.replace(b'"version":1', b'"version":2', 1)
    s.world.store.items["job/j"] = replace(item, value=newer)
    terms, writes = s.terms(), len(s.records(PipelineRecord))
    await s.until(lambda: sum(bool(m.refusal) for m in s.world.masters.values()) >= 2)
    said = [m.refusal for m in s.world.masters.values() if m.refusal]
    s.claim(all("version 2" in r for r in said), "the reason is not said")
    s.claim(len(s.records(PipelineRecord)) == writes, "a master that cannot read led")
    s.prove(s.terms() > terms, "nobody tried")
    s.world.store.items["job/j"] = item
    await s.rest()
    s.ends("FINISHED")


@window("A19", LONG)
async def late_order_of_a_former_leader(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.complete(1)))
    old = s.world.store.items["leader"].revision
    await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC, 3)))
    place = s.pipeline().tasks[0].place
    assert place
    worker = s.world.workers[place.worker]
    await s.until(lambda: worker.term > old)
    await s.world.to_worker(place.incarnation, StopTask(old, TaskKey("j", "i1", 1, "p1t1"), 1))
    s.claim(bool(worker.tasks), "an order of a former term was obeyed")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


def _puts(changes: object) -> list[Put]:
    return [c for c in changes if isinstance(c, Put)]  # type: ignore[attr-defined]
