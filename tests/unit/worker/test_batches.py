"""Jobs whose rows Spark's tasks carry as Arrow batches: the same rows, and right counts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.connectors.files import splits
from holdfast.plan.load import parse_job
from holdfast.plan.plugins import _wants_frames
from holdfast.plan.record import JobSource
from holdfast.process.local_run import LocalCluster
from holdfast.process.run_outcome import RunStatus
from holdfast.worker.attempt import WorkerRuntime
from tests.unit.worker import plugins

pytestmark = pytest.mark.spark

SOURCE = """source {{ LocalFile {{ path = "{path}/in", file_format_type = csv, plugin_output = a
  schema {{ fields {{ id = int, name = string, price = "decimal(12,2)" }} }} }} }}
"""
PARQUET = """ LocalFile {{ path = "{path}/out", file_format_type = parquet
  plugin_input = {input} }} """
JSON = ' LocalFile {{ path = "{path}/json", file_format_type = json, plugin_input = {input} }} '

FILTER = "transform {{ Filter {{ plugin_input = a, plugin_output = b, include_fields = [id] }} }}\n"
SQL = """transform {{ Sql {{ plugin_input = a, plugin_output = b
  query = "{query}" }} }}
"""

End = Callable[[str], LocalCluster]


@pytest.fixture
def ended(spark: SparkSession, tmp_path: Path) -> Iterator[End]:
    """Run a job to its end, from its text."""
    runs: list[LocalCluster] = []

    def run(text: str) -> LocalCluster:
        registry, report = Registry.load(), CheckReport()
        registry.add(plugins)
        tree = parse_job(text.replace("{path}", str(tmp_path)), "job.conf", {}, None, report)
        report.raise_if_any()
        assert tree
        spec = JobSource("job.conf", tree)
        one = LocalCluster(WorkerRuntime(registry, lambda: spark), lambda _: None)
        runs.append(one)
        one.start()
        one.submit(spec, spec.job(registry), "7")
        assert one.wait(90)
        return one

    yield run
    for one in runs:
        one.close()


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes how rows are carried; files are divided among many tasks, however small they are."""
    notes: list[str] = []
    run, frame = ArrowRows.run, ArrowRows.frame

    def noted_run(self: ArrowRows, write: Any) -> list[Any]:
        notes.append("batches")
        return run(self, write)

    def noted_frame(self: ArrowRows) -> Any:
        notes.append("frame")
        return frame(self)

    monkeypatch.setattr(ArrowRows, "run", noted_run)
    monkeypatch.setattr(ArrowRows, "frame", noted_frame)
    monkeypatch.setattr(splits, "SPLIT_BYTES_LEAST", 100)
    return notes


def job(middle: str = "", *sinks: str, env: str = "", last: str = "a") -> str:
    """Return a job's text, with `{path}` for where its files are."""
    wanted = "".join(sinks or (PARQUET,)).replace("{input}", last)
    text = f"{SOURCE}{middle}sink {{{{{wanted}}}}}"
    return env + text.replace("{{", "{").replace("}}", "}")


def give(folder: Path, name: str, count: int, first: int = 0) -> None:
    """Write a plain csv file of so many rows."""
    (folder / "in").mkdir(exist_ok=True)
    lines = (f"{n},name {n},{n}.25\n" for n in range(first, first + count))
    (folder / "in" / name).write_text("".join(lines))


def ids(folder: Path) -> list[int]:
    """Return the ids of all rows in the Parquet files of a folder, sorted."""
    tables: list[Any] = [pq.read_table(f) for f in folder.rglob("*.parquet")]
    return sorted(n for table in tables for n in table["id"].to_pylist())


def counts(run: LocalCluster) -> tuple[int, int, int]:
    """Return the rows that a job has read, written and committed."""
    assert run.outcome().status is RunStatus.FINISHED, run.outcome().error
    view = run.view()
    return view.read, view.rows_written, view.committed


def test_plain_files_are_copied_by_batches_and_counted(
    ended: End, carried: list[str], tmp_path: Path
) -> None:
    give(tmp_path, "a.csv", 100)
    give(tmp_path, "b.csv", 50, 100)
    run = ended(job())
    assert counts(run) == (150, 150, 150)
    assert ids(tmp_path / "out") == list(range(150))
    assert carried == ["batches"]
    (row,) = [r for r in rows(tmp_path / "out") if r["id"] == 7]
    assert (row["name"], str(row["price"])) == ("name 7", "7.25")


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return all rows in the Parquet files of a folder."""
    return [row for f in folder.rglob("*.parquet") for row in pq.read_table(f).to_pylist()]


def test_a_file_with_quotes_and_line_breaks_is_copied_by_batches(
    ended: End, carried: list[str], tmp_path: Path
) -> None:
    give(tmp_path, "a.csv", 100)
    (tmp_path / "in" / "b.csv").write_text('100,"last,\nnot least",1.00\n')
    run = ended(job())
    assert counts(run) == (101, 101, 101)
    assert ids(tmp_path / "out") == list(range(101))
    assert carried == ["batches"]
    assert [r["name"] for r in rows(tmp_path / "out") if r["id"] == 100] == ["last,\nnot least"]


@pytest.mark.parametrize("middle", ["", FILTER])
def test_rows_that_do_not_fit_are_left_out_and_counted(
    ended: End, carried: list[str], tmp_path: Path, middle: str
) -> None:
    give(tmp_path, "a.csv", 100)
    (tmp_path / "in" / "b.csv").write_text("100\n101,x,1,more\nx,y,2.00\n")
    text = job(middle, last="b" if middle else "a")
    run = ended(text.replace("= csv,", "= csv, row_error_handle_way = SKIP,"))
    assert counts(run) == (103, 100, 100)
    assert run.view().rejected == 3
    assert ids(tmp_path / "out") == list(range(100))


@pytest.mark.parametrize("middle", ["", FILTER])
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("twenty,y,2.00", "column id = 'twenty' is not an int"),
        ("20,y", "it has 2 fields, and the table has 3"),
        ('20,"y,2.00', "a quote is opened and never closed"),
    ],
)
def test_a_row_that_does_not_fit_ends_the_job_at_once_and_is_named(
    ended: End, carried: list[str], tmp_path: Path, middle: str, line: str, rule: str
) -> None:
    give(tmp_path, "a.csv", 20)
    (tmp_path / "in" / "bad.csv").write_text(f'20,"x\n",1.00\n{line}\n')
    run = ended(job(middle, last="b" if middle else "a", env="env { job.retry.times = 3 }\n"))
    assert run.outcome().status is RunStatus.FAILED
    error = str(run.outcome().error)
    place = f"Source[0]-LocalFile cannot read {tmp_path}/in/bad.csv, line 3: "
    assert error.startswith(place) and rule in error and "\n" not in error
    assert not any(word in error for word in ("Exception", "Traceback", "An error occurred"))
    assert len(carried) == 1, "it was tried once"
    assert not ids(tmp_path / "out")


@pytest.mark.parametrize("setting", ["spark.holdfast.batches = false", "spark.sql.csv.x = 1"])
def test_a_job_can_have_spark_carry_all_rows(
    ended: End, carried: list[str], tmp_path: Path, setting: str
) -> None:
    give(tmp_path, "a.csv", 100)
    assert counts(ended(job(env=f"env {{ {setting} }}\n"))) == (100, 100, 100)
    assert ids(tmp_path / "out") == list(range(100))
    assert "batches" not in carried


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, False),
        ({"spark.holdfast.batches": "true"}, False),
        ({"spark.holdfast.batches": "false"}, True),
        ({"spark.executor.memory": "1g"}, False),
        ({"spark.sql.parquet.compression.codec": "zstd"}, True),
        ({"spark.sql.session.timeZone": "UTC"}, True),
        ({"spark.hadoop.x": "y"}, True),
    ],
)
def test_settings_about_rows_want_frames(settings: dict[str, str], wanted: bool) -> None:
    assert _wants_frames(settings) is wanted


@pytest.mark.parametrize(
    ("middle", "wanted"),
    [
        (FILTER, range(100)),
        (SQL.format(query="select id, name from a where id < 10"), range(10)),
        (SQL.format(query="select id + 0 as id from a"), range(100)),
    ],
    ids=["filter", "where", "all"],
)
def test_rows_that_a_transform_reads_are_counted_once_each(
    ended: End, carried: list[str], tmp_path: Path, middle: str, wanted: range
) -> None:
    give(tmp_path, "a.csv", 60)
    give(tmp_path, "b.csv", 40, 60)
    run = ended(job(middle, last="b"))
    assert counts(run) == (100, len(wanted), len(wanted))
    assert ids(tmp_path / "out") == list(wanted)


@pytest.mark.parametrize("second", [PARQUET.replace("/out", "/more"), JSON], ids=["arrow", "spark"])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_for_two_sinks_are_counted_once(
    ended: End, carried: list[str], tmp_path: Path, second: str, turned: bool
) -> None:
    give(tmp_path, "a.csv", 100)
    sinks = (second, PARQUET) if turned else (PARQUET, second)
    assert counts(ended(job("", *sinks)))[:2] == (100, 200)
    assert ids(tmp_path / "out") == list(range(100))


def test_rows_for_two_sinks_that_spark_writes_are_counted_once(
    ended: End, carried: list[str], tmp_path: Path
) -> None:
    give(tmp_path, "a.csv", 100)
    sinks = (JSON, JSON.replace("/json", "/more"))
    assert counts(ended(job("", *sinks)))[:2] == (100, 200)
    assert len(texts(tmp_path / "json")) == 100


def texts(folder: Path) -> list[str]:
    """Return all lines in the files of a folder."""
    return [line for f in folder.rglob("*.json") for line in f.read_text().splitlines()]


def test_a_parquet_file_is_copied_by_batches_and_counted(
    ended: End, carried: list[str], tmp_path: Path
) -> None:
    give(tmp_path, "a.csv", 100)
    assert counts(ended(job())) == (100, 100, 100)
    again = 'source {{ LocalFile {{ path = "{path}/out", file_format_type = parquet }} }}\n'
    text = again.replace("{{", "{").replace("}}", "}")
    sink = 'sink { LocalFile { path = "{path}/copy", file_format_type = parquet } }'
    assert counts(ended(text + sink)) == (100, 100, 100)
    assert ids(tmp_path / "copy") == list(range(100))
    assert carried == ["batches", "batches"]
