"""A pipeline is believed to run only while checkpoints complete."""

from dataclasses import replace

import pytest

from holdfast.core.checkpoint import Checkpoints, Completed, Kind, Pending
from holdfast.core.completion import Completion
from holdfast.core.pipeline import Pipeline, PipelineStatus
from holdfast.core.task import Place, Task, TaskStatus
from holdfast.master.health import Health, report

RUNNING = Task("t1", ("a",), status=TaskStatus.RUNNING, place=Place("w1", "w1#1"))
DONE = Completed(7, Kind.PERIODIC, "blob", 6, at_s=1000.0)
PIPELINE = Pipeline("j", "i1", 1, (RUNNING,), Completion(("a",)), Checkpoints(8, None, DONE))


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
    assert report(PIPELINE, age_s, interval_s, {}, "").health is health


def test_a_report_names_the_last_checkpoint_and_its_date() -> None:
    told = report(PIPELINE, 3, 10, {}, "")
    assert (told.checkpoint, told.checkpoint_at_s, told.reason) == (7, 1000.0, "")


def test_a_pipeline_that_is_over_is_never_late() -> None:
    over = replace(PIPELINE, status=PipelineStatus.FINISHED)
    assert report(over, 999, 10, {}, "").health is Health.OK


@pytest.mark.parametrize(
    ("pipeline", "waits", "missing", "reason"),
    [
        (
            replace(PIPELINE, tasks=(Task("t1", ("a",)),)),
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
            replace(PIPELINE, checkpoints=Checkpoints(9, Pending(8, Kind.PERIODIC, 1), DONE)),
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
    pipeline: Pipeline, waits: dict[str, str], missing: str, reason: str
) -> None:
    assert report(pipeline, 999, 10, waits, missing).reason == reason
