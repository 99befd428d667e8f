"""Every status of a job yields a sentence that says what it waits for and what comes next."""

from dataclasses import replace

import pytest

from holdfast.core.checkpoint import CheckpointKind, Checkpoints, Completed, Pending
from holdfast.core.commit import Commits
from holdfast.core.completion import Completion, SourceEnd
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import Failure, PipelineRecord, PipelineStatus, Policy
from holdfast.core.task import TaskRecord, TaskStatus, WorkerId
from holdfast.master.explain import Explanation, JobSnapshot, Queue, as_text, explain
from holdfast.master.health import Health, HealthReport
from holdfast.master.ports import MasterSettings

HERE = WorkerId("W1", "i1")
JOB = JobRecord("17", "a", "token", "shop", "", 1, since_s=1000.0)
WAITING = TaskRecord("p1-t1", ("a",))
RUNNING = TaskRecord("p1-t1", ("a",), 1, TaskStatus.RUNNING, 1, HERE)
DONE = Completed(4, CheckpointKind.PERIODIC, "blob", 3, at_s=1090.0)


def pipeline(*tasks: TaskRecord, **changes: object) -> PipelineRecord:
    part = PipelineRecord("17", "a", 1, tasks or (RUNNING,), Completion(("a",)), sinks=("lake",))
    return replace(part, **changes)  # type: ignore[arg-type]


def scene(status: JobStatus, part: PipelineRecord | None = None, **changes: object) -> JobSnapshot:
    job = replace(JOB, status=status)
    made = JobSnapshot(
        job, (part or pipeline(),), MasterSettings(), 1100.0, connected=frozenset({"i1"})
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def told(asked: JobSnapshot) -> str:
    return as_text(explain(asked), lambda s: f"at {s:g}")


def test_a_job_behind_another_names_it() -> None:
    behind = {(1, "p1-t1"): "waits behind job 16, which was submitted earlier"}
    said = told(scene(JobStatus.PENDING, pipeline(WAITING), waits=behind))
    assert "Job 17 (shop) is PENDING." in said
    assert "Task p1-t1 of pipeline 1 has no worker: waits behind job 16" in said
    assert "from whom: job 16" in said
    assert "since: at 1000 (100 s)" in said
    assert "next: It is placed as soon as it fits" in said


def test_a_job_in_the_queue_says_where_and_who_holds_the_slots() -> None:
    why = {(1, "p1-t1"): "needs 1 slots, 0 are free"}
    holders = tuple((f"j{n}", n) for n in range(1, 8))
    asked = scene(JobStatus.PENDING, pipeline(WAITING), waits=why, queue=Queue(3, 9, holders))
    said = told(asked)
    assert "0 are free. It is number 3 of 9 jobs that wait to start." in said
    assert "slots held by job j1 (1), job j2 (2), job j3 (3), job j4 (4), job j5 (5)" in said
    assert "and 2 more" in said
    behind = {(1, "p1-t1"): "waits behind job 16, which was submitted earlier"}
    said = told(replace(asked, waits=behind, queue=Queue(4, 9, (("j1", 2),))))
    assert "from whom: job 16; slots held by job j1 (2)\n" in said


def test_tasks_that_wait_for_the_same_share_a_sentence() -> None:
    tasks = [replace(WAITING, id=f"t{n}") for n in range(8)]
    why = {(1, t.id): "needs 8 slots, 2 are free" for t in tasks}
    said = told(scene(JobStatus.PENDING, pipeline(*tasks), waits=why))
    assert "Tasks t0, t1, t2, t3, t4 and 3 more of pipeline 1 have no worker" in said
    assert "from whom: jobs that run now, for their slots" in said
    none = {(1, "p1-t1"): "no worker is connected"}
    said = told(scene(JobStatus.PENDING, pipeline(WAITING), waits=none))
    assert "from whom: a worker that connects" in said


def test_a_task_that_is_placed_and_does_not_start() -> None:
    placed = replace(RUNNING, status=TaskStatus.PLACED, attempt=2)
    asked = scene(JobStatus.RUNNING, pipeline(placed), since={"task 1 p1-t1": 1095.0})
    said = told(asked)
    assert "is placed and has not started (attempt 2)" in said
    assert "from whom: worker W1\n" in said and "since: at 1095 (5 s)" in said
    assert "not in contact" in told(replace(asked, connected=frozenset()))


def test_a_checkpoint_names_those_who_did_not_answer() -> None:
    checkpoints = Checkpoints(6, Pending(5, CheckpointKind.PERIODIC, 1), DONE, failed_in_a_row=2,
                              last_failure="no answer from p1-t1 within 5 s")  # fmt: skip
    said = told(
        scene(JobStatus.RUNNING, pipeline(checkpoints=checkpoints), missing={1: ("p1-t1",)})
    )
    assert "Checkpoint 5 of pipeline 1 waits for 1 answer." in said
    assert "from whom: task p1-t1 on worker W1" in said
    assert "after 5 s it is given up" in said and "2 failed in a row" in said
    stored = told(scene(JobStatus.RUNNING, pipeline(checkpoints=checkpoints), missing={1: ()}))
    assert "waits for its content to be stored" in stored


def test_a_commit_that_is_not_done_names_the_sink() -> None:
    part = pipeline(commits=Commits(waiting=(DONE,), through=3, listened=3))
    said = told(scene(JobStatus.RUNNING, part))
    assert "checkpoint 4 is complete and is being committed." in said
    assert "from whom: sink lake" in said and "tried again until it is done" in said
    part = pipeline(commits=Commits(through=4, listened=3))
    assert "listeners of commit 4 are running" in told(scene(JobStatus.RUNNING, part))
    failing = replace(scene(JobStatus.RUNNING, part), troubles={part.number: "The hook is down."})
    assert "Its rows are visible; what fails is: The hook is down." in told(failing)


def test_a_job_that_reads_says_when_it_commits() -> None:
    said = told(scene(JobStatus.RUNNING))
    assert "It runs.\n" in said and "Pipeline 1 reads its input." in said
    assert "A checkpoint is taken every 1 s" in said
    once = pipeline(policy=Policy(periodic=False))
    assert "When all sources have ended" in told(scene(JobStatus.RUNNING, once))
    ended = pipeline(completion=Completion(("a",), (SourceEnd("a", "p1-t1", 1, "i1"),)))
    assert "is at the end of its input" in told(scene(JobStatus.RUNNING, ended))


def test_a_stalled_job_says_so_first() -> None:
    late = HealthReport(1, Health.STALLED, 300.0, 4, 1090.0, "Checkpoint 5 waits for p1-t1.")
    said = told(scene(JobStatus.RUNNING, reports={1: late}))
    assert "is RUNNING, STALLED." in said
    assert "Its last checkpoint is 5 min old. Checkpoint 5 waits for p1-t1." in said


def test_failures_are_listed_with_their_reasons() -> None:
    part = pipeline(
        status=PipelineStatus.FAILED,
        failures=(Failure("p1-t1", 1, "no space"), Failure("", 0, "Checkpoint 4 is lost.")),
    )
    job = replace(JOB, status=JobStatus.FAILING, reason="no space. Task p1-t1 failed.")
    said = told(replace(scene(JobStatus.FAILING, part), job=job))
    assert "It failed: no space. Task p1-t1 failed." in said
    assert "- pipeline 1, task p1-t1, attempt 1: no space" in said
    assert "- pipeline 1, Checkpoint 4 is lost." in said


def test_a_cancelled_job_whose_worker_still_runs() -> None:
    over = pipeline(status=PipelineStatus.STOPPED)
    job = replace(JOB, status=JobStatus.CANCELED, ended_s=1098.0)
    asked = replace(scene(JobStatus.CANCELED, over), job=job, holding=("W1",))
    said = told(asked)
    assert "no worker holds a task" in said and "from whom: worker W1" in said
    said = told(replace(asked, holding=()))
    assert "Its id stays taken for about 5 s" in said and "since: at 1098 (2 s)" in said
    assert "It waits for nothing." in told(replace(asked, holding=(), buried=True))


@pytest.mark.parametrize("status", JobStatus)
def test_every_status_has_a_sentence(status: JobStatus) -> None:
    explained = explain(scene(status))
    assert isinstance(explained, Explanation)
    assert explained.summary.endswith((".", "recorded"))
    assert all(w.what and w.next for w in explained.waits)
