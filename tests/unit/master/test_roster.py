"""Where tasks run, kept up to date as records change."""

from dataclasses import replace
from typing import Any

from holdfast.core.completion import Completion
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId
from holdfast.master.worker_registry import Roster, WorkerRegistry, hangs
from holdfast.wire.messages import Heartbeat, TaskKey, TaskReport

HERE = WorkerId("w1", "w1-1")


class Kept:
    """As much of a keeper as a roster looks at."""

    def __init__(self, number: int, *tasks: TaskRecord) -> None:
        self.key = f"pipeline/j/{number:04}"
        self.state = PipelineRecord("j", "i", number, tasks, Completion(tuple("ab")))

    def task_key(self, task: str) -> TaskKey:
        return TaskKey("j", "i", self.state.number, task)

    def now(self, *tasks: TaskRecord) -> Any:
        """Let its tasks stand otherwise."""
        self.state = replace(self.state, tasks=tasks)
        return self


def on(task: str, status: TaskStatus = TaskStatus.RUNNING, place: WorkerId = HERE) -> TaskRecord:
    return TaskRecord(task, ("a",), slots=2, status=status, place=place)


def waiting(task: str) -> TaskRecord:
    return TaskRecord(task, ("a",), slots=2)


Differs = tuple[list[TaskReport], list[tuple[TaskKey, TaskRecord]]]


def differs(roster: Roster, *held: TaskReport, incarnation: str = "w1-1") -> Differs:
    crew = WorkerRegistry(0.0)
    crew.take(Heartbeat("w1", incarnation, 1, 1, 4, (), held), 1.0)
    return roster.differs(crew.seen[incarnation])


def lacks(roster: Roster) -> list[str]:
    return [key.task for key, _ in differs(roster)[1]]


def test_tasks_are_known_where_they_run_and_their_slots_are_counted() -> None:
    roster, kept = Roster(), Kept(1)
    roster.note(kept.now(waiting("t1"), waiting("t2")))
    assert list(roster.waiting) == [kept.key] and roster.used == {} and roster.placed() == set()
    roster.note(kept.now(on("t1"), on("t2", TaskStatus.PLACED)))
    assert not roster.waiting and roster.used == {"w1-1": 4} and roster.placed() == {"w1-1"}
    assert lacks(roster) == ["t1"], "placed does not run yet"
    roster.note(kept.now(on("t1"), on("t2", place=WorkerId("w2", "w2-1"))))
    assert roster.used == {"w1-1": 2, "w2-1": 2}
    roster.note(kept.now(waiting("t1"), on("t2", place=WorkerId("w2", "w2-1"))))
    assert list(roster.waiting) == [kept.key] and roster.placed() == {"w2-1"}


def test_what_is_forgotten_leaves_nothing() -> None:
    roster, one, other = Roster(), Kept(1), Kept(2)
    roster.note(one.now(on("t1"), waiting("t2")))
    roster.note(other.now(on("t1")))
    roster.forget(one)  # type: ignore[arg-type]
    assert roster.used == {"w1-1": 2} and not roster.waiting
    assert differs(roster) == ([], [(TaskKey("j", "i", 2, "t1"), on("t1"))])
    roster.forget(one)  # type: ignore[arg-type]
    roster.forget(other)  # type: ignore[arg-type]
    assert roster.used == {} and roster.placed() == set()


def test_only_the_attempt_that_runs_and_has_not_failed_is_expected() -> None:
    roster, kept = Roster(), Kept(1)
    roster.note(kept.now(on("t1"), on("t2", TaskStatus.PLACED)))
    key = kept.task_key("t1")
    assert differs(roster, TaskReport(key, 1)) == ([], [])
    for odd in (
        TaskReport(key, 2),  # another attempt
        TaskReport(key, 1, "a row could not be read"),
        TaskReport(kept.task_key("t2"), 1),  # that it runs is news
        TaskReport(kept.task_key("t3"), 1),
    ):
        assert differs(roster, odd)[0] == [odd]
    assert differs(roster, TaskReport(key, 1), incarnation="w2-1")[0], "another worker"


def test_what_agreed_is_compared_again_once_either_side_changes() -> None:
    roster, crew, kept = Roster(), WorkerRegistry(0.0), Kept(1)
    roster.note(kept.now(on("t1")))
    one, two = TaskReport(kept.task_key("t1"), 1), TaskReport(kept.task_key("t2"), 1)

    def beat(sequence: int, *held: TaskReport) -> Differs:
        crew.take(Heartbeat("w1", "w1-1", sequence, 1, 4, (), held), float(sequence))
        return roster.differs(crew.seen["w1-1"])

    assert beat(1, one) == beat(2, one) == ([], [])
    assert crew.seen["w1-1"].agreed is not None
    assert beat(3, one, two) == ([two], []), "it holds more"
    assert beat(4, one) == ([], [])
    failed = TaskReport(one.key, 1, "a row could not be read")
    assert beat(5, failed) == ([failed], []) == beat(6, failed), "the same one, but it failed"
    assert beat(7, one) == ([], [])
    roster.note(kept.now(on("t1"), on("t2")))
    assert [key for key, _ in beat(8, one)[1]] == [two.key], "the records want more"
    assert beat(9, two, one) == ([], []), "in another order"
    roster.note(kept.now(waiting("t1"), waiting("t2")))
    assert beat(10, two, one) == ([two, one], []), "the records want nothing"


def test_a_task_hangs_once_it_stands_for_too_long_with_rows_left() -> None:
    pipeline = Kept(1, on("t1")).state
    assert hangs(pipeline, on("t1"), 9.0, 10.0) is None
    assert hangs(pipeline, on("t1"), 11.0, 10.0) == "it made no progress for 10 s"
    assert hangs(pipeline, TaskRecord("t0", ()), 11.0, 10.0) is None, "it has nothing to read"
