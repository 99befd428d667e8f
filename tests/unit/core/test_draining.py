"""A task that leaves a drained worker: from a checkpoint, as the next attempt, at no cost."""

from dataclasses import replace

from hypothesis import given

from holdfast.core.checkpoint import (
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointStored,
)
from holdfast.core.completion import SourceEnded
from holdfast.core.effects import Deploy, StartCheckpoint, owed
from holdfast.core.pipeline import PipelineRecord, Policy, SavepointRequested, may_move, step
from holdfast.core.placement import Room, Wanted, place
from holdfast.core.task import TaskMoves, TaskPlaced, TaskStarted, TaskStatus, WorkerId, WorkerLost
from tests.unit.core.worlds import PLACES, few, fresh, lives

HERE, THERE = PLACES
MOVES = TaskMoves("t1", 1, HERE, THERE)


def running() -> PipelineRecord:
    """Return a pipeline whose tasks run."""
    state = fresh()
    for task in state.tasks:
        state = step(state, TaskPlaced(task.id, 1, HERE))
        state = step(state, TaskStarted(task.id, 1, HERE))
    return state


def test_it_runs_on_until_a_checkpoint_holds_what_it_has_done() -> None:
    state = step(running(), MOVES)
    assert state.tasks[0].status is TaskStatus.RUNNING and state.tasks[0].place == HERE
    assert StartCheckpoint(CheckpointKind.PERIODIC) in owed(state), "it does not wait for the timer"
    state = step(state, CheckpointDue(CheckpointKind.PERIODIC, 1))
    state = step(state, CheckpointStored(1, "blob"))
    moved, other = state.tasks
    assert (moved.status, moved.attempt, moved.place) == (TaskStatus.PLACED, 2, THERE)
    assert (moved.moves, moved.restarts, moved.to) == (1, 0, None)
    assert (other.status, other.attempt, other.place) == (TaskStatus.RUNNING, 1, HERE)
    assert Deploy("t1", 2, THERE, "blob") in owed(state)
    assert not state.retries and not state.failures


def test_a_checkpoint_that_fails_moves_nothing_and_the_next_waits_for_the_timer() -> None:
    state = step(step(running(), MOVES), CheckpointDue(CheckpointKind.PERIODIC, 1))
    state = step(state, CheckpointFailed(1, "too slow"))
    assert state.tasks[0].to == THERE and state.tasks[0].attempt == 1
    assert StartCheckpoint(CheckpointKind.PERIODIC) not in owed(state)
    state = step(
        step(state, CheckpointDue(CheckpointKind.PERIODIC, 1)), CheckpointStored(2, "blob")
    )
    assert state.tasks[0].place == THERE


def test_the_next_worker_is_lost_and_it_stays() -> None:
    state = step(step(running(), MOVES), WorkerLost(THERE.incarnation))
    assert (state.tasks[0].to, state.tasks[0].attempt) == (None, 1)
    state = step(
        step(state, CheckpointDue(CheckpointKind.PERIODIC, 1)), CheckpointStored(1, "blob")
    )
    assert state.tasks[0].place == HERE


def test_an_order_is_taken_back() -> None:
    state = step(step(running(), MOVES), TaskMoves("t1", 1, HERE, None))
    assert state == running()


def test_one_that_has_not_begun_begins_elsewhere() -> None:
    state = step(step(fresh(), TaskPlaced("t1", 1, HERE)), MOVES)
    assert (state.tasks[0].status, state.tasks[0].place) == (TaskStatus.PLACED, THERE)
    assert (state.tasks[0].attempt, state.tasks[0].restarts) == (2, 0)


def test_who_takes_no_checkpoint_or_is_about_to_end_ends_where_it_is() -> None:
    state = running()
    assert may_move(state, "t1") and not may_move(state, "t9")
    assert not may_move(replace(state, policy=Policy(periodic=False)), "t1")
    assert not may_move(step(state, SavepointRequested("s")), "t1")
    for task in state.tasks:
        for source in task.sources:
            state = step(state, SourceEnded(task.id, source, 1, HERE))
    assert not may_move(state, "t1")
    assert step(state, MOVES) == state


@few
@given(lives())
def test_to_move_costs_nothing(life: list[tuple[PipelineRecord, object, PipelineRecord]]) -> None:
    for old, event, new in life:
        before, after = sum(t.restarts for t in old.tasks), sum(t.restarts for t in new.tasks)
        assert after >= before >= 0
        moved = sum(t.moves for t in new.tasks) - sum(t.moves for t in old.tasks)
        if moved:
            assert isinstance(event, TaskMoves | CheckpointStored)
            assert (new.retries, new.failures, after) == (old.retries, old.failures, before)


def test_a_draining_worker_gets_nothing_and_its_tasks_go_before_jobs_that_start() -> None:
    rooms = [Room(WorkerId("w1", "w1-1"), 4, draining=True), Room(WorkerId("w2", "w2-1"), 1)]
    starts = Wanted("a", 1, 1, "t1", 1, 1)
    moves = Wanted("b", 2, 1, "t1", 1, 1, starting=False, moving=True)
    placed, waits = place([starts, moves], rooms)
    assert [(p.wanted.job, p.place.worker) for p in placed] == [("b", "w2")]
    assert [w.why for w in waits] == ["needs 1 slots, 0 are free (besides w1, draining)"]
    lost = Wanted("c", 3, 1, "t1", 1, 1, starting=False)
    placed, _ = place([moves, lost], rooms)
    assert [p.wanted.job for p in placed] == ["c"], "what does not run goes before what does"
    _, waits = place([starts], rooms[:1])
    assert waits[0].why == "no worker is connected (besides w1, draining)"
