"""The Delta sink: save modes, partitions, statistics, and what it refuses."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.checks import CheckReport
from holdfast.connect.plugin import PluginContext
from holdfast.connect.registry import Registry
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Opening, Staging
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.connectors.lake.prepare import DataSaveMode, SchemaSaveMode
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from holdfast.plan.check import check_job
from holdfast.plan.load import parse_job
from tests.unit.connectors.opening import open_tables

PLACE = "shop.orders"
COLUMNS = (Column("id", Type("bigint")), Column("city", Type("string")))
ORDERS = Table(TablePath.parse(PLACE), COLUMNS)


def sink(path: Path, **options: Any) -> DeltaSink:
    made = DeltaSinkOptions(path=str(path), **options)
    return DeltaSink(made, PluginContext("7", "job", "Sink[0]-Delta", Mode.BATCH))


def put(one: DeltaSink, frame: DataFrame, number: int = 1, user: str = "u") -> int:
    """Write and commit rows; return how many were said to be written."""
    made = one.write(Tables([Rows.of(PLACE, frame)]), Staging("7", "t", 1, number))
    one.commit(CommitId(user, number), made)
    return sum(c.rows for c in made)


def ids(path: Path, **more: Any) -> list[Any]:
    return sorted(DeltaTable(path).to_pyarrow_table(**more)["id"].to_pylist())


def test_every_type_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT 1L AS id, CAST(2 AS TINYINT) AS b, 'x' AS s, true AS f, 1.5D AS d, X'0102' AS raw,"
        " CAST(12.34 AS DECIMAL(10,2)) AS small, CAST(5.678 AS DECIMAL(30,3)) AS large,"
        " DATE'2024-02-29' AS day, TIMESTAMP'2024-02-29 01:02:03.456789' AS at,"
        " TIMESTAMP_NTZ'2024-02-29 01:02:03.5' AS local, array(1, 2) AS many,"
        " map('k', 1) AS pairs, named_struct('n', 1) AS part, CAST(NULL AS STRING) AS nothing"
    )
    assert put(sink(tmp_path / "t"), frame) == 1
    (row,) = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    at = dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.UTC)
    assert row == {
        "id": 1, "b": 2, "s": "x", "f": True, "d": 1.5, "raw": b"\x01\x02",
        "small": Decimal("12.34"), "large": Decimal("5.678"), "day": dt.date(2024, 2, 29),
        "at": at, "local": dt.datetime(2024, 2, 29, 1, 2, 3, 500000), "many": [1, 2],
        "pairs": [("k", 1)], "part": {"n": 1}, "nothing": None,
    }  # fmt: skip


def test_files_have_statistics_that_readers_can_skip_by(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(
        "SELECT id, CAST(id AS DECIMAL(10,2)) AS price, concat('n', id) AS name,"
        " timestamp_micros(1700000000123456 + id) AS at FROM range(10, 20)"
    ).coalesce(1)
    put(sink(tmp_path / "t"), frame)
    (stats,) = _adds(tmp_path / "t", "stats")
    found = json.loads(stats)
    assert found["numRecords"] == 10
    assert found["minValues"] == {
        "id": 10, "price": 10.0, "name": "n10", "at": "2023-11-14T22:13:20.123Z",
    }  # fmt: skip
    assert found["maxValues"]["at"] == "2023-11-14T22:13:20.124Z", "a bound from above is above"
    assert found["nullCount"] == {"id": 0, "price": 0, "name": 0, "at": 0}
    assert ids(tmp_path / "t", filters=[("id", ">", 17)]) == [18, 19]


def test_rows_go_to_their_partitions(spark: SparkSession, tmp_path: Path) -> None:
    one = sink(tmp_path / "t", partition_keys=["CITY"])
    rows = [(1, "oslo"), (2, "a b/c=%"), (3, None), (4, "oslo"), (5, "żółć"), (6, "San José")]
    put(one, spark.createDataFrame(rows, "id bigint, city string").coalesce(1))
    table = DeltaTable(tmp_path / "t")
    assert table.metadata().partition_columns == ["city"]
    found = table.to_pyarrow_table()
    assert sorted(zip(found["id"].to_pylist(), found["city"].to_pylist(), strict=True)) == rows
    assert ids(tmp_path / "t", filters=[("city", "=", "oslo")]) == [1, 4]
    assert (tmp_path / "t" / "city=oslo").is_dir()
    assert not any((tmp_path / "t" / "_holdfast").iterdir()), "nothing staged is left"


def test_a_table_that_is_there_says_how_it_is_written(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(sink(path, partition_keys=["city"]), spark.sql("SELECT 1L AS id, 'x' AS city"))
    put(sink(path), spark.sql("SELECT 'y' AS City, CAST(2 AS INT) AS ID"), 2)
    assert ids(path) == [1, 2]
    with pytest.raises(UserError, match="partition_keys is id, but the table is partitioned by"):
        sink(path, partition_keys=["id"]).prepare([ORDERS])


def test_a_null_where_the_table_has_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    fields = [{"name": "id", "type": "long", "nullable": False, "metadata": {}}]
    DeltaTable.create(path, Schema.from_json(json.dumps({"type": "struct", "fields": fields})))
    with pytest.raises(UserError, match="id may not be null in the table, and 1 rows"):
        put(sink(path), spark.sql("SELECT CAST(NULL AS BIGINT) AS id UNION ALL SELECT 1L"))
    assert put(sink(path), spark.sql("SELECT 1L AS id")) == 1


def test_a_table_with_rules_of_its_own_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(sink(path), spark.sql("SELECT 1L AS id, 'x' AS city"))
    DeltaTable(path).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(UserError, match=r"a check \(delta.constraints.positive\)"):
        sink(path).prepare([ORDERS])


@pytest.mark.parametrize(
    ("kind", "said"), [("time", "is time"), ("null", "is null")], ids=["time", "null"]
)
def test_types_that_delta_does_not_have_are_refused(tmp_path: Path, kind: str, said: str) -> None:
    table = Table(TablePath.parse(PLACE), (Column("id", Type("bigint")), Column("x", Type(kind))))
    with pytest.raises(UserError, match=said):
        sink(tmp_path / "t").prepare([table])


def test_save_modes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    with pytest.raises(UserError, match="there is no table"):
        sink(path, schema_save_mode=SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST).prepare([ORDERS])
    assert not path.exists()
    sink(path).prepare([ORDERS])
    sink(path).prepare([ORDERS])
    put(sink(path), spark.sql("SELECT 1L AS id, 'x' AS city"))
    sink(path).prepare([ORDERS])
    assert ids(path) == [1], "APPEND_DATA keeps what is there"
    with pytest.raises(UserError, match="there are rows in it"):
        sink(path, data_save_mode=DataSaveMode.ERROR_WHEN_DATA_EXISTS).prepare([ORDERS])
    sink(path, data_save_mode=DataSaveMode.DROP_DATA).prepare([ORDERS])
    assert ids(path) == [1], "nothing goes before the first commit"
    open_tables(sink(path, data_save_mode=DataSaveMode.DROP_DATA), [ORDERS])
    assert ids(path) == []
    open_tables(sink(path, data_save_mode=DataSaveMode.ERROR_WHEN_DATA_EXISTS), [ORDERS])
    other = Table(TablePath.parse(PLACE), (Column("id", Type("string")),))
    open_tables(sink(path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA), [other])
    assert [f.name for f in DeltaTable(path).schema().fields] == ["id"]
    assert put(sink(path), spark.sql("SELECT 'a' AS id"), 2) == 1


def test_a_table_is_made_anew_with_its_first_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(sink(path), spark.sql("SELECT 1L AS id, 'x' AS city"))
    other = Table(TablePath.parse(PLACE), (Column("id", Type("string")),))
    rows = Tables([Rows.of(PLACE, spark.sql("SELECT 'a' AS id"))])
    anew = partial(sink, path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA)
    one = anew()
    due = one.prepare([other], Opening("7.x"))
    first = one.write(rows, Staging("7", "t", 1, 1, "x"))
    again = anew()  # an attempt that goes on from a checkpoint which is not visible yet
    again.prepare([other], Opening("7.x", frozenset({PLACE})))
    second = again.write(rows, Staging("7", "t", 2, 1, "x"))
    assert ids(path) == [1]
    one.commit(CommitId("7.x.1.s", 1), [*due, *first])
    assert ids(path) == ["a"]
    one.commit(CommitId("7.x.1.s", 2), second)
    third = anew().write(rows, Staging("7", "t", 3, 1, "x"))
    one.commit(CommitId("7.x.1.s", 3), third)
    assert ids(path) == ["a", "a", "a"]
    later = anew()  # of another life, which starts from a savepoint of the one before
    known = frozenset({PLACE})
    assert later.prepare([other], Opening("7.y", known, known)) == []
    one.commit(CommitId("7.y.1.s", 1), later.write(rows, Staging("7", "t", 1, 1, "y")))
    assert ids(path) == ["a", "a", "a", "a"]


def test_a_warehouse_has_a_folder_for_each_table(spark: SparkSession, tmp_path: Path) -> None:
    options = DeltaSinkOptions(warehouse=str(tmp_path))
    one = DeltaSink(options, PluginContext("7", "job", "Sink[0]-Delta", Mode.BATCH))
    one.prepare([ORDERS])
    put(one, spark.sql("SELECT 1L AS id, 'x' AS city"))
    assert ids(tmp_path / "shop.db" / "orders") == [1]


def test_a_table_changed_after_staging_fails_the_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    one = sink(path)
    made = one.write(
        Tables([Rows.of(PLACE, spark.sql("SELECT 1L AS id"))]), Staging("7", "t", 1, 1)
    )
    anew = sink(path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA)
    open_tables(anew, [Table(TablePath.parse(PLACE), (Column("id", Type("string")),))])
    with pytest.raises(UserError, match="changed after rows were staged"):
        one.commit(CommitId("u", 1), made)
    assert ids(path) == []


def test_the_log_is_written_down_whole_also_in_a_table_of_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": pa.array([0], pa.int64())}))
    one = sink(path)
    frame = spark.sql("SELECT 1L AS id")
    for number in range(1, 22):
        put(one, frame, number)
    assert (path / "_delta_log" / "_last_checkpoint").exists()
    assert len(ids(path)) == 22


def test_options_are_checked_while_a_job_is_planned(
    mistakes: Callable[..., list[str]],
) -> None:
    assert mistakes(DeltaSink, {}) == ["Delta: give either 'path' or 'warehouse'."]
    assert "the whole machine" in mistakes(DeltaSink, {"path": "/"})[0]
    assert "not a path this sink can write" in mistakes(DeltaSink, {"path": "hdfs://x/y"})[0]
    assert mistakes(DeltaSink, {"path": "s3a://bucket/${table_name}"}) == []


def test_without_the_jar_s3_is_refused_and_the_jar_is_named(tmp_path: Path) -> None:
    options = DeltaSinkOptions(path="s3a://bucket/t")
    (said,) = DeltaSink.lacks(options, {})
    assert "hadoop-aws-" in said
    assert "env { jars =" in said
    assert list(DeltaSink.lacks(options, {"spark.jars": "/jars/hadoop-aws-3.5.0.jar"})) == []
    assert list(DeltaSink.lacks(DeltaSinkOptions(path=str(tmp_path)), {})) == []


def test_the_plan_of_a_job_names_the_missing_jar() -> None:
    report = CheckReport()
    text = """
    source { FakeSource { schema { fields { id = bigint } } } }
    sink { Delta { path = "s3a://bucket/t" } }
    """
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree is not None
    assert check_job(tree, "job.conf", Registry.load(), report) is None
    (mistake,) = report.mistakes
    assert mistake.place.line == 3
    assert "sink Delta: 's3a://bucket/t' needs Spark's S3 file system" in mistake.message


def _adds(path: Path, key: str) -> list[Any]:
    lines = [
        json.loads(line)
        for log in sorted((path / "_delta_log").glob("*.json"))
        for line in log.read_text().splitlines()
    ]
    return [line["add"][key] for line in lines if "add" in line]
