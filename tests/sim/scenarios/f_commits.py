"""Group F: two-phase commit into tables."""

from dataclasses import replace

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.records import decode, encode
from holdfast.wire.messages import BarrierAck
from tests.sim.engine.lake import Snapshot
from tests.sim.engine.world import MASTERS, JobSpec
from tests.sim.scenarios import moments
from tests.sim.scenarios.c_tasks import fail, starts
from tests.sim.scenarios.scene import Scene, kill_at, window

LONG = JobSpec("j", rows=24)
TWO = JobSpec("j", rows=12, sinks=("t", "u"))

kill_at("F05", ("before:table.commit", 2), jobs=(LONG,))
kill_at("F06", ("after:table.commit", 2), jobs=(LONG,))
kill_at("F16", ("after:pipeline.Committed", 2), jobs=(LONG,))
kill_at("F17", ("after:table.listen", 2), jobs=(LONG,))


def shown(s: Scene) -> list[str]:
    """Return the files of all snapshots."""
    return [f for e in s.world.history.of("snapshot") for f in e["files"]]


def marks(s: Scene) -> list[int | None]:
    """Return the watermarks of all snapshots, in order."""
    return [e["watermark"] for e in s.world.history.of("snapshot")]


@window("F01", LONG)
async def staged_and_not_in_an_answer(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    held = s.tap("drop", BarrierAck)
    staged = await s.saw(
        moments.event("stage"), lambda e: s.kill(*[e["file"].split("-")[1].split("#")[0]])
    )
    await s.sleep(0.2)
    held.end()
    await s.rest()
    s.claim(staged["file"] not in shown(s), "a file of a lost attempt is visible")
    s.ends("FINISHED")


@window("F02", LONG)
async def answered_and_the_attempt_fails(s: Scene) -> None:
    s.tap("drop", BarrierAck, lambda m: m.key.task == "p1t2" and m.acked.number == 2)
    await s.saw(moments.event("ack", number=2, task="p1t1"))
    await s.sleep(0.1)
    fail(s)
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    await s.rest()
    s.claim(not [f for f in shown(s) if "p1t1/a1-" in f and "-2-t" in f], "the first try's files")
    s.ends("FINISHED")


@window("F03", LONG)
async def all_have_answered_and_one_attempt_fails(s: Scene) -> None:
    s.arm("before:blob.put", 2, lambda name: fail(s))
    s.world.blobs.put_s = 2.0
    await s.saw(moments.event("fault", fault="task failed"))
    await s.saw(moments.pipeline(moments.attempt("p1t1")))
    s.world.blobs.put_s = 0.0
    await s.rest()
    s.claim(not [f for f in shown(s) if "p1t1/a1-" in f and "-2-t" in f], "the first try's files")
    s.ends("FINISHED")


@window("F04", LONG)
async def checkpoint_given_up_with_writers_alive(s: Scene) -> None:
    s.tap("drop", BarrierAck, lambda m: m.key.task == "p1t2" and m.acked.number == 1)
    await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row))
    await s.rest()
    once = [f for f in shown(s) if "-1-t" in f]
    s.claim(len(once) == 2 and len(set(once)) == 2, f"carried files: {once}")
    s.ends("FINISHED")
    s.untouched()


@window("F06", LONG)
@window("F07", LONG)
async def table_does_not_say(s: Scene) -> None:
    s.world.tables.silent = 3
    await s.saw(moments.event("fault", fault="table did not say"))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()
    s.takeovers(0, 0)


@window("F08", LONG)
async def zombie_commit_between_question_and_commit(s: Scene) -> None:
    s.hold_commits(lambda order: order.number == 2)
    await s.saw(moments.event("held", number=2), lambda e: s.pause(s.holder()))
    s.world.tables.holds = None
    await s.saw(moments.event("publish", number=2), lambda e: s.let_go())
    await s.saw(moments.event("conflict", number=2))
    await s.rest()
    mine = [e for e in s.world.history.of("snapshot") if e["number"] == 2]
    s.claim(len(mine) == 1, "committed twice")
    s.ends("FINISHED")


@window("F09", LONG)
async def two_commits_are_owed(s: Scene) -> None:
    s.hold_commits()
    await s.kills_leader(moments.pipeline(lambda p: len(p.commits.waiting) >= 2))
    s.world.tables.holds = None
    await s.saw(moments.elected)
    s.let_go()
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("F10", LONG)
async def table_refuses_for_good(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(1)))
    s.world.tables.table("t").refuses = "The column price is gone."
    await s.saw(moments.job("FAILED"))
    s.claim("price" in s.job().reason, f"the reason is {s.job().reason}")
    number = s.pipeline().commits.through
    s.claim(bool(s.pipeline().commits.waiting), "what could not be committed was dropped")
    await s.rest()
    s.claim(max(e["number"] for e in s.world.history.of("snapshot")) == number, "a later commit")


@window("F11", LONG)
async def foreign_commit_between_question_and_commit(s: Scene) -> None:
    other = Snapshot("compaction", 0, (), None)
    await s.saw(moments.event("publish", number=2), lambda e: s.world.tables.table("t").add(other))
    await s.saw(moments.event("conflict", number=2))
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("F12", LONG)
async def our_snapshots_have_expired(s: Scene) -> None:
    def strike(event: object) -> None:
        s.kill_leader()
        s.world.tables.table("t").expire()

    await s.saw(moments.event("snapshot", number=2), strike)
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("F13", LONG)
async def least_watermark_counts(s: Scene) -> None:
    s.world.marks = {"p1t1": [(1000, False)], "p1t2": [(0, False)]}
    await s.rest()
    s.claim(set(marks(s)) == {0}, f"watermarks {marks(s)}")
    s.ends("FINISHED")


@window("F14", LONG)
async def idle_writer_comes_back_behind(s: Scene) -> None:
    s.world.marks = {
        "p1t1": [(1000, False), (1000, False), (1100, False), (1200, False)],
        "p1t2": [(None, True), (10, False), (20, False), (1150, False)],
    }
    await s.rest()
    known = [m for m in marks(s) if m is not None]
    s.claim(known == sorted(known), f"a watermark went back: {known}")
    s.claim(known[0] == 1000 and known[-1] == 1150, f"watermarks {known}")
    s.ends("FINISHED")


@window("F15", LONG)
async def every_writer_is_idle(s: Scene) -> None:
    s.world.marks = {"p1t1": [(500, False), (None, True)], "p1t2": [(700, False), (None, True)]}
    await s.rest()
    s.claim(set(marks(s)) == {500}, f"watermarks {marks(s)}")
    s.ends("FINISHED")


@window("F16", LONG)
@window("F17", LONG)
async def listeners_hear_of_every_commit(s: Scene) -> None:
    s.arm("before:pipeline.HooksFinished", 2, "kill")
    await s.rest()
    numbers = {e["number"] for e in s.world.history.of("snapshot")}
    heard = {number for _, number in s.world.tables.heard}
    s.claim(numbers <= heard, f"nobody heard of {numbers - heard}")
    s.claim(len(s.world.tables.heard) > len(heard), "nothing was repeated")
    s.ends("FINISHED")


@window("F18", LONG)
async def listener_fails(s: Scene) -> None:
    s.world.tables.deaf = 6
    await s.saw(moments.event("fault", fault="listener failed"))
    await s.rest()
    numbers = {e["number"] for e in s.world.history.of("snapshot")}
    s.claim(numbers <= {n for _, n in s.world.tables.heard}, "a listener was forgotten")
    s.ends("FINISHED")
    s.untouched()


@window("F18", LONG)
async def listeners_cannot_be_told(s: Scene) -> None:
    await s.saw(moments.pipeline(lambda p: p.commits.through == 2 > p.commits.listened))
    name = next(c.blob for c in s.pipeline().checkpoints.kept if c.number == 2)
    s.world.blobs.torn.add(name)
    s.world.note_by(None, "fault", fault="blob spoilt", name=name)
    await s.rest()
    s.ends("FAILED")
    reason = s.job().reason
    s.claim("2 is visible, but its listeners cannot run" in reason, f"the reason is {reason}")
    s.claim(2 not in {n for _, n in s.world.tables.heard}, "they heard of something else")


@window("F19", JobSpec("j", rows=80))
async def all_masters_stand_still(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(2)))
    before_s, before = s.now, _rows(s)
    pace = before / before_s
    for name in MASTERS:
        s.pause(name, 9.0)
    await s.sleep(9)
    s.claim(_rows(s) - before >= 9 * pace * 0.9, f"{_rows(s) - before} rows in 9 s")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


def _rows(s: Scene) -> int:
    tasks = [t for w in s.world.workers.values() for t in w.tasks.values()]
    return sum(sum(t.positions.values()) for t in tasks)


@window("F20", LONG)
async def older_checkpoint_is_whole_but_behind(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.committed(3)))
    s.prove(len(s.pipeline().checkpoints.kept) > 1, "there is no older one")
    s.world.blobs.torn.add(s.latest_blob())
    fail(s)
    await s.rest()
    s.ends("FAILED")
    s.claim(starts(s, "p1t1") == [1], "committed rows were read again")


@window("F22", LONG)
async def same_master_leads_again(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    name = s.holder()
    s.kill(*(m for m in MASTERS if m != name), revive=False)
    first = s.world.masters[name].leader
    s.cut(name, "store", 5)
    await s.saw(moments.elected)
    await s.until(lambda: bool(s.world.leader()))
    s.prove(s.holder() == name, "another leads")
    s.claim(s.world.masters[name].leader is not first, "an old instance leads again")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


@window("F23", LONG)
async def files_are_reported_again(s: Scene) -> None:
    s.hold_commits()
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.blobs.refused_puts = 1
    await s.saw(moments.event("fault", fault="blob refused"))
    await s.saw(moments.pipeline(lambda p: len(p.commits.waiting) >= 3))
    s.let_go()
    fail(s, "p1t2")
    await s.rest()
    acks = [p.message.acked for p in s.sent(BarrierAck)]
    again = [a for a in acks if any(f.created < a.number for f in a.staged)]
    s.prove(bool(again), "nothing was reported again")
    s.ends("FINISHED")


@window("F24", LONG)
async def answer_of_a_stale_attempt(s: Scene) -> None:
    held = s.tap("copy", BarrierAck, lambda m: m.key.task == "p1t1", 1)
    await s.saw(moments.pipeline(moments.complete(1)))
    fail(s)
    own = s.tap("hold", BarrierAck, lambda m: m.key.task == "p1t1" and m.acked.attempt == 2)
    await s.until(lambda: "p1t1" in _asked(s) and bool(own.taken))
    old, number = held.taken[0].message, own.taken[0].message.acked.number
    forged = replace(old, acked=replace(old.acked, number=number))
    await s.leader().hear("W1#1", forged)
    s.claim("p1t1" in _asked(s), "a stale answer was taken")
    s.release(own)
    await s.rest()
    s.ends("FINISHED")


def _asked(s: Scene) -> tuple[str, ...]:
    """Return the tasks whose answer the pending checkpoint waits for."""
    master = s.world.leader()
    job = master.leader.jobs.get("j") if master and master.leader else None
    gathering = job.pipelines[1].gathering if job else None
    return gathering.waiting if gathering and s.pipeline().checkpoints.pending else ()


@window("F25", TWO)
async def one_of_two_tables_has_it(s: Scene) -> None:
    await s.kills_leader(moments.event("snapshot", table="t", number=2))
    s.prove(not [e for e in s.world.history.of("snapshot") if e["table"] == "u" and
                 e["number"] == 2], "both had it")  # fmt: skip
    await s.rest()
    tables = {e["table"] for e in s.world.history.of("snapshot") if e["number"] == 2}
    s.claim(tables == {"t", "u"}, f"committed to {tables}")
    s.ends("FINISHED")
    s.untouched()


@window("F26", LONG, lives=2)
async def cancelled_with_a_commit_on_its_way(s: Scene) -> None:
    s.hold_commits(lambda order: ".i1." in order.user and order.number == 2)
    await s.saw(moments.event("held", number=2))
    await s.ask(lambda leader: leader.cancel("j"))
    await s.sleep(4)
    s.claim(str(s.job().status) == "CANCELING", "it did not wait for its commit")
    s.let_go()
    await s.rest()
    users = [e["user"] for e in s.world.history.of("snapshot")]
    s.claim(users == sorted(users), "two lives committed at once")


@window("F27", LONG)
async def empty_checkpoints_survive_a_takeover(s: Scene) -> None:
    await s.kills_leader(moments.pipeline(lambda p: p.completion.ready))
    await s.rest()
    for record in s.records(PipelineRecord):
        s.claim(decode(PipelineRecord, encode(record)) == record, "a record reads back differently")
    s.ends("FINISHED")
    s.untouched()


@window("F28", LONG)
async def commit_user_stays(s: Scene) -> None:
    for number in (1, 3):
        await s.kills_leader(moments.pipeline(moments.complete(number)))
        await s.saw(moments.elected)
    fail(s)
    await s.rest()
    users = {e["user"] for e in s.world.history.of("snapshot")}
    s.claim(users == {"j.i1.1.t"}, f"users {users}")
    s.takeovers(2)
    s.ends("FINISHED")


@window("F30", LONG)
async def staged_files_are_removed_from_outside(s: Scene) -> None:
    def strike(event: object) -> None:
        s.world.tables.files.pop(
            next(f for f in s.world.tables.files if "-2-t" in f and "p1t1" in f)
        )

    await s.saw(moments.pipeline(moments.complete(2)), strike)
    await s.rest()
    s.ends("FAILED")
    s.claim("Staged files are gone" in s.job().reason, f"the reason is {s.job().reason}")


@window("F31", LONG)
async def checkpoint_fails_at_once(s: Scene) -> None:
    await s.saw(moments.pipeline(moments.complete(1)))
    s.world.blobs.refused_puts = 1
    begun = await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC)))
    failed = await s.saw(moments.pipeline(lambda p: p.checkpoints.failed_in_a_row))
    s.claim(failed["at"] - begun["at"] < 1.0, "it waited for the timeout")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()


CROWD = JobSpec("j", (tuple((f"s{i:02}",) for i in range(40)),), rows=12)


@window("F32", CROWD, slots=40)
async def many_writers_in_one_checkpoint(s: Scene) -> None:
    begun = await s.saw(moments.pipeline(moments.pending(CheckpointKind.PERIODIC)))
    done = await s.saw(moments.pipeline(moments.complete(1)))
    s.claim(done["revision"] - begun["revision"] <= 3, "a write for each writer")
    s.claim(done["at"] - begun["at"] < 1.0, "the answers were taken one by one")
    await s.rest()
    s.ends("FINISHED")
    s.untouched()
