"""What a leader knows of its workers: who stands still, and since when."""

from holdfast.master.worker_registry import WorkerRegistry
from holdfast.wire.messages import Heartbeat, TaskKey, TaskReport

KEY = TaskKey("j", "i", 1, "t1")


def hello(sequence: int, progress: int | None, attempt: int = 1) -> Heartbeat:
    """Return a worker's hello that says how far an attempt is."""
    held = (TaskReport(KEY, attempt, None, progress),)
    return Heartbeat("w1", "w1-1", sequence, 1, 4, (), held)


def test_an_attempt_stands_still_once_a_later_hello_says_the_same() -> None:
    crew = WorkerRegistry(0.0)
    crew.take(hello(1, 7), 1.0)
    assert not crew.stood_since("w1-1", KEY, 1, 1.5), "nothing was heard since"
    crew.take(hello(2, 7), 2.0)
    assert crew.stood_since("w1-1", KEY, 1, 1.5)
    assert not crew.stood_since("w1-1", KEY, 1, 0.5), "it had got on since then"


def test_an_attempt_that_gets_on_does_not_stand_still() -> None:
    crew = WorkerRegistry(0.0)
    for beat in range(1, 5):
        crew.take(hello(beat, beat), float(beat))
        assert not crew.stood_since("w1-1", KEY, 1, beat - 0.5)


def test_who_cannot_say_is_not_said_to_stand_still() -> None:
    crew = WorkerRegistry(0.0)
    crew.take(hello(1, None), 1.0)
    crew.take(hello(2, None), 2.0)
    assert not crew.stood_since("w1-1", KEY, 1, 1.5)
    assert not crew.stood_since("w1-1", KEY, 2, 1.5), "another attempt"
    assert not crew.stood_since("w2-1", KEY, 1, 1.5), "an unknown worker"


def test_a_late_hello_changes_nothing() -> None:
    crew = WorkerRegistry(0.0)
    crew.take(hello(2, 7), 1.0)
    crew.take(hello(3, 7), 2.0)
    assert crew.take(hello(1, 6), 3.0) is None
    assert crew.stood_since("w1-1", KEY, 1, 1.5)
