"""The threads that stage slices."""

import threading

import pytest

from holdfast.worker.slice_pipeline import StagingThread


def test_one_thread_makes_everything_and_ends() -> None:
    lane: StagingThread[threading.Thread] = StagingThread("lane")
    lane.begin(threading.current_thread)
    first = lane.take()
    lane.begin(threading.current_thread)
    assert first is lane.take() and first is not threading.current_thread()
    lane.close()
    first.join(5)
    assert not first.is_alive()


def test_a_failure_is_raised_where_it_is_taken_and_once() -> None:
    lane: StagingThread[int] = StagingThread("lane")

    def fail() -> int:
        raise OSError("no such folder")

    lane.begin(fail)
    assert lane.wait(5)
    with pytest.raises(OSError, match="no such folder"):
        lane.take()
    lane.begin(lambda: 2)
    assert lane.take() == 2
    lane.close()


def test_a_wait_may_be_cut_short() -> None:
    lane: StagingThread[int] = StagingThread("lane")
    gate = threading.Event()
    lane.begin(lambda: int(gate.wait(5)))
    assert not lane.wait(0.01)
    gate.set()
    assert lane.take() == 1
    lane.close()
