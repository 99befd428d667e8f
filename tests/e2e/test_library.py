"""`holdfast.run`: a job from Python, with results that say where the rows are."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import holdfast

JOB = """
env {{ job.mode = BATCH }}
source {{ FakeSource {{ plugin_output = people, row.num = 30
  schema {{ table = "shop.people", fields {{ id = bigint, name = string }} }} }} }}
sink {{
  LocalFile {{ plugin_input = people, path = "{out}/${{table_name}}", file_format_type = parquet }}
  Console {{ plugin_input = people, log.print.data = false }}
}}
"""


def job_file(folder: Path, text: str) -> Path:
    file = folder / "job.conf"
    file.write_text(text)
    return file


def python(program: str, file: Path) -> None:
    """Run a program as its user would: in a process that has no Spark yet."""
    head = (
        "import sys, holdfast\nfrom pathlib import Path\n"
        "file = Path(sys.argv[1])\nlog = file.parent / 'job.log'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + program, str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_from_python_says_where_its_rows_are(tmp_path: Path) -> None:
    file = job_file(tmp_path, JOB.format(out=tmp_path / "out"))
    program = """
result = holdfast.run(file, cores=1, log_file=log).check()
assert (result.status, result.read, result.problems) == ("FINISHED", 30, ()), result
places = {t.destination: t.rows for t in result.tables}
assert places == {str(file.parent / "out/people"): 30, "standard output": 30}, places
assert result.log == log and result.seconds > 0, result
"""
    python(program, file)
    assert pq.read_table(tmp_path / "out/people").num_rows == 30


def test_a_wrong_file_is_an_error_with_every_mistake(tmp_path: Path) -> None:
    file = job_file(tmp_path, JOB.format(out=tmp_path).replace("row.num", "row.nun"))
    with pytest.raises(holdfast.JobFileError, match=r"row\.num"):
        holdfast.run(file)


def test_a_failed_run_is_a_result_with_its_problem(tmp_path: Path) -> None:
    text = JOB.format(out=tmp_path / "out").replace(
        "log.print.data = false }", 'log.print.data = false }\n  Assert { plugin_input = people,'
        " rules { row_rules = [{rule_type = MIN_ROW, rule_value = 31}] } }",
    )  # fmt: skip
    program = """
result = holdfast.run(file, cores=1, log_file=log)
assert result.status == "FAILED" and not result.ok, result
assert any("31" in problem for problem in result.problems), result
try:
    result.check()
except holdfast.HoldfastError as error:
    assert "31" in str(error), error
else:
    raise AssertionError("check() has raised nothing")
"""
    python(program, job_file(tmp_path, text))


def test_a_process_that_runs_spark_is_told_so(spark: SparkSession, tmp_path: Path) -> None:
    file = job_file(tmp_path, JOB.format(out=tmp_path / "out"))
    with pytest.raises(holdfast.HoldfastError, match="already runs Spark, and can run only one"):
        holdfast.run(file, cores=1, log_file=tmp_path / "job.log")
    assert spark.range(3).count() == 3, "the Spark that was there goes on"


def test_the_version_is_that_of_the_package() -> None:
    assert holdfast.__version__[0].isdigit()
