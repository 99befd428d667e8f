"""Plain copies, whose rows never enter the JVM, with workers and the leader killed on the way."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.cluster.processes import Cluster

pytestmark = pytest.mark.spark

FILES, ROWS = 60, 5_000
SINKS = {"LocalFile": "file_format_type = parquet", "Delta": ""}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("copies"), masters=2)
    started.environ["HOLDFAST_LEASE_S"] = "2"
    started.master(1)
    started.master(2)
    started.worker()
    yield started
    started.end()


def job_file(folder: Path, sink: str) -> str:
    (folder / "in").mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        lines = "".join(f"{i},name {i},2026-11-18 03:00:{i % 60:02d}\n" for i in ids)
        (folder / "in" / f"{number:03d}.csv").write_text(lines)
    job = folder / "job.conf"
    job.write_text(f"""
env {{ job.mode = BATCH, checkpoint.interval = 400, read_limit.rows_per_second = 25000 }}
source {{ LocalFile {{ path = "{folder / "in"}", file_format_type = csv
  schema {{ fields {{ id = bigint, name = string, at = timestamp }} }} }} }}
sink {{ {sink} {{ path = "{folder / "out"}", {SINKS[sink]} }} }}
""")
    return str(job)


def shown(folder: Path, sink: str) -> list[Path]:
    """Return the files that a reader sees."""
    if sink == "Delta":
        return [Path(uri) for uri in DeltaTable(folder / "out").file_uris()]
    return list((folder / "out").glob("*.parquet"))


@pytest.mark.parametrize("sink", SINKS)
def test_every_row_of_a_copy_arrives_once_whoever_is_killed(
    cluster: Cluster, tmp_path: Path, sink: str
) -> None:
    job = f"copy-{sink.lower()}"
    sent = cluster.ask("submit", job_file(tmp_path, sink), "--async", "--set-job-id", job)
    assert sent.returncode == 0, sent.stderr
    for number in (2, 5):
        cluster.until("some is committed", lambda n=number: cluster.committed(job, n))
        killed = cluster.processes["W1"]
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert cluster.client.job(job).status != "FINISHED"
        cluster.worker()
    leader = cluster.client.cluster().leader
    cluster.processes[leader].kill()
    cluster.processes[leader].wait()
    cluster.master(int(leader[1:]))
    assert cluster.client.wait(job, lambda _: None).status == "FINISHED"
    files = shown(tmp_path, sink)
    ids = Counter(i for f in files for i in pq.read_table(f, columns=["id"])["id"].to_pylist())
    assert ids == Counter(range(FILES * ROWS))
    makers = {pq.read_metadata(f).created_by.partition(" ")[0] for f in files}
    assert makers == {"parquet-cpp-arrow"}, "no row went through Spark's writer"
    counted = cluster.client.job(job)
    assert (counted.read, counted.written) == (FILES * ROWS, FILES * ROWS)
