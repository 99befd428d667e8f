"""Jobs on a real Spark standalone cluster: an executor is killed, and rows travel as Arrow."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.files import state_dir
from holdfast.spark import java
from holdfast.spark.jvm import Command, spark_home, spark_jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

MARK = "HOLDFAST_TEST_CLUSTER"
ROWS = 400_000
PARTS = 8
JOB = """
env {{ job.mode = BATCH
  spark.master = "{master}", spark.executor.memory = "512m", spark.executor.cores = 1
  spark.cores.max = 2, spark.driver.memory = "512m" }}
source {{ FakeSource {{
  row.num = {each}, parallelism = {parts}, split.num = {parts}
  schema {{ fields {{ id = bigint, name = string, note = "map<string, string>" }} }}
}} }}
sink {{ LocalFile {{ path = "{out}", file_format_type = parquet }} }}
"""

COPY = """
env {{ job.mode = BATCH
  spark.master = "{master}", spark.executor.memory = "512m", spark.executor.cores = 1
  spark.cores.max = 2, spark.driver.memory = "512m" }}
source {{ LocalFile {{ path = "{rows}", file_format_type = parquet }} }}
sink {{ LocalFile {{ path = "{out}", file_format_type = parquet }} }}
"""


def wait_for(found: Callable[[], object], what: str, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until, f"no {what} within {seconds} s"
        time.sleep(0.05)


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[str]:
    """Start a Spark master and two workers of one core each; yield the master's URL."""
    found = java.find()
    shim = java.submit_home(found, state_dir.cache())
    log = tmp_path / "cluster.log"
    environ = os.environ | {
        "SPARK_HOME": str(spark_home()), "JAVA_HOME": str(shim), "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[2]), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13", MARK: str(tmp_path),
    }  # fmt: skip
    started = []

    def start(*words: str) -> None:
        main = (f"org.apache.spark.deploy.{words[0]}", *words[1:])
        flags = ("-Xmx512m", f"-Djava.io.tmpdir={tmp_path}")
        command = Command(found, spark_jars(), flags, main).words()
        with log.open("ab") as out:
            process = subprocess.Popen(
                command, env=environ, cwd=tmp_path, stdout=out, stderr=out, start_new_session=True
            )
        started.append(process)

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        wait_for(lambda: re.search(r"spark://127.0.0.1:\d+", log.read_text()), "Spark master")
        address = re.findall(r"spark://127.0.0.1:\d+", log.read_text())[0]
        for number in (1, 2):
            folder = f"{tmp_path}/worker{number}"
            start(
                "worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g", "-d", folder,
                "--webui-port", "0", address,
            )  # fmt: skip
        registered = "Successfully registered with master"
        wait_for(lambda: log.read_text().count(registered) == 2, "two Spark workers")
        yield address
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def executors(mark: Path) -> list[int]:
    """Return the processes that run the executors of the cluster that this test has started."""
    wanted = f"{MARK}={mark}".encode()
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                is_executor = b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes()
                if is_executor and wanted in (entry / "environ").read_bytes():
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    found[int(entry.name)] = int(parent)
    # An executor that starts a program is, for a moment, two processes that look alike.
    return [process for process, parent in found.items() if parent not in found]


def test_C18_an_executor_is_killed_and_the_job_ends_right(
    spark_cluster: str, tmp_path: Path
) -> None:
    out, job = tmp_path / "out", tmp_path / "job.conf"
    text = JOB.format(master=spark_cluster, each=ROWS // PARTS, parts=PARTS, out=out)
    job.write_text(text)
    said = tmp_path / "job.log"
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "run", "--log-file", str(said), str(job)],
        cwd=tmp_path, env={**os.environ, "HOLDFAST_AOT": "off"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        # The middle: some tasks have written their part, others have not.
        wait_for(lambda: process.poll() is not None or _parts(out), "first part")
        assert process.poll() is None, process.communicate()[0]
        alive = executors(tmp_path)
        assert len(alive) == 2, alive
        os.kill(alive[0], signal.SIGKILL)
        shown, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, shown
    spark_log = said.with_suffix(".spark.log").read_text()
    assert "Lost executor" in spark_log, "the window was not hit"
    visible = [p for p in out.rglob("*.parquet") if ".holdfast" not in p.parts]
    assert sum(pq.ParquetFile(p).metadata.num_rows for p in visible) == ROWS
    assert not list(out.rglob("_temporary"))


def test_a_plain_copy_needs_nothing_of_ours_in_the_executors_jvm(
    spark_cluster: str, tmp_path: Path
) -> None:
    rows, out, job = tmp_path / "rows", tmp_path / "out", tmp_path / "job.conf"
    rows.mkdir()
    table = pa.table({"id": range(ROWS), "name": [f"name {i}" for i in range(ROWS)]})
    pq.write_table(table, rows / "all.parquet", row_group_size=ROWS // PARTS, compression="none")
    job.write_text(COPY.format(master=spark_cluster, rows=rows, out=out))
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", str(job)], cwd=tmp_path,
        env={**os.environ, "HOLDFAST_AOT": "off"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    files = [pq.ParquetFile(p) for p in out.glob("*.parquet")]
    assert {f.metadata.created_by.partition(" ")[0] for f in files} == {"parquet-cpp-arrow"}
    ids = sorted(i for f in files for i in f.read(["id"]).column("id").to_pylist())
    assert ids == list(range(ROWS))


def _parts(out: Path) -> list[Path]:
    return [p for p in out.rglob("*.parquet") if "_temporary" in p.parts or ".holdfast" in p.parts]
