"""A pipeline is believed to run only while checkpoints complete."""

from dataclasses import replace

import pytest

from holdfast.core.checkpoint import CheckpointKind, Checkpoints, Completed, Pending
from holdfast.core.commit import Commits
from holdfast.core.completion import Completion
from holdfast.core.pipeline import PipelineRecord, PipelineStatus, Policy
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId
from holdfast.master.health import (
    STALLED_SILENT_S,
    Ages,
    Health,
    HealthReport,
    Ill,
    ages,
    report,
)

RUNNING = TaskRecord("t1", ("a",), status=TaskStatus.RUNNING, place=WorkerId("w1", "w1#1"))
DONE = Completed(7, CheckpointKind.PERIODIC, "blob", 6, at_s=1000.0)
PIPELINE = PipelineRecord("j", "i1", 1, (RUNNING,), Completion(("a",)), Checkpoints(8, None, DONE))


@pytest.mark.parametrize(
    ("age_s", "interval_s", "health"),
    [
        (0, 10, Health.OK),
        (15, 10, Health.OK),
        (15.1, 10, Health.LATE),  # half an interval overdue
        (20, 10, Health.LATE),
        (20.1, 10, Health.STALLED),  # a whole one
        (3.5, 1, Health.OK),  # a takeover takes some seconds, whatever the interval is
        (3.6, 1, Health.LATE),
        (6, 1, Health.LATE),
        (6.1, 1, Health.STALLED),
    ],
)
def test_health_follows_from_the_age_of_the_last_checkpoint(
    age_s: float, interval_s: float, health: Health
) -> None:
    assert report(PIPELINE, Ages(age_s), interval_s, {}, "").health is health


def test_a_report_names_the_last_checkpoint_and_its_date() -> None:
    told = report(PIPELINE, Ages(3), 10, {}, "")
    assert (told.checkpoint, told.checkpoint_at_s, told.reason) == (7, 1000.0, "")


def test_a_pipeline_that_is_over_is_never_late() -> None:
    over = replace(PIPELINE, status=PipelineStatus.FINISHED)
    assert report(over, Ages(999), 10, {}, "").health is Health.OK


@pytest.mark.parametrize(
    ("pipeline", "waits", "missing", "reason"),
    [
        (
            replace(PIPELINE, tasks=(TaskRecord("t1", ("a",)),)),
            {"t1": "needs 1 slots, 0 are free"},
            "",
            "Task t1 has no worker: needs 1 slots, 0 are free.",
        ),
        (
            replace(PIPELINE, tasks=(replace(RUNNING, status=TaskStatus.PLACED),)),
            {},
            "",
            "Task t1 has not started on worker w1.",
        ),
        (
            replace(
                PIPELINE, checkpoints=Checkpoints(9, Pending(8, CheckpointKind.PERIODIC, 1), DONE)
            ),
            {},
            "t1",
            "Checkpoint 8 waits for t1.",
        ),
        (
            replace(
                PIPELINE,
                checkpoints=Checkpoints(9, None, DONE, failed_in_a_row=3, last_failure="no space"),
            ),
            {},
            "",
            "3 checkpoints failed in a row: no space.",
        ),
        (PIPELINE, {}, "", "No checkpoint was started."),
    ],
)
def test_a_stalled_pipeline_says_what_it_waits_for(
    pipeline: PipelineRecord, waits: dict[str, str], missing: str, reason: str
) -> None:
    assert report(pipeline, Ages(999), 10, waits, missing).reason == reason


WAITING = replace(
    PIPELINE, commits=Commits(waiting=(DONE, replace(DONE, number=8)), through=6, listened=6)
)
UNHEARD = replace(
    PIPELINE,
    checkpoints=replace(PIPELINE.checkpoints, kept=(DONE,)),
    commits=Commits(through=7, listened=6),
)


def shown(pipeline: PipelineRecord, commit_s: float, trouble: str = "") -> HealthReport:
    return report(pipeline, Ages(1, commit_s), 10, {}, "", trouble)


@pytest.mark.parametrize("pipeline", [WAITING, UNHEARD])
@pytest.mark.parametrize(
    ("age_s", "health"), [(15, Health.OK), (15.1, Health.LATE), (20.1, Health.STALLED)]
)
def test_health_follows_from_what_is_complete_and_not_visible_or_not_heard_of(
    pipeline: PipelineRecord, age_s: float, health: Health
) -> None:
    told = shown(pipeline, age_s)
    assert (told.health, told.commit, told.commit_age_s) == (health, 7, age_s)
    assert bool(told.reason) == told.unseen == (health is not Health.OK)


@pytest.mark.parametrize(
    "changes",
    [
        {"final": 8},  # a batch after its final checkpoint
        {"status": PipelineStatus.STOPPING},
        {"status": PipelineStatus.FAILING},
        {"policy": Policy(periodic=False)},
    ],
)
def test_no_state_in_which_a_commit_is_owed_is_well_for_ever(changes: dict[str, object]) -> None:
    assert shown(replace(WAITING, **changes), 21).health is Health.STALLED  # type: ignore[arg-type]


def test_a_doomed_pipeline_owes_no_commit() -> None:
    doomed = shown(replace(WAITING, status=PipelineStatus.FAILED), 99)
    assert (doomed.health, doomed.commit) == (Health.OK, 0)


def test_what_does_not_get_through_is_named_with_its_age_and_the_cause() -> None:
    said = shown(WAITING, 42.4, "The table is locked.").reason
    assert said == (
        "Checkpoint 7 has been complete for 42 s and is not visible, nor are 1 after it:"
        " The table is locked."
    )
    said = shown(UNHEARD, 42.4, "it answered 503").reason
    assert said == (
        "Commit 7 is visible, and its listeners have not run for 42 s: it answered 503."
    )


def test_ages_are_told_by_the_clusters_time_or_since_the_record_was_taken_over() -> None:
    timed = replace(WAITING, commits=Commits(waiting=(replace(DONE, clock_s=90.0),)))
    timed = replace(timed, checkpoints=Checkpoints(8, None, replace(DONE, clock_s=95.0)))
    assert ages(timed, 100.0, 99.0) == Ages(5.0, 10.0)
    assert ages(WAITING, 100.0, 99.0) == Ages(1.0, 1.0), "an older record has no such moment"
    fresh = replace(PIPELINE, checkpoints=Checkpoints(), clock_s=70.0)
    assert ages(fresh, 100.0, 99.0) == Ages(30.0)


def test_a_silent_spark_is_health_even_of_a_job_without_checkpoints() -> None:
    batch = replace(PIPELINE, policy=Policy(periodic=False))
    well = report(batch, Ages(999), 10, {}, "")
    said = "Spark's Java process has not answered for 6 s."
    for silent_s, health in ((6.0, Health.LATE), (STALLED_SILENT_S, Health.STALLED)):
        told = well.with_ill(batch, {"w1#1": Ill("w1", silent_s, said)})
        assert (told.health, told.reason) == (health, f"Task t1 is on worker w1. {said}")
    assert well.with_ill(batch, {"w2#1": Ill("w2", 60.0, said)}) == well, "it is not on that one"
    over = replace(batch, status=PipelineStatus.FINISHED)
    assert well.with_ill(over, {"w1#1": Ill("w1", 60.0, said)}) == well


def test_a_silent_spark_does_not_hide_a_commit_that_does_not_get_through() -> None:
    owed = replace(DONE, clock_s=0.0)
    commits = Commits((owed,), 6, 6)
    stuck = report(replace(PIPELINE, commits=commits), Ages(3, 99), 10, {}, "", "It is locked.")
    ill = {"w1#1": Ill("w1", 6.0, "Spark is silent.")}
    told = stuck.with_ill(PIPELINE, ill)
    assert told.health is Health.STALLED and told.unseen
    assert "It is locked. Task t1 is on worker w1. Spark is silent." in told.reason
