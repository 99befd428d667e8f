"""Two masters on etcd: a stopped leader hands over at once, and the job never notices."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.processes import Cluster, stream
from tests.conformance.servers import start_etcd

pytestmark = pytest.mark.spark

LEASE_S = 10.0


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
    assert after.term > before.term
    assert took_s < LEASE_S, "nobody waited for the lease to lapse"
    assert stopped.wait(30) == 0
    reached = cluster.client.job("stream1").pipelines[0].committed
    cluster.until("checkpoints go on", lambda: cluster.committed("stream1", reached + 2))
    part = cluster.client.job("stream1").pipelines[0]
    assert [t.attempt for t in part.tasks] == [1]
    assert part.failures == []


def test_a_stopped_worker_costs_no_retry(cluster: Cluster) -> None:
    cluster.worker("W2")
    cluster.until("W2 works", lambda: len(cluster.client.cluster().workers) == 2)
    old = cluster.client.job("stream1").pipelines[0].tasks[0].worker
    cluster.processes[old].send_signal(signal.SIGTERM)

    def moved() -> bool:
        task = cluster.client.job("stream1").pipelines[0].tasks[0]
        return task.status == "running" and task.worker != old

    cluster.until("the task runs elsewhere", moved)
    assert cluster.processes[old].wait(60) == 0
    assert cluster.client.job("stream1").pipelines[0].retries == 0
    assert cluster.ask("cancel", "stream1").returncode == 0
