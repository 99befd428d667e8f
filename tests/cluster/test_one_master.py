"""One master on SQLite and one worker: every verb, as a user types it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.cluster.processes import TOKEN, Cluster, batch, stream

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    started.master()
    started.worker()
    yield started
    started.end()


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    return tmp_path / "job.conf"


def rows(folder: Path) -> int:
    return sum(len(p.read_text().splitlines()) for p in folder.glob("*.json"))


def test_a_batch_is_followed_to_its_end(cluster: Cluster, job_file: Path, tmp_path: Path) -> None:
    job_file.write_text(batch(tmp_path / "out"))
    ran = cluster.ask("submit", str(job_file), "--set-job-id", "batch1", "-n", "renamed")
    assert ran.returncode == 0, ran.stderr + cluster.said()
    assert "read 20 rows, wrote 20, rejected 0." in ran.stderr
    assert any(line.endswith(str(tmp_path / "out")) for line in ran.stderr.splitlines()), ran.stderr
    assert "/#/jobs/batch1" in ran.stderr
    assert rows(tmp_path / "out") == 20
    listed = cluster.json("list")["jobs"]
    assert [(j["job_id"], j["name"], j["status"]) for j in listed][-1] == (
        "batch1", "renamed", "FINISHED",
    )  # fmt: skip
    explained = cluster.ask("explain", "batch1")
    assert "is FINISHED" in explained.stdout, explained.stderr
    assert "job is FINISHED" in cluster.ask("logs", "batch1").stdout


def test_python_submits_and_hears_where_the_rows_are(
    cluster: Cluster, job_file: Path, tmp_path: Path
) -> None:
    job_file.write_text(batch(tmp_path / "out"))
    result = holdfast.submit(job_file, masters=cluster.urls, token=TOKEN, job_id="py1").check()
    assert (result.status, result.read, result.written) == ("FINISHED", 20, 20)
    assert [(t.rows, t.destination) for t in result.tables] == [(20, str(tmp_path / "out"))]
    assert (result.problems, result.rejected, result.log) == ((), 0, None)

    # One that goes on is told as it stands, and one that is left early is cancelled on request.
    job_file.write_text(stream(tmp_path / "stream"))
    given = {"masters": cluster.urls, "token": TOKEN}
    left = holdfast.submit(job_file, job_id="py2", timeout_s=0.1, close_job=True, **given)
    assert left.status == "CANCELED" and not left.ok
    with pytest.raises(holdfast.HoldfastError, match="py2 is CANCELED"):
        left.check()

    job_file.write_text(batch(tmp_path / "out").replace("row.num", "row.nun"))
    with pytest.raises(holdfast.JobFileError, match=r"row\.num"):
        holdfast.submit(job_file, wait=False, **given)


def test_a_stream_is_saved_restored_and_cancelled(
    cluster: Cluster, job_file: Path, tmp_path: Path
) -> None:
    job_file.write_text(stream(tmp_path / "out"))
    sent = cluster.ask("submit", str(job_file), "--async", "--set-job-id", "stream1")
    assert sent.stdout.strip() == "stream1", sent.stderr

    cluster.until("two checkpoints are committed", lambda: cluster.committed("stream1", 2))
    running = json.loads(cluster.ask("status", "stream1", "--json").stdout)
    assert running["live"] and running["health"] == "OK"
    assert running["pipelines"][0]["tasks"][0]["worker"] == "W1"
    assert "It runs." in cluster.ask("explain", "stream1").stdout

    # SeaTunnel's own flags mean the same.
    assert cluster.ask("-s", "stream1").returncode == 0
    before = rows(tmp_path / "out")
    assert before > 0
    again = cluster.ask("-r", "stream1", "-c", str(job_file), "--async")
    assert again.returncode == 0, again.stderr
    cluster.until("the restored job commits", lambda: cluster.committed("stream1", 1))
    assert cluster.client.job("stream1").read >= before, "counters go on from the savepoint"
    assert cluster.ask("-can", "stream1").returncode == 0
    assert cluster.client.job("stream1").status == "CANCELED"
    assert cluster.ask("cancel", "stream1").returncode == 0, "twice is no error"


def test_mistakes_come_all_at_once_with_their_places(cluster: Cluster, job_file: Path) -> None:
    job_file.write_text("""
source { FakeSource { row.nun = 5, schema { fields { id = int } } } }
sink { Consle {} }
""")
    ran = cluster.ask("submit", str(job_file))
    assert ran.returncode == 1
    assert f"{job_file}:2:23" in ran.stderr and "row.num" in ran.stderr
    assert f"{job_file}:3:8" in ran.stderr and "'Console'" in ran.stderr
    assert "2 mistakes" in ran.stderr


def test_a_failed_job_ends_with_1_and_its_reason(cluster: Cluster, job_file: Path) -> None:
    job_file.write_text("""
env { job.mode = BATCH }
source { FakeSource { row.num = 5, schema { fields { id = int } } } }
sink { Assert { rules { row_rules = [{ rule_type = MAX_ROW, rule_value = 1 }] } } }
""")
    ran = cluster.ask("submit", str(job_file), "--set-job-id", "fails1")
    assert ran.returncode == 1
    assert "FAILED" in ran.stderr and "MAX_ROW" in ran.stderr
    assert "It failed" in cluster.ask("explain", "fails1").stdout


def test_a_job_that_fits_nowhere_says_what_it_waits_for(
    cluster: Cluster, job_file: Path, tmp_path: Path
) -> None:
    job_file.write_text(batch(tmp_path / "out").replace("row.num", "parallelism = 64, row.num"))
    cluster.ask("submit", str(job_file), "--async", "--set-job-id", "large1")
    explained = cluster.ask("explain", "large1").stdout
    assert "needs 64 slots, 4 are free" in explained
    assert cluster.ask("cancel", "large1").returncode == 0


def test_without_the_token_nobody_is_let_in(cluster: Cluster) -> None:
    refused = cluster.ask("list", HOLDFAST_TOKEN="another")
    assert refused.returncode == 1 and "refuses the token" in refused.stderr
    stranger = cluster.start("W2", "worker", HOLDFAST_TOKEN="another")
    assert stranger.wait(120) == 1
    assert "token is another one" in (cluster.folder / "W2.out").read_text()


def test_what_is_not_there_is_said_so(cluster: Cluster) -> None:
    for verb in ("status", "explain", "cancel", "savepoint"):
        answer = cluster.ask(verb, "nobody")
        assert answer.returncode == 1 and "There is no job nobody" in answer.stderr
