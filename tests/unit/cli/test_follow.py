"""Who follows a job hears what it waits for, quiet or not, and may stop waiting."""

import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from holdfast.api.views import JobDetail, PipelineView, TaskView
from holdfast.cli import follow
from holdfast.cli.follow import TIMED_OUT, Follower
from holdfast.errors import UserError

TASK = TaskView("p1-t1", "waiting", 1, 1, "", "", 0, 0, "needs 4 slots, 1 are free")
PART = PipelineView(1, "active", "OK", 0, 0.0, None, 0, "", 0, [TASK], [])
PENDING = JobDetail(
    "17", "a", "shop", "PENDING", "", 0.0, 0.0, "OK", 0, 0, 0, True, 1, "", [PART]
)  # fmt: skip
FINISHED = JobDetail("17", "a", "shop", "FINISHED", "", 0.0, 0.0, "OK", 0, 0, 0, True, 1, "", [])


class Cluster:
    """A job that shows what a test says."""

    master = "http://127.0.0.1:5801"

    def __init__(self, *shown: JobDetail) -> None:
        self.shown = shown

    def graph(self, job_id: str) -> SimpleNamespace:
        return SimpleNamespace(tables=[])

    def wait(self, job_id: str, seen: Callable[[JobDetail], None]) -> JobDetail:
        for now in self.shown:
            seen(now)
        return self.shown[-1]


def test_a_quiet_command_says_what_its_job_waits_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "EVERY_S", 0.0)
    client: Any = Cluster(PENDING, FINISHED)
    assert Follower(client, "17", quiet=True).follow() == 0
    told = capsys.readouterr()
    assert "PENDING: read 0 rows" in told.err and "needs 4 slots, 1 are free" in told.err
    assert told.out == ""


def test_the_time_to_wait_ends_and_the_job_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    client: Any = Cluster(PENDING, FINISHED)
    with pytest.raises(SystemExit) as left:
        Follower(client, "17", quiet=True, timeout_s=1e-9).follow()
    assert left.value.code == TIMED_OUT
    said = capsys.readouterr().err
    assert "Job 17 is PENDING after" in said and "continues. needs 4 slots, 1 are free" in said


def test_an_end_that_is_seen_in_time_counts_whatever_the_clock_says() -> None:
    client: Any = Cluster(FINISHED)
    assert Follower(client, "17", quiet=True, timeout_s=1e-9).follow() == 0


@pytest.mark.parametrize(("status", "code"), [("SAVEPOINT_DONE", 0), ("CANCELED", 130)])
def test_each_end_has_its_exit_code(status: str, code: int) -> None:
    client: Any = Cluster(msgspec.structs.replace(FINISHED, status=status))
    assert Follower(client, "17", quiet=True).follow() == code


def test_a_job_that_failed_is_an_error_with_its_reason() -> None:
    failed = msgspec.structs.replace(FINISHED, status="FAILED", reason="The disk is full.")
    client: Any = Cluster(failed)
    with pytest.raises(UserError, match=r"Job 17 is FAILED\. The disk is full\."):
        Follower(client, "17", quiet=True).follow()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_leaves_the_job_running(number: signal.Signals) -> None:
    class Ended(Cluster):
        def wait(self, job_id: str, seen: Callable[[JobDetail], None]) -> JobDetail:
            signal.raise_signal(number)
            return FINISHED

    client: Any = Ended()
    with pytest.raises(SystemExit) as left:
        Follower(client, "17", quiet=True).follow()
    assert left.value.code == 128 + number
