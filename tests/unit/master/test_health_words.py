"""What people read of a job's health is never at odds with its status."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest

from holdfast.api.live_views import detail
from holdfast.api.views import JobRow
from holdfast.cli import cluster as verbs
from holdfast.cli import cluster_verb
from holdfast.core.checkpoint import CheckpointKind, Checkpoints, Completed
from holdfast.core.completion import Completion, SourceEnd
from holdfast.core.former_commits import Former
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord, PipelineStatus, step
from holdfast.core.task import TaskRecord, TaskStarted, TaskStatus, WorkerId
from holdfast.master.explain import JobSnapshot, as_text, explain
from holdfast.master.health import Ages, Health, HealthReport, ages, health_word, report
from holdfast.master.ports import MasterSettings

HERE = WorkerId("w1", "w1#1")
JOB = JobRecord("17", "a", "token", "shop", "", 1, JobStatus.RUNNING)
WAITING = TaskRecord("t1", ("a",))
RUNNING = TaskRecord("t1", ("a",), 1, TaskStatus.RUNNING, 1, HERE)
STREAM = PipelineRecord("17", "a", 1, (RUNNING,), Completion(("a",)), Checkpoints())
OK = HealthReport(1, Health.OK, 1.0, 0, 0.0, "")
LATE = HealthReport(1, Health.LATE, 99.0, 0, 0.0, "It waits.")
OVER = {"FINISHED": "finished", "CANCELED": "stopped", "FAILED": "failed",
        "SAVEPOINT_DONE": "stopped"}  # fmt: skip


Reports = Mapping[int, HealthReport]
Said = Callable[[JobRecord, PipelineRecord, Reports], str]


@pytest.fixture
def status_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """What `holdfast status` prints of a job."""

    def said(job: JobRecord, pipeline: PipelineRecord, reports: Reports) -> str:
        found = detail(job, [pipeline], revision=1, leader="M1", reports=reports, live=True)
        client = SimpleNamespace(job=lambda _: found)
        monkeypatch.setattr(cluster_verb, "client_for", lambda *_: client)
        verbs.status(job_id="17")
        return capsys.readouterr().out

    return said


@pytest.mark.parametrize("status", OVER)
def test_a_job_that_is_over_has_no_health(status: str, status_text: Said) -> None:
    job = replace(JOB, status=JobStatus(status))
    part = replace(STREAM, status=PipelineStatus(OVER[status]))
    said = status_text(job, part, {1: OK})
    assert f"is {status}.\n" in said and f"pipeline 1: {OVER[status]}, checkpoint" in said
    assert "OK" not in said
    told = explain(JobSnapshot(job, (part,), MasterSettings(), 9.0, {1: OK}))
    assert told.health == "" and "OK" not in as_text(told, str)


def test_a_job_that_has_not_started_is_not_ok_but_may_be_late(
    status_text: Said,
) -> None:
    job, part = replace(JOB, status=JobStatus.PENDING), replace(STREAM, tasks=(WAITING,))
    said = status_text(job, part, {1: OK})
    assert "is PENDING.\n" in said and "OK" not in said
    assert "is PENDING, LATE.\n" in status_text(job, part, {1: LATE})
    assert explain(JobSnapshot(job, (part,), MasterSettings(), 9.0, {1: OK})).health == ""
    assert explain(JobSnapshot(job, (part,), MasterSettings(), 9.0, {1: LATE})).health == "LATE"


def test_a_job_that_runs_is_ok_and_nobody_says_so_without_a_leader(
    status_text: Said,
) -> None:
    assert "is RUNNING, OK.\n" in status_text(JOB, STREAM, {1: OK})
    assert health_word(JobStatus.RUNNING, {}) == ("", "")


def test_the_list_says_which_jobs_hang_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        JobRow("17", "a", "hangs", "RUNNING", "", 1.0, 0.0, "STALLED", "It waits for a lock."),
        JobRow("18", "b", "broke", "FAILED", "No such table.", 1.0, 2.0),
    ]
    told = SimpleNamespace(jobs=lambda: SimpleNamespace(jobs=rows))
    monkeypatch.setattr(cluster_verb, "client_for", lambda *_: told)
    verbs.list_jobs()
    _, hangs, broke = capsys.readouterr().out.splitlines()
    assert "RUNNING  STALLED" in hangs and hangs.endswith("It waits for a lock.")
    assert "OK" not in broke and broke.endswith("No such table.")


@pytest.mark.parametrize("interval_s", [0.5, 1, 5, 10, 60])
def test_a_stream_younger_than_two_intervals_is_not_stalled(interval_s: float) -> None:
    """It has waited for a worker for an hour; its age counts from when it runs."""
    waits = replace(STREAM, tasks=(replace(RUNNING, status=TaskStatus.PLACED),), clock_s=100.0)
    assert ages(waits, 3700.0, 0.0).checkpoint_s == 3600.0
    begun = step(waits, TaskStarted("t1", 1, HERE, 9.0, 3700.0))
    assert (begun.clock_s, begun.since_s) == (3700.0, 9.0)
    young = ages(begun, 3700.0 + 2 * interval_s, 0.0)
    assert report(begun, young, interval_s, {}, "").health is not Health.STALLED


def test_an_attempt_that_begins_anew_does_not_make_a_stream_young() -> None:
    second = replace(RUNNING, status=TaskStatus.PLACED, attempt=2)
    again = step(replace(STREAM, tasks=(second,), clock_s=100.0),
                 TaskStarted("t1", 2, HERE, 9.0, 3700.0))  # fmt: skip
    assert again.tasks[0].status is TaskStatus.RUNNING and again.clock_s == 100.0


def test_sources_that_never_end_are_not_counted_among_ends() -> None:
    said = as_text(explain(JobSnapshot(JOB, (STREAM,), MasterSettings(), 9.0, {1: OK})), str)
    assert "Pipeline 1 reads its input." in said and " of " not in said.partition("next")[0]
    two = Completion(("a", "b"), (SourceEnd("a", "t1", 1, "w1#1"),))
    said = as_text(
        explain(JobSnapshot(JOB, (replace(STREAM, completion=two),), MasterSettings(), 9.0)), str
    )
    assert "reads: 1 of 2 sources is at the end" in said


def test_a_job_on_a_silent_spark_does_not_read() -> None:
    ill = replace(LATE, reason="Task t1 is on worker w1. Spark is silent.", ill=True)
    told = explain(JobSnapshot(JOB, (STREAM,), MasterSettings(), 9.0, {1: ill}))
    assert told.summary == ill.reason
    said = as_text(told, str)
    assert "Pipeline 1 continues when its worker's Spark does." in said and "reads" not in said


def test_a_commit_that_a_life_before_has_left_is_health_and_explained() -> None:
    done = Completed(7, CheckpointKind.PERIODIC, "b7", 6, clock_s=100.0)
    left = Former("17", "z", 1, (("old", "lake"),), (done,))
    held = replace(STREAM, tasks=(WAITING,), formers=(left,), clock_s=180.0)
    known = ages(held, 190.0, 0.0)
    assert known == Ages(10.0, 90.0), "its age goes on over the lives"
    told = report(held, known, 10, {}, "", "The table is locked.")
    assert (told.health, told.commit, told.unseen) == (Health.STALLED, 7, True)
    assert "left commit 7 to finish" in told.reason and "The table is locked." in told.reason
    scene = JobSnapshot(
        JOB, (held,), MasterSettings(), 9.0, {1: told}, troubles={1: "The table is locked."}
    )
    said = as_text(explain(scene), str)
    assert "no task starts before. What it waits for is: The table is locked." in said
    assert "from whom: sink lake" in said and "no worker" not in said
