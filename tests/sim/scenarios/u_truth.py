"""Group U: what users are shown is true."""

from dataclasses import dataclass

from holdfast.core.job import TERMINAL, JobRecord
from holdfast.master.health import STALLED_S, STALLED_SHARE, Health, HealthReport
from holdfast.master.records import RecordUnreadable, decode, job_key
from holdfast.master.retention import HISTORY
from holdfast.store.contract import Item, Store
from holdfast.wire.messages import Barrier
from tests.sim.engine.store import SimStore
from tests.sim.engine.world import JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import fail, worker_of
from tests.sim.scenarios.scene import Scene, others, window

LONG = JobSpec("j", rows=40)
_NOTHING = HealthReport(0, Health.OK, 0.0, 0, 0.0, "")


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as its record, or what stayed of it, shows it."""

    id: str
    incarnation: str
    status: str
    reason: str
    revision: int
    running: bool


async def find_job(store: Store, job: str) -> JobView | None:
    """Return the present or else the last job of an id; None if none is remembered."""
    item = await store.get(job_key(job))
    if item:
        return _view(item)
    entries, _ = await store.range(f"{HISTORY}{job}/")
    return _view(max(entries, key=lambda i: i.created)) if entries else None


async def list_jobs(store: Store) -> tuple[list[JobView], list[JobView]]:
    """Return the running and the finished jobs.  A tombstone is finished."""
    records, _ = await store.range("job/")
    entries, _ = await store.range(HISTORY)
    views = [_view(item) for item in (*records, *entries)]
    return [v for v in views if v.running], [v for v in views if not v.running]


def _view(item: Item) -> JobView:
    try:
        job = decode(JobRecord, item.value)
    except RecordUnreadable as error:
        return JobView(item.key.split("/")[1], "", "DAMAGED", str(error), item.revision, False)
    running = job.status not in TERMINAL
    return JobView(job.id, job.incarnation, job.status, job.reason, item.revision, running)


def _report(s: Scene) -> HealthReport | None:
    master = s.world.leader()
    found = master.leader.health("j") if master and master.leader else []
    return found[0] if found else None


def _is(s: Scene, health: Health) -> bool:
    report = _report(s)
    return report is not None and report.health is health


@window("U01", LONG)
async def no_checkpoint_completes(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    s.claim(_is(s, Health.OK), "not OK though all is well")
    at_s = s.now
    s.tap("drop", Barrier, lambda m: m.key.task == "p1t2")
    await s.until(lambda: _is(s, Health.LATE))
    await s.until(lambda: _is(s, Health.STALLED))
    interval_s = s.world.settings.interval_s
    # One may have been on its way past that task already; the next is the one that is missed.
    bound_s = 2 * interval_s + max(STALLED_SHARE * interval_s, STALLED_S)
    s.claim(s.now - at_s < bound_s + 0.5, "it was shown too late")
    first = _report(s)
    await s.sleep(0.5)
    report = _report(s)
    assert first and report
    s.claim(report.age_s > first.age_s, "the age does not grow")
    s.claim("p1t2" in report.reason, f"the reason is {report.reason}")
    s.claim(str(s.job().status) == "RUNNING", "the status changed")
    s.mend()
    await s.until(lambda: _is(s, Health.OK))
    await s.rest()
    s.ends("FINISHED")


@window("U02", LONG)
async def age_goes_on_over_a_takeover(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    s.tap("drop", Barrier)
    await s.sleep(3.0)
    before = _report(s)
    at_s = s.now
    s.kill_leader()
    await s.saw(moments.elected)
    await s.until(lambda: _report(s) is not None)
    after = _report(s)
    assert before and after
    s.claim(after.checkpoint == before.checkpoint, "another checkpoint is shown")
    s.claim(after.checkpoint_at_s == before.checkpoint_at_s, "another time is shown")
    grown = after.age_s - before.age_s
    # What a standby has not measured is missing; more than was is never shown.
    s.claim(-1.6 < grown - (s.now - at_s) < 0.05, f"the age grew by {grown}")
    s.claim(_is(s, Health.LATE) or _is(s, Health.STALLED), "it is not shown as late")
    s.mend()
    await s.rest()
    s.ends("FINISHED")


@window("U03", LONG)
async def standby_is_asked(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    name = others(s.holder())[0]
    s.pause(s.holder())
    view = await find_job(SimStore(s.world, name), "j")
    s.claim(view is not None and view.status == "RUNNING", "not the durable status")
    item = s.world.store.items["job/j"]
    s.claim(view is not None and view.revision == item.revision, "not with its revision")
    await s.rest()
    s.ends("FINISHED")


@window("U04", JobSpec("j", rows=4), JobSpec("k", rows=40))
async def tombstone_is_listed_as_finished(s: Scene) -> None:
    await s.saw(moments.job("FINISHED"))
    store = SimStore(s.world, "M1")
    for _ in range(2):
        running, over = await list_jobs(store)
        s.claim("j" not in [v.id for v in running], "a tombstone runs")
        s.claim([v.status for v in over if v.id == "j"] == ["FINISHED"], "it is not shown")
        s.kill_leader()
        await s.saw(moments.elected)
    await s.saw(moments.gone("j"))
    view = await find_job(store, "j")
    s.claim(view is not None and view.status == "FINISHED", "its end is forgotten")
    await s.rest()
    s.ends("FINISHED", job="k")


@window("U05", JobSpec("j", rows=40, retry_times=1))
async def no_life_after_failed(s: Scene) -> None:
    seen: list[str] = []
    store = SimStore(s.world, "M1")
    for number in (1, 2):
        await s.saw(moments.pipeline(moments.attempt("p1t1", number)))
        if number == 2:
            s.cut("M1", worker_of(s, "p1t2"), 4)
            s.world.when(moments.job("FAILED"), lambda e: s.kill_leader())
        fail(s)
    while not seen or seen[-1] not in TERMINAL or s.world.store.items.get("job/j"):
        view = await find_job(store, "j")
        seen.append(view.status if view else "none")
        await s.sleep(0.1)
    over = seen.index("FAILED")
    s.claim(set(seen[over:]) == {"FAILED"}, f"shown after FAILED: {set(seen[over:])}")
    await s.rest()
    s.ends("FAILED")


@window("U06", LONG)
async def clocks_an_hour_apart(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(2)))
    for hours in (1, -1, 1):
        for name in others(s.holder()):
            s.world.dates[name] = s.world.dates.get(s.holder(), 0.0) + hours * 3600
        s.kill_leader()
        await s.saw(moments.elected)
        await s.until(lambda: _report(s) is not None)
        # That it is neither too old nor too young is for the oracle to say (I71).
        s.claim((_report(s) or _NOTHING).age_s < 15, "a healthy job is shown an hour old")
        await s.until(lambda: _is(s, Health.OK))
    s.tap("drop", Barrier)
    await s.until(lambda: _is(s, Health.STALLED))
    await s.sleep(s.world.settings.lease_s)
    for name in others(s.holder()):
        s.world.dates[name] = s.world.dates.get(s.holder(), 0.0) - 3600
    s.kill_leader()
    await s.saw(moments.elected)
    await s.until(lambda: _report(s) is not None)
    s.claim(_is(s, Health.STALLED), "a stalled job is shown well")
    s.mend()
    await s.rest()
    s.ends("FINISHED")


@window("U07", LONG)
async def table_does_not_answer(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    s.hold_commits()
    await s.saw(moments.event("held"))
    at_s = s.now
    await _stalls(s, at_s, "is not visible")
    await s.sleep(s.world.settings.lease_s)
    s.claim("has not answered" in (_report(s) or _NOTHING).reason, "it does not say who is silent")
    s.kill_leader()
    await s.saw(moments.elected)
    await s.until(lambda: _report(s) is not None)
    s.claim(_is(s, Health.STALLED), "the next leader does not know how old it is")
    s.let_go()
    await s.until(lambda: _is(s, Health.OK))
    await s.rest()
    s.ends("FINISHED")


@window("U08", LONG)
async def listeners_fail(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    s.world.tables.deaf = 999
    await s.saw(moments.event("fault", fault="listener failed"))
    await _stalls(s, s.now, "listeners have not run")
    s.claim("did not answer" in (_report(s) or _NOTHING).reason, "it does not say why")
    s.world.tables.deaf = 0
    await s.until(lambda: _is(s, Health.OK))
    await s.rest()
    s.ends("FINISHED")


@window("U09", JobSpec("j", rows=4))
async def last_commit_does_not_get_through(s: Scene) -> None:
    s.hold_commits()
    await s.saw(moments.pipeline(lambda p: p.final is not None))
    await _stalls(s, s.now, "is not visible")
    s.let_go()
    await s.rest()
    s.ends("FINISHED")


async def _stalls(s: Scene, at_s: float, why: str) -> None:
    """Wait for STALLED, and claim that it came in time and says why."""
    await s.until(lambda: _is(s, Health.STALLED))
    interval_s = s.world.settings.interval_s
    bound_s = 2 * interval_s + max(STALLED_SHARE * interval_s, STALLED_S)
    s.claim(s.now - at_s < bound_s + 0.5, "it was shown too late")
    reason = (_report(s) or _NOTHING).reason
    s.claim(why in reason, f"the reason is {reason}")
    s.claim(str(s.job().status) == "RUNNING", "the status changed")
