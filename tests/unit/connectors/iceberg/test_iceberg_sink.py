"""The Iceberg sink: save modes, partitions, field ids, statistics, and what it refuses."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import DayTransform
from pyiceberg.types import LongType, NestedField, TimestamptzType, UUIDType
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Opening, Staging
from holdfast.connectors.iceberg import staging
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.lake.prepare import DataSaveMode, SchemaSaveMode
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.table import Column, Key, Table, TablePath
from holdfast.model.types import Type
from tests.unit.connectors.opening import open_tables

PLACE = "shop.orders"
COLUMNS = (Column("id", Type("bigint")), Column("city", Type("string")))
ORDERS = Table(TablePath.parse(PLACE), COLUMNS)
LOCAL = {"iceberg.catalog.config": {"type": "hadoop", "warehouse": "/data/warehouse"}}


def sink(warehouse: Path, **options: Any) -> IcebergSink:
    catalog = {"type": "hadoop", "warehouse": str(warehouse)}
    given = {"catalog": catalog, "namespace": "${database_name}"} | options
    context = PluginContext("7", "job", "Sink[0]-Iceberg", Mode.BATCH)
    return IcebergSink(IcebergSinkOptions(**given), context)


def put(one: IcebergSink, frame: DataFrame, number: int = 1, user: str = "u") -> int:
    """Write and commit rows; return how many were said to be written."""
    made = one.write(Tables([Rows.of(PLACE, frame)]), Staging("7", "t", 1, number))
    one.commit(CommitId(user, number), made)
    return sum(c.rows for c in made)


def opened(warehouse: Path) -> StaticTable:
    return StaticTable.from_metadata(str(warehouse / "shop" / "orders"))


def ids(warehouse: Path, **more: Any) -> list[Any]:
    return sorted(opened(warehouse).scan(**more).to_arrow()["id"].to_pylist())


def data_files(warehouse: Path) -> list[Path]:
    return sorted((warehouse / "shop" / "orders" / "data").rglob("*.parquet"))


def test_every_type_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT 1L AS id, CAST(2 AS TINYINT) AS b, 'x' AS s, true AS f, 1.5D AS d, X'0102' AS raw,"
        " CAST(12.34 AS DECIMAL(10,2)) AS small, CAST(5.678 AS DECIMAL(30,3)) AS large,"
        " DATE'2024-02-29' AS day, TIME'01:02:03.5' AS clock,"
        " TIMESTAMP'2024-02-29 01:02:03.456789' AS at,"
        " TIMESTAMP_NTZ'2024-02-29 01:02:03.5' AS local, array(1, 2) AS many,"
        " map('k', 1) AS pairs, named_struct('n', 1) AS part, CAST(NULL AS STRING) AS nothing"
    )
    assert put(sink(tmp_path), frame) == 1
    (row,) = opened(tmp_path).scan().to_arrow().to_pylist()
    at = dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.UTC)
    assert row == {
        "id": 1, "b": 2, "s": "x", "f": True, "d": 1.5, "raw": b"\x01\x02",
        "small": Decimal("12.34"), "large": Decimal("5.678"), "day": dt.date(2024, 2, 29),
        "clock": dt.time(1, 2, 3, 500000), "at": at,
        "local": dt.datetime(2024, 2, 29, 1, 2, 3, 500000), "many": [1, 2],
        "pairs": [("k", 1)], "part": {"n": 1}, "nothing": None,
    }  # fmt: skip


def test_files_know_columns_by_the_numbers_of_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql("SELECT 'x' AS name, named_struct('n', 1, 'm', 2L) AS part, 7L AS id")
    put(sink(tmp_path), frame)
    (file,) = data_files(tmp_path)
    schema = opened(tmp_path).schema()
    found = pq.read_schema(file)
    for name in ("name", "part", "id"):
        assert number(found.field(name)) == schema.find_field(name).field_id
    inside = found.field("part").type
    assert isinstance(inside, pa.StructType)
    assert number(inside.field("m")) == schema.find_field("part.m").field_id
    assert "schema.name-mapping.default" not in opened(tmp_path).properties
    with sink(tmp_path)._catalog.load_table(("shop", "orders")).update_schema() as change:
        change.rename_column("name", "title")
    (row,) = opened(tmp_path).scan().to_arrow().to_pylist()
    assert row == {"title": "x", "part": {"n": 1, "m": 2}, "id": 7}


def test_where_spark_drops_the_numbers_the_footer_gets_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "numbered", lambda frame, schema: frame)
    assert put(sink(tmp_path), spark.sql("SELECT 7L AS id, 'x' AS name")) == 1
    (file,) = data_files(tmp_path)
    assert number(pq.read_schema(file).field("name")) == 2
    assert "schema.name-mapping.default" not in opened(tmp_path).properties
    assert ids(tmp_path) == [7]


def number(field: Any) -> int:
    return int(field.metadata[b"PARQUET:field_id"])


def test_files_have_statistics_that_readers_can_skip_by(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(
        "SELECT id, CAST(id AS DECIMAL(10,2)) AS price, concat('a long name of row ', id) AS name,"
        " timestamp_micros(1700000000123456 + id) AS at FROM range(10, 20)"
    )
    put(sink(tmp_path), frame.coalesce(1))
    put(sink(tmp_path), frame.selectExpr("id + 100 AS id", "price", "name", "at").coalesce(1), 2)
    table = opened(tmp_path)
    (task,) = table.scan(row_filter="id > 115").plan_files()
    assert task.file.record_count == 10
    readable = table.inspect.files().to_pylist()[0]["readable_metrics"]
    assert readable["price"]["lower_bound"] == Decimal("10.00")
    assert readable["name"]["upper_bound"] == "a long name of s", "cut, and still above"
    assert readable["id"]["null_value_count"] == 0
    assert ids(tmp_path, row_filter="name = 'a long name of row 17'") == [17, 117]


def test_rows_go_to_their_partitions(spark: SparkSession, tmp_path: Path) -> None:
    one = sink(tmp_path, partition_keys="CITY, day")
    cities = [
        (1, "oslo", dt.date(2024, 1, 1)), (2, "a b/c=%", None), (3, None, None),
        (4, "oslo", dt.date(2024, 1, 2)), (5, "żółć", None), (6, "", None), (7, "n n", None),
    ]  # fmt: skip
    frame = spark.createDataFrame(cities, "id bigint, city string, day date").coalesce(1)
    assert put(one, frame) == 7
    found = opened(tmp_path).scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["city"], r["day"]) for r in found) == cities
    assert ids(tmp_path, row_filter="city = 'oslo' and day = '2024-01-02'") == [4]
    assert ids(tmp_path, row_filter="city = ''") == [6], "nothing is not null"
    assert ids(tmp_path, row_filter="city is null") == [3]
    assert len(list(opened(tmp_path).scan(row_filter="city = 'oslo'").plan_files())) == 2
    (part,) = {
        r["partition"]["day"]
        for r in opened(tmp_path).inspect.files().to_pylist()
        if r["partition"]["city"] == "żółć"
    }
    assert part is None
    assert not any((tmp_path / "shop" / "orders" / "_holdfast").iterdir()), "nothing staged is left"


def test_partitions_of_other_types(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT 1L AS id, true AS f, CAST(1.50 AS DECIMAL(5,2)) AS d,"
        " TIMESTAMP'2024-02-29 01:02:03.000004' AS at"
    )
    put(sink(tmp_path, partition_keys="f,d,at"), frame)
    (file,) = opened(tmp_path).inspect.files().to_pylist()
    at = dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC)
    assert file["partition"] == {"f": True, "d": Decimal("1.50"), "at": at}
    with pytest.raises(UserError, match="partitioned by x, which is double"):
        table = Table(ORDERS.path, (*COLUMNS, Column("x", Type("double"))))
        sink(tmp_path, table="other", partition_keys="x").prepare([table])


def test_a_table_that_is_there_says_how_it_is_written(spark: SparkSession, tmp_path: Path) -> None:
    put(sink(tmp_path, partition_keys="city"), spark.sql("SELECT 1L AS id, 'x' AS city"))
    put(sink(tmp_path), spark.sql("SELECT 'y' AS City, CAST(2 AS INT) AS ID"), 2)
    assert ids(tmp_path) == [1, 2]
    with pytest.raises(UserError, match="partition-keys is id, but the table is partitioned by"):
        sink(tmp_path, partition_keys="id").prepare([ORDERS])
    spelled = Table(ORDERS.path, (Column("ID", Type("bigint")), Column("city", Type("string"))))
    with pytest.raises(UserError, match="id arrives as ID, and case_sensitive is true"):
        sink(tmp_path, case_sensitive=True).prepare([spelled])
    sink(tmp_path, case_sensitive=True).prepare([ORDERS])


def test_keys_describe_a_new_table_and_rows_are_added_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    keyed = Table(ORDERS.path, COLUMNS, primary_key=Key("k", ("id",)))
    sink(tmp_path, table="plain").prepare([keyed])
    plain = StaticTable.from_metadata(str(tmp_path / "shop" / "plain"))
    assert plain.schema().identifier_field_ids == [], "keys of the source are not taken over"
    one = sink(tmp_path, primary_keys="id")
    one.prepare([keyed])
    assert opened(tmp_path).schema().identifier_field_names() == {"id"}
    frame = spark.sql("SELECT 1L AS id, 'x' AS city")
    put(one, frame)
    put(one, frame, 2)
    assert ids(tmp_path) == [1, 1]
    with pytest.raises(UserError, match="id may not be null in the table, and 1 rows"):
        put(one, spark.sql("SELECT CAST(NULL AS BIGINT) AS id, 'x' AS city"), 3)
    with pytest.raises(UserError, match=r"primary-keys\): there is no column nr"):
        sink(tmp_path, table="third", primary_keys="nr").prepare([ORDERS])


def test_save_modes(spark: SparkSession, tmp_path: Path) -> None:
    missing = sink(tmp_path, schema_save_mode=SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST)
    with pytest.raises(UserError, match="there is no table"):
        missing.prepare([ORDERS])
    assert not (tmp_path / "shop").exists()
    sink(tmp_path).prepare([ORDERS])
    sink(tmp_path).prepare([ORDERS])
    put(sink(tmp_path), spark.sql("SELECT 1L AS id, 'x' AS city"))
    sink(tmp_path).prepare([ORDERS])
    assert ids(tmp_path) == [1], "APPEND_DATA keeps what is there"
    with pytest.raises(UserError, match="there are rows in it"):
        sink(tmp_path, data_save_mode=DataSaveMode.ERROR_WHEN_DATA_EXISTS).prepare([ORDERS])
    sink(tmp_path, data_save_mode=DataSaveMode.DROP_DATA).prepare([ORDERS])
    assert ids(tmp_path) == [1], "nothing goes before the first commit"
    open_tables(sink(tmp_path, data_save_mode=DataSaveMode.DROP_DATA), [ORDERS])
    assert ids(tmp_path) == []
    open_tables(sink(tmp_path, data_save_mode=DataSaveMode.ERROR_WHEN_DATA_EXISTS), [ORDERS])
    other = Table(TablePath.parse(PLACE), (Column("id", Type("string")),))
    open_tables(sink(tmp_path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA), [other])
    assert [f.name for f in opened(tmp_path).schema().fields] == ["id"]
    assert put(sink(tmp_path), spark.sql("SELECT 'a' AS id"), 2) == 1


def test_a_table_is_made_anew_with_its_first_rows(spark: SparkSession, tmp_path: Path) -> None:
    put(sink(tmp_path), spark.sql("SELECT 1L AS id, 'x' AS city"))
    other = Table(TablePath.parse(PLACE), (Column("id", Type("string")), Column("n", Type("int"))))
    rows = Tables([Rows.of(PLACE, spark.sql("SELECT 'a' AS id, 7 AS n"))])
    mode = {"schema_save_mode": SchemaSaveMode.RECREATE_SCHEMA, "partition_keys": "n"}
    one = sink(tmp_path, **mode)
    due = one.prepare([other], Opening("7.x"))
    first = one.write(rows, Staging("7", "t", 1, 1, "x"))
    again = sink(tmp_path, **mode)  # goes on from a checkpoint that is not visible yet
    again.prepare([other], Opening("7.x", frozenset({PLACE})))
    second = again.write(rows, Staging("7", "t", 2, 1, "x"))
    assert ids(tmp_path) == [1]
    one.commit(CommitId("7.x.1.s", 1), [*due, *first])
    assert ids(tmp_path) == ["a"]
    one.commit(CommitId("7.x.1.s", 2), second)
    third = sink(tmp_path, **mode).write(rows, Staging("7", "t", 3, 1, "x"))
    one.commit(CommitId("7.x.1.s", 3), third)
    later, known = sink(tmp_path, **mode), frozenset({PLACE})
    assert later.prepare([other], Opening("7.y", known, known)) == []
    one.commit(CommitId("7.y.1.s", 1), later.write(rows, Staging("7", "t", 1, 1, "y")))
    assert ids(tmp_path) == ["a", "a", "a", "a"]
    assert opened(tmp_path).scan().to_arrow()["n"].to_pylist() == [7, 7, 7, 7]
    assert [f.name for f in opened(tmp_path).spec().fields] == ["n"]


def test_write_props_say_how_files_are_compressed(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1L AS id")
    put(sink(tmp_path), frame)
    assert compression(data_files(tmp_path)[0]) == "ZSTD"
    other = sink(tmp_path, table="t", write_props={"write.parquet.compression-codec": "snappy"})
    put(other, frame)
    (file,) = (tmp_path / "shop" / "t" / "data").rglob("*.parquet")
    assert compression(file) == "SNAPPY"


def compression(file: Path) -> str:
    return str(pq.read_metadata(file).row_group(0).column(0).compression)


def test_tables_that_ask_for_more_are_refused(tmp_path: Path) -> None:
    catalog = sink(tmp_path)._catalog
    fields = (NestedField(1, "id", LongType()), NestedField(2, "at", TimestamptzType()))
    days = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day"))
    catalog.create_table(("shop", "orders"), Schema(*fields), partition_spec=days, properties={})
    with pytest.raises(UserError, match=r"asks for partitions by day \(day\)"):
        sink(tmp_path).prepare([ORDERS])
    catalog.create_table(
        ("shop", "other"), Schema(NestedField(1, "id", UUIDType())),
        partition_spec=PartitionSpec(), properties={},
    )  # fmt: skip
    with pytest.raises(UserError, match="column id is uuid, a type that this sink does not write"):
        sink(tmp_path, table="other").prepare([ORDERS])


def test_a_changelog_and_types_that_iceberg_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Iceberg adds rows only"):
        sink(tmp_path).prepare([Table(ORDERS.path, COLUMNS, changelog=True)])
    with pytest.raises(UserError, match="column x is null"):
        sink(tmp_path).prepare([Table(ORDERS.path, (*COLUMNS, Column("x", Type("null"))))])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"iceberg.table.upsert-mode-enabled": True}, "this sink adds rows, and replaces"),
        ({"iceberg.table.schema-evolution-enabled": True}, "does not change a table"),
        ({"iceberg.table.commit-branch": "b"}, "only 'main' is possible"),
        ({"iceberg.hadoop-conf-path": "/etc/hadoop"}, "there is no Hadoop here"),
        ({"iceberg.table.write-props": {"write.format.default": "orc"}}, "not orc"),
        ({"iceberg.catalog.config": {"type": "hadoop"}}, "needs 'warehouse'"),
        ({"iceberg.catalog.config": {"type": "hadoop", "warehouse": "/"}}, "the whole machine"),
        (
            {"iceberg.catalog.config": {"type": "hadoop", "warehouse": "s3a://b/w"}},
            "cannot tell two commits at the same moment apart",
        ),
        ({"iceberg.catalog.config": {"type": "rest"}}, "a rest catalog needs 'uri'"),
        ({"iceberg.catalog.config": {"type": "nessie"}}, "not 'nessie'"),
        ({"iceberg.catalog.config": {"catalog-impl": "org.x"}}, "names a class of Java"),
        ({"iceberg.catalog.config": {"py-io-impl": "x.Y"}}, "names code to run"),
    ],
)
def test_options_are_checked_while_a_job_is_planned(
    mistakes: Callable[..., list[str]], given: dict[str, Any], said: str
) -> None:
    (found,) = mistakes(IcebergSink, LOCAL | given)
    assert said in found


def test_good_options_pass(mistakes: Callable[..., list[str]]) -> None:
    assert mistakes(IcebergSink, LOCAL) == []
    rest = {"uri": "https://catalog", "warehouse": "s3://bucket/w", "s3.endpoint": "http://s3"}
    assert mistakes(IcebergSink, {"iceberg.catalog.config": rest}) == []


def test_without_the_jar_s3_is_refused_and_the_jar_is_named() -> None:
    catalog = {"type": "rest", "uri": "https://c", "warehouse": "s3a://bucket/w"}
    (said,) = IcebergSink.lacks(IcebergSinkOptions(catalog=catalog), {})
    assert "hadoop-aws-" in said
    local = {"type": "hadoop", "warehouse": "/data"}
    assert list(IcebergSink.lacks(IcebergSinkOptions(catalog=local), {})) == []


def test_settings_of_s3_reach_both_spark_and_the_library() -> None:
    options = IcebergSinkOptions(
        catalog={"uri": "https://c", "s3.endpoint": "http://s3", "io-impl": "org.x"},
        hadoop={"fs.s3a.access.key": "k", "fs.defaultFS": "x"},
    )
    assert options.s3 == {"fs.s3a.endpoint": "http://s3", "fs.s3a.access.key": "k"}
    assert options.properties == {
        "type": "rest", "uri": "https://c", "s3.endpoint": "http://s3", "s3.access-key-id": "k",
    }  # fmt: skip
