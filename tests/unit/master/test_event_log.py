"""What happened to a job is told in the same commit, is short, and outlives whoever saw it."""

from dataclasses import replace

import pytest

from holdfast.core.checkpoint import (
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointStored,
    LeaderChanged,
    Totals,
)
from holdfast.core.commit import Committed, HooksFinished
from holdfast.core.completion import Completion
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord, step
from holdfast.core.task import TaskFailed, TaskPlaced, TaskRecord, TaskStarted, WorkerId
from holdfast.master import event_log
from holdfast.master.event_log import EventHistory, Moment

HERE = WorkerId("W1", "W1-1")
PIPELINE = PipelineRecord(
    "j", "i1", 1, (TaskRecord("t1", ("a",)),), Completion(("a",)), since_s=1000.0
)
JOB = JobRecord("j", "i1", "token", "name", "spec", 1, since_s=1000.0)


class Story:
    """A pipeline and its trail, a second for each event."""

    def __init__(self) -> None:
        self.clock_s = 10.0
        self.term = 5
        self.state = PIPELINE
        self.trail = EventHistory.begun(PIPELINE, self.seen())

    def seen(self) -> Moment:
        return Moment(1000.0 + self.clock_s, self.clock_s, self.term)

    def tell(self, *events: object) -> None:
        for event in events:
            self.clock_s += 1
            new = step(self.state, event)
            self.trail = self.trail.after_pipeline(self.state, new, event, self.seen())
            self.state = new

    def starts(self, attempt: int = 1) -> None:
        self.tell(TaskPlaced("t1", attempt, HERE), TaskStarted("t1", attempt, HERE))

    def completes(self, rows: int) -> None:
        self.tell(CheckpointDue(CheckpointKind.PERIODIC, self.term))
        pending = self.state.checkpoints.pending
        assert pending
        done = CheckpointStored(pending.number, "b", 7.0, Totals(rows, rows, 8 * rows), 640)
        self.tell(done, Committed(pending.number, None), HooksFinished(pending.number, ""))


def test_checkpoints_are_told_with_what_they_took_and_added() -> None:
    story = Story()
    story.starts()
    story.completes(100)
    story.completes(150)
    first, second = story.trail.checkpoints
    assert (first.number, first.complete, first.term, first.took_s, first.size) == (
        1, True, 5, 1.0, 640,
    )  # fmt: skip
    assert first.started_s == 1013.0 and first.ended_s == 7.0
    assert (first.rows, first.bytes, second.rows, second.bytes) == (100, 800, 50, 400)


def test_one_that_the_next_leader_gives_up_is_told_under_the_term_it_ran_in() -> None:
    story = Story()
    story.starts()
    story.tell(CheckpointDue(CheckpointKind.PERIODIC, 5))
    kept = EventHistory.decoded(story.trail.encoded(), "trail/j/0001")
    assert kept and kept.under is None
    story.trail, story.term = kept, 9
    story.tell(LeaderChanged(9))
    (over,) = story.trail.checkpoints
    assert (over.complete, over.term, over.started_s) == (False, 5, None)
    assert "leader that gathered" in over.reason


def test_a_failed_one_says_why_and_the_next_attempt_is_told() -> None:
    story = Story()
    story.starts()
    story.tell(
        CheckpointDue(CheckpointKind.PERIODIC, 5), CheckpointFailed(1, "no answer" + "x" * 999)
    )
    (failed,) = story.trail.checkpoints
    assert not failed.complete and len(failed.reason) == event_log.REASON_MAX
    story.tell(TaskFailed("t1", 1, HERE, "it broke"))
    told = [(e.what, e.status, e.attempt, e.worker, e.reason) for e in story.trail.events]
    assert told == [
        ("pipeline", "ACTIVE", 0, "", ""),
        ("task", "WAITING", 1, "", ""),
        ("task", "PLACED", 1, "W1", ""),
        ("task", "RUNNING", 1, "W1", ""),
        ("task", "FAILED", 1, "W1", "it broke"),
        ("task", "WAITING", 2, "", ""),
    ]
    assert {e.term for e in story.trail.events} == {5}
    assert story.trail.events[0].at_s == 1000.0, "it began with the submit"


def test_only_what_is_told_costs_a_write() -> None:
    story = Story()
    story.starts()
    before = story.trail
    story.tell(CheckpointDue(CheckpointKind.PERIODIC, 5))
    assert not story.trail.grown(before, "job/j") and story.trail.under
    before = story.trail
    story.tell(CheckpointFailed(1, "no"))
    assert story.trail.grown(before, "job/j")


def test_a_trail_is_bounded_and_small() -> None:
    story = Story()
    story.starts()
    for n in range(300):
        story.completes(10**9 + n)
    assert len(story.trail.checkpoints) == event_log.CHECKPOINTS_SHOWN
    value = story.trail.encoded()
    kept = EventHistory.decoded(value, "trail/j/0001")
    assert kept and kept.checkpoints == story.trail.checkpoints[-event_log.CHECKPOINTS_KEPT :]
    assert len(value) < 5_000


def test_the_states_of_a_job_and_its_leaders_are_told() -> None:
    told = EventHistory.begun(JOB, Moment(1001.0, 1.0, 5))
    runs = replace(JOB, status=JobStatus.RUNNING)
    told = told.after_job(JOB, runs, Moment(1002.0, 2.0, 5))
    assert told.after_job(runs, replace(runs, reason="x"), Moment(1003.0, 3.0, 5)) is told
    told = told.noting(event_log.leads("M2", Moment(1009.0, 1.0, 8)))
    back = event_log.decode_past(event_log.encode_past({0: told}), "past/j/i1")
    assert [(e.status, e.at_s, e.term) for e in back[0].events] == [
        ("SUBMITTED", 1000.0, 0), ("PENDING", 1000.0, 5), ("RUNNING", 1002.0, 5),
        ("LEADS", 1009.0, 8),
    ]  # fmt: skip


def test_how_it_began_is_never_forgotten() -> None:
    told = EventHistory.begun(JOB, Moment(1001.0, 1.0, 5))
    runs = replace(JOB, status=JobStatus.RUNNING)
    told = told.after_job(JOB, runs, Moment(1002.0, 2.0, 5))
    for term in range(1000):
        told = told.noting(event_log.leads("M2", Moment(2000.0 + term, 1.0, term)))
        told = EventHistory.decoded(told.encoded(), "trail/j/0000") or EventHistory()
    assert len(told.events) == event_log.EVENTS_KEPT and told.events[-1].term == 999
    assert [e.status for e in told.events[:4]] == ["SUBMITTED", "PENDING", "RUNNING", "LEADS"]


def test_a_record_that_is_older_than_trails_tells_what_it_keeps() -> None:
    story = Story()
    story.starts()
    story.completes(100)
    begun = EventHistory.begun(story.state, Moment(5000.0, 1.0, 9))
    (one,) = begun.checkpoints
    assert (one.number, one.term, one.rows, one.took_s) == (1, 0, 100, None)
    assert {e.at_s for e in begun.events} == {5000.0}


@pytest.mark.parametrize("value", [b"{", b'{"version":2,"checkpoints":[],"events":[]}', b"{}"])
def test_a_trail_that_cannot_be_read_is_said_and_begun_anew(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert EventHistory.decoded(value, "trail/j/0001") is None
    assert "trail/j/0001 cannot be read" in caplog.text
    assert EventHistory.decoded(None, "trail/j/0001") is None


def test_keys_of_records_and_their_trails() -> None:
    assert event_log.trail_key("job/j") == "trail/j/0000"
    assert event_log.trail_key("pipeline/j/0001") == "trail/j/0001"
    assert EventHistory().events == ()
