"""A job in this process: slices, commits, retries, and what is left when something fails."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import UserError
from holdfast.plan.check import check_job
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource
from holdfast.process.local_run import LocalCluster
from holdfast.process.run_outcome import RunStatus, admit
from holdfast.worker.attempt import WorkerRuntime
from tests.unit.worker import plugins
from tests.unit.worker.plugins import Cellar, Count

STICKS = "Sink[0]-Cellar (job.conf:3:8): The cellar door sticks."

pytestmark = pytest.mark.spark


Start = Callable[[str], tuple[LocalCluster, list[str]]]


@pytest.fixture
def started(spark: SparkSession) -> Iterator[Start]:
    """Start a job from its text."""
    runs: list[LocalCluster] = []

    def start(text: str) -> tuple[LocalCluster, list[str]]:
        registry, report, said = Registry.load(), CheckReport(), []  # type: ignore[var-annotated]
        registry.add(plugins)
        tree = parse_job(text, "job.conf", {}, None, report)
        report.raise_if_any()
        assert tree
        spec = JobSource("job.conf", tree)
        run = LocalCluster(WorkerRuntime(registry, lambda: spark), said.append)
        runs.append(run)
        run.start()
        run.submit(spec, spec.job(registry), "7")
        return run, said

    yield start
    for run in runs:
        run.close()


@pytest.fixture
def ended(started: Start) -> Start:
    """Run a job to its end."""

    def run(text: str) -> tuple[LocalCluster, list[str]]:
        run, said = started(text)
        assert run.wait(60)
        return run, said

    return run


def test_a_batch_job_commits_once_at_its_end(ended: Start) -> None:
    run, _ = ended("source { Count {} }\nsink { Cellar {} }")
    assert run.outcome().status is RunStatus.FINISHED
    assert sorted(Cellar.visible) == list(range(30))
    assert [i.number for i in Cellar.commits] == [1]
    assert Cellar.prepared == ["count(id)"]
    assert run.view().read == run.view().committed == 30


def test_save_modes_apply_with_the_first_commit_and_to_a_batch_without_rows(ended: Start) -> None:
    Cellar.visible.append(-1)
    run, _ = ended("source { Count { slices = 1 } }\nsink { Cellar { empties = true } }")
    assert run.outcome().status is RunStatus.FINISHED
    assert sorted(Cellar.visible) == list(range(10))
    empty = "source { FakeSource { row.num = 0, schema { fields { id = bigint } } } }\n"
    run, _ = ended(empty + "sink { Cellar { empties = true } }")
    assert run.outcome().status is RunStatus.FINISHED
    assert Cellar.visible == []


def test_a_job_that_fails_before_its_first_commit_has_destroyed_nothing(ended: Start) -> None:
    Cellar.visible.append(-1)
    job = "source { Count {} }\nsink { Cellar { empties = true, fail_on = [1, 2, 3, 4, 5] } }"
    run, _ = ended("env { job.retry.times = 1, job.retry.interval.seconds = 0 }\n" + job)
    assert run.outcome().status is RunStatus.FAILED
    assert Cellar.visible == [-1]


def test_a_failed_slice_is_run_again_from_the_last_commit(ended: Start) -> None:
    env = "env { checkpoint.interval = 10, job.retry.interval.seconds = 0 }\n"
    job = "source { Count { slices = 20 } }\nsink { Cellar { fail_once_visible = true } }"
    run, said = ended(env + job)
    assert run.outcome().status is RunStatus.FINISHED
    assert sorted(Cellar.visible) == list(range(200))
    assert len(set(Cellar.writes)) == len(Cellar.writes), "no two tries share a staging name"
    known = "save modes are due no more once a checkpoint has them"
    assert Cellar.prepared == ["count(id)", "known count(id)"], known
    assert len(said) == 1
    at = re.fullmatch(rf"{re.escape(STICKS)} Retry 1 of 3 in 0 s, from checkpoint (\d+)\.", said[0])
    assert at and int(at[1]) >= 1
    assert run.view().read == run.view().committed == 200, "a restart counts no row twice"
    assert not Cellar.staged


def test_a_slice_that_fails_before_any_commit_is_run_again_from_the_start(ended: Start) -> None:
    env = "env { job.retry.interval.seconds = 0 }\n"
    run, said = ended(env + "source { Count {} }\nsink { Cellar { fail_on = [2] } }")
    assert run.outcome().status is RunStatus.FINISHED
    assert sorted(Cellar.visible) == list(range(30))
    assert Cellar.prepared == ["count(id)", "count(id)"]
    assert said == [f"{STICKS} Retry 1 of 3 in 0 s, from the beginning."]
    assert not Cellar.staged


def test_a_retry_waits_as_long_as_the_job_asks_for(ended: Start) -> None:
    env = "env { job.retry.interval.seconds = 1 }\n"
    run, _ = ended(env + "source { Count {} }\nsink { Cellar { fail_on = [2] } }")
    assert run.outcome().status is RunStatus.FINISHED
    assert Cellar.begun_s[2] - Cellar.begun_s[1] >= 1.0


RAGGED = """source {{ LocalFile {{ path = "{path}", file_format_type = csv
  schema {{ fields {{ id = int, name = string }} }} }} }}
sink {{ Cellar {{}} }}"""


def test_a_slice_that_spark_cannot_read_whole_is_read_again_with_care(ended: Start) -> None:
    Count.malformed.add(1)
    run, said = ended("source { Count {} }\nsink { Cellar {} }")
    assert run.outcome().status is RunStatus.FINISHED
    assert sorted(Cellar.visible) == list(range(30))
    assert run.view().rows_written == 30, "the first try does not count"
    assert said == [], "it is no failure, and costs no retry"
    assert not Cellar.staged


def test_a_wrong_value_is_named_by_the_careful_reading(ended: Start, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,one\ntwo,two\n")
    run, _ = ended(RAGGED.format(path=tmp_path))
    error = run.outcome().error
    assert error and "column id = 'two' is not" in str(error)
    assert not Cellar.staged and not Cellar.visible


def test_a_commit_that_fails_is_tried_again(ended: Start) -> None:
    env = "env { job.retry.interval.seconds = 0 }\n"
    run, said = ended(env + "source { Count {} }\nsink { Cellar { break_on_commit = true } }")
    assert run.outcome().status is RunStatus.FINISHED
    assert sorted(Cellar.visible) == list(range(30))
    assert "RuntimeError: the stairs gave way" in said[0]


def test_retries_are_bounded_and_nothing_staged_stays(ended: Start) -> None:
    env = "env { job.retry.times = 1, job.retry.interval.seconds = 0 }\n"
    run, _ = ended(env + "source { Count {} }\nsink { Cellar { fail_on = [2, 4] } }")
    outcome = run.outcome()
    assert outcome.status is RunStatus.FAILED
    assert str(outcome.error) == STICKS
    assert (Cellar.visible, Cellar.staged) == ([], {})


def test_a_sink_can_refuse_the_end_before_anything_shows(ended: Start) -> None:
    run, _ = ended("source { Count {} }\nsink { Cellar { refuse = true } }")
    assert str(run.outcome().error) == "Refused: {'count': 30}."
    assert (Cellar.visible, Cellar.staged) == ([], {})


def test_two_sources_into_one_sink_are_two_tasks_and_one_commit(ended: Start) -> None:
    job = """source {
      Count { plugin_output = a, slices = 1 }
      Count { plugin_output = b, slices = 2 }
    }
    sink { Cellar { plugin_input = [a, b] } }"""
    run, _ = ended(job)
    assert run.outcome().status is RunStatus.FINISHED
    assert {re.sub(r".*-(p.*)-a.*", r"\1", name) for name in Cellar.writes} == {"p1-t1", "p1-t2"}
    assert sorted(Cellar.visible) == sorted([*range(10), *range(20)])
    assert len(Cellar.commits) == 1


def test_a_streaming_job_runs_until_it_is_cancelled(started: Start) -> None:
    job = """env { job.mode = STREAMING, checkpoint.interval = 20 }
    source { Count { streaming = true } }
    sink { Cellar {} }"""
    run, _ = started(job)
    deadline = time.monotonic() + 30
    while len(Cellar.visible) < 30 and time.monotonic() < deadline:
        assert not run.wait(0.05)
    run.cancel()
    assert run.wait(10)
    assert run.outcome().status is RunStatus.CANCELED
    assert sorted(Cellar.visible) == list(range(30))


def test_inputs_that_do_not_look_alike_are_refused_by_name(ended: Start) -> None:
    job = """source { Count { plugin_output = a } }
    transform {
      FieldMapper { plugin_input = a, plugin_output = b, field_mapper { id = other } }
      Copy { plugin_input = [a, b], plugin_output = c, fields { twice = id } }
    }
    sink { Cellar { plugin_input = c } }"""
    run, _ = ended(job)
    assert "id: bigint against absent; other: absent against bigint" in str(run.outcome().error)


def test_one_failed_pipeline_ends_the_job(ended: Start) -> None:
    job = """env { job.mode = STREAMING, job.retry.times = 0 }
    source { Count { plugin_output = a, streaming = true }  Count { plugin_output = b } }
    sink { Console { plugin_input = a }  Cellar { plugin_input = b, fail_on = [1] } }"""
    run, _ = ended(job)
    assert run.outcome().status is RunStatus.FAILED


def test_a_job_that_needs_more_slots_or_other_tags_is_refused() -> None:
    text = """env { tag_filter { zone = north }, parallelism = 3 }
    source { Count {} }
    sink { Cellar {} }"""
    registry, report = Registry.load(), CheckReport()
    registry.add(plugins)
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree
    job = check_job(tree, "job.conf", registry, report)
    assert job
    with pytest.raises(UserError, match="tag zone=north; this one carries none"):
        admit(job, None, {})
    with pytest.raises(UserError, match="needs 3 slots, there are 2"):
        admit(job, 2, {"zone": "north"})
    admit(job, 3, {"zone": "north"})
