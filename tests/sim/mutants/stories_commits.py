"""The good story, broken in one place for each invariant: checkpoints, commits, savepoints."""

from dataclasses import replace
from typing import Any

from holdfast.core.checkpoint import CheckpointKind, Pending
from holdfast.core.job import JobStatus
from tests.oracle import checkpoints, commits, completion, liveness, savepoints
from tests.oracle.events import (
    Ack,
    Blob,
    Drop,
    Fault,
    Heard,
    Listen,
    Order,
    Publish,
    Read,
    Snapshot,
    Stage,
    Sweep,
)
from tests.sim.mutants.stories_lifecycle import breaks, with_task
from tests.sim.stories import (
    JOB,
    PIPE,
    TERM,
    Events,
    added,
    changed,
    pick,
    place,
    record,
    rewritten,
    saved,
    with_checkpoints,
    with_commits,
    without,
    wrote,
)


@breaks("I26", checkpoints.numbers)
def number_reserved_twice(e: Events) -> Events:
    return rewritten(e, PIPE, 5, lambda p: with_checkpoints(p, next=1))


@breaks("I26", checkpoints.numbers)
def number_gathered_in_two_terms(e: Events) -> Events:
    barrier = place(e, Order, order="Barrier")
    return added(e, barrier, replace(e[barrier], term=TERM + 1))  # type: ignore[call-arg]


@breaks("I27", checkpoints.acknowledged)
def answer_missing(e: Events) -> Events:
    return without(e, place(e, Ack))


@breaks("I28", checkpoints.acknowledged)
def answer_not_in_the_checkpoint(e: Events) -> Events:
    return changed(e, place(e, Ack), positions=(("a", 1),))


@breaks("I29", checkpoints.stored_first)
def commit_recorded_first(e: Events) -> Events:
    return rewritten(e, PIPE, 3, lambda p: with_commits(p, through=1))


@breaks("I29", checkpoints.stored_first)
def commit_begun_first(e: Events) -> Events:
    return changed(e, place(e, Publish), number=2)


@breaks("I30", checkpoints.whole)
def pointer_to_nothing(e: Events) -> Events:
    return without(e, place(e, Blob))


@breaks("I30", checkpoints.whole)
def pointer_to_half_a_blob(e: Events) -> Events:
    return changed(e, place(e, Blob), content=pick(e, Blob).content[:40])


@breaks("I30", checkpoints.given_up)
def commit_of_a_lost_one(e: Events) -> Events:
    return rewritten(e, PIPE, 4, lambda p: with_checkpoints(p, lost=(1,)))


@breaks("I31", checkpoints.numbers)
def latest_goes_back(e: Events) -> Events:
    return rewritten(e, PIPE, 7, lambda p: with_checkpoints(p, latest=None))


@breaks("I32", checkpoints.cut)
def row_beyond_the_cut(e: Events) -> Events:
    return changed(e, place(e, Stage), rows=(("a", 0), ("a", 1), ("a", 2)))


@breaks("I33", checkpoints.retention)
def latest_not_kept(e: Events) -> Events:
    return rewritten(e, PIPE, 6, lambda p: with_checkpoints(p, kept=()))


@breaks("I33", checkpoints.retention)
def latest_removed(e: Events) -> Events:
    return added(e, wrote(e, PIPE, 6), Drop(name="b1"))


@breaks("I33", checkpoints.retention)
def old_ones_pile_up(e: Events) -> Events:
    return rewritten(e, PIPE, 6, lambda p: with_checkpoints(p, kept=p.checkpoints.kept * 9))


@breaks("I34", checkpoints.barriers)
def late_barrier_answered(e: Events) -> Events:
    return added(e, place(e, Ack, 1), pick(e, Ack))


@breaks("I35", checkpoints.carried)
def file_forgotten(e: Events) -> Events:
    return changed(e, place(e, Ack, 1), complete=0)


@breaks("I36", liveness.checkpointing)
def timer_stopped(e: Events) -> Events:
    e = added(e, 4, Fault(fault="heal", at=1.0))
    later = [replace(x, at=x.at + 60) for x in e[wrote(e, PIPE, 3) :]]
    return [*e[: wrote(e, PIPE, 3)], *later]


@breaks("L2", liveness.checkpointing)
def nothing_completes(e: Events) -> Events:
    e = added(e, 4, Fault(fault="heal", at=1.0))
    later = [replace(x, at=x.at + 60) for x in e[wrote(e, PIPE, 4) :]]
    return [*e[: wrote(e, PIPE, 4)], *later]


@breaks("I38", completion.confirmed)
def end_confirmed_early(e: Events) -> Events:
    return added(e, place(e, Heard), pick(e, Order, order="SourceEndAck"))


@breaks("I39", completion.ready_set)
def end_outlives_its_attempt(e: Events) -> Events:
    return rewritten(e, PIPE, 8, lambda p: with_task(p, attempt=2))


@breaks("I39", completion.ready_set)
def end_forgotten(e: Events) -> Events:
    empty = record(e, PIPE, 0).completion
    return rewritten(e, PIPE, 8, lambda p: replace(p, completion=empty))


@breaks("I40", completion.final)
def final_answer_without_proof(e: Events) -> Events:
    return changed(e, place(e, Ack, 1), ended=False)


@breaks("I40", completion.final)
def final_before_the_end(e: Events) -> Events:
    empty = record(e, PIPE, 0).completion
    return rewritten(e, PIPE, 9, lambda p: replace(p, completion=empty))


@breaks("I41", completion.final)
def final_begun_before_the_end(e: Events) -> Events:
    empty = record(e, PIPE, 0).completion
    return rewritten(e, PIPE, 8, lambda p: replace(p, completion=empty))


@breaks("I41", completion.final)
def periodic_begun_after_the_end(e: Events) -> Events:
    pending = Pending(2, CheckpointKind.PERIODIC, TERM)
    return rewritten(e, PIPE, 8, lambda p: with_checkpoints(p, pending=pending))


@breaks("I42", completion.endings)
def finished_without_the_end(e: Events) -> Events:
    return rewritten(e, PIPE, 11, lambda p: replace(p, final=None))


@breaks("I42", completion.endings)
def two_finals(e: Events) -> Events:
    def final(p: Any) -> Any:
        return with_checkpoints(p, latest=replace(p.checkpoints.latest, kind=CheckpointKind.FINAL))

    return rewritten(e, PIPE, 4, final)


@breaks("I43", commits.rows)
def rows_missing(e: Events) -> Events:
    return changed(e, place(e, Stage, 1), rows=(("a", 2),))


@breaks("I44", commits.rows)
def rows_doubled(e: Events) -> Events:
    return changed(e, place(e, Stage, 1), rows=(("a", 1), ("a", 2), ("a", 3)))


@breaks("I45", commits.snapshots)
def committed_twice(e: Events) -> Events:
    return added(e, place(e, Snapshot), pick(e, Snapshot))


@breaks("I46", commits.filters)
def filter_of_another_version(e: Events) -> Events:
    return changed(e, place(e, Read), version=7)


@breaks("I46", commits.filters)
def filter_ignored(e: Events) -> Events:
    return changed(e, place(e, Read), committed=1)


@breaks("I47", commits.users)
def random_user(e: Events) -> Events:
    return changed(e, place(e, Snapshot), user="j.5f2c")


@breaks("I47", commits.users)
def user_of_another_sink(e: Events) -> Events:
    return changed(e, place(e, Snapshot), table="u")


@breaks("I48", commits.snapshots)
def file_added_twice(e: Events) -> Events:
    return changed(e, place(e, Snapshot, 1), files=("f1", "f2"))


@breaks("I8", commits.contents)
def commit_of_a_part(e: Events) -> Events:
    return changed(e, place(e, Snapshot), files=())


@breaks("I49", commits.contents)
def file_of_another_attempt(e: Events) -> Events:
    return changed(e, place(e, Snapshot), files=("f1", "stray"))


@breaks("I51", commits.contents)
def commit_under_another_number(e: Events) -> Events:
    return changed(e, place(e, Snapshot), number=7)


@breaks("I50", commits.watermarks)
def watermark_goes_back(e: Events) -> Events:
    return changed(e, place(e, Snapshot, 1), watermark=1)


@breaks("I50", checkpoints.acknowledged)
def watermark_of_the_fastest(e: Events) -> Events:
    return changed(e, place(e, Ack), watermark=1)


@breaks("I51", commits.settled)
def commit_left_out(e: Events) -> Events:
    return [x for i, x in enumerate(e) if i not in (wrote(e, PIPE, 10), wrote(e, PIPE, 11))]


@breaks("I52", commits.filters)
def tried_again_blindly(e: Events) -> Events:
    return added(e, place(e, Publish), pick(e, Publish))


@breaks("I53", commits.listeners)
def listener_before_its_commit(e: Events) -> Events:
    return changed(e, place(e, Listen), number=2)


@breaks("I53", commits.listeners)
def listener_left_out(e: Events) -> Events:
    return without(e, place(e, Listen, 1))


@breaks("I53", commits.listeners)
def listener_misled(e: Events) -> Events:
    return changed(e, place(e, Listen, 1), files=())


@breaks("I53", commits.remembered)
def listeners_forgot(e: Events) -> Events:
    e = rewritten(e, JOB, 0, lambda j: replace(j, origin="j/i1"))
    return rewritten(e, PIPE, 0, lambda p: with_commits(p, listeners="x"))


@breaks("I50", commits.remembered)
def watermark_forgotten(e: Events) -> Events:
    return rewritten(e, JOB, 0, lambda j: replace(j, origin="j/i1"))


@breaks("I55", commits.sinks)
def sink_runs_ahead(e: Events) -> Events:
    return without(e, place(e, Snapshot))


@breaks("I56", commits.sweeping)
def needed_file_swept(e: Events) -> Events:
    e = without(e, place(e, Snapshot))
    return added(e, wrote(e, PIPE, 4), Sweep(files=("f1",)))


@breaks("I56", commits.sweeping)
def shown_file_swept(e: Events) -> Events:
    return added(e, -1, Sweep(files=("f1",)))


@breaks("I59", savepoints.parts)
def savepoint_lacks_a_part(_: Events) -> Events:
    return rewritten(saved(), JOB, 4, lambda j: replace(j, saved=()))


@breaks("I59", savepoints.parts)
def savepoint_removed_with_its_job(_: Events) -> Events:
    return added(saved(), -1, Drop(name="b2"))


@breaks("I60", savepoints.given_up)
def given_up_in_silence(_: Events) -> Events:
    return rewritten(saved(), JOB, 3, lambda j: replace(j, status=JobStatus.RUNNING))


@breaks("I61", savepoints.last_cut)
def shows_more_than_the_savepoint(_: Events) -> Events:
    e = saved()
    return changed(e, place(e, Snapshot, 1), number=3)


@breaks("I62", savepoints.kept)
def savepoint_removed(_: Events) -> Events:
    e = saved()
    return added(e, wrote(e, PIPE, 9), Drop(name="b2"))


@breaks("I62", savepoints.kept)
def savepoint_taken_for_the_end(_: Events) -> Events:
    return rewritten(saved(), PIPE, 9, lambda p: replace(p, final=2))


@breaks("I63", savepoints.one_request)
def request_replaced(_: Events) -> Events:
    return rewritten(saved(), JOB, 3, lambda j: replace(j, request="other"))


@breaks("I63", savepoints.one_request)
def savepoint_and_end(_: Events) -> Events:
    return rewritten(saved(), PIPE, 9, lambda p: replace(p, final=1))
