"""Issue 21, point 6: what went wrong is said in one sentence, its root first, by who caused it.

Each failure is a real one, on a real Spark; only the stacks at the end are texts.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from holdfast.errors import SourceLocation, UserError
from holdfast.model.job import Role, Stage
from holdfast.model.tree import Block
from holdfast.wire.messages import TaskReport
from holdfast.worker.failures import explain
from tests.unit.worker.bench import Bench, Play

SPARK_SAYS = ("An error occurred", "org.apache", "java.", "Caused by", "\tat ", "SQLSTATE", "\n")
MANY = "FakeSource { row.num = 200000, schema { fields { id = bigint, name = string } } }"
FEW = "FakeSource { row.num = 3, schema { fields { id = bigint, name = string } } }"


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def failure(play: Play, source: str, sink: str, transform: str = "") -> TaskReport:
    """Run a job that fails; return what its worker says of it."""
    found: list[TaskReport] = []

    async def part(bench: Bench) -> None:
        bench.deploy(
            f"env {{ job.mode = BATCH }}\nsource {{ {source} }}\n"
            f"transform {{ {transform} }}\nsink {{ {sink} }}"
        )
        await bench.until(lambda: bench.held() and bench.held()[0].failure)
        found.append(bench.held()[0])

    play(part, orphan_s=600.0)  # no leader speaks here
    said = found[0].failure or ""
    assert not [words for words in SPARK_SAYS if words in said], said
    return found[0]


@pytest.mark.spark
@pytest.mark.parametrize("sink", ["LocalFile", "Delta"])
def test_a_full_disk_is_named_with_its_folder(play: Play, full: Path, sink: str) -> None:
    more = ", file_format_type = csv" if sink == "LocalFile" else ""
    held = failure(play, MANY, f'{sink} {{ path = "{full}/out"{more} }}')
    assert f"Sink[0]-{sink} (job.conf:4:8): the disk of {full}/out is full" in str(held.failure)
    assert "Make room there" in str(held.failure)
    assert not held.fatal, "somebody may make room while it is tried again"


@pytest.mark.spark
@pytest.mark.parametrize("role", ["source", "sink"])
def test_a_missing_driver_is_named_and_not_tried_again(play: Play, role: str) -> None:
    jdbc = 'Spark { format = jdbc, options { url = "jdbc:nothing://host/db", dbtable = orders } }'
    source, sink = (jdbc, "Console {}") if role == "source" else (FEW, jdbc)
    held = failure(play, source, sink)
    assert f"{role.capitalize()}[0]-Spark (job.conf:" in str(held.failure)
    assert "Spark does not have a JDBC driver for this url" in str(held.failure)
    assert "env { jars" in str(held.failure)
    assert held.fatal


@pytest.mark.spark
def test_a_missing_driver_class_is_named(play: Play) -> None:
    options = 'url = "jdbc:mysql://host/db", dbtable = t, driver = com.mysql.cj.jdbc.Driver'
    held = failure(play, f"Spark {{ format = jdbc, options {{ {options} }} }}", "Console {}")
    assert "Spark does not have the JDBC driver com.mysql.cj.jdbc.Driver" in str(held.failure)
    assert held.fatal


@pytest.mark.spark
def test_a_format_that_spark_does_not_have_is_named(play: Play) -> None:
    held = failure(play, "Spark { format = mongodb }", "Console {}")
    assert "Spark has no format 'mongodb'" in str(held.failure)
    assert held.fatal


@pytest.mark.spark
def test_a_nul_in_a_partition_is_named(play: Play, tmp_path: Path) -> None:
    rows = 'rows = [{ kind = INSERT, fields = [1, "a\\u0000b"] }]'
    source = f"FakeSource {{ {rows}, schema {{ fields {{ id = bigint, name = string }} }} }}"
    where = f'path = "{tmp_path}/out", file_format_type = parquet'
    held = failure(play, source, f"LocalFile {{ {where}, have_partition = true,"
                   " partition_by = [name] }")  # fmt: skip
    assert "a value of a partition column has a NUL character" in str(held.failure)
    assert held.fatal


@pytest.mark.spark
@pytest.mark.parametrize("sink", ["csv", "parquet", "Delta"])
def test_a_bad_row_of_a_csv_is_the_sources_fault(play: Play, tmp_path: Path, sink: str) -> None:
    (tmp_path / "in.csv").write_text("1,a\nx,b\n")
    fields = "schema { fields { id = int, name = string } }"
    source = f'LocalFile {{ path = "{tmp_path}/in.csv", file_format_type = csv, {fields} }}'
    to = f'path = "{tmp_path}/out"'
    files = f"LocalFile {{ {to}, file_format_type = {sink} }}"
    held = failure(play, source, f"Delta {{ {to} }}" if sink == "Delta" else files)
    assert str(held.failure).startswith(f"Source[0]-LocalFile cannot read {tmp_path}/in.csv, line")
    assert held.fatal


@pytest.mark.spark
def test_a_bad_row_that_spark_reads_is_the_sources_fault(play: Play, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,a\nx,b\n")
    fields = "schema { fields { id = int, name = string } }, options { mode = FAILFAST }"
    source = f'Spark {{ format = csv, path = "{tmp_path}/in.csv", {fields} }}'
    held = failure(play, source, f'LocalFile {{ path = "{tmp_path}/out", file_format_type = csv }}')
    assert str(held.failure).startswith("Source[0]-Spark (job.conf:2:10): Malformed records")
    assert held.fatal


@pytest.mark.spark
def test_a_value_that_a_transform_cannot_convert_is_its_fault(play: Play, tmp_path: Path) -> None:
    rows = 'rows = [{ kind = INSERT, fields = ["abc"] }]'
    source = f"FakeSource {{ {rows}, schema {{ table = p, fields {{ name = string }} }} }}"
    sql = 'Sql { query = "select cast(name as int) as n from p" }'
    sink = f'LocalFile {{ path = "{tmp_path}/out", file_format_type = parquet }}'
    held = failure(play, source, sink, sql)
    assert str(held.failure).startswith("Transform[0]-Sql: CAST(name AS INT): 'abc' is no int")
    assert held.fatal


@pytest.mark.spark
def test_a_folder_that_is_a_file_is_named(play: Play, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    held = failure(play, FEW, f'Delta {{ path = "{tmp_path}/out/t" }}')
    assert f"Delta cannot write to {tmp_path}/out/t: {tmp_path}/out is a file" in str(held.failure)
    assert held.fatal


HERE = SourceLocation("job.conf", 9, 1)
SINK = Stage("Sink[0]-Spark", Role.SINK, "Spark", Block((), HERE), (), None, 1, HERE)
SOURCE = Stage("Source[0]-Spark", Role.SOURCE, "Spark", Block((), HERE), (), None, 1, HERE)

TRUST = """An error occurred while calling o45.load.
: org.postgresql.util.PSQLException: SSL error: PKIX path building failed
\tat org.postgresql.ssl.MakeSSL.convert(MakeSSL.java:43)
Caused by: sun.security.validator.ValidatorException: PKIX path building failed
\tat java.base/sun.security.validator.PKIXValidator.doBuild(PKIXValidator.java:439)
"""
NO_RIGHT = """[FAILED_READ_FILE] Encountered error while reading file file:/data/in/a.parquet. Could
not read footer. SQLSTATE: KD001
Caused by: java.io.FileNotFoundException: /data/in/a.parquet (Permission denied)
\tat java.base/java.io.FileInputStream.open0(Native Method)
"""
READER = """[TASK_WRITE_FAILED] Task failed while writing rows to file:/out. SQLSTATE: 58030
Caused by: org.postgresql.util.PSQLException: ERROR: canceling statement
\tat org.apache.spark.sql.execution.datasources.jdbc.JDBCRDD.compute(JDBCRDD.scala:277)
"""


def test_a_certificate_nobody_trusts_is_said_without_a_stack() -> None:
    error = explain(PySparkException(message=TRUST), SOURCE)
    assert isinstance(error, UserError)
    assert "the server's certificate is not trusted" in str(error)


def test_a_file_that_may_not_be_read_is_said_with_the_user() -> None:
    error = explain(PySparkException(message=NO_RIGHT), SOURCE)
    assert isinstance(error, UserError)
    assert "may not read /data/in/a.parquet." in str(error)


def test_what_fails_in_a_reader_is_not_the_sinks_fault() -> None:
    error = explain(PySparkException(message=READER), SINK, [SOURCE])
    assert str(error).startswith("Source[0]-Spark (job.conf:9:1): ")
