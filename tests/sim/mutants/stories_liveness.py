"""The good story, broken in one place for each invariant: what must come to pass (L)."""

from dataclasses import replace

from holdfast.core.job import JobStatus
from holdfast.core.saved_state import Saved
from holdfast.core.task import TaskStatus
from tests.oracle import commits, liveness, savepoints, shown
from tests.oracle.events import (
    Client,
    End,
    Fault,
    Left,
    Removed,
    Shown,
    Snapshot,
    Stage,
    Stuck,
    Write,
)
from tests.sim.mutants.stories_lifecycle import breaks, with_task
from tests.sim.stories import (
    JOB,
    PIPE,
    SAVED,
    Events,
    added,
    changed,
    pick,
    place,
    record,
    rewritten,
    saved,
    with_commits,
    without,
    wrote,
)


@breaks("I79", commits.stays)
def rows_go_without_a_commit(e: Events) -> Events:
    return added(e, place(e, Snapshot), Removed(table="t", files=("f1",)))


@breaks("I79", commits.stays)
def a_life_removes_its_own_rows(e: Events) -> Events:
    return changed(e, place(e, Snapshot, number=2), removed=("f1",))


@breaks("I79", commits.stays)
def a_late_commit_of_a_former_life_removes_rows(e: Events) -> Events:
    """The next life has shown rows, and a commit of the one before comes to its end."""
    job, pipe = (replace(record(e, key, 0), incarnation="i2") for key in (JOB, PIPE))
    begun = {JOB: replace(job, origin="j/i1"), PIPE: pipe}
    mine = pick(e, Snapshot, number=2)
    later = replace(mine, user=mine.user.replace("i1", "i2"), number=1, files=("f9",))
    return added(
        e, -1,
        *(Write(key=key, revision=100, record=one) for key, one in begun.items()),
        later, replace(mine, number=3, files=(), removed=("f9",)),
    )  # fmt: skip


@breaks("L1", liveness.leaders)
def nobody_leads(e: Events) -> Events:
    gone = Write(key="leader", revision=99, deleted=True, at=20.0)
    return [*added(e, -1, gone), Stuck(at=90.0, why="")]


@breaks("L1", liveness.leaders)
def leader_comes_late(e: Events) -> Events:
    gone = Write(key="leader", revision=99, deleted=True, at=20.0)
    return added(e, -1, gone, Write(key="leader", revision=100, record="M2#1", at=90.0))


@breaks("L3", liveness.rest)
def never_rests(e: Events) -> Events:
    return [*e, Stuck(why="L3 the jobs did not come to rest")]


@breaks("L4", liveness.wishes)
def cancel_hangs(e: Events) -> Events:
    hangs = rewritten(e, JOB, 2, lambda j: replace(j, status=JobStatus.CANCELING))
    return [*hangs, Stuck(why="L3")]


@breaks("L5", liveness.cleanup)
def tombstone_stays(e: Events) -> Events:
    return [*e, Left(thing="key job/j")]


@breaks("L6", liveness.tasks)
def task_runs_on(e: Events) -> Events:
    return without(e, place(e, End))


@breaks("L7", liveness.requests)
def request_hangs(e: Events) -> Events:
    wish = Client(did="wants", what="cancel", job="j", incarnation="i1", at=20.0)
    return [*e, wish, Client(did="saw the end", at=60.0)]


@breaks("L9", liveness.restarts)
def restarts_without_end(e: Events) -> Events:
    return rewritten(e, PIPE, 11, lambda p: replace(p, retries=9))


@breaks("L9", liveness.restarts)
def restart_without_a_reason(e: Events) -> Events:
    return rewritten(e, PIPE, 11, lambda p: with_task(p, attempt=2, status=TaskStatus.DONE))


@breaks("L10", liveness.outages)
def outage_fails_the_job(e: Events) -> Events:
    failed = rewritten(e, JOB, 2, lambda j: replace(j, status=JobStatus.FAILED))
    return added(failed, 4, Fault(fault="store down"))


@breaks("L11", liveness.cleanup)
def staged_file_stays(e: Events) -> Events:
    return [*e, Left(thing="staged file f9")]


@breaks("I71", shown.ages)
def healthy_job_is_shown_old(e: Events) -> Events:
    return changed(e, place(e, Shown), age_s=3600.0)


@breaks("I71", shown.ages)
def stalled_job_is_shown_young(e: Events) -> Events:
    return changed(e, place(e, Shown), at=60.0, age_s=0.0, commit_age_s=60.0)


@breaks("I72", shown.stalled)
def hidden_rows_are_shown_as_well(e: Events) -> Events:
    return changed(e, place(e, Shown), at=30.0, age_s=30.0, commit_age_s=30.0)


@breaks("I72", shown.stalled)
def stalled_without_a_reason(e: Events) -> Events:
    return changed(e, place(e, Shown), at=30.0, age_s=30.0, commit_age_s=30.0, health="STALLED")


@breaks("I82", savepoints.forced)
def goes_on_though_forced(e: Events) -> Events:
    forced = rewritten(e, JOB, 1, lambda j: replace(j, forced=True), onwards=True)
    return changed(forced, place(forced, Write, -2, key=JOB), at=99.0)


@breaks("I82", savepoints.forced)
def names_none_of_what_is_undone(_: Events) -> Events:
    e = rewritten(saved(), JOB, 1, lambda j: replace(j, forced=True), onwards=True)
    undone = lambda p: with_commits(p, listened=p.commits.through - 1)  # noqa: E731
    return rewritten(e, PIPE, -1, undone)


@breaks("I80", savepoints.left)
def left_nothing_to_go_on_from(_: Events) -> Events:
    e = saved()
    return without(e, wrote(e, SAVED, 0))


@breaks("I80", savepoints.left)
def state_is_changed(_: Events) -> Events:
    e = saved()
    at = wrote(e, SAVED, 0)
    found = e[at]
    assert isinstance(found, Write) and isinstance(found.record, Saved)
    other = replace(found, revision=99, record=replace(found.record, life=7))
    return added(e, -1, other)


@breaks("I80", savepoints.left)
def state_is_gone(_: Events) -> Events:
    return added(saved(), -1, Write(key=SAVED, revision=99, deleted=True))


@breaks("I81", savepoints.line)
def rows_come_again(e: Events) -> Events:
    return changed(e, place(e, Stage, 1), rows=(("a", 0), ("a", 1)))


@breaks("I81", savepoints.line)
def rows_are_lost(e: Events) -> Events:
    return changed(e, place(e, Stage, 1), rows=(("a", 2),))
