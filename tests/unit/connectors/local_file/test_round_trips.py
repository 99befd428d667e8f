"""What the sink writes, the source reads back: every format, nested values included."""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.connect.source import Budget, Slice
from holdfast.connectors.files.source import LocalFileSource
from holdfast.connectors.files.writer import LocalFileSink

pytestmark = pytest.mark.spark

XML = {"file_format_type": "xml", "field_delimiter": ";"}
STAGING = Staging("7", "p1t0", 1, 0)

SCALARS = {
    "c_string": "string",
    "c_boolean": "boolean",
    "c_tinyint": "tinyint",
    "c_int": "int",
    "c_bigint": "bigint",
    "c_float": "float",
    "c_double": "double",
    "c_decimal": "decimal(10, 2)",
    "c_bytes": "bytes",
    "c_date": "date",
    "c_time": "time",
    "c_timestamp": "timestamp",
}
NESTED = {
    "c_map": "map<string, int>",
    "c_array": "array<int>",
    "c_row": {"a": "int", "b": "string"},
}
FIELDS = SCALARS | NESTED
ROW = (
    "héllo", True, 7, 42, 7084913402530365, 1.5, 2.25, Decimal("12.34"), b"raw",
    date(2024, 1, 31), time(16, 0, 48), datetime(2024, 1, 31, 16, 0, 48),
    {"k": 1}, [1, 2, 3], (5, "five"),
)  # fmt: skip
DDL = (
    "c_string string, c_boolean boolean, c_tinyint tinyint, c_int int, c_bigint bigint,"
    " c_float float, c_double double, c_decimal decimal(10,2), c_bytes binary, c_date date,"
    " c_time time(6), c_timestamp timestamp_ntz, c_map map<string,int>, c_array array<int>,"
    " c_row struct<a:int,b:string>"
)
Make = Callable[..., Any]


def frame(spark: SparkSession) -> DataFrame:
    """Return two rows: one full, one of nulls."""
    return spark.createDataFrame([ROW, (None,) * len(ROW)], DDL).coalesce(1)


def write(sink: LocalFileSink, rows: DataFrame, staging: Staging = STAGING) -> None:
    """Run a sink from start to commit."""
    tables = Tables([Rows.of("db.orders", rows)])
    sink.prepare([r.table for r in tables])
    committables = sink.write(tables, staging)
    sink.commit(CommitId("run-1", staging.number), committables)


def read(source: LocalFileSource, spark: SparkSession) -> DataFrame:
    """Return all rows of a source's first table."""
    planned = source.plan(None, Budget(None, 0.0))
    assert isinstance(planned, Slice)
    return next(iter(source.read(spark, planned.content))).frame


def files(folder: Path) -> list[str]:
    """Return what a reader sees in a folder."""
    return sorted(
        str(p.relative_to(folder))
        for p in folder.rglob("*")
        if p.is_file() and not any(part.startswith((".", "_")) for part in p.parts)
    )


def plain(row: Any) -> tuple[Any, ...]:
    """Return a row with values that compare."""
    return tuple(
        bytes(v) if isinstance(v, bytearray) else tuple(v) if hasattr(v, "asDict") else v
        for v in row
    )


@pytest.mark.parametrize(
    ("options", "ending"),
    [
        ({"file_format_type": "text"}, "_0.txt"),
        ({"file_format_type": "text", "compress_codec": "lzo"}, "_0.lzo.txt"),
        ({"file_format_type": "text", "encoding": "gbk", "field_delimiter": "|"}, "_0.txt"),
        ({"file_format_type": "json"}, "_0.json"),
        ({"file_format_type": "json", "compress_codec": "gzip"}, "_0.gz.json"),
        ({"file_format_type": "csv"}, "_0.csv"),
        ({"file_format_type": "csv", "encoding": "gbk"}, "_0.csv"),
        ({"file_format_type": "parquet", "compress_codec": "zstd"}, "_0.zstd.parquet"),
        ({"file_format_type": "orc"}, "_0.orc"),
        ({"file_format_type": "excel", "field_delimiter": ";"}, "_0.xlsx"),
        (XML | {"xml_use_attr_format": True}, "_0.xml"),
        (XML | {"xml_use_attr_format": False}, "_0.xml"),
    ],
    ids=lambda v: "-".join(str(x) for x in v.values()) if isinstance(v, dict) else "",
)
def test_rows_come_back_as_they_went(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path, options: dict[str, Any],
    ending: str,
) -> None:  # fmt: skip
    rows = frame(spark)
    if options.get("encoding") == "gbk":
        rows = rows.withColumn("c_string", rows.c_string.substr(1, 0)).replace(
            "", "你好", ["c_string"]
        )
    write(sink(path=str(tmp_path), **options), rows)
    assert [name.endswith(ending) for name in files(tmp_path)] == [True]
    reading = dict(options)
    if options["file_format_type"] == "excel":
        reading["skip_header_row_number"] = 1
    if options["file_format_type"] == "xml":
        reading["xml_row_tag"] = "RECORD"
    back = read(source(path=str(tmp_path), schema={"fields": FIELDS}, **reading), spark)
    found = sorted((plain(r) for r in back.collect()), key=lambda r: r[1] is None)
    wanted = plain(rows.collect()[0])
    assert found[0] == wanted
    nothing = {None, "", b""} if options["file_format_type"] == "xml" else {None}
    if options["file_format_type"] != "excel":  # an empty row of a sheet is no row
        assert all(v in nothing or v == [] or v == {} for v in found[1])


def test_binary_files_are_copied_byte_for_byte(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 9 + b"end"
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "cat.bin").write_bytes(content)
    (tmp_path / "in" / "one.txt").write_bytes(b"x")
    rows = read(source(path=str(tmp_path / "in"), file_format_type="binary"), spark)
    assert rows.count() == 4
    target = sink(path=str(tmp_path / "out"), file_format_type="binary")
    write(target, rows)
    write(target, rows, Staging("7", "p1t0", 1, 1))
    assert files(tmp_path / "out") == ["deep/cat.bin", "one.txt"]
    assert (tmp_path / "out" / "deep" / "cat.bin").read_bytes() == content


def test_timestamps_of_old_parquet_files_are_local_times(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path
) -> None:
    rows = spark.sql("SELECT timestamp_ntz'2024-01-31 16:00:48' AS t, 1 AS n")
    old = {"parquet_avro_write_timestamp_as_int96": True}
    write(sink(path=str(tmp_path), file_format_type="parquet", **old), rows)
    back = read(source(path=str(tmp_path), file_format_type="parquet"), spark)
    assert back.collect() == [(datetime(2024, 1, 31, 16, 0, 48), 1)]


def test_partition_folders_and_columns_come_back(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path
) -> None:
    rows = spark.createDataFrame(
        [(1, "a/b", "x"), (2, "..", "y"), (3, None, "z")], "n int, d string, s string"
    )
    options = {"file_format_type": "parquet", "partition_by": ["d"]}
    write(sink(path=str(tmp_path), **options), rows)
    assert sorted(name.split("/")[0] for name in files(tmp_path)) == [
        "d=..", "d=__HIVE_DEFAULT_PARTITION__", "d=a%2Fb",
    ]  # fmt: skip
    back = read(source(path=str(tmp_path), file_format_type="parquet"), spark)
    assert sorted(back.select("n", "s", "d").collect()) == [
        (1, "x", "a/b"),
        (2, "y", ".."),
        (3, "z", None),
    ]


@pytest.mark.parametrize("kind", ["text", "xml"])
def test_a_partition_expression_names_the_folders(
    spark: SparkSession, sink: Make, tmp_path: Path, kind: str
) -> None:
    rows = spark.createDataFrame([(1, "..", 5), (2, "b", 6)], "n int, d string, e int").coalesce(1)
    options = {
        "file_format_type": kind,
        "partition_by": ["d", "e"],
        "partition_dir_expression": "${v0}/${k1}-${v1}",
        "is_partition_field_write_in_file": True,
        "xml_use_attr_format": True,
    }
    write(sink(path=str(tmp_path), **options), rows)
    found = files(tmp_path)
    assert [name.rpartition("/")[0] for name in found] == ["%2E%2E/e-5", "b/e-6"]
    if kind == "text":
        assert (tmp_path / found[1]).read_text() == "2\x01b\x016\n"
