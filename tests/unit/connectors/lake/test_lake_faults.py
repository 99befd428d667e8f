"""Faults that independent readers have found in our lake tables: one test for each, by its name."""

import datetime as dt
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fastavro
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.types import StringType
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.rows import Rows
from holdfast.connectors.iceberg.staging import numbered_footer
from holdfast.connectors.iceberg.thrift import list_of, split_footer
from holdfast.errors import UserError
from tests.unit.connectors.lake.lake_tables import (
    SINKS,
    adds,
    delta,
    iceberg,
    opened,
    paimon,
    partitioned,
    put,
    table,
)

pytestmark = pytest.mark.spark


def with_nan(spark: SparkSession) -> Rows:
    """Return rows that tasks carry as Arrow; one has no number, and the others are below 2."""

    def read(_: Any) -> Iterator[pa.RecordBatch]:
        values = [1.0, math.nan, 1.5]
        yield pa.RecordBatch.from_arrays(
            [pa.array([1, 2, 3], pa.int64()), pa.array(values, pa.float64())], ["id", "n"]
        )

    columns = table(id="bigint", n="double").columns
    batches = ArrowRows(spark, columns, (0,), read, 100)
    return Rows(table(id="bigint", n="double"), batches.frame, batches)


def test_l01_an_instant_in_a_delta_partition_has_its_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(
        "SELECT 1L AS id, TIMESTAMP'2024-02-29 12:34:56.123456' AS at UNION ALL"
        " SELECT 2L, NULL UNION ALL SELECT 3L, TIMESTAMP'0001-01-01 00:00:00'"
    )
    put(delta(tmp_path, partition_keys=["at"]), frame)
    said = {str(a["partitionValues"]["at"]) for a in adds(tmp_path)}
    assert said == {"2024-02-29T12:34:56.123456Z", "None", "0001-01-01T00:00:00.000000Z"}
    found = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    at = dt.datetime(2024, 2, 29, 12, 34, 56, 123456, tzinfo=dt.UTC)
    first = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert {r["id"]: r["at"] for r in found} == {1: at, 2: None, 3: first}


NESTED = (
    "SELECT 1L AS id, 'k' AS part, array(named_struct('a', 1, 'm', map('x', array(2L)))) AS many,"
    " map('k', named_struct('b', 5)) AS pairs, named_struct('deep', array('z')) AS box"
)


@pytest.mark.parametrize("keys", ["", "part"], ids=["plain", "partitioned"])
def test_l02_iceberg_knows_fields_in_lists_and_maps_by_number(
    spark: SparkSession, tmp_path: Path, keys: str
) -> None:
    put(iceberg(tmp_path, partition_keys=keys), spark.sql(NESTED))
    (file,) = (tmp_path / "shop" / "orders" / "data").rglob("*.parquet")
    there = {f"{n}": opened(tmp_path).schema().find_column_name(n)
             for n in opened(tmp_path).schema().field_ids}  # fmt: skip
    assert numbers(pq.read_schema(file)) == set(there), "every field has its number"
    catalog = iceberg(tmp_path)._catalog
    with catalog.load_table(("shop", "orders")).update_schema() as change:
        change.delete_column("many")
    with catalog.load_table(("shop", "orders")).update_schema() as change:
        change.add_column("many", StringType())
    (row,) = opened(tmp_path).scan().to_arrow().to_pylist()
    assert row["many"] is None, "what was dropped does not come back under its old name"
    assert (row["box"], row["pairs"]) == ({"deep": ["z"]}, [("k", {"b": 5})])
    assert "schema.name-mapping.default" not in opened(tmp_path).properties


def numbers(fields: Any) -> set[str]:
    """Return the field ids that Arrow has read from a file, of fields and of those inside."""
    found = set()
    for field in fields:
        found.add((field.metadata or {}).get(b"PARQUET:field_id", b"none").decode())
        kind = field.type
        if pa.types.is_struct(kind):
            found |= numbers([kind.field(n) for n in range(kind.num_fields)])
        elif pa.types.is_map(kind):
            found |= numbers([kind.key_field, kind.item_field])
        elif pa.types.is_list(kind):
            found |= numbers([kind.value_field])
    return found


def test_l01_values_of_every_type_have_their_text(spark: SparkSession, tmp_path: Path) -> None:
    keys = {
        "f": "true", "b": "-1Y", "i": "7", "d": "CAST(0.0000001 AS DECIMAL(20,10))", "n": "1.5D",
        "day": "DATE'0001-02-03'", "local": "TIMESTAMP_NTZ'0002-01-01 01:02:03.5'",
    }  # fmt: skip
    columns = ", ".join(f"{sql} AS {name}" for name, sql in keys.items())
    put(delta(tmp_path, partition_keys=list(keys)), spark.sql(f"SELECT 1L AS id, {columns}"))
    (file,) = adds(tmp_path)
    assert file["partitionValues"] == {
        "f": "true", "b": "-1", "i": "7", "d": "0.0000001000", "n": "1.5", "day": "0001-02-03",
        "local": "0002-01-01 01:02:03.500000",
    }  # fmt: skip
    (row,) = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    assert row["local"] == dt.datetime(2, 1, 1, 1, 2, 3, 500000)


def test_l02_only_the_footer_is_changed_and_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    put(iceberg(tmp_path), spark.sql(NESTED).unionAll(spark.sql(NESTED)).coalesce(1))
    (file,) = (tmp_path / "shop" / "orders" / "data").rglob("*.parquet")
    data = file.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    before, elements, after = split_footer(footer)
    assert before + list_of(elements) + after == footer, "read and written, a footer is the same"
    assert numbered_footer(footer, opened(tmp_path).schema()) == footer, "numbers are set once"
    assert pq.ParquetFile(file).metadata.num_rows == 2
    (entry,) = opened(tmp_path).inspect.files().to_pylist()
    assert entry["file_size_in_bytes"] == len(data)


@pytest.mark.parametrize("way", ["arrow", "spark"])
def test_l03_a_column_with_nan_has_no_bounds(spark: SparkSession, tmp_path: Path, way: str) -> None:
    given = with_nan(spark)
    rows = given if way == "arrow" else given.with_frame(given.frame)
    for one in (delta(tmp_path / "d"), iceberg(tmp_path / "i"), paimon(tmp_path / "p")):
        put(one, rows)
    (file,) = adds(tmp_path / "d")
    stats = json.loads(file["stats"])
    assert stats["maxValues"] == {"id": 3}
    assert stats["nullCount"] == {"id": 0, "n": 0}
    (entry,) = opened(tmp_path / "i").inspect.files().to_pylist()
    assert entry["readable_metrics"]["n"]["upper_bound"] is None
    assert entry["readable_metrics"]["id"]["upper_bound"] == 3
    assert bounded_columns(tmp_path / "p" / "shop.db" / "orders" / "manifest") == ["id"]


def test_l03_no_statistics_tell_less_than_a_column_with_nan_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(delta(tmp_path), with_nan(spark))
    path = tmp_path / "delta" / adds(tmp_path)[0]["path"]
    found = spark.read.parquet(str(path))
    # Spark skips row groups by what the file itself says, and to it NaN is above all numbers.
    assert [r["id"] for r in found.filter("n > 1.7").collect()] == [2]
    assert [r["id"] for r in found.filter("n = double('NaN')").collect()] == [2]


def bounded_columns(manifests: Path) -> list[str]:
    """Return the columns that the only manifest of a Paimon table has bounds of."""
    (name,) = manifests.glob("manifest-????????-*-0")
    with name.open("rb") as file:
        (entry,) = fastavro.reader(file)
    assert isinstance(entry, dict)
    found: list[str] = entry["_FILE"]["_VALUE_STATS_COLS"]
    return found


def test_l04_bounds_of_years_before_1000_have_four_digits(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(delta(tmp_path), spark.sql("SELECT 1L AS id, TIMESTAMP'0001-02-03 04:05:06.007' AS at"))
    (file,) = adds(tmp_path)
    assert json.loads(file["stats"])["minValues"]["at"] == "0001-02-03T04:05:06.007Z"
    data = DeltaTable(tmp_path / "delta").to_pyarrow_dataset()
    early = ds.field("at") < pa.scalar(
        dt.datetime(2, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", "UTC")
    )
    assert data.to_table(filter=early)["id"].to_pylist() == [1]


def test_l05_a_text_like_sparks_null_stays_a_text(spark: SparkSession, tmp_path: Path) -> None:
    values = [(1, "__HIVE_DEFAULT_PARTITION__"), (2, None), (3, "x"), (4, "null")]
    frame = spark.createDataFrame(values, "id bigint, city string").coalesce(1)
    for kind in SINKS:
        put(partitioned(kind, tmp_path / kind, "city"), frame)
    found = DeltaTable(tmp_path / "delta" / "delta").to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["city"]) for r in found) == values
    found = opened(tmp_path / "iceberg").scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["city"]) for r in found) == values
    said = {
        r["partition"]["city"] for r in opened(tmp_path / "iceberg").inspect.files().to_pylist()
    }
    assert said == {city for _, city in values}


def test_l05_an_empty_text_that_delta_would_make_null_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="partitioned by city, and a value of it is the empty text"):
        put(delta(tmp_path, partition_keys=["city"]), spark.sql("SELECT 1L AS id, '' AS city"))


def test_l07_the_last_moment_of_9999_is_written(spark: SparkSession, tmp_path: Path) -> None:
    for_ever = "TIMESTAMP'9999-12-31 23:59:59.999999'"
    frame = spark.sql(f"SELECT 1L AS id, {for_ever} AS at")
    put(delta(tmp_path), frame)
    (file,) = adds(tmp_path)
    assert json.loads(file["stats"])["minValues"] == {"id": 1}
    (row,) = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    assert row["at"] == dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)


@pytest.mark.parametrize("kind", SINKS)
def test_l07_days_and_moments_beyond_9999_are_written(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    make = {"delta": delta, "iceberg": iceberg, "paimon": paimon}[kind]
    frame = spark.sql(
        "SELECT 1L AS id, date_from_unix_date(10000000) AS d, timestamp_micros(999999999999999999)"
        " AS at"
    )
    assert put(make(tmp_path), frame) == 1
    with pytest.raises(
        UserError, match=r"a value of it is in no year from 1 to 9999: \+29349-01-26"
    ):
        put(partitioned(kind, tmp_path / "p", "d"), frame)


def test_l08_a_delta_folder_does_not_look_like_a_column_it_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    values = [(1, "a b/c=%"), (2, "x"), (3, "y" * 215), (4, "a/b")]
    frame = spark.createDataFrame(values, "id bigint, city string").coalesce(1)
    put(delta(tmp_path, partition_keys=["city"]), frame)
    folders = {unquote(a["path"]).rpartition("/")[0] for a in adds(tmp_path)}
    assert folders >= {"city=x", "city=a b%2Fc%3D%25", "city=a%2Fb", f"city={'y' * 215}"}
    assert all((tmp_path / "delta" / folder).is_dir() for folder in folders)
    found = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["city"]) for r in found) == values
