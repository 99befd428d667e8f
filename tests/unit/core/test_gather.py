"""Answers to a barrier count once, for the present attempt, and a final one needs its proof."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.checkpoint import CheckpointKind, Pending
from holdfast.core.commit import later
from holdfast.core.gather import CheckpointRound, Counts, TaskAck, begin, take, totals, watermark
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId

W1, W2 = WorkerId("w1", "w1-1"), WorkerId("w2", "w2-1")
TASKS = (
    TaskRecord("t1", ("a",), status=TaskStatus.RUNNING, attempt=3, place=W1),
    TaskRecord("t2", ("b",), status=TaskStatus.RUNNING, place=W2),
)
ONE = TaskAck(5, "t1", 3, W1, (("a", 9),), (), ended=True)
TWO = replace(ONE, task="t2", attempt=1, place=W2)

marks = st.none() | st.integers(-5, 5)


def gathering(kind: CheckpointKind = CheckpointKind.PERIODIC) -> CheckpointRound:
    return begin(Pending(5, kind, 1), TASKS)


def after(*acks: TaskAck, kind: CheckpointKind = CheckpointKind.PERIODIC) -> CheckpointRound:
    state = gathering(kind)
    for ack in acks:
        taken = take(state, ack, TASKS)
        assert isinstance(taken, CheckpointRound)
        state = taken
    return state


def test_a_checkpoint_is_complete_when_every_task_has_answered() -> None:
    assert after(ONE).waiting == ("t2",)
    assert after(ONE, TWO).complete
    assert after(TWO, ONE).acks == (TWO, ONE)


def test_an_answer_counts_once() -> None:
    assert after(ONE, replace(ONE, counts=Counts(7))) == after(ONE)


def test_answers_that_are_not_of_the_present_attempt_do_not_count() -> None:
    strangers = [
        replace(ONE, number=4),
        replace(ONE, attempt=2),
        replace(ONE, attempt=4),
        replace(ONE, place=W2),
        replace(ONE, place=WorkerId("w1", "w1-2")),
        replace(ONE, task="t3"),
    ]
    assert after(*strangers) == gathering()


def test_a_task_that_no_longer_runs_does_not_count() -> None:
    gone = tuple(replace(t, status=TaskStatus.WAITING, place=None) for t in TASKS)
    assert take(gathering(), ONE, gone) == gathering()


def test_a_final_checkpoint_fails_without_the_proof_of_an_end() -> None:
    told = take(gathering(CheckpointKind.FINAL), replace(ONE, ended=False), TASKS)
    assert told == "task t1 is not at the end of its input"
    assert after(ONE, TWO, kind=CheckpointKind.FINAL).complete


def test_a_late_answer_without_proof_does_not_fail_the_checkpoint() -> None:
    late = replace(ONE, ended=False, attempt=2)
    assert take(gathering(CheckpointKind.FINAL), late, TASKS) == gathering(CheckpointKind.FINAL)


def test_the_watermark_is_the_least_of_the_writers_that_are_not_idle() -> None:
    slow, idle = replace(ONE, watermark=0), replace(TWO, watermark=-7, idle=True)
    assert watermark((slow, replace(TWO, watermark=1000))) == 0
    assert watermark((slow, idle)) == 0
    assert watermark((slow, TWO)) is None
    assert watermark((idle,)) == -7, "nobody holds it back"
    assert watermark((idle, replace(idle, watermark=5))) == 5
    assert watermark((replace(idle, watermark=None),)) is None
    assert watermark(()) is None


@given(st.lists(marks))
def test_a_watermark_never_goes_back(given_marks: list[int | None]) -> None:
    last: int | None = None
    for mark in given_marks:
        new = later(last, mark)
        assert last is None or (new is not None and new >= last)
        assert mark is None or (new is not None and new >= mark)
        last = new


def test_what_tasks_have_rejected_is_in_the_totals_of_a_checkpoint() -> None:
    counted = [
        replace(ack, counts=Counts(n, rejected=r)) for ack, n, r in ((ONE, 5, 2), (TWO, 7, 1))
    ]
    found = totals(tuple(counted))
    assert (found.read, found.rejected) == (12, 3)
    assert (found + found).rejected == 6
