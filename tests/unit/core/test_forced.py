"""A cancel by force ends a job at once and keeps what it could not commit for a later life."""

from dataclasses import replace

import pytest

from holdfast.core import effects
from holdfast.core.checkpoint import CheckpointKind, Checkpoints, Completed
from holdfast.core.commit import Commits
from holdfast.core.completion import Completion
from holdfast.core.former_commits import Former
from holdfast.core.job import (
    AskAbandon,
    CleanUp,
    JobCancelRequested,
    JobRecord,
    JobStatus,
    PipelinesChanged,
    owed,
    step,
)
from holdfast.core.pipeline import OVER, AbandonRequested, PipelineRecord, PipelineStatus
from holdfast.core.pipeline import step as pipeline_step
from holdfast.core.saved_state import SavedKind, leave
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId
from holdfast.core.unfinished import Abandoned
from holdfast.master.health import owed_commit
from holdfast.master.records import decode, encode

RUNNING = TaskRecord("p1-t1", ("a",), 1, TaskStatus.RUNNING, 1, WorkerId("W1", "i1"))
DONE = [Completed(n, CheckpointKind.PERIODIC, f"b{n}", n - 1) for n in range(4)]
STUCK = PipelineRecord(
    "17", "a", 1, (RUNNING,), Completion(("a",)), Checkpoints(4, None, DONE[3], tuple(DONE[1:])),
    Commits((DONE[2], DONE[3]), 1, 1), sinks=("lake",),
)  # fmt: skip
UNHEARD = replace(STUCK, commits=Commits((DONE[3],), 2, 1))
JOB = JobRecord("17", "a", "token", "shop", "", 1, JobStatus.RUNNING)
STATUSES = [s for s in PipelineStatus if s not in OVER]


@pytest.mark.parametrize("status", STATUSES)
def test_a_forced_cancel_ends_a_pipeline_at_once_and_owes_nothing_more(
    status: PipelineStatus,
) -> None:
    ended = pipeline_step(replace(STUCK, status=status), AbandonRequested())
    assert ended.status in OVER and ended.commits == STUCK.commits, "what waits is kept"
    assert (ended.status is PipelineStatus.FAILED) == (status is PipelineStatus.FAILING)
    assert not [e for e in effects.owed(ended) if isinstance(e, effects.Commit | effects.Listen)]
    assert owed_commit(ended) is None
    assert pipeline_step(ended, AbandonRequested()) == ended


@pytest.mark.parametrize("status", ["RUNNING", "CANCELING", "DOING_SAVEPOINT", "PENDING"])
def test_a_forced_cancel_ends_a_job_that_hangs_behind_a_commit(status: str) -> None:
    job = step(replace(JOB, status=JobStatus(status)), JobCancelRequested(force=True))
    assert job.status is JobStatus.CANCELING and job.forced
    assert step(job, JobCancelRequested()).forced, "a later polite one does not take it back"
    stopping = replace(STUCK, status=PipelineStatus.STOPPING)
    assert owed(job, (stopping,)) == (AskAbandon(1),)
    ended = pipeline_step(stopping, AbandonRequested())
    job = step(job, PipelinesChanged((ended,), 9.0))
    assert job.status is JobStatus.CANCELED and owed(job, (ended,)) == (CleanUp(),)
    assert job.abandoned == (Abandoned(1, ("lake",), (DONE[2], DONE[3]), begun=True),)
    assert job.reason == (
        "It was cancelled by force. Commits 2 to 3 of pipeline 1 are abandoned, and 2 may have been"
        " under way."
    )
    assert decode(JobRecord, encode(job)) == job


def test_a_job_that_fails_and_hangs_ends_as_failed_with_its_own_reason() -> None:
    failing = replace(JOB, status=JobStatus.FAILING, reason="A row was bad.")
    job = step(failing, JobCancelRequested(force=True))
    assert job.status is JobStatus.FAILING and job.forced
    over = pipeline_step(replace(STUCK, status=PipelineStatus.FAILING), AbandonRequested())
    job = step(job, PipelinesChanged((over,), 9.0))
    assert (job.status, job.reason) == (JobStatus.FAILED, "A row was bad.")
    assert job.abandoned[0].waiting == (DONE[2], DONE[3])


def test_listeners_that_have_not_run_are_among_what_is_abandoned() -> None:
    job = step(JOB, JobCancelRequested(force=True))
    over = pipeline_step(UNHEARD, AbandonRequested())
    job = step(job, PipelinesChanged((over,), 9.0))
    assert job.abandoned[0].unheard == DONE[2] and not job.abandoned[0].begun
    assert "Commit 2 of pipeline 1 is visible, and its listeners may not have run." in job.reason
    assert "Commit 3 of pipeline 1 is abandoned." in job.reason


def test_what_a_forced_cancel_leaves_is_what_the_next_life_finishes() -> None:
    over = pipeline_step(STUCK, AbandonRequested())
    job = step(step(JOB, JobCancelRequested(force=True)), PipelinesChanged((over,), 9.0))
    saved = leave(job, (over,), 1.0)
    assert saved and saved.kind is SavedKind.CANCELED
    assert saved.parts[0].waiting == (DONE[2], DONE[3]) and saved.parts[0].blob == "b3"


def test_a_forced_cancel_of_a_job_that_owes_nothing_says_so() -> None:
    over = pipeline_step(replace(STUCK, commits=Commits((), 3, 3)), AbandonRequested())
    job = step(step(JOB, JobCancelRequested(force=True)), PipelinesChanged((over,), 9.0))
    assert job.abandoned == ()
    assert job.reason == "It was cancelled by force. It owed no commit."


def test_what_a_life_before_had_left_is_among_what_is_abandoned() -> None:
    former = Former("17", "z", 1, (("old", "lake"),), (DONE[1],))
    begun = replace(STUCK, commits=Commits((), 0, 0), formers=(former,))
    over = pipeline_step(begun, AbandonRequested())
    job = step(step(JOB, JobCancelRequested(force=True)), PipelinesChanged((over,), 9.0))
    assert job.abandoned == (Abandoned(1, ("old",), (DONE[1],), begun=True, life="17/z"),)
    assert "Commit 1 of pipeline 1 of the former incarnation is abandoned" in job.reason
