"""`check --connect` opens what a job names, tells every problem at once and changes nothing."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.checks import CheckReport
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Opening, Sink, Staging
from holdfast.connectors.iceberg.hadoop_catalog import HINT
from holdfast.errors import Cancelled, UserError
from holdfast.model.job import Role
from holdfast.plan.plugins import build_plugin, context_for
from holdfast.worker.connect import look_at_places
from tests.unit.plan.test_foresee import PEOPLE, job_of, registry

pytestmark = pytest.mark.spark

SOURCE = PEOPLE.replace("FakeSource {", "FakeSource { plugin_output = a,")
HADOOP = 'iceberg.catalog.config { type = hadoop, warehouse = "w" }, namespace = n, table = t'
SQL = 'iceberg.catalog.config { type = sql, uri = "sqlite:///c.db", warehouse = "w" }'
BY_SQL = f"{SQL}, namespace = n, table = t"
PAIMON = 'warehouse = "w", database = d, table = t'
DERBY = 'format = jdbc, options { url = "jdbc:derby:memory:look;create=true", dbtable = t }'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def looked(spark: SparkSession, sink: str, source: str = SOURCE, transform: str = "") -> list[str]:
    """Return what a look says of a job."""
    report = CheckReport()
    job = job_of((source, transform, sink))
    look_at_places(job, registry(), lambda: spark, report, allow_python=True)
    return [m.message for m in report.mistakes]


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file and folder with its size and time."""
    found = {str(p.relative_to(folder)): p.stat() for p in folder.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


TARGETS = {
    "Assert": "Assert { rules { row_rules = [{ rule_type = MIN_ROW, rule_value = 1 }] } }",
    "Console": "Console {}",
    "Delta": 'Delta { path = "w/t" }',
    "Iceberg": f"Iceberg {{ {HADOOP} }}",
    "Iceberg, sql": f"Iceberg {{ {BY_SQL} }}",
    "InMemory": "InMemory {}",
    "LocalFile": 'LocalFile { path = "w/t", file_format_type = csv }',
    "Paimon": f"Paimon {{ {PAIMON} }}",
    "Spark": 'Spark { format = parquet, path = "w/t" }',
    "Spark, jdbc": f"Spark {{ {DERBY} }}",
    "Spark, table": "Spark { format = parquet, table = w_t }",
    "Spark, noop": "Spark { format = noop }",
}
"""A sink of every connector, at a place that is not there."""

ELSEWHERE = {"Jdbc"}
"""Looked at with real servers, in the tests of that connector."""


def test_every_sink_is_looked_at() -> None:
    have = {name.partition(",")[0] for name in TARGETS} | ELSEWHERE
    kinds = [registry().find(Role.SINK, name) for name in registry().names(Role.SINK)]
    assert have == {kind.name for kind in kinds if kind and not kind.refused}


@pytest.mark.parametrize("name", TARGETS)
def test_a_place_that_is_not_there_is_fine_and_stays_away(
    name: str, here: Path, spark: SparkSession
) -> None:
    sink = TARGETS[name]
    assert looked(spark, sink) == []
    assert everything(here) == {}
    assert not spark.catalog.tableExists("w_t")


MODES = {
    "Delta": ('Delta { path = "w", MODES }', "there is no table"),
    "Iceberg": (f"Iceberg {{ {HADOOP}, MODES }}", "there is no table"),
    "Iceberg, sql": (f"Iceberg {{ {BY_SQL}, MODES }}", "there is no table"),
    "Paimon": (f"Paimon {{ {PAIMON}, MODES }}", "there is no table"),
    "LocalFile": ('LocalFile { path = "w", file_format_type = csv, MODES }', "does not exist"),
}


@pytest.mark.parametrize("name", MODES)
def test_a_table_that_nobody_makes_is_missed(name: str, here: Path, spark: SparkSession) -> None:
    sink, wanted = MODES[name]
    (said,) = looked(spark, sink.replace("MODES", "schema_save_mode = ERROR_WHEN_SCHEMA_NOT_EXIST"))
    assert wanted in said
    assert "Create it" in said
    assert everything(here) == {}


WRITTEN = {
    "Delta": 'Delta { path = "w/t" MODES }',
    "Iceberg": f"Iceberg {{ {HADOOP} MODES }}",
    "Iceberg, sql": f"Iceberg {{ {BY_SQL} MODES }}",
    "Paimon": f"Paimon {{ {PAIMON} MODES }}",
    "LocalFile": 'LocalFile { path = "w/t", file_format_type = csv MODES }',
    "Spark": 'Spark { format = parquet, path = "w/t" MODES }',
}


def write(sink: str, spark: SparkSession) -> None:
    """Write two rows as a job does."""
    job = job_of((SOURCE, "", sink))
    (task,) = job.pipelines[0].tasks
    (stage,) = job.of(Role.SINK)
    plugin = build_plugin(stage, registry(), context_for(job, task, stage, "1", False))
    assert isinstance(plugin, Sink)
    rows = Rows.of("people", spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string"))
    orders = plugin.prepare([rows.table], Opening("life"))
    made = plugin.write(Tables([rows]), Staging("1", "t", 1, 1, "i"))
    plugin.commit(CommitId("u", 1), [*orders, *made])


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_that_is_there_is_opened_and_stays_as_it_is(
    name: str, here: Path, spark: SparkSession
) -> None:
    write(WRITTEN[name].replace("MODES", ""), spark)
    before = everything(here)
    exists = ", data_save_mode = ERROR_WHEN_DATA_EXISTS"
    removed = ", data_save_mode = DROP_DATA"
    if name == "Spark":
        exists, removed = ", mode = errorifexists", ", mode = overwrite"
    for modes in ("", removed):
        assert looked(spark, WRITTEN[name].replace("MODES", modes)) == []
    (said,) = looked(spark, WRITTEN[name].replace("MODES", exists))
    assert "there are rows in it" in said or "files in it" in said or "holds data already" in said
    assert everything(here) == before


@pytest.mark.parametrize("name", ["Delta", "Iceberg", "Iceberg, sql", "Paimon"])
def test_columns_that_do_not_fit_are_told_with_the_rest(
    name: str, here: Path, spark: SparkSession
) -> None:
    write(WRITTEN[name].replace("MODES", ""), spark)
    more = SOURCE.replace("name = string", "age = date")
    said = looked(spark, WRITTEN[name].replace("MODES", ""), more)
    assert "age" in " ".join(said), said


def test_a_hint_that_is_behind_is_left_as_it_is(here: Path, spark: SparkSession) -> None:
    write(WRITTEN["Iceberg"].replace("MODES", ""), spark)
    (hint,) = here.rglob(HINT)
    hint.write_text("1")
    assert looked(spark, TARGETS["Iceberg"]) == []
    assert hint.read_text() == "1"


def test_a_catalog_in_a_database_without_its_tables_is_not_made(
    here: Path, spark: SparkSession
) -> None:
    sqlite3.connect("c.db").executescript("CREATE TABLE other (id int)").close()
    assert looked(spark, TARGETS["Iceberg, sql"]) == []
    tables = sqlite3.connect("c.db").execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("other",)]
    away = TARGETS["Iceberg, sql"].replace("sqlite:///c.db", "sqlite:////nowhere/c.db")
    (said,) = looked(spark, away)
    assert "there is no folder /nowhere. Make it" in said


FILES = {
    "Delta": 'Delta { path = "file/t" }',
    "Iceberg": "Iceberg { " + HADOOP.replace('"w"', '"file/w"') + " }",
    "Paimon": "Paimon { " + PAIMON.replace('"w"', '"file/w"') + " }",
    "LocalFile": 'LocalFile { path = "file/t", file_format_type = csv }',
    "Spark": 'Spark { format = parquet, path = "file/t" }',
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("known", [True, False], ids=["tables known", "no tables known"])
def test_a_folder_that_cannot_be_made_is_told_whatever_the_source_says(
    name: str, known: bool, here: Path, spark: SparkSession
) -> None:
    (here / "file").touch()
    source = SOURCE if known else 'Spark { plugin_output = a, format = parquet, path = "nowhere" }'
    said = looked(spark, FILES[name], source)
    assert len(said) == (1 if known else 2), said
    assert "file is a file. Give the path of a folder." in said[-1]
    assert [p.name for p in here.iterdir()] == ["file"]


def test_who_may_not_write_is_told(
    here: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.connectors.lake import location

    monkeypatch.setattr(location.os, "access", lambda *_: False)  # tests may run as root
    for name in FILES:
        (said,) = looked(spark, TARGETS[name])
        assert "permission denied" in said and "Give that user the right" in said


def test_every_problem_of_a_job_is_told_at_once(here: Path, spark: SparkSession) -> None:
    (here / "file").touch()
    (here / "bad.parquet").write_text("this is none")
    sources = """
        LocalFile { plugin_output = a, path = "no", file_format_type = text }
        Spark { plugin_output = b, format = parquet, path = "bad.parquet" }
        Spark { plugin_output = c, format = jdbc, options { url = "jdbc:none:x", dbtable = t } }
        FakeSource { plugin_output = d, schema { table = t, fields { id = int } } }
    """
    transform = 'Sql { plugin_input = [a, b, c], plugin_output = all, query = "JOINED" }'
    query = "select a.content from a join b on a.content = b.content join c on 1 = 1"
    sinks = """
        Delta { plugin_input = all, path = "file/t" }
        LocalFile { plugin_input = d, path = "file/x", file_format_type = text }
        Delta { plugin_input = d, path = "t", partition_keys = [day] }
        Jdbc { plugin_input = d, url = "jdbc:postgresql://127.0.0.1:1/x", user = u, table = t }
    """
    said = looked(spark, sinks, sources, transform.replace("JOINED", query))
    for wanted in (
        f"LocalFile cannot read {here}/no", "bad.parquet", "JDBC driver",
        f"Delta cannot write to {here}/file/t", f"LocalFile cannot write to {here}/file/x",
        "there is no column day", "Check host and port in url",
    ):  # fmt: skip
        assert sum(wanted in one for one in said) == 1, (wanted, said)
    assert sorted(p.name for p in here.iterdir()) == ["bad.parquet", "file"]


def test_what_a_check_has_found_is_not_told_again_by_spark(spark: SparkSession) -> None:
    query = "select name, count(idd) as n from people group by name"
    sql = f'Sql {{ plugin_input = a, plugin_output = b, query = "{query}" }}'
    (said,) = looked(spark, "Console { plugin_input = b }", transform=sql)
    assert said == "Sql: there is no column 'idd'. Did you mean 'id'? Columns: id, name."


def test_a_file_that_cannot_be_opened_is_told(
    here: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "a.txt").write_text("x")
    whole = Path.open

    def refused(self: Path, *how: Any, **more: Any) -> object:
        if self.name == "a.txt":
            raise PermissionError(13, "Permission denied", str(self))
        return whole(self, *how, **more)

    monkeypatch.setattr(Path, "open", refused)
    source = 'LocalFile { path = "a.txt", file_format_type = text }'
    (said,) = looked(spark, "Console {}", source)
    assert f"LocalFile cannot read {here}/a.txt: permission denied: user " in said
    assert said.endswith(f" may not read {here}/a.txt. Give that user the right.")


def test_what_spark_lacks_is_told(here: Path, spark: SparkSession) -> None:
    (said,) = looked(spark, 'Spark { format = parquet, path = "s3a://bucket/x" }')
    assert "Spark has no file system S3AFileSystem. Put its jar on every worker" in said
    (said,) = looked(spark, 'Spark { format = parquet, path = "odd://bucket/x" }')
    assert "Spark has no file system of odd:// paths" in said
    (said,) = looked(spark, 'Spark { format = jdbc, options { url = "jdbc:odd:x", dbtable = t } }')
    assert "Spark does not have a JDBC driver for this url" in said
    exists = DERBY.replace("format", "mode = errorifexists, format").replace(
        "dbtable = t", "dbtable = SYS.SYSTABLES"
    )
    (said,) = looked(spark, f"Spark {{ {exists} }}")
    assert "it is there already, and mode = errorifexists" in said


def test_a_look_that_is_ended_keeps_what_it_found(here: Path, spark: SparkSession) -> None:
    report, stages = CheckReport(), list[str]()
    job = job_of((SOURCE, "", 'Delta { path = "t", partition_keys = [day] }'))
    with pytest.raises(Cancelled):
        look_at_places(
            job,
            registry(),
            lambda: spark,
            report,
            cancelled=lambda: len(stages) > 1,
            at=stages.append,
        )
    assert stages[0] == "Source[0]-FakeSource"
    assert "there is no column day" in report.mistakes[0].message


def test_spark_that_does_not_start_is_one_more_problem(here: Path) -> None:
    def none() -> SparkSession:
        raise UserError("There is no Java.")

    report = CheckReport()
    job = job_of((SOURCE, "", 'Delta { path = "t", partition_keys = [day] }'))
    look_at_places(job, registry(), none, report)
    assert len(report.mistakes) == 2
    assert report.mistakes[1].message == "Spark does not start: There is no Java."
