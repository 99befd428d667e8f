"""What a job leaves, and how it goes on from there: real processes, two masters, rows counted."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.engine.jobs import From, Shape
from tests.chaos.engine.points import Points
from tests.chaos.engine.reader import ids
from tests.cluster.processes import Cluster
from tests.conformance.servers import start_etcd

pytestmark = pytest.mark.spark

BOUNDED = Shape(((From(30, 5, 400),),), interval_ms=500)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Points:
    return Points(tmp_path_factory.mktemp("points") / "armed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, points: Points) -> Iterator[Cluster]:
    (etcd,) = start_etcd(1)
    started = Cluster(tmp_path_factory.mktemp("cluster"), f"etcd:{etcd.url}", masters=2)
    started.environ |= {"HOLDFAST_LEASE_S": "2", "HOLDFAST_HISTORY": "3"}
    started.environ["HOLDFAST_FAILPOINTS"] = str(points.folder)
    started.master(1)
    started.master(2)
    started.worker(slots=8)
    started.until("somebody leads", lambda: started.client.cluster().leader)
    yield started
    started.end()
    etcd.remove()


def kill_leader(cluster: Cluster) -> None:
    """End the master that leads as kill -9 does, wait for the other, and start it again."""
    leader = cluster.client.cluster().leader
    cluster.processes[leader].send_signal(signal.SIGKILL)
    cluster.processes[leader].wait()
    cluster.until("another leads", lambda: cluster.client.cluster().leader != leader)
    cluster.master(int(leader[1:]))


def written(folder: Path, out: str = "out") -> str:
    """Write the job file."""
    path = folder / f"{out}.conf"
    path.write_text(BOUNDED.text("a job", folder / out))
    return str(path)


def begun(cluster: Cluster, folder: Path, job: str) -> None:
    """Start a job and wait until some of its rows show."""
    sent = cluster.ask("submit", written(folder), "--async", "--set-job-id", job)
    assert sent.returncode == 0, sent.stderr
    cluster.until("some is committed", lambda: cluster.committed(job, 2))


def finished(cluster: Cluster, folder: Path, job: str) -> None:
    """Claim that a job comes to its end and shows every row once."""
    ended = cluster.client.wait(job, lambda _: None)
    assert ended.status == "FINISHED", ended.reason
    assert BOUNDED.flaws(folder / "out", finished=True) == []
    assert ended.written == sum(s.total for s in BOUNDED.sources), "none was read again"


def test_three_bad_restores_and_then_a_good_one(
    cluster: Cluster, points: Points, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(cluster, tmp_path, "tried")
    assert cluster.ask("savepoint", "tried").returncode == 0
    shown = cluster.client.job("tried").written
    refuses_what_a_worker_cannot_open(cluster, tmp_path)
    # What no look can see: every try fails on the worker, after it was accepted.
    bad = tmp_path / "bad.conf"
    once = re.sub(
        r"job\.retry\.times = \d+", "job.retry.times = 0", BOUNDED.text("a job", tmp_path / "out")
    )
    bad.write_text(once)
    for number in range(3):
        failing = points.arm("before:worker.prepare", "error")
        again = cluster.ask("restore", "tried", str(bad), "--async")
        assert again.returncode == 0, again.stderr
        ended = cluster.client.wait("tried", lambda _: None)
        assert ended.status == "FAILED" and points.found(failing), ended.reason
        if number == 1:
            kill_leader(cluster)
    # The history holds three lives, and three other jobs push it out.
    for number in range(3):
        other = written(tmp_path, f"other{number}")
        cluster.ask("submit", other, "--async", "--set-job-id", f"other{number}")
        cluster.ask("cancel", f"other{number}")
    (saved,) = cluster.json("savepoints", "tried")
    assert (saved["state"], saved["kind"]) == (1, "savepoint")
    assert (saved["rows"], saved["past"]) == (shown, [])
    kill_leader(cluster)
    good = cluster.ask("restore", "tried", "--async")
    assert good.returncode == 0, good.stderr
    finished(cluster, tmp_path, "tried")
    rows = ids(tmp_path / "out" / "p1")
    total = sum(s.total for s in BOUNDED.sources)
    read = cluster.client.job("tried").read
    with capsys.disabled():
        print(
            f"\nthree bad restores and a good one, two leaders killed: {shown} rows before,"
            f" {total} in all; {total - len(rows)} lost, {rows.total() - len(rows)} doubled,"
            f" {read - total} read again"
        )
    # Its rows have gone on: to start from the savepoint once more would write them again.
    refused = cluster.ask("restore", "tried")
    assert refused.returncode == 1 and "rows more, up to commit" in refused.stderr
    older = cluster.ask("restart", "tried", "--from", "1")
    assert older.returncode == 1 and "rows more, up to commit" in older.stderr
    unknown = cluster.ask("restart", "tried", "--from", "9")
    assert unknown.returncode == 1 and "has no saved state 9; it has 1" in unknown.stderr
    copy = cluster.ask("restore", "tried", "--set-job-id", "copy", "--async")
    assert copy.returncode == 1 and "--write-again" in copy.stderr


def refuses_what_a_worker_cannot_open(cluster: Cluster, folder: Path) -> None:
    """A file is where the sink's folder is to be: that is told before anything is begun."""
    blocked, bad = folder / "blocked", folder / "blocked.conf"
    blocked.write_text("no folder")
    bad.write_text(BOUNDED.text("a job", blocked / "out"))
    before = cluster.client.job("tried")
    same = "Sink[0]-LocalFile=Sink[0]-LocalFile"
    refused = cluster.ask("restore", "tried", str(bad), "--async", "--map", same)
    assert refused.returncode == 1 and f"{blocked} is a file" in refused.stderr, refused.stderr
    assert "as worker W1 sees it. Nothing was started" in " ".join(refused.stderr.split())
    after = cluster.client.job("tried")
    assert (after.status, after.incarnation) == ("SAVEPOINT_DONE", before.incarnation)


def test_a_cancelled_job_goes_on_from_its_last_checkpoint(cluster: Cluster, tmp_path: Path) -> None:
    begun(cluster, tmp_path, "stopped")
    assert cluster.ask("cancel", "stopped").returncode == 0
    kill_leader(cluster)
    again = cluster.ask("restart", "stopped", "--async")
    assert again.returncode == 0, again.stderr
    finished(cluster, tmp_path, "stopped")


def test_a_failed_job_goes_on_from_its_last_checkpoint(cluster: Cluster, tmp_path: Path) -> None:
    begun(cluster, tmp_path, "broken")
    # Its folder is gone, and somebody's file is in its place: the next commit fails.
    place = tmp_path / "out" / "p1"
    place.rename(tmp_path / "aside")
    place.write_text("no folder")
    assert cluster.client.wait("broken", lambda _: None).status == "FAILED"
    place.unlink()
    (tmp_path / "aside").rename(place)
    kill_leader(cluster)
    (saved,) = cluster.json("savepoints", "broken")
    assert saved["kind"] == "failed"
    again = cluster.ask("restart", "broken", written(tmp_path), "--from", "1", "--async")
    assert again.returncode == 0, again.stderr
    finished(cluster, tmp_path, "broken")


def test_a_state_is_listed_and_removed(cluster: Cluster, tmp_path: Path) -> None:
    begun(cluster, tmp_path, "removed")
    assert cluster.ask("savepoint", "removed").returncode == 0
    (saved,) = cluster.json("savepoints", "removed")
    assert saved["unfinished"] == 0 and saved["expires_in_s"] <= saved["retained_s"]
    assert cluster.ask("savepoints", "rm", "removed", "7").returncode == 1
    kept = cluster.folder / "blobs" / "removed"
    assert [p for p in kept.rglob("*") if p.is_file()]
    assert cluster.ask("savepoints", "rm", "removed", "1").returncode == 0
    assert json.loads(cluster.ask("savepoints", "removed", "--json").stdout) == []
    gone = cluster.ask("restore", "removed")
    assert gone.returncode == 1 and "left nothing to continue from" in gone.stderr
