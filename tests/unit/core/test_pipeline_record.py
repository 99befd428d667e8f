"""What holds of a pipeline's record whatever happens to it, in whatever order."""

from dataclasses import replace

import pytest
from hypothesis import given

from holdfast.core import effects as duties
from holdfast.core.checkpoint import (
    BlobDropped,
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointLost,
    CheckpointStored,
    LeaderChanged,
)
from holdfast.core.commit import CommitStatus, Committed, HooksFinished
from holdfast.core.completion import SourceEnded
from holdfast.core.effects import (
    CollectAcks,
    Commit,
    Deploy,
    DropBlob,
    Listen,
    PlaceTask,
    RestartStuckTask,
    owed,
)
from holdfast.core.pipeline import (
    ACTIVE,
    FAILED,
    FINISHED,
    OVER,
    STOPPED,
    STOPPING,
    WAITING_MAX,
    PipelineFailed,
    PipelineRecord,
    SavepointDropped,
    SavepointRequested,
    StopRequested,
    step,
)
from holdfast.core.task import TaskFailed, TaskPlaced, TaskStarted, TaskStatus, WorkerLost
from holdfast.master.records import decode, encode
from tests.unit.core.worlds import PLACES, few, fresh, lives

Life = list[tuple[PipelineRecord, object, PipelineRecord]]


@few
@given(lives())
def test_an_end_absorbs_everything_but_its_remains(life: Life) -> None:
    for old, _, new in life:
        if old.status in OVER:
            assert new.status is old.status
            assert new.tasks == old.tasks
            assert new.checkpoints.latest == old.checkpoints.latest
            assert new.final == old.final


@few
@given(lives())
def test_step_is_pure(life: Life) -> None:
    for old, event, new in life:
        before = encode(old)
        assert step(old, event) == new
        assert encode(old) == before


@few
@given(lives())
def test_what_is_owed_follows_from_the_record_alone(life: Life) -> None:
    for _, _, state in life:
        again = decode(PipelineRecord, encode(state))
        assert owed(again) == owed(state) == owed(state)
        assert len(set(owed(state))) == len(owed(state))


@few
@given(lives())
def test_a_record_survives_the_store(life: Life) -> None:
    for _, _, state in life:
        assert decode(PipelineRecord, encode(state)) == state


@few
@given(lives())
def test_numbers_and_attempts_only_grow(life: Life) -> None:
    for old, _, new in life:
        assert new.checkpoints.next >= old.checkpoints.next
        assert new.commits.through >= old.commits.through
        for before, after in zip(old.tasks, new.tasks, strict=True):
            assert after.attempt >= before.attempt
        if old.checkpoints.latest and old.checkpoints.latest.number not in new.checkpoints.lost:
            assert new.checkpoints.latest
            assert new.checkpoints.latest.number >= old.checkpoints.latest.number


@few
@given(lives())
def test_an_end_of_input_lives_with_its_attempt(life: Life) -> None:
    for _, _, state in life:
        current = {(t.id, t.attempt) for t in state.tasks}
        assert {(r.task, r.attempt) for r in state.completion.ready} <= current


@few
@given(lives())
def test_every_complete_checkpoint_is_committed_or_waits(life: Life) -> None:
    for _, _, state in life:
        latest = state.checkpoints.latest
        waiting = [c.number for c in state.commits.waiting]
        assert waiting == sorted(waiting)
        assert not latest or latest.number == state.commits.through or latest.number in waiting


@few
@given(lives())
def test_a_lost_checkpoint_is_never_committed_and_never_leads_to_the_start(life: Life) -> None:
    for old, _, new in life:
        lost = set(new.checkpoints.lost)
        assert not lost & {c.number for c in (*new.commits.waiting, *new.checkpoints.kept)}
        assert new.commits.through not in lost and new.commits.through <= new.checkpoints.next
        assert all(number < new.checkpoints.next for number in lost)
        if old.checkpoints.latest:
            assert new.checkpoints.latest, "it would start from nothing"
            assert new.checkpoints.latest.number >= new.commits.through


@few
@given(lives())
def test_a_checkpoint_that_is_needed_is_never_dropped(life: Life) -> None:
    for _, _, state in life:
        dropped = {e.number for e in owed(state) if isinstance(e, DropBlob)}
        needed = {c.number for c in state.commits.waiting}
        needed |= {state.checkpoints.latest.number} if state.checkpoints.latest else set()
        savepoints = {
            c.number for c in state.checkpoints.kept if c.kind is CheckpointKind.SAVEPOINT
        }
        assert not dropped & (needed | savepoints)


@few
@given(lives())
def test_nothing_runs_after_the_end_of_activity(life: Life) -> None:
    for _, _, state in life:
        if state.status is not ACTIVE:
            assert all(t.status is TaskStatus.DONE for t in state.tasks)
            assert not state.checkpoints.pending
            effects = {type(e) for e in owed(state)}
            assert not effects & {Deploy, PlaceTask, CollectAcks, duties.StartCheckpoint}


@few
@given(lives())
def test_a_pipeline_finishes_only_by_a_final_checkpoint_that_shows(life: Life) -> None:
    for _, _, state in life:
        if state.status is FINISHED:
            assert state.final is not None
            assert state.commits.listened == state.final
            assert state.commits.status is CommitStatus.SETTLED


def running(**facts: object) -> PipelineRecord:
    """Return a pipeline whose tasks all run."""
    state = fresh()
    for task, place in zip(state.tasks, PLACES, strict=True):
        state = step(state, TaskPlaced(task.id, 1, place))
        state = step(state, TaskStarted(task.id, 1, place))
    return replace(state, **facts)  # type: ignore[arg-type]


def taken(state: PipelineRecord, kind: CheckpointKind = CheckpointKind.PERIODIC) -> PipelineRecord:
    """Return the pipeline after one more checkpoint, not yet committed."""
    state = step(state, CheckpointDue(kind, 1))
    pending = state.checkpoints.pending
    assert pending
    return step(state, CheckpointStored(pending.number, f"blob {pending.number}"))


def shown(state: PipelineRecord) -> PipelineRecord:
    """Return the pipeline after its next commit."""
    number = state.commits.waiting[0].number
    return step(step(state, Committed(number, None)), HooksFinished(number, ""))


def test_an_aborted_number_is_not_used_again() -> None:
    state = step(running(), CheckpointDue(CheckpointKind.PERIODIC, 1))
    state = step(state, LeaderChanged(2))
    assert state.checkpoints.pending is None
    assert taken(state).checkpoints.latest == replace(
        taken(running()).checkpoints.latest,
        number=2,
        blob="blob 2",  # type: ignore[type-var]
    )


def test_a_lost_task_voids_its_end_and_the_pending_checkpoint_in_one_step() -> None:
    state = step(running(), SourceEnded("t1", "a", 1, PLACES[0]))
    state = step(state, CheckpointDue(CheckpointKind.PERIODIC, 1))
    lost = step(state, WorkerLost(PLACES[0].incarnation))
    assert lost.completion.ready == ()
    assert lost.checkpoints.pending is None
    assert lost.retries == 0
    assert [(t.status, t.attempt) for t in lost.tasks] == [
        (TaskStatus.WAITING, 2),
        (TaskStatus.RUNNING, 1),
    ]


def test_a_task_that_restarts_starts_at_the_latest_checkpoint() -> None:
    state = step(taken(running(restore="declared")), WorkerLost(PLACES[0].incarnation))
    state = step(state, TaskPlaced("t1", 2, PLACES[1]))
    assert Deploy("t1", 2, PLACES[1], "blob 1") in owed(state)


def test_a_task_without_a_checkpoint_starts_at_the_declared_one() -> None:
    state = step(replace(fresh(), restore="declared"), TaskPlaced("t1", 1, PLACES[0]))
    assert Deploy("t1", 1, PLACES[0], "declared") in owed(state)


def test_commits_are_owed_one_at_a_time_in_order() -> None:
    state = taken(taken(running()))
    first, second = state.commits.waiting
    assert [e for e in owed(state) if isinstance(e, Commit)] == [Commit(first)]
    state = step(state, Committed(first.number, 5))
    assert [e for e in owed(state) if isinstance(e, Commit | Listen)] == [Listen(1, "")]
    state = step(state, HooksFinished(1, "state"))
    assert [e for e in owed(state) if isinstance(e, Commit)] == [Commit(second)]


def test_no_more_checkpoints_than_commits_can_catch_up_with() -> None:
    state = running()
    for _ in range(WAITING_MAX):
        state = taken(state)
    assert step(state, CheckpointDue(CheckpointKind.PERIODIC, 1)) == state
    assert taken(step(state, SavepointRequested("s")), CheckpointKind.SAVEPOINT).savepoint
    assert taken(shown(state)).commits.waiting[-1].number == WAITING_MAX + 1


def test_the_final_checkpoint_needs_every_source() -> None:
    state = running()
    ends = [("t1", "a", PLACES[0]), ("t2", "b", PLACES[1]), ("t2", "c", PLACES[1])]
    for task, source, place in ends:
        assert step(state, CheckpointDue(CheckpointKind.FINAL, 1)) == state
        state = step(state, SourceEnded(task, source, 1, place))
    assert duties.StartCheckpoint(CheckpointKind.FINAL) in owed(state)
    state = taken(state, CheckpointKind.FINAL)
    assert state.status is ACTIVE
    assert shown(state).status is FINISHED


def test_losing_a_worker_after_the_final_checkpoint_changes_nothing() -> None:
    state = running()
    for task, source, place in [("t1", "a", 0), ("t2", "b", 1), ("t2", "c", 1)]:
        state = step(state, SourceEnded(task, source, 1, PLACES[place]))
    state = taken(state, CheckpointKind.FINAL)
    assert step(state, WorkerLost(PLACES[0].incarnation)) == state


def test_a_stop_waits_for_what_is_complete() -> None:
    assert step(running(), StopRequested()).status is STOPPED
    stopping = step(taken(running()), StopRequested())
    assert stopping.status is STOPPING
    assert shown(stopping).status is STOPPED


def test_retries_are_counted_and_the_reason_is_kept() -> None:
    state = step(running(), TaskFailed("t1", 1, PLACES[0], "first"))
    assert (state.status, state.retries) == (ACTIVE, 1)
    state = step(step(state, TaskPlaced("t1", 2, PLACES[0])), TaskStarted("t1", 2, PLACES[0]))
    state = step(state, TaskFailed("t1", 2, PLACES[0], "second"))
    assert state.status is FAILED
    assert [f.reason for f in state.failures] == ["first", "second"]


def test_a_doomed_pipeline_keeps_what_it_could_not_commit() -> None:
    state = step(taken(running()), PipelineFailed("the table is gone"))
    assert state.status is FAILED
    assert state.commits.waiting
    assert owed(state) == ()


def test_a_savepoint_goes_first_and_is_the_last() -> None:
    state = step(running(), SavepointRequested("s"))
    assert step(state, CheckpointDue(CheckpointKind.PERIODIC, 1)) == state
    state = taken(state, CheckpointKind.SAVEPOINT)
    assert state.savepoint and state.savepoint.number == 1
    assert step(state, CheckpointDue(CheckpointKind.PERIODIC, 1)) == state
    assert step(step(state, SavepointDropped()), CheckpointDue(CheckpointKind.PERIODIC, 1)) != state


def test_old_checkpoints_are_dropped_and_savepoints_are_not() -> None:
    state = running(retained=2)
    for _ in range(4):
        state = shown(taken(state))
    assert [e.number for e in owed(state) if isinstance(e, DropBlob)] == [1, 2]
    assert owed(step(step(state, BlobDropped(1)), BlobDropped(2))) == ()


def test_a_task_speaks_for_its_own_sources_only() -> None:
    state = running()
    assert step(state, SourceEnded("t2", "a", 1, PLACES[1])) == state
    assert step(state, SourceEnded("t1", "a", 1, PLACES[1])) == state
    assert step(state, SourceEnded("t1", "a", 1, PLACES[0])) != state


def test_a_bad_checkpoint_gives_way_to_the_one_before_it() -> None:
    state = shown(taken(running()))
    state = step(taken(state), CheckpointDue(CheckpointKind.PERIODIC, 1))
    state = step(state, SourceEnded("t1", "a", 1, PLACES[0]))
    back = step(state, CheckpointLost(2, "It is torn.", untouched=True))
    assert (back.status, back.retries) == (ACTIVE, 0)
    assert [(t.status, t.attempt) for t in back.tasks] == [(TaskStatus.WAITING, 2)] * 2
    assert (back.commits.waiting, back.completion.ready) == ((), ())
    assert back.checkpoints.pending is None
    assert back.checkpoints.lost == (2,) and back.checkpoints.next == 4
    assert "Checkpoint 2 is lost. It is torn. All tasks" in back.failures[-1].reason
    placed = step(back, TaskPlaced("t1", 2, PLACES[0]))
    assert Deploy("t1", 2, PLACES[0], "blob 1") in owed(placed)
    assert step(back, CheckpointLost(2, "It is torn.", untouched=True)) == back, "heard twice"
    assert step(back, CheckpointLost(2, "It is torn.")) == back


def test_the_ones_after_a_bad_checkpoint_go_with_it() -> None:
    state = taken(taken(taken(running())))
    back = step(state, CheckpointLost(2, "It is torn."))
    assert [c.number for c in back.commits.waiting] == [1]
    assert back.checkpoints.lost == (2, 3)
    listening = step(state, Committed(1, None))
    assert step(listening, CheckpointLost(2, "It is torn.")).status is ACTIVE


@pytest.mark.parametrize(
    ("state", "untouched", "why"),
    [
        (shown(taken(running())), True, "Its rows are visible"),
        (taken(shown(taken(running()))), False, "Its commit may have begun"),
        (step(taken(shown(taken(running()))), StopRequested()), True, "The tasks have ended"),
        (taken(running()), True, "There is none before it"),
        (taken(shown(taken(running(retry_times=0)))), True, "The job may not be tried again"),
        (
            taken(step(shown(taken(running())), SavepointRequested("s")), CheckpointKind.SAVEPOINT),
            True,
            "It is a savepoint or the last one",
        ),
    ],
)
def test_a_bad_checkpoint_that_nothing_can_replace(
    state: PipelineRecord, untouched: bool, why: str
) -> None:
    latest = state.checkpoints.latest
    assert latest
    failed = step(state, CheckpointLost(latest.number, "It is torn.", untouched))
    assert failed.status is FAILED
    assert f"Checkpoint {latest.number} is lost. It is torn. {why}" in failed.failures[-1].reason
    assert failed.checkpoints.latest == latest


def unanswered(
    state: PipelineRecord, *silent: tuple[str, int], known: bool = True
) -> PipelineRecord:
    """Return the pipeline after a checkpoint that some attempts did not answer."""
    state = step(state, CheckpointDue(CheckpointKind.PERIODIC, 1))
    pending = state.checkpoints.pending
    assert pending
    return step(state, CheckpointFailed(pending.number, "no", silent if known else None))


def given_up(state: PipelineRecord) -> list[str]:
    """Return the tasks that are to start anew."""
    return [e.task for e in owed(state) if isinstance(e, RestartStuckTask)]


def test_a_task_that_never_answers_is_given_up() -> None:
    state = running()
    for _ in range(2):
        state = unanswered(state, ("t1", 1), ("t2", 1))
    assert given_up(state) == []
    state = unanswered(state, ("t1", 1))
    assert RestartStuckTask("t1", 1, PLACES[0], 3) in owed(state)
    assert given_up(state) == ["t1"], "the other has answered meanwhile"
    anew = step(state, TaskFailed("t1", 1, PLACES[0], "no answer"))
    anew = step(step(anew, TaskPlaced("t1", 2, PLACES[0])), TaskStarted("t1", 2, PLACES[0]))
    assert given_up(anew) == []


def test_only_silence_in_a_row_counts() -> None:
    state = running()
    for _ in range(5):
        state = unanswered(unanswered(state, ("t1", 1)), ("t1", 1))
        state = unanswered(state)  # the blob could not be stored: all had answered
        assert given_up(state) == []
    for _ in range(2):
        state = unanswered(unanswered(state, ("t1", 1)), known=False)  # a takeover
    assert given_up(state) == []
    assert given_up(unanswered(state, ("t1", 1))) == ["t1"]
    assert given_up(taken(state)) == []
    never = replace(state, policy=replace(state.policy, tolerable_failures=0))
    assert given_up(unanswered(never, ("t1", 1))) == []
