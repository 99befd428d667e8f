"""The second thread of a task."""

import logging
import threading

import pytest

from holdfast.worker.ahead import Ahead


def test_what_was_made_is_taken_once() -> None:
    ahead: Ahead[int] = Ahead("next")
    assert ahead.take() is None
    ahead.begin(lambda: 7)
    assert (ahead.take(), ahead.take()) == (7, None)
    ahead.close()


def test_one_thread_makes_everything_and_ends() -> None:
    ahead: Ahead[threading.Thread] = Ahead("next")
    ahead.begin(threading.current_thread)
    first = ahead.take()
    ahead.begin(threading.current_thread)
    assert first and first is ahead.take() and first is not threading.current_thread()
    ahead.close()
    first.join(5)
    assert not first.is_alive()


def test_a_failure_is_said_and_leaves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ahead: Ahead[int] = Ahead("next slice")

    def fail() -> int:
        raise OSError("no such folder")

    ahead.begin(lambda: 1)
    with caplog.at_level(logging.INFO, "holdfast"):
        ahead.begin(fail)
        assert ahead.take() is None
    said = "next slice could not be made ready and waits for its turn: no such folder"
    assert said in caplog.text
    ahead.begin(lambda: 2)
    assert ahead.take() == 2
    ahead.close()
