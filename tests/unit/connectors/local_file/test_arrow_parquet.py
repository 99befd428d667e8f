"""Arrow reads a Parquet file as Spark does, or leaves it to Spark: the two against each other."""

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import NotArrowReadable
from holdfast.connect.rows import Rows
from holdfast.connectors.files.formats.parquet import ParquetReader, parquet_batches
from holdfast.connectors.files.reading import read_files
from holdfast.connectors.files.source_options import FileTable
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.types import parse_type

pytestmark = pytest.mark.spark

Make = Callable[..., Any]
Given = tuple[Any, list[Any]]

DAYS = [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31), None]
MOMENTS = [
    dt.datetime(2024, 2, 29, 10, 11, 12, 123456), dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10),
    dt.datetime(1883, 11, 18, 12), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None,
]  # fmt: skip
SECONDS = [m and m.replace(microsecond=0) for m in MOMENTS]
RECENT = [m for m in SECONDS if m is None or m.year == 2024]
PRICES = [Decimal("1.25"), Decimal("-999.99"), Decimal("0.00"), None]

PLAIN: dict[str, Given] = {
    "bool": (pa.bool_(), [True, False, None]),
    "int8": (pa.int8(), [-128, 127, None]),
    "int16": (pa.int16(), [-32768, 32767, None]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float32": (pa.float32(), [0.1, -0.0, float("nan"), float("inf"), None]),
    "float64": (pa.float64(), [0.1, -0.0, float("nan"), float("-inf"), None]),
    "decimal of 5": (pa.decimal128(5, 2), PRICES),
    "decimal of 18": (pa.decimal128(18, 2), PRICES),
    "decimal of 38": (pa.decimal128(38, 10), [Decimal(10) ** 27, None]),
    "string": (pa.string(), ["", " a ", "é\n", "x" * 100_000, None]),
    "date": (pa.date32(), DAYS),
    "timestamp ms": (pa.timestamp("ms"), SECONDS),
    "timestamp us": (pa.timestamp("us"), MOMENTS),
}
"""What Arrow must read itself."""

OTHER: dict[str, Given] = {
    "uint8": (pa.uint8(), [0, 255, None]),
    "uint16": (pa.uint16(), [0, 65535]),
    "uint32": (pa.uint32(), [0, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**63 - 1]),
    "float16": (pa.float16(), [1.5, None]),
    "wide decimal": (pa.decimal256(50, 2), PRICES),
    "narrow decimal256": (pa.decimal256(20, 2), PRICES),
    "decimal32": (pa.decimal32(5, 2), PRICES),
    "decimal64": (pa.decimal64(15, 2), PRICES),
    "date64": (pa.date64(), DAYS),
    "timestamp s": (pa.timestamp("s"), SECONDS),
    "timestamp ns": (pa.timestamp("ns"), RECENT),
    "instant us": (pa.timestamp("us", "UTC"), MOMENTS),
    "instant ms": (pa.timestamp("ms", "UTC"), SECONDS),
    "instant ns": (pa.timestamp("ns", "UTC"), RECENT),
    "instant in New York": (pa.timestamp("us", "America/New_York"), MOMENTS[:1]),
    "instant at an offset": (pa.timestamp("ms", "+05:30"), SECONDS[:1]),
    "binary": (pa.binary(), [b"a\xff", b"", None]),
    "large binary": (pa.large_binary(), [b"a"]),
    "fixed binary": (pa.binary(3), [b"abc", None]),
    "large string": (pa.large_string(), ["é", None]),
    "string view": (pa.string_view(), ["é", None]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a", None]),
    "numbers in a dictionary": (pa.dictionary(pa.int8(), pa.int64()), [5, 5, None]),
    "null": (pa.null(), [None, None]),
    "list": (pa.list_(pa.int32()), [[1, 2], [], None]),
    "list of one": (pa.list_(pa.field("element", pa.int32(), nullable=False)), [[1]]),
    "struct": (pa.struct([("a", pa.int32())]), [{"a": 1}, None]),
    "strict struct": (pa.struct([pa.field("a", pa.int32(), nullable=False)]), [{"a": 1}, None]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None]),
    "time ms": (pa.time32("ms"), [dt.time(10, 11, 12), None]),
    "time us": (pa.time64("us"), [dt.time(10, 11, 12), None]),
    "time ns": (pa.time64("ns"), [dt.time(10, 11, 12), None]),
    "duration": (pa.duration("us"), [dt.timedelta(seconds=5), None]),
    "short duration": (pa.duration("s"), [dt.timedelta(seconds=5), None]),
    "uuid": (pa.uuid(), [b"0123456789abcdef", None]),
    "json": (pa.json_(), ['{"a": 1}', None]),
    "bool8": (pa.bool8(), [1, 0, None]),
}
"""What Arrow may read, or leave to Spark."""

PLAIN_SPARKS = (
    "true v", "1Y v", "1S v", "1 v", "1L v", "1.5F v", "1.5D v", "1.25BD v", "'x' v",
    "CAST(1.25 AS decimal(5,2)) v", "CAST(1.25 AS decimal(18,2)) v", "DATE'1582-10-10' v",
    "CAST(1.25 AS decimal(38,2)) v", "TIMESTAMP_NTZ'2024-01-05 10:11:12.123456' v",
    "CAST(NULL AS int) v", "CAST('x' AS varchar(5)) v",
)  # fmt: skip
SPARKS = (
    *PLAIN_SPARKS, "X'FF' v",
    "TIMESTAMP_LTZ'2024-01-05 10:11:12.123456' v", "TIMESTAMP_LTZ'0001-01-01 00:00:00' v",
    "INTERVAL '1-2' YEAR TO MONTH v", "INTERVAL '1 02:03:04' DAY TO SECOND v", "array(1) v",
    "map('a', 1) v", "named_struct('a', 1) v", "TIME'10:11:12' v",
    "'x' COLLATE UTF8_LCASE v", "parse_json('1') v", "1 `a.b`",
    "1 `a b`", "1 `ä`", "1 v, 2 w, 'x' u",
)  # fmt: skip


@pytest.fixture
def table(source: Make, tmp_path: Path) -> FileTable:
    """A table of Parquet files, as they are."""
    made: FileTable = source(path=str(tmp_path), file_format_type="parquet").options
    return made


def cells(rows: Any) -> list[tuple[str, ...]]:
    """Return rows as texts that tell NaN, -0.0, and how each value is typed."""
    columns = [
        [f"{field.type} {value!r}" for value in column.to_pylist()]
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def by_arrow(
    spark: SparkSession, table: FileTable, files: list[str]
) -> tuple[tuple[Column, ...], list[tuple[str, ...]]] | None:
    """Return columns and rows as Arrow reads them; None if it leaves them to Spark."""
    batches = parquet_batches(spark, table, files)
    if batches is None:
        return None
    try:
        read = [batch for split in batches.splits for batch in batches.read(split)]
    except NotArrowReadable:
        return None
    return batches.columns, [row for batch in read for row in cells(batch)]


def by_spark(
    spark: SparkSession, table: FileTable, files: list[str]
) -> tuple[tuple[Column, ...], list[tuple[str, ...]]] | None:
    """Return columns and rows as Spark reads them; None if it cannot."""
    try:
        frame = read_files(spark, table, files, [], "Source[0]-LocalFile", [])
        return Rows.of(table.table(), frame).table.columns, cells(frame.coalesce(1).toArrow())
    except (PySparkException, Py4JError, UserError):
        return None


@pytest.mark.parametrize("name", [*PLAIN, *OTHER])
def test_a_column_is_read_as_spark_reads_it_or_not_at_all(
    spark: SparkSession, table: FileTable, tmp_path: Path, name: str
) -> None:
    kind, values = {**PLAIN, **OTHER}[name]
    file = str(tmp_path / "a.parquet")
    numbers = pa.array(range(len(values)), pa.int32())
    for nullable in (True, False) if name != "null" else (True,):
        kept = values if nullable else [v for v in values if v is not None]
        schema = pa.schema([pa.field("n", pa.int32()), pa.field("v", kind, nullable=nullable)])
        content: Any = [numbers.slice(0, len(kept)), pa.array(kept, kind)]
        for integers in (True, False):
            whole = pa.table(content, schema=schema)
            pq.write_table(whole, file, store_schema=integers, store_decimal_as_integer=integers)
            ours = by_arrow(spark, table, [file])
            assert ours or name in OTHER
            assert ours is None or ours == by_spark(spark, table, [file])


STAMPS = ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"]


@pytest.mark.parametrize(
    ("columns", "stamp"), [(c, s) for c in SPARKS for s in (STAMPS if "STAMP" in c else STAMPS[:1])]
)
def test_what_spark_has_written_is_read_as_spark_reads_it_or_not_at_all(
    spark: SparkSession, table: FileTable, tmp_path: Path, columns: str, stamp: str
) -> None:
    key = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(key)
    spark.conf.set(key, stamp)
    try:
        spark.sql(f"SELECT {columns}").write.parquet(str(tmp_path / "out"))
    finally:
        spark.conf.set(key, str(before))
    files = [str(f) for f in (tmp_path / "out").glob("*.parquet")]
    ours = by_arrow(spark, table, files)
    assert ours is None or ours == by_spark(spark, table, files)


def test_plain_columns_that_spark_has_written_are_read_by_arrow(
    spark: SparkSession, table: FileTable, tmp_path: Path
) -> None:
    made = ", ".join(f"{c}{n}" for n, c in enumerate(PLAIN_SPARKS))
    spark.sql(f"SELECT {made} FROM range(3)").write.parquet(str(tmp_path / "out"))
    files = sorted(str(f) for f in (tmp_path / "out").glob("*.parquet"))
    ours = by_arrow(spark, table, files)
    assert ours is not None and len(ours[0]) == len(PLAIN_SPARKS)
    assert ours == by_spark(spark, table, files)


@pytest.mark.parametrize("options", [{"use_deprecated_int96_timestamps": True}, {"version": "1.0"}])
def test_old_ways_to_store_times_are_left_to_spark_or_read_alike(
    spark: SparkSession, table: FileTable, tmp_path: Path, options: dict[str, Any]
) -> None:
    file = str(tmp_path / "a.parquet")
    times = pa.array(RECENT, pa.timestamp("ns"))
    pq.write_table(pa.table({"v": times}), file, **options)
    ours = by_arrow(spark, table, [file])
    assert ours is None or ours == by_spark(spark, table, [file])


@pytest.mark.parametrize("key", ["version", "legacyDateTime", "legacyINT96"])
def test_dates_of_old_sparks_are_left_to_spark(
    spark: SparkSession, table: FileTable, tmp_path: Path, key: str
) -> None:
    said = {"version": "2.4.8"} if key == "version" else {"version": "3.5.0", key: ""}
    stored = {f"org.apache.spark.{k}": v for k, v in said.items()}
    file = str(tmp_path / "a.parquet")
    for name, kept in (("n", True), ("d", False)):
        column = pa.array([1], pa.int32()) if name == "n" else pa.array(DAYS, pa.date32())
        pq.write_table(pa.table({name: column}).replace_schema_metadata(stored), file)
        assert (by_arrow(spark, table, [file]) is not None) is kept


@pytest.mark.parametrize(
    "second",
    [
        {"a": pa.array([2], pa.int32())},
        {"a": pa.array([2], pa.int64()), "b": pa.array(["y"])},
        {"b": pa.array(["y"]), "a": pa.array([2], pa.int32())},
        {"A": pa.array([2], pa.int32()), "b": pa.array(["y"])},
        {"a": pa.array([2], pa.int32()), "b": pa.array(["y"]), "c": pa.array([1])},
        {"a": pa.array([2], pa.int32()), "b": pa.array([b"y"])},
        {"a": pa.array([2], pa.uint32()), "b": pa.array(["y"])},
    ],
    ids=["fewer", "wider", "order", "case", "more", "bytes", "unsigned"],
)
def test_a_second_file_with_other_columns_makes_the_slice_not_plain(
    spark: SparkSession, table: FileTable, tmp_path: Path, second: dict[str, Any]
) -> None:
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array(["x"])}), files[0])
    pq.write_table(pa.table(second), files[1])
    assert parquet_batches(spark, table, files) is None
    batches = parquet_batches(spark, table, files[:1])
    assert batches is not None
    with pytest.raises(NotArrowReadable, match=r"b\.parquet has other columns"):
        list(batches.read([[files[1], 0, Path(files[1]).stat().st_size]]))


def test_names_that_spark_cannot_tell_apart_are_left_to_spark(
    spark: SparkSession, table: FileTable, tmp_path: Path
) -> None:
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1], "A": [2]}), file)
    assert parquet_batches(spark, table, [file]) is None


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 no footer PAR1", b"id,v\n1,a\n"])
def test_a_file_that_is_no_parquet_is_left_to_spark(
    spark: SparkSession, table: FileTable, tmp_path: Path, content: bytes
) -> None:
    good, bad = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": [1]}), good)
    bad.write_bytes(content)
    assert parquet_batches(spark, table, [str(bad)]) is None
    assert parquet_batches(spark, table, [str(good), str(bad)]) is None
    batches = parquet_batches(spark, table, [str(good)])
    assert batches is not None
    with pytest.raises(NotArrowReadable):
        list(batches.read([[str(bad), 0, max(1, len(content))]]))


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.lists(st.integers(1, 4000), max_size=8),
    st.booleans(),
)
def test_each_row_group_is_read_once_whatever_the_splits(
    tmp_path_factory: pytest.TempPathFactory, groups: list[int], cuts: list[int], coded: bool
) -> None:
    file = tmp_path_factory.mktemp("groups") / "a.parquet"
    total = sum(groups)
    rows = pa.table({"n": list(range(total)), "s": [f"row {n}" for n in range(total)]})
    columns: Any = {"n": pa.int64(), "s": pa.string()}
    schema = pa.schema(columns)
    with pq.ParquetWriter(file, schema, use_dictionary=coded) as writer:
        at = 0
        for count in groups:
            writer.write_table(rows.slice(at, count).cast(schema))
            at += count
    read = ParquetReader((Column("n", parse_type("bigint")), Column("s", parse_type("string"))))
    found: list[int] = []
    for first, end in division(file.stat().st_size, cuts):
        for batch in read([[str(file), first, end]]):
            found += batch.column(0).to_pylist()  # type: ignore[arg-type]
    assert found == list(range(total))


def division(size: int, cuts: Iterable[int]) -> list[tuple[int, int]]:
    """Return a file of this size as byte ranges between these places."""
    return list(pairwise([0, *sorted({cut for cut in cuts if 0 < cut < size}), size]))
