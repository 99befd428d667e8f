"""Jobs and commands that outlive what they stand on; checkpoints are kept on S3 (moto's server)."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.cluster.processes import Cluster
from tests.cluster.s3 import S3Server

pytestmark = pytest.mark.spark

BOUNDED = Shape(((From(16, 5, 300), From(12, 5, 300)),), interval_ms=500, empties=True)
# Each life reads a round and then rests for longer than any test may take, so that it ends by a
# savepoint and by nothing else; the last one takes no rests.
SLOW = Shape(((From(16, 5, 3_600_000), From(12, 5, 3_600_000)),), interval_ms=500, empties=True)
QUICK = Shape(((From(16, 5, 0), From(12, 5, 0)),), interval_ms=500, empties=True)
ENDLESS_ROWS = Shape(((From(ENDLESS, 5, 200),),), interval_ms=500, streaming=True, empties=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    s3 = S3Server()
    s3.make_bucket("checkpoints")
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    started.environ["HOLDFAST_BLOBS"] = f"s3://checkpoints/here?endpoint={s3.url}"
    started.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    started.environ["HOLDFAST_TOO_LARGE"] = "refuse"
    started.environ["HOLDFAST_LEASE_S"] = "2"
    started.master()
    started.worker()
    yield started
    started.end()
    s3.stop()


def written(shape: Shape, folder: Path) -> str:
    path = folder / "job.conf"
    path.write_text(shape.text("a job", folder / "out"))
    return str(path)


@pytest.mark.parametrize("finished", [True, False], ids=["to its end", "endless"])
def test_a_restored_job_goes_on_where_its_savepoint_stopped(
    cluster: Cluster, tmp_path: Path, finished: bool
) -> None:
    shape = SLOW if finished else ENDLESS_ROWS
    job, file = f"saved-{finished}".lower(), written(shape, tmp_path)
    sent = cluster.ask("submit", file, "--async", "--set-job-id", job)
    assert sent.returncode == 0, sent.stderr
    reached = 0
    for life in range(2 if finished else 1):
        cluster.until(
            "more is visible", lambda least=reached: cluster.client.job(job).written > least
        )
        saved = cluster.ask("savepoint", job)
        assert saved.returncode == 0, saved.stderr
        assert f"Job {job} is SAVEPOINT_DONE" in saved.stderr
        assert shape.flaws(tmp_path / "out", finished=False) == [], f"life {life}"
        before = cluster.client.job(job)
        assert before.written > reached
        if finished and life:
            assert before.written < sum(s.total for s in shape.sources), "it was not over"
            written(QUICK, tmp_path)
        again = cluster.ask("restore", job, file, "--async")
        assert again.returncode == 0, again.stderr
        now = cluster.client.job(job)
        assert now.incarnation != before.incarnation
        reached = before.written
    if finished:
        assert cluster.client.wait(job, lambda _: None).status == "FINISHED"
    else:
        cluster.until("more is committed", lambda: cluster.committed(job, 2))
        assert cluster.ask("cancel", job).returncode == 0
    ended = cluster.client.job(job)
    assert shape.flaws(tmp_path / "out", finished=finished) == []
    # Counters go on from the savepoint.
    if finished:
        assert ended.written == sum(s.total for s in shape.sources)
    else:
        assert ended.written > before.written


def test_a_job_that_has_left_nothing_is_not_restored(cluster: Cluster, tmp_path: Path) -> None:
    # Its first checkpoint comes after an hour, its last row after days, and it is cancelled before.
    endless = Shape(((From(ENDLESS, 5, 300),),), interval_ms=3_600_000)
    file = written(endless, tmp_path)
    never = cluster.ask("restore", "never-was", file)
    assert never.returncode == 1 and "There is no job never-was to restore" in never.stderr
    cluster.ask("submit", file, "--async", "--set-job-id", "plain")
    cluster.ask("cancel", "plain")
    refused = cluster.ask("restore", "plain", file)
    assert refused.returncode == 1
    assert "ended as CANCELED and left nothing to continue from" in refused.stderr
    running = cluster.ask("submit", file, "--restore")
    assert running.returncode == 1 and "--set-job-id" in running.stderr


def test_a_follower_stays_with_its_job_when_the_master_dies(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = written(BOUNDED, tmp_path)
    following = cluster.begin("submit", file, "--set-job-id", "followed")
    cluster.until("the job is accepted", lambda: cluster.knows("followed"))
    cluster.until("the job commits", lambda: cluster.committed("followed", 1))
    dead = cluster.processes["M1"]
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    cluster.master()
    _, said = following.communicate(timeout=120)
    assert following.returncode == 0, said
    assert (
        "was accepted; following it (Ctrl-C leaves it running)." in said and "RUNNING: read" in said
    )
    assert BOUNDED.flaws(tmp_path / "out", finished=True) == []
    part = cluster.client.job("followed")
    assert part.written == sum(s.total for s in BOUNDED.sources)


def test_ctrl_c_leaves_the_job_or_takes_it_along(cluster: Cluster, tmp_path: Path) -> None:
    file = written(ENDLESS_ROWS, tmp_path)
    for job, flags, status in (("stays", [], "RUNNING"), ("goes", ["-cj"], "CANCELED")):
        following = cluster.begin("submit", file, "--set-job-id", job, *flags)
        cluster.until(f"{job} is accepted", lambda job=job: cluster.knows(job))
        cluster.until(f"{job} commits", lambda job=job: cluster.committed(job, 1))
        following.send_signal(signal.SIGINT)
        _, said = following.communicate(timeout=60)
        assert following.returncode == 130, said
        assert cluster.client.job(job).status == status
    cluster.ask("cancel", "stays")


def test_a_job_that_no_worker_could_carry_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "job.conf"
    path.write_text(Shape(parallelism=64).text("large", tmp_path / "out"))
    refused = cluster.ask("submit", str(path), "--set-job-id", "large")
    assert refused.returncode == 1
    assert "needs 128 slots, 4 are there" in refused.stderr and "too_large: wait" in refused.stderr
    assert cluster.ask("status", "large").returncode == 1


def test_the_verbs_that_look_say_who_and_where(cluster: Cluster, tmp_path: Path) -> None:
    shown = cluster.ask("cluster").stdout
    assert "M1 leads at" in shown and "W1" in shown and "0 of 4" in shown
    assert f"{cluster.urls[0]}  leads" in shown
    nobody = cluster.ask("logs", "nobody")
    assert nobody.returncode == 1 and "There is no job nobody" in nobody.stderr
    config = cluster.ask("config", "--slots", "3").stdout
    assert "slots: 3  # flag" in config and "lease_s: 2.0  # environment" in config
    assert cluster.environ["HOLDFAST_TOKEN"] not in config
    gone = cluster.ask("list", "--masters", "http://127.0.0.1:1", "--patience", "0.2")
    assert gone.returncode == 1 and "Start one (holdfast master)" in gone.stderr


def test_a_job_that_fails_and_is_tried_again_keeps_its_reasons(
    cluster: Cluster, tmp_path: Path
) -> None:
    path, missing = tmp_path / "job.conf", tmp_path / "not-there"
    path.write_text(f"""
env {{ job.mode = BATCH, job.retry.times = 2, job.retry.interval.seconds = 1 }}
source {{ LocalFile {{ path = "{missing}", file_format_type = json,
  schema {{ fields {{ id = int }} }} }} }}
sink {{ Console {{}} }}
""")
    ran = cluster.ask("submit", str(path), "--set-job-id", "retried")
    assert ran.returncode == 1 and "FAILED" in ran.stderr
    told = cluster.ask("explain", "retried").stdout
    assert "It failed: " in told and str(missing) in told
    shown = json.loads(cluster.ask("status", "retried", "--json").stdout)
    assert shown["status"] == "FAILED" and str(missing) in shown["reason"]
