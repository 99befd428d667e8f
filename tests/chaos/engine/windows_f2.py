"""Group F, with every kind of sink: what leaders do between a complete checkpoint and a table."""

import asyncio
from time import monotonic

from tests.chaos.engine.commits import made_by, once, snapshots, users
from tests.chaos.engine.jobs import LONG, From, Shape
from tests.chaos.engine.moments import attempt, committed, complete
from tests.chaos.engine.scene import Scene, kill_at, window
from tests.chaos.engine.sinks import KINDS, TIDIED
from tests.chaos.engine.windows_f import STEADY, fail

SPARSE = Shape(((From(3, 5, 2_500), From(3, 5, 2_500)),), interval_ms=400)
BESIDE = Shape(((From(18), From(18)),), first=2)
TWO = Shape(((From(14), From(14)),), tables=2)
LASTING = Shape(((From(60), From(60)),))

kill_at("F05", ("after:pipeline.CheckpointStored", 2), shape=LONG, sinks=KINDS)
kill_at("F06", ("after:table.commit", 2), shape=LONG, sinks=KINDS)


@window("F07", LONG, sinks=KINDS)
async def table_does_not_say(s: Scene) -> None:
    number = s.arm("after:table.commit", "unknown", 2)
    await s.submit()
    await s.hit(number)
    await s.rest()
    s.untouched()
    once(s)


@window("F08", LONG, sinks=KINDS)
async def commit_of_a_leader_that_stood_still(s: Scene) -> None:
    """It stands still just before a commit, and makes it when its successor has made it, too."""
    number = s.arm("before:table.commit", "stop", 2)
    await s.submit()
    name, term = await s.hit(number), s.cluster.ledger.term()
    record = await s.until(lambda p: p.commits.waiting)
    s.prove(record.commits.waiting, "nothing was to be committed")
    assert record
    if len(s.cluster.masters) > 1:
        await s.elected(term)
        await s.until(committed(record.commits.waiting[0].number))
    else:
        await asyncio.sleep(1.5 * s.cluster.settings["lease_s"])
    woken_s = monotonic()
    s.cluster.process(name).go_on()
    late = await s.saw(
        lambda e: e["kind"] == "publish" and made_by(e["process"], name) and e["at"] > woken_s
    )
    s.prove(late["number"] == record.commits.waiting[0].number, "it made another commit")
    await s.elected(term)
    await s.rest()
    s.untouched()
    once(s)


@window("F09", LONG, sinks=KINDS)
async def two_commits_are_owed(s: Scene) -> None:
    number = s.arm("before:table.commit", "hold")
    await s.submit()
    await s.hit(number)
    record = await s.until(lambda p: len(p.commits.waiting) >= 2)
    await s.kill_leader()
    await s.rest()
    owed = {c.number for c in record.commits.waiting}
    made = {e["number"] for e in snapshots(s)}
    s.claim(owed <= made, f"owed {owed}, made {made}")
    s.untouched()
    once(s)


@window("F11", LONG, sinks=KINDS)
async def another_job_commits_in_between(s: Scene) -> None:
    """Two jobs write to one table; one of them commits while a commit of the other is held."""
    await s.submit()
    await s.submit("k", BESIDE, into="j")
    for name in ("j", "k"):
        await s.until(committed(1), name)
    number = s.arm("before:table.commit", "hold")
    await s.hit(number)
    before = {n: _through(s, n) for n in ("j", "k")}
    await s.cluster.ledger.until(lambda: any(_through(s, n) >= before[n] + 2 for n in before))
    s.release(number)
    await s.rest()
    s.untouched()
    once(s)


def _through(s: Scene, name: str) -> int:
    record = s.cluster.ledger.pipeline(s.jobs[name].id)
    return record.commits.through if record else 0


@window("F12", LONG, sinks=TIDIED)
async def table_is_tidied_before_the_commit_is_on_record(s: Scene) -> None:
    """Others compact, expire or take away what a commit has shown; nobody may show it again."""
    number = s.arm("after:table.commit", "hold", 2)
    job = await s.submit()
    await s.hit(number)
    await asyncio.to_thread(s.kill, *s.cluster.masters, revive=False)
    await asyncio.to_thread(s.sink.tidy, job.out, "p1")
    s.prove(s.cluster.ledger.pipeline(job.id), "the job was over")
    await asyncio.to_thread(s.cluster.heal)
    await s.rest()
    once(s)


@window("F22", LONG, sinks=KINDS)
async def same_master_leads_again(s: Scene) -> None:
    """Nobody else could: it meets, in a new term, the commit that it had not made."""
    number = s.arm("before:table.commit", "hold", 2)
    await s.submit()
    name, term = await s.hit(number), s.cluster.ledger.term()
    for other in s.cluster.masters:
        s.note_fault("pause", other)
        s.cluster.process(other).stop()
    await asyncio.sleep(2 * s.cluster.settings["lease_s"])
    s.cluster.process(name).go_on()
    again = await s.elected(term)
    s.prove(again == name, "another leads")
    for other in s.cluster.masters:
        s.cluster.process(other).go_on()
    s.release(number)
    await s.rest()
    s.untouched()
    once(s)


@window("F25", TWO, sinks=KINDS)
async def one_of_two_tables_has_it(s: Scene) -> None:
    number = s.arm("after:table.commit")
    await s.submit()
    name = await s.hit(number)
    made = [(e["table"], e["number"]) for e in snapshots(s)]
    s.prove(len(made) == 1, f"committed before the kill: {made}")
    await s.start_again(name)
    await s.rest()
    tables = {e["table"] for e in snapshots(s) if e["number"] == made[0][1]}
    s.claim(len(tables) == 2, f"committed to {tables}")
    s.untouched()
    once(s)


@window("F26", LASTING, sinks=KINDS)
async def cancelled_with_a_commit_on_its_way(s: Scene) -> None:
    """The same job again, into the same table, has to wait until the old commit is resolved."""
    job = await s.submit()
    number = s.arm("before:table.commit", "hold", 2)
    await s.hit(number)
    await s.cancel()
    record = await s.until_job("CANCELING")
    answer = await s.client.submit(job.id, job.spec, "another-token")
    s.claim(not answer.yes, "the next life was let in while a commit was on its way")
    s.release(number)
    await s.rest()
    await s.submit("again", BESIDE, id=job.id, into="j")
    await s.rest()
    order = [str(e["user"]).split(".")[1] for e in snapshots(s)]
    s.prove(len(set(order)) == 2 and order[0] == record.incarnation, "both lives have to commit")
    s.claim(order == sorted(order, key=order.index), f"two lives committed at once: {order}")
    once(s)


@window("F27", SPARSE, sinks=KINDS)
async def empty_checkpoints_survive_a_takeover(s: Scene) -> None:
    await s.submit()
    await s.until(complete(1))
    empty = await s.saw(
        lambda e: e["kind"] == "ack" and e["job"] == s.jobs["j"].id and not e["staged"]
    )
    await s.until(complete(int(empty["number"])))
    await s.kill_leader()
    s.hits += 1
    await s.rest()
    s.untouched()
    once(s)


@window("F28", STEADY, sinks=KINDS)
async def commit_user_stays(s: Scene) -> None:
    await s.submit()
    await s.killed(s.arm("after:table.commit", count=2))
    end = await fail(s)
    await s.until(attempt(2, end["task"]))
    await s.killed(s.arm("before:table.commit"))
    await s.rest()
    s.claim(len(users(s)) == 1, f"users {users(s)}")
    once(s)


@window("F30", LASTING, sinks=KINDS)
async def staged_rows_are_removed_from_outside(s: Scene) -> None:
    job = await s.submit(ends="FAILED")
    number = s.arm("before:table.commit", "hold", 2)
    await s.hit(number)
    record = await s.until(lambda p: p.commits.waiting)
    lost = await asyncio.to_thread(s.sink.lose, job.out)
    s.prove(lost, "nothing was staged")
    s.release(number)
    ended = await s.until_job("FAILED")
    s.say(f"the reason: {ended.reason}")
    number = record.commits.waiting[0].number
    s.claim(f"Commit {number} failed" in ended.reason, f"the reason is {ended.reason}")
    await s.rest()
    late = [e["number"] for e in snapshots(s) if e["number"] >= number]
    s.claim(not late, f"commits {late} were made all the same")
