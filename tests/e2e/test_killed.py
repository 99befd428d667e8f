"""`holdfast run` asked to end, or killed: what it leaves, and what the next run makes of it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import Run, children, visible

pytestmark = pytest.mark.spark

Start = Callable[..., subprocess.Popen[str]]
ROWS = 40
JOB = """
env { job.mode = BATCH }
source { FakeSource { row.num = ${rows}, schema { fields { id = bigint, name = string } } } }
sink { LocalFile { path = "out", file_format_type = parquet } }
"""


@pytest.fixture(autouse=True)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job file, and a home of the test's own."""
    (tmp_path / "job.conf").write_text(JOB)
    (tmp_path / "points").mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))


def staged(folder: Path) -> list[Path]:
    """What lies out of sight and is no commit log."""
    return [p for p in folder.glob("out/.holdfast/*") if p.name != "commits"]


def scratches(folder: Path) -> list[str]:
    """What is left of scratch folders, whatever lies in them, with what was logged."""
    found = sorted((folder / "home" / "spark-local").glob("holdfast-*/**/*"))
    if not found:
        return [str(p) for p in (folder / "home" / "spark-local").glob("holdfast-*")]
    logged = [p.read_text() for p in sorted((folder / "home" / "logs").glob("*.log"))]
    return [str(p) for p in found] + logged


def rows(folder: Path) -> int:
    return sum(int(pq.read_metadata(f).num_rows) for f in visible(folder / "out"))


def until(true: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 120
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def kill_at(holdfast: Run, folder: Path, point: str) -> None:
    """Run the job with a failpoint that kills it."""
    (folder / "points" / "arm-1.json").write_text(json.dumps({"point": point}))
    points = {"HOLDFAST_FAILPOINTS": str(folder / "points")}
    ran = holdfast("run", "job.conf", "-i", f"rows={ROWS}", **points)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert (folder / "points" / "hit-1.json").exists()


def test_what_a_killed_run_had_staged_is_removed_by_the_next(holdfast: Run, tmp_path: Path) -> None:
    kill_at(holdfast, tmp_path, "before:pipeline.CheckpointStored")
    assert staged(tmp_path) and not rows(tmp_path)
    assert scratches(tmp_path)
    ran = holdfast("run", "job.conf", "-i", f"rows={ROWS}")
    assert ran.returncode == 0, ran.stderr
    assert rows(tmp_path) == ROWS, "nothing of the dead run shows"
    assert staged(tmp_path) == []
    assert scratches(tmp_path) == []


@pytest.mark.parametrize("point", ["after:pipeline.CheckpointStored", "after:table.commit"])
def test_what_a_killed_run_owed_is_committed_once_by_the_next(
    holdfast: Run, tmp_path: Path, point: str
) -> None:
    kill_at(holdfast, tmp_path, point)
    ran = holdfast("run", "job.conf", "-i", f"rows={ROWS}")
    assert ran.returncode == 0, ran.stderr
    assert rows(tmp_path) == 2 * ROWS, "each run once and whole"
    assert staged(tmp_path) == []
    assert scratches(tmp_path) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_spark_job_that_runs_and_leaves_nothing(
    start: Start, tmp_path: Path, number: int, code: int
) -> None:
    process = start("run", "job.conf", "-i", "rows=2000000000")
    until(lambda: staged(tmp_path), process)
    below = children(process.pid)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "was cancelled" in said and "Traceback" not in said
    deadline_s = time.monotonic() + 30  # the JVM was told to end, and may take a moment
    while left := [pid for pid in below if alive(pid)]:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)
    assert staged(tmp_path) == [] and visible(tmp_path / "out") == []
    assert scratches(tmp_path) == []


def alive(pid: int) -> bool:
    """Say whether a process still runs; one that nobody has buried yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_spark_starts_ends_it_in_order(
    start: Start, tmp_path: Path, number: int, code: int
) -> None:
    process = start("run", "job.conf", "-i", f"rows={ROWS}")
    until(lambda: children(process.pid), process)
    below = children(process.pid)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "Traceback" not in said
    deadline_s = time.monotonic() + 30  # the JVM was told to end, and may take a moment
    while left := [pid for pid in below if alive(pid)]:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)
    assert scratches(tmp_path) == []


def test_asked_twice_it_leaves_at_once_and_the_next_run_cleans_up(
    start: Start, holdfast: Run, tmp_path: Path
) -> None:
    process = start("run", "job.conf", "-i", "rows=2000000000")
    until(lambda: staged(tmp_path), process)
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode in (130, 143), said
    assert "Traceback" not in said
    ran = holdfast("run", "job.conf", "-i", f"rows={ROWS}")
    assert ran.returncode == 0, ran.stderr
    assert rows(tmp_path) == ROWS
    assert staged(tmp_path) == [] and scratches(tmp_path) == []
