"""The Paimon sink on tables with a primary key: the last row of each key counts."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.sink import CommitId
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.errors import UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from tests.unit.connectors.paimon.paimon_tables import (
    PLACE,
    entries,
    folder,
    opened,
    put,
    read,
    sink,
    staged,
    stranger,
)

COLUMNS = (Column("id", Type("bigint")), Column("name", Type("string")), Column("v", Type("int")))
DDL = "id bigint, name string, v int"
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("v", pa.int32())]
)


def keyed(warehouse: Path, keys: str = "id", bucket: int = 2, **options: Any) -> PaimonSink:
    props = {"bucket": str(bucket), "sequence.field": "v"}
    return sink(warehouse, primary_keys=keys, write_props=props, **options)


def changes(spark: SparkSession, *rows: tuple[str, int, str | None, int]) -> DataFrame:
    return spark.createDataFrame(rows, f"__kind string, {DDL}")


def found(warehouse: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in read(warehouse)]


def test_changes_are_applied_by_key(spark: SparkSession, tmp_path: Path) -> None:
    one = keyed(tmp_path)
    put(one, changes(spark, ("INSERT", 1, "a", 1), ("INSERT", 2, "b", 1), ("INSERT", 3, "c", 1)))
    assert found(tmp_path) == [(1, "a", 1), (2, "b", 1), (3, "c", 1)]
    put(one, changes(spark, ("UPDATE_BEFORE", 1, "a", 1), ("UPDATE_AFTER", 1, "A", 2),
                     ("DELETE", 2, "b", 2), ("INSERT", 4, "d", 2)), 2)  # fmt: skip
    assert found(tmp_path) == [(1, "A", 2), (3, "c", 1), (4, "d", 2)]
    assert sum(e["_FILE"]["_DELETE_ROW_COUNT"] for e in entries(tmp_path)) == 1


def test_the_sequence_field_decides_not_the_order_of_staging(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = keyed(tmp_path)
    later = staged(one, changes(spark, ("UPDATE_AFTER", 1, "new", 5), ("DELETE", 2, None, 5)), 2)
    first = staged(one, changes(spark, ("INSERT", 1, "old", 1), ("INSERT", 2, "old", 1)), 1)
    one.commit(CommitId("u", 1), first)
    one.commit(CommitId("u", 2), later)
    assert found(tmp_path) == [(1, "new", 5)]


def test_a_slice_has_one_row_for_each_key(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("INSERT", n % 5, f"{n}", n) for n in range(100)]
    frame = changes(spark, *rows).repartition(4)
    assert put(keyed(tmp_path), frame) == 5
    assert found(tmp_path) == [(n % 5, f"{n}", n) for n in range(95, 100)]
    same = spark.createDataFrame(
        [("INSERT", 7, "first", 1, 1), ("UPDATE_AFTER", 7, "last", 1, 3), ("DELETE", 7, "x", 1, 2)],
        f"__kind string, {DDL}, __seq bigint",
    )
    put(keyed(tmp_path), same, 2)
    assert (7, "last", 1) in found(tmp_path), "the order of changes decides between equal ones"


def test_files_are_sorted_and_each_bucket_has_one(spark: SparkSession, tmp_path: Path) -> None:
    one = keyed(tmp_path, "name,id", bucket=3)
    frame = spark.sql("SELECT id, concat('n', id % 13) AS name, 1 AS v FROM range(1000)")
    put(one, frame.repartition(7))
    files = entries(tmp_path)
    assert sorted(e["_BUCKET"] for e in files) == [0, 1, 2]
    for path in folder(tmp_path).glob("bucket-*/*.parquet"):
        rows = pq.read_table(path, partitioning=None).to_pylist()
        keys = [(row["name"], row["id"]) for row in rows]
        assert keys == sorted(keys)
        assert {row["_VALUE_KIND"] for row in rows} == {0}
    assert len(read(tmp_path)) == 1000


TEXTS = ["", "a", "seven77", "eight888", "a text of many more bytes", "żółć łódź", "漢字漢字"]


@pytest.mark.parametrize(
    ("keys", "types"),
    [
        ("k", "k BIGINT"),
        ("k", "k STRING"),
        ("a,k,b", "a STRING, k BIGINT, b STRING"),
        ("i,s,t,d,f", "i INT, s SMALLINT, t TINYINT, d DATE, f BOOLEAN"),
    ],
)
def test_rows_are_in_the_bucket_that_paimon_would_choose(
    spark: SparkSession, tmp_path: Path, keys: str, types: str
) -> None:
    texts = ", ".join(f"'{text}'" for text in TEXTS)
    frame = spark.sql(
        f"SELECT n, {texts_of(types)}, 1 AS v FROM (SELECT CAST(id AS INT) - 20 AS n,"
        f" array({texts})[CAST(id % {len(TEXTS)} AS INT)] AS t FROM range(40))"
    ).drop("n")
    one = sink(tmp_path, primary_keys=keys,
               write_props={"bucket": "5", "sequence.field": "v"})  # fmt: skip
    put(one, frame)
    ours = [(e["_BUCKET"], e["_FILE"]["_ROW_COUNT"]) for e in entries(tmp_path)]
    table = opened(tmp_path)
    rows = read(tmp_path)
    fields = [
        pa.field(f.name, f.type, nullable=f.name not in keys.split(","))
        for f in frame.toArrow().schema
    ]
    stranger(tmp_path, rows, pa.schema(fields))
    theirs = [(e["_BUCKET"], e["_FILE"]["_ROW_COUNT"]) for e in entries(tmp_path)]
    assert sorted(ours) == sorted(theirs)
    assert read(tmp_path) == rows
    assert table.schema().primary_keys() == keys.split(",")


def texts_of(types: str) -> str:
    """Return a value for each column, out of the number `n` and the text `t`."""
    made = {
        "STRING": "t", "DATE": "date_add(DATE'1970-01-01', n)", "BOOLEAN": "n % 2 = 0",
        "BIGINT": "n * 10000000000",
    }  # fmt: skip
    columns = [column.strip().split(" ") for column in types.split(",")]
    return ", ".join(
        f"{made.get(kind, f'CAST(n AS {kind})')} AS {name}"
        if kind != "STRING" or name == "k"
        else f"concat(t, '{name}') AS {name}"
        for name, kind in columns
    )


def test_partitions_and_what_others_wrote(spark: SparkSession, tmp_path: Path) -> None:
    one = keyed(tmp_path, "name,id", bucket=1, partition_keys="name")
    put(one, spark.createDataFrame([(1, "x", 1), (2, "y", 1)], DDL))
    schema = pa.schema([SCHEMA.field("id"), pa.field("name", pa.string(), nullable=False),
                        SCHEMA.field("v")])  # fmt: skip
    stranger(tmp_path, [{"id": 1, "name": "x", "v": 9}, {"id": 3, "name": "x", "v": 1}], schema)
    put(one, spark.createDataFrame([(1, "x", 5), (3, "x", 5), (1, "y", 5)], DDL), 2)
    assert sorted(found(tmp_path)) == [(1, "x", 9), (1, "y", 5), (2, "y", 1), (3, "x", 5)]


def test_a_key_may_not_be_null(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, "x", 1), (None, "y", 1)], DDL)
    with pytest.raises(UserError, match="id may not be null in the table, and 1 rows"):
        put(keyed(tmp_path), frame)
    assert not any((folder(tmp_path) / "_holdfast").iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"write_props": {"bucket": "2"}}, "needs sequence.field, a column that grows"),
        ({"write_props": {"bucket": "2", "sequence.field": "nope"}}, "nope, which is no column"),
        ({"write_props": {"sequence.field": "v"}}, "needs bucket, the number of buckets"),
        ({"changelog-producer": "lookup"}, "no changelog is written with the rows"),
        ({"deletion-vectors.enabled": "true"}, "until another engine compacts"),
        ({"merge-engine": "partial-update"}, "for each key the last row counts"),
        ({"partition_keys": "name"}, "must have the partition columns in it, and has not name"),
        ({"partition_keys": "id"}, "each partition would have one row"),
    ],
)
def test_tables_that_cannot_be_kept_right_are_refused(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    given = {"write_props": {"bucket": "2", "sequence.field": "v"}, "primary_keys": "id"}
    known = ("write_props", "partition_keys")
    named = {k: v for k, v in options.items() if k in known}
    props = {**given["write_props"], **{k: v for k, v in options.items() if k not in known}}  # type: ignore[dict-item]
    one = sink(tmp_path, **{**given, "write_props": props, **named})
    with pytest.raises(UserError, match=said):
        one.prepare([Table(TablePath.parse(PLACE), COLUMNS)])
