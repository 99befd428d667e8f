"""Group S: the store, the network, and processes that stand still."""

from holdfast.master.master import Master
from holdfast.wire.messages import Heartbeat
from tests.sim.engine.faults import Faults
from tests.sim.engine.store import Armed
from tests.sim.engine.world import MASTERS, WORKERS, JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import worker_of
from tests.sim.scenarios.scene import SCENARIOS as REGISTERED
from tests.sim.scenarios.scene import Scenario, Scene, others, window

LONG = JobSpec("j", rows=24)
LONGER = JobSpec("j", rows=60)


@window("S01", LONGER)
async def store_is_down_for_a_while(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.store_down(7)
    await s.sleep(7)
    await s.saw(moments.pipeline(moments.complete(3)))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("S02", LONGER)
async def store_is_down_for_very_long(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.store_down(20)
    await s.sleep(15)
    tasks = [t for w in s.world.workers.values() for t in w.tasks.values()]
    s.claim(bool(tasks) and all(t.failure for t in tasks), "orphans still run")
    await s.rest()
    s.restarted("p1t1")
    s.ends("FINISHED")


@window("S03", LONG, JobSpec("k", rows=12))
async def store_is_down_while_records_are_loaded(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(moments.complete(1)))
    await s.saw(moments.elected, lambda e: s.store_down(1.0))
    await s.rest()
    s.ends("FINISHED")
    s.ends("FINISHED", job="k")
    s.untouched()


OPS = ("get", "range", "commit", "grant", "keep", "revoke")
CALLS = {"get": (0, 1, 4), "range": (0, 1), "commit": range(12), "grant": (0, 1), "keep": (0, 3)}


def _silent_call(op: str, skip: int) -> None:
    """Register: one call of one method is carried out and never answered."""

    async def script(s: Scene) -> None:
        s.world.store.armed.append(Armed(op, "unknown", skip=skip))
        if op in ("range", "grant", "get", "revoke"):
            s.world.when(moments.pipeline(moments.complete(1)), lambda e: _lose_lead(s, op))
        await s.saw(moments.event("fault", fault="store answer lost", op=op))
        await s.rest()
        s.ends("FINISHED")

    script.__name__ = f"call_{skip + 1}_of_{op}_is_not_answered"
    REGISTERED.setdefault("S04", []).append(Scenario("S04", script, (LONG,)))


def _lose_lead(s: Scene, op: str) -> None:
    """Bring about a takeover: by a death, or by a leader that steps down and releases."""
    if op == "revoke":
        later = Heartbeat("W9", "W9#1", 1, 10**9, 0, (), ())
        s.world.loop.spawn(s.world.process_of(s.holder()), s.leader().hear("W9#1", later))
    else:
        s.kill_leader()


for _op in OPS:
    for _skip in CALLS.get(_op, (0,)):
        _silent_call(_op, _skip)


@window("S05", JobSpec("j", rows=150), faults=Faults(store_error=0.01, store_unknown=0.002))
async def store_is_flaky(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(15)))
    await s.rest()
    s.ends("FINISHED")


@window("S06", LONGER, rests=False, waived=("E HistoryLost",))
async def store_loses_commits_it_had_answered(s: Scene) -> None:
    store = s.world.store
    await s.saw(moments.pipeline(moments.committed(1)))
    items, revision = dict(store.items), store.revision
    await s.saw(moments.pipeline(moments.committed(3)))
    store.items, store.revision = items, revision
    s.world.note_by(None, "fault", fault="store went back")
    before = len(s.world.history.of("write"))
    await s.until(lambda: all(m.refusal for m in s.world.masters.values()))
    s.claim(all(_halted(m) for m in s.world.masters.values()), "somebody leads on")
    await s.sleep(10)
    s.claim(len(s.world.history.of("write")) == before, "something was written on top")


def _halted(master: Master) -> bool:
    return "lost commits" in master.refusal and master.leader is None


@window("S09", LONGER)
async def store_has_no_space(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.note_by(None, "fault", fault="store full")
    s.world.store.full_until = s.now + 5
    await s.sleep(5)
    await s.saw(moments.pipeline(moments.complete(3)))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()
    s.takeovers(0, 0)


POOR = Faults(message_slow_s=0.5, message_lost=0.05, message_twice=0.02)


@window("S10", LONGER, faults=POOR)
async def network_is_poor(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(10)))
    await s.rest()
    s.ends("FINISHED")


@window("S11", LONGER)
async def nodes_are_clogged_one_by_one(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    nodes = [*MASTERS, *WORKERS]
    s.world.loop.random.shuffle(nodes)
    for node in nodes:
        for other in (*MASTERS, *WORKERS, "store"):
            s.cut(node, other)
        await s.sleep(0.7)
    s.world.loop.random.shuffle(nodes)
    for node in nodes:
        for pair in [p for p in s.world.network.cuts if node in p]:
            del s.world.network.cuts[pair]
        await s.sleep(0.7)
    await s.saw(moments.pipeline(lambda p: not p.checkpoints.pending and p.checkpoints.latest))
    await s.rest()
    s.ends("FINISHED")


@window("S12", LONG)
async def peer_vanishes_in_a_request(s: Scene) -> None:
    s.arm("before:job.JobCancelRequested", 1, lambda name: s.kill(name, revive=False))
    await s.saw(moments.pipeline(moments.complete(1)))
    at_s = s.now
    said = await s.ask(lambda leader: leader.cancel("j"))
    s.claim(said == "" and s.now - at_s < 15, "no definite answer")
    await s.rest()
    s.ends("CANCELED")


@window("S15", LONG)
async def loop_of_the_leader_is_blocked(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = s.holder()
    s.pause(name, 5.0)
    await s.saw(moments.elected)
    s.claim(s.holder() in others(name), "a blocked master leads")
    await s.until(lambda: s.world.masters[name].leader is None)
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("S17", LONG)
async def worker_stands_still(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    name = worker_of(s)
    s.pause(name, 6.0)
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    await s.rest()
    s.ends("FINISHED")
    s.takeovers(0, 0)
