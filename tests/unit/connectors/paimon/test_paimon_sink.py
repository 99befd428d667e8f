"""The Paimon sink on tables without keys: save modes, partitions, statistics, what it refuses."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Opening, Staging
from holdfast.connectors.lake.prepare import DataSaveMode, SchemaSaveMode
from holdfast.connectors.paimon import binary_row
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.errors import UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from tests.unit.connectors.opening import open_tables
from tests.unit.connectors.paimon.paimon_tables import (
    PLACE,
    entries,
    folder,
    ids,
    put,
    read,
    sink,
    sql,
    staged,
    stranger,
)

COLUMNS = (Column("id", Type("bigint")), Column("city", Type("string")))
ORDERS = Table(TablePath.parse(PLACE), COLUMNS)


def test_every_type_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT 1L AS id, CAST(2 AS TINYINT) AS b, 'x' AS s, true AS f, 1.5D AS d, X'0102' AS raw,"
        " CAST(12.34 AS DECIMAL(10,2)) AS small, CAST(5.678 AS DECIMAL(30,3)) AS large,"
        " DATE'2024-02-29' AS day, TIMESTAMP'2024-02-29 01:02:03.456789' AS at,"
        " TIMESTAMP_NTZ'2024-02-29 01:02:03.5' AS local, array(1, 2) AS many,"
        " map('k', 1) AS pairs, named_struct('n', 1) AS part, CAST(NULL AS STRING) AS nothing"
    )
    assert put(sink(tmp_path), frame) == 1
    (row,) = read(tmp_path)
    at = dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.UTC)
    assert row == {
        "id": 1, "b": 2, "s": "x", "f": True, "d": 1.5, "raw": b"\x01\x02",
        "small": Decimal("12.34"), "large": Decimal("5.678"), "day": dt.date(2024, 2, 29),
        "at": at, "local": dt.datetime(2024, 2, 29, 1, 2, 3, 500000), "many": [1, 2],
        "pairs": [("k", 1)], "part": {"n": 1}, "nothing": None,
    }  # fmt: skip


@pytest.mark.parametrize("keys", ["", "id"])
def test_wide_decimals_have_no_dictionary_as_paimons_java_would_miss_them_in_it(
    spark: SparkSession, tmp_path: Path, keys: str
) -> None:
    given = {"bucket": "1", "sequence.field": "narrow"} if keys else {}
    sql_of = "SELECT id, CAST(7 AS DECIMAL(38,18)) AS wide, CAST(7 AS DECIMAL(18,2)) AS narrow"
    rows = spark.sql(f"{sql_of} FROM range(0, 5000, 1, 1)")
    put(sink(tmp_path, primary_keys=keys, write_props=given), rows)
    (file,) = folder(tmp_path).rglob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    chunks = {c.path_in_schema: c for c in map(group.column, range(group.num_columns))}
    assert not chunks["wide"].has_dictionary_page and chunks["narrow"].has_dictionary_page


def test_bounds_are_those_that_paimons_own_writer_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(
        "SELECT 7L AS id, CAST(-12.34 AS DECIMAL(10,2)) AS price, 'short' AS name,"
        " 'a text of more than sixteen bytes' AS text, DATE'2024-02-29' AS day,"
        " TIMESTAMP_NTZ'2024-02-29 01:02:03.456789' AS local, true AS fine,"
        " CAST(1.5 AS DOUBLE) AS weight, CAST(NULL AS STRING) AS nothing"
    )
    put(sink(tmp_path), frame)
    (ours,) = entries(tmp_path)
    stranger(tmp_path, read(tmp_path), frame.toArrow().schema)
    (theirs,) = entries(tmp_path)
    assert ours["_FILE"]["_VALUE_STATS"] == theirs["_FILE"]["_VALUE_STATS"]
    for key in ("_MIN_KEY", "_MAX_KEY", "_KEY_STATS", "_SCHEMA_ID", "_LEVEL", "_DELETE_ROW_COUNT",
                "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_FILE_SOURCE"):  # fmt: skip
        assert ours["_FILE"][key] == theirs["_FILE"][key], key
    for key in ("_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_VERSION", "_KIND"):
        assert ours[key] == theirs[key], key


def test_rows_go_to_their_partitions(spark: SparkSession, tmp_path: Path) -> None:
    one = sink(tmp_path, partition_keys="CITY, day")
    day = dt.date(2024, 2, 29)
    rows = [(1, "oslo", day), (2, "a b/c=%", day), (3, None, day), (4, "oslo", None),
            (5, "żółć", day), (6, " ", day), (7, "", day)]  # fmt: skip
    put(one, spark.createDataFrame(rows, "id bigint, city string, day date").coalesce(1))
    found = [(r["id"], r["city"], r["day"]) for r in read(tmp_path)]
    assert found == rows
    assert (folder(tmp_path) / "city=oslo" / "day=19782" / "bucket-0").is_dir()
    assert not any((folder(tmp_path) / "_holdfast").iterdir()), "nothing staged is left"
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("day", pa.date32())])
    stranger(tmp_path, [{"id": 8, "city": "a b/c=%", "day": day}], schema)
    assert (
        len(list((folder(tmp_path) / "city=a b%2Fc%3D%25" / "day=19782").rglob("*.parquet"))) == 2
    )


def test_a_table_that_others_made_is_written_to(spark: SparkSession, tmp_path: Path) -> None:
    sql(tmp_path, "CREATE SCHEMA p.shop")
    sql(tmp_path, "CREATE TABLE p.shop.orders (id BIGINT, city STRING, note STRING)"
                  " PARTITIONED BY (city)")  # fmt: skip
    sql(tmp_path, "INSERT INTO p.shop.orders VALUES (1, 'x', 'theirs')")
    put(sink(tmp_path), spark.sql("SELECT 'y' AS City, CAST(2 AS INT) AS ID"))
    sql(tmp_path, "INSERT INTO p.shop.orders VALUES (3, 'x', 'theirs')")
    put(sink(tmp_path), spark.sql("SELECT 'x' AS city, 4L AS id, 'ours' AS note"), 2)
    assert [(r["id"], r["city"], r["note"]) for r in read(tmp_path)] == [
        (1, "x", "theirs"), (2, "y", None), (3, "x", "theirs"), (4, "x", "ours"),
    ]  # fmt: skip
    with pytest.raises(UserError, match="partition-keys is id, but the table has city"):
        sink(tmp_path, partition_keys="id").prepare([ORDERS])


def test_save_modes(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1L AS id, 'x' AS city")
    with pytest.raises(UserError, match="there is no table"):
        sink(tmp_path, schema_save_mode=SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST).prepare(
            [ORDERS]
        )
    assert not folder(tmp_path).exists()
    sink(tmp_path).prepare([ORDERS])
    sink(tmp_path).prepare([ORDERS])
    put(sink(tmp_path), frame)
    sink(tmp_path).prepare([ORDERS])
    assert ids(tmp_path) == [1], "APPEND_DATA keeps what is there"
    with pytest.raises(UserError, match="there are rows in it"):
        sink(tmp_path, data_save_mode=DataSaveMode.ERROR_WHEN_DATA_EXISTS).prepare([ORDERS])
    sink(tmp_path, data_save_mode=DataSaveMode.DROP_DATA).prepare([ORDERS])
    assert ids(tmp_path) == [1], "nothing goes before the first commit"
    open_tables(sink(tmp_path, data_save_mode=DataSaveMode.DROP_DATA), [ORDERS])
    assert ids(tmp_path) == []
    sink(tmp_path, data_save_mode=DataSaveMode.ERROR_WHEN_DATA_EXISTS).prepare([ORDERS])
    put(sink(tmp_path), frame)
    assert ids(tmp_path) == [], "an emptied table still knows what was committed"
    put(sink(tmp_path), frame, 2)
    assert ids(tmp_path) == [1]
    other = Table(TablePath.parse(PLACE), (Column("id", Type("string")),))
    open_tables(sink(tmp_path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA), [other])
    assert read(tmp_path) == []
    assert put(sink(tmp_path), spark.sql("SELECT 'a' AS id"), 3) == 1
    assert read(tmp_path) == [{"id": "a"}]


def test_a_table_is_made_anew_with_its_first_rows(spark: SparkSession, tmp_path: Path) -> None:
    put(sink(tmp_path), spark.sql("SELECT 1L AS id, 'x' AS city"))
    other = Table(TablePath.parse(PLACE), (Column("id", Type("string")), Column("n", Type("int"))))
    rows = Tables([Rows.of(PLACE, spark.sql("SELECT 'a' AS id, 7 AS n"))])
    anew = partial(sink, tmp_path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA)
    one = anew()
    due = one.prepare([other], Opening("7.x"))
    first = one.write(rows, Staging("7", "t", 1, 1, "x"))
    again = anew()  # an attempt that goes on from a checkpoint which is not visible yet
    again.prepare([other], Opening("7.x", frozenset({PLACE})))
    second = again.write(rows, Staging("7", "t", 2, 1, "x"))
    assert ids(tmp_path) == [1]
    one.commit(CommitId("7.x.1.s", 1), [*due, *first])
    assert read(tmp_path) == [{"id": "a", "n": 7}]
    one.commit(CommitId("7.x.1.s", 2), second)
    third = anew().write(rows, Staging("7", "t", 3, 1, "x"))
    one.commit(CommitId("7.x.1.s", 3), third)
    later, known = anew(), frozenset({PLACE})
    assert later.prepare([other], Opening("7.y", known, known)) == []
    one.commit(CommitId("7.y.1.s", 1), later.write(rows, Staging("7", "t", 1, 1, "y")))
    assert read(tmp_path) == [{"id": "a", "n": 7}] * 4
    with pytest.raises(UserError, match="it has other keys, partitions or buckets"):
        anew(partition_keys="n").prepare([other], Opening("7.z"))


def test_a_table_made_anew_after_staging_fails_the_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = sink(tmp_path)
    made = staged(one, spark.sql("SELECT 1L AS id"))
    anew = sink(tmp_path, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA)
    open_tables(anew, [Table(TablePath.parse(PLACE), (Column("id", Type("string")),))])
    with pytest.raises(UserError, match="the table was recreated"):
        one.commit(CommitId("u", 1), made)
    assert read(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"warehouse": "/"}, "the whole machine"),
        ({"warehouse": "s3a://bucket/x"}, "one would be lost"),
        ({"warehouse": "hdfs://x/y"}, "one would be lost"),
        ({"catalog_type": "hive"}, "must be filesystem, not 'hive'"),
        ({"catalog_uri": "thrift://x"}, "catalog_uri belongs to"),
        ({"hdfs_site_path": "/etc/x.xml"}, "there is no Hadoop here"),
        ({"paimon.table.write-props": {"bucket": "4"}}, "not possible without a primary key"),
        ({"paimon.table.write-props": {"row-tracking.enabled": "true"}}, "rows are not numbered"),
        ({"paimon.table.write-props": {"snapshot.time-retained": "soon"}}, "is not a time"),
        ({"paimon.table.primary-keys": "id"}, "needs bucket"),
        (
            {"paimon.table.write-props": {"partition.mark-done-action": "shout"}},
            "'shout' is not known",
        ),
        (
            {"paimon.table.write-props": {"partition.mark-done-action.http.url": "http://x"}},
            "may hold a secret",
        ),
        ({"partition.mark-done-action": "success-file"}, "nothing says when a partition is done"),
    ],
)
def test_options_are_checked_while_a_job_is_planned(
    mistakes: Callable[..., list[str]], options: dict[str, Any], said: str
) -> None:
    given = {"warehouse": "/tmp/w", "database": "d", "table": "t"}
    assert mistakes(PaimonSink, given) == []
    assert said in mistakes(PaimonSink, given | options)[0]


def test_a_changelog_needs_a_primary_key(spark: SparkSession, tmp_path: Path) -> None:
    changes = Table(TablePath.parse(PLACE), COLUMNS, changelog=True)
    with pytest.raises(UserError, match="to a table without a primary key"):
        sink(tmp_path).prepare([changes])
    assert not folder(tmp_path).exists()


def test_types_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for kind in ("time", "null"):
        table = Table(TablePath.parse(PLACE), (*COLUMNS, Column("x", Type(kind))))
        with pytest.raises(UserError, match=f"x is {kind}"):
            sink(tmp_path).prepare([table])
    sql(tmp_path, "CREATE SCHEMA p.shop")
    sql(tmp_path, "CREATE TABLE p.shop.orders (id BIGINT, x TIMESTAMP(3))")
    with pytest.raises(UserError, match=r"x is TIMESTAMP\(3\), a type that this sink does not"):
        sink(tmp_path).prepare([ORDERS])


def test_bounds_have_all_digits_of_a_decimal() -> None:
    low = Decimal("-99999999999999999999.999999999999999999")
    row = binary_row.encode([low], ["DECIMAL(38, 18)"])
    assert binary_row.decode(row, ["DECIMAL(38, 18)"]) == [low]
