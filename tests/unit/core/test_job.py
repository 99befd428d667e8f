"""A job follows its pipelines and its user, and ends once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.checkpoint import (
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointStored,
    Savepoint,
)
from holdfast.core.job import (
    TERMINAL,
    AskSavepoint,
    AskStop,
    CleanUp,
    DropSavepoint,
    JobCancelRequested,
    JobRecord,
    JobSavepointRequested,
    JobStatus,
    PipelinesChanged,
    owed,
    step,
)
from holdfast.core.pipeline import (
    FINISHED,
    OVER,
    PipelineFailed,
    PipelineRecord,
    SavepointRequested,
    StopRequested,
)
from holdfast.core.pipeline import step as pipeline_step
from holdfast.core.task import TaskPlaced, TaskStarted
from holdfast.master.records import decode, encode
from tests.unit.core.worlds import PLACES, few, fresh, lives

S = JobStatus
JOB = JobRecord("j", "i", "token", "j", "spec", 1)


def running() -> PipelineRecord:
    state = fresh()
    for task, place in zip(state.tasks, PLACES, strict=True):
        state = pipeline_step(state, TaskPlaced(task.id, 1, place))
        state = pipeline_step(state, TaskStarted(task.id, 1, place))
    return state


def saved(pipeline: PipelineRecord) -> PipelineRecord:
    asked = pipeline_step(pipeline, SavepointRequested("s"))
    begun = pipeline_step(asked, CheckpointDue(CheckpointKind.SAVEPOINT, 1))
    return pipeline_step(begun, CheckpointStored(1, "blob"))


@few
@given(lives(), st.data())
def test_a_terminal_job_never_changes_and_any_job_survives_the_store(
    life: list[tuple[PipelineRecord, object, PipelineRecord]], data: st.DataObject
) -> None:
    job = JOB
    for _, _, pipeline in life:
        wishes = st.sampled_from([JobCancelRequested(), JobSavepointRequested("s")])
        event = data.draw(st.just(PipelinesChanged((pipeline,))) | wishes)
        new = step(job, event)
        assert job.status not in TERMINAL or new == job
        assert decode(JobRecord, encode(new)) == new
        assert owed(new, (pipeline,)) == owed(decode(JobRecord, encode(new)), (pipeline,))
        if new.status in TERMINAL and job.status not in TERMINAL:
            assert pipeline.status in OVER
        job = new


def test_a_job_runs_once_every_task_has_a_place() -> None:
    placed = pipeline_step(fresh(), TaskPlaced("t1", 1, PLACES[0]))
    assert step(JOB, PipelinesChanged((fresh(),))).status is S.PENDING
    assert step(JOB, PipelinesChanged((placed,))).status is S.PENDING
    assert step(JOB, PipelinesChanged((running(),))).status is S.RUNNING


@pytest.mark.parametrize(
    ("status", "after"),
    [
        (S.PENDING, S.CANCELING),
        (S.RUNNING, S.CANCELING),
        (S.DOING_SAVEPOINT, S.CANCELING),
        (S.CANCELING, S.CANCELING),
        (S.FAILING, S.FAILING),
        *((t, t) for t in TERMINAL),
    ],
)
def test_cancel_beats_everything_but_an_end(status: S, after: S) -> None:
    assert step(replace(JOB, status=status), JobCancelRequested()).status is after


def test_cancel_stops_every_active_pipeline_and_ends_with_the_last() -> None:
    job = step(JOB, JobCancelRequested())
    assert owed(job, (running(),)) == (AskStop(1),)
    stopped = pipeline_step(running(), StopRequested())
    assert step(job, PipelinesChanged((stopped,))).status is S.CANCELED


def test_a_job_without_failure_finishes_with_its_last_pipeline() -> None:
    job = replace(JOB, status=S.RUNNING)
    one, other = replace(running(), status=FINISHED), running()
    assert step(job, PipelinesChanged((one, other))).status is S.RUNNING
    assert step(job, PipelinesChanged((one, one))).status is S.FINISHED


def test_one_failed_pipeline_fails_the_job_with_its_reason() -> None:
    failed = pipeline_step(running(), PipelineFailed("the table is gone"))
    job = step(replace(JOB, status=S.RUNNING), PipelinesChanged((failed, running())))
    assert (job.status, job.reason) == (S.FAILING, "the table is gone")
    assert owed(job, (running(),)) == (AskStop(1),)


def test_a_savepoint_is_whole_or_there_is_none() -> None:
    job = step(replace(JOB, status=S.RUNNING, pipelines=2), JobSavepointRequested("s"))
    one, other = saved(running()), replace(running(), number=2)
    assert owed(job, (one, other)) == (AskSavepoint(2, "s"),)
    assert step(job, PipelinesChanged((one, other))).saved == ()
    both = step(job, PipelinesChanged((one, replace(one, number=2))))
    assert both.saved == ((1, "blob"), (2, "blob"))
    assert owed(both, (one,)) == (AskStop(1),)


def test_a_savepoint_that_fails_too_often_is_given_up_with_a_reason() -> None:
    job = step(replace(JOB, status=S.RUNNING), JobSavepointRequested("s"))
    failing = pipeline_step(running(), SavepointRequested("s"))
    for number in (1, 2, 3):
        assert step(job, PipelinesChanged((failing,))).status is S.DOING_SAVEPOINT
        failing = pipeline_step(failing, CheckpointDue(CheckpointKind.SAVEPOINT, 1))
        failing = pipeline_step(failing, CheckpointFailed(number, "too slow"))
    job = step(job, PipelinesChanged((failing,)))
    assert (job.status, "failed 3 times" in job.reason) == (S.RUNNING, True)
    assert owed(job, (failing,)) == (DropSavepoint(1),)


def test_a_second_request_gets_the_first_savepoint() -> None:
    job = step(replace(JOB, status=S.RUNNING), JobSavepointRequested("first"))
    assert step(job, JobSavepointRequested("second")) == job


@pytest.mark.parametrize("status", TERMINAL)
def test_the_end_is_the_duty_to_clean_up(status: S) -> None:
    job = replace(JOB, status=status)
    assert owed(job, (replace(running(), savepoint=Savepoint("s")),)) == (CleanUp(),)
