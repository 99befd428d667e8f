"""Two masters on etcd: who is stopped hands over at once, and the job never notices."""

import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.cluster.processes import TOKEN, Cluster, stream
from tests.conformance.servers import start_etcd

pytestmark = pytest.mark.spark

LEASE_S = 10.0
MOVING = Shape(((From(ENDLESS, 5, 200),),), interval_ms=500, streaming=True)
ENDS = Shape(((From(12, 5, 500),),), interval_ms=None)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    (etcd,) = start_etcd(1)
    started = Cluster(tmp_path_factory.mktemp("cluster"), f"etcd:{etcd.url}", masters=2)
    started.environ["HOLDFAST_LEASE_S"] = str(LEASE_S)
    started.master(1)
    assert started.client.cluster().leader == "M1"
    started.master(2)
    started.worker()
    yield started
    started.end()
    etcd.remove()


def test_a_stopped_leader_hands_over_and_no_task_restarts(cluster: Cluster, tmp_path: Path) -> None:
    job_file = tmp_path / "job.conf"
    job_file.write_text(stream(tmp_path / "out"))
    sent = cluster.ask("submit", str(job_file), "--async", "--set-job-id", "stream1")
    assert sent.returncode == 0, sent.stderr
    cluster.until("a checkpoint is committed", lambda: cluster.committed("stream1", 1))
    before = cluster.client.cluster()
    assert before.leader == "M1"
    stopped = cluster.processes["M1"]
    begun = time.monotonic()
    stopped.send_signal(signal.SIGTERM)
    after = cluster.client.cluster()
    while after.leader == "M1":
        after = cluster.client.cluster()
    took_s = time.monotonic() - begun
    assert after.term == before.term + 1, "terms are counted, whatever was written between"
    assert took_s < LEASE_S, "nobody waited for the lease to lapse"
    assert stopped.wait(30) == 0
    reached = cluster.client.job("stream1").pipelines[0].committed
    cluster.until("checkpoints go on", lambda: cluster.committed("stream1", reached + 2))
    part = cluster.client.job("stream1").pipelines[0]
    assert [t.attempt for t in part.tasks] == [1]
    assert part.failures == []


def test_a_drained_worker_and_a_stopped_one_hand_their_tasks_over(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Nothing fails, is lost, is counted as a restart or as a retry, and every row is there."""
    assert cluster.ask("cancel", "stream1").returncode == 0
    cluster.worker("W2")
    cluster.until("W2 works", lambda: len(cluster.client.cluster().workers) == 2)
    submit(cluster, "moving", MOVING, tmp_path)
    cluster.until("some is committed", lambda: cluster.committed("moving", 2))
    old = on(cluster, "moving")
    drained = cluster.ask("drain", old)
    assert drained.returncode == 0, drained.stderr
    assert f"{old} is DRAINING: an operator drains it; it holds 1 task" in drained.stderr
    assert f"{old} is free of tasks and gets none" in drained.stderr
    other = on(cluster, "moving")
    assert other != old
    untouched(cluster, "moving", attempt=2)
    shown = cluster.ask("cluster").stdout
    assert f"{old} is DRAINING: an operator drains it; it holds no tasks" in shown
    assert "holdfast_workers_draining 1\n" in metrics(cluster)
    submit(cluster, "ends", ENDS, tmp_path)
    cluster.until("it runs", lambda: on(cluster, "ends"))
    assert on(cluster, "ends") == other, "a drained worker gets no task"
    assert cluster.ask("undrain", old).returncode == 0
    assert "DRAINING" not in cluster.ask("cluster").stdout

    cluster.processes[other].send_signal(signal.SIGTERM)
    ended = cluster.client.wait("ends", lambda _: None)
    assert cluster.processes[other].wait(60) == 0
    assert ended.status == "FINISHED"
    untouched(cluster, "ends", attempt=1)
    assert ENDS.flaws(tmp_path / "ends", finished=True) == []
    assert on(cluster, "moving") == old
    untouched(cluster, "moving", attempt=3)
    reached = cluster.client.job("moving").pipelines[0].committed
    cluster.until("checkpoints go on", lambda: cluster.committed("moving", reached + 2))
    assert cluster.ask("cancel", "moving").returncode == 0
    untouched(cluster, "moving", attempt=3)
    assert MOVING.flaws(tmp_path / "moving", finished=False) == []


def submit(cluster: Cluster, job: str, shape: Shape, folder: Path) -> None:
    """Submit a job whose rows are known."""
    file = folder / f"{job}.conf"
    file.write_text(shape.text(job, folder / job))
    sent = cluster.ask("submit", str(file), "--async", "--set-job-id", job)
    assert sent.returncode == 0, sent.stderr


def on(cluster: Cluster, job: str) -> str:
    """The worker on which the only task of a job runs; "" while it does not."""
    (task,) = cluster.client.job(job).pipelines[0].tasks
    return task.worker if task.status == "running" else ""


def untouched(cluster: Cluster, job: str, attempt: int) -> None:
    """Nothing was lost and nothing failed, however often its task has moved."""
    found = cluster.client.job(job)
    (part,) = found.pipelines
    assert [t.attempt for t in part.tasks] == [attempt]
    assert (found.restarts, part.retries, part.failures) == (0, 0, [])


def metrics(cluster: Cluster) -> str:
    """What the leader tells Prometheus."""
    asked = urllib.request.Request(
        f"{cluster.client.cluster().url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(asked) as answer:
        return str(answer.read().decode())
