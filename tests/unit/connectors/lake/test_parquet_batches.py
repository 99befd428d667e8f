"""Parquet files that Spark's tasks write from Arrow batches."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import MALFORMED, ArrowRows, NotArrowReadable
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.parquet import _limited, write_batches
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.model.table import Column
from holdfast.model.types import parse_type

pytestmark = pytest.mark.spark

COLUMNS = {"id": "bigint", "small": "decimal(5,2)", "large": "decimal(18,2)", "name": "string"}

Read = Callable[[Any], Iterator[pa.RecordBatch]]


def some_rows(before: Callable[[Any], None] | None = None) -> Read:
    """Return a reader of splits [first, end], in batches of 40 rows.

    A function inside another: Spark's workers cannot import a test, and get it by value.
    """

    def read(split: Any) -> Iterator[pa.RecordBatch]:
        first, end = split
        for at in range(first, end, 40):
            ids = list(range(at, min(at + 40, end)))
            prices = [Decimal(n) / 4 for n in ids]
            names = [f"row {n}" if n % 3 else None for n in ids]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(ids, pa.int64()),
                    pa.array(prices, pa.decimal128(5, 2)),
                    pa.array(prices, pa.decimal128(18, 2)),
                    pa.array(names, pa.string()),
                ],
                ["id", "small", "large", "name"],
            )
            if before:
                before(split)

    return read


@pytest.fixture
def batches(spark: SparkSession) -> Callable[..., ArrowRows]:
    """Make batches of these splits."""
    columns = tuple(Column(name, parse_type(kind)) for name, kind in COLUMNS.items())

    def make(*splits: Any, read: Read | None = None) -> ArrowRows:
        return ArrowRows(spark, columns, splits, read or some_rows(), 1000)

    return make


Make = Callable[..., ArrowRows]


def ids_in(folder: Path, names: Any) -> list[int]:
    """Return the ids in these files, in order."""
    tables: list[Any] = [pq.read_table(folder / name) for name in names]
    return [n for table in tables for n in table["id"].to_pylist()]


def test_all_rows_are_in_the_files_that_are_reported_and_are_counted(
    batches: Make, tmp_path: Path
) -> None:
    given = batches([0, 100], [100, 100], [100, 130])
    made = write_batches(given, Location(str(tmp_path / "out")), codec="snappy")
    assert sorted(made) == sorted(f.name for f in (tmp_path / "out").iterdir())
    assert list(made.values()) == [100, 30], "a split without rows makes no file"
    assert ids_in(tmp_path / "out", made) == list(range(130))
    assert given.moved.read == given.moved.written == 130


@pytest.mark.parametrize("rows_max", [1, 7, 40, 100, 101])
def test_files_are_cut_at_exactly_so_many_rows(
    batches: Make, tmp_path: Path, rows_max: int
) -> None:
    made = write_batches(
        batches([0, 100], [100, 200]), Location(str(tmp_path)), codec="snappy", rows_max=rows_max
    )
    full, rest = divmod(100, rows_max)
    assert list(made.values()) == ([rows_max] * full + ([rest] if rest else [])) * 2
    assert {n: pq.read_metadata(tmp_path / n).num_rows for n in made} == made
    assert ids_in(tmp_path, made) == list(range(200))


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(0, 12))
def test_batches_of_any_size_are_cut_into_runs_of_so_many_rows(
    sizes: list[int], rows_max: int
) -> None:
    whole = pa.RecordBatch.from_arrays([pa.array(range(sum(sizes)), pa.int64())], ["n"])
    given, at = [], 0
    for size in sizes:
        given.append(whole.slice(at, size))
        at += size
    runs = [[n for b in run for n in b["n"].to_pylist()] for run in _limited(iter(given), rows_max)]
    assert [n for run in runs for n in run] == list(range(sum(sizes)))
    assert all(runs), "no run is empty"
    if rows_max:
        assert all(len(run) == rows_max for run in runs[:-1])
        assert not runs or len(runs[-1]) <= rows_max
    else:
        assert len(runs) <= 1


def test_columns_have_the_numbers_that_a_table_gives_them(batches: Make, tmp_path: Path) -> None:
    ids = {"id": 3, "small": 11, "large": 4, "name": 1}
    (name,) = write_batches(
        batches([0, 5]), Location(str(tmp_path)), codec="zstd", field_ids=ids
    )  # fmt: skip
    schema = pq.ParquetFile(tmp_path / name).schema_arrow
    found = {f.name: int((f.metadata or {})[b"PARQUET:field_id"]) for f in schema}
    assert found == ids


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4_raw", "uncompressed"])
def test_spark_and_arrow_read_every_codec(
    spark: SparkSession, batches: Make, tmp_path: Path, codec: str
) -> None:
    made = write_batches(batches([0, 90], [90, 100]), Location(str(tmp_path)), codec=codec)
    assert ids_in(tmp_path, made) == list(range(100))
    read = spark.read.parquet(*(str(tmp_path / name) for name in made))
    assert read.dtypes == list(COLUMNS.items())
    rows = sorted(tuple(row) for row in read.collect())
    nothing, quarter = Decimal("0.00"), Decimal("0.25")
    assert rows[:2] == [(0, nothing, nothing, None), (1, quarter, quarter, "row 1")]
    assert [row[0] for row in rows] == list(range(100))


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4_raw", "uncompressed"])
def test_columns_are_stored_as_spark_stores_them(
    spark: SparkSession, batches: Make, tmp_path: Path, codec: str
) -> None:
    (name,) = write_batches(batches([0, 5]), Location(str(tmp_path / "a")), codec=codec)
    frame = spark.createDataFrame([], ", ".join(f"{n} {k}" for n, k in COLUMNS.items()))
    row = frame.union(spark.sql("SELECT 1L, 1BD, 1BD, 'x'")).coalesce(1)
    row.write.option("compression", codec).parquet(str(tmp_path / "b"))
    (sparks,) = (tmp_path / "b").glob("*.parquet")
    ours, theirs = pq.read_metadata(tmp_path / "a" / name), pq.read_metadata(sparks)
    assert [stored(ours, n) for n in range(4)] == [stored(theirs, n) for n in range(4)]
    assert [stored(ours, n)[1] for n in range(3)] == ["INT64", "INT32", "INT64"]


def stored(footer: Any, number: int) -> tuple[str, ...]:
    """Return how a file has a column."""
    column, chunk = footer.schema.column(number), footer.row_group(0).column(number)
    return (
        column.name, column.physical_type, column.converted_type, column.logical_type.to_json(),
        chunk.compression, str(column.max_definition_level),
    )  # fmt: skip


def test_files_of_a_task_that_failed_are_not_reported_and_its_rows_not_counted(
    batches: Make, tmp_path: Path
) -> None:
    def fail_once(split: Any) -> None:
        from pyspark import TaskContext

        task = TaskContext.get()
        if split[0] == 100 and task and task.attemptNumber() == 0:
            raise OSError("the disk was busy")

    given = batches([0, 100], [100, 200], read=some_rows(fail_once))
    made = write_batches(given, Location(str(tmp_path)), codec="snappy", rows_max=30)
    assert sum(made.values()) == given.moved.read == 200
    assert ids_in(tmp_path, made) == list(range(200))
    assert len({f.name for f in tmp_path.iterdir()} - set(made)) >= 1, "the first try had a file"


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (UserError("The table is full. Empty it."), UserError, "spark.task"),
        (Unavailable("The table is locked."), Unavailable, "spark.task"),
        (NotArrowReadable("a.csv has quotes"), UserError, MALFORMED),
    ],
)
def test_what_a_task_raises_comes_out(
    batches: Make, tmp_path: Path, raised: Exception, kind: type[HoldfastError], code: str
) -> None:
    def fail(_: Any) -> None:
        raise raised

    with pytest.raises(kind, match=str(raised)) as caught:
        write_batches(
            batches([0, 9], read=some_rows(fail)), Location(str(tmp_path)), codec="snappy"
        )  # fmt: skip
    assert caught.value.code == code


def test_one_task_writes_joined_rows_in_order(batches: Make, tmp_path: Path) -> None:
    joined = batches([0, 50], [50, 60], [60, 120]).joined()
    made = write_batches(joined, Location(str(tmp_path)), codec="snappy")
    assert list(made.values()) == [120]
    assert ids_in(tmp_path, made) == list(range(120))


def test_columns_can_be_named_and_ordered_otherwise(batches: Make, tmp_path: Path) -> None:
    named = batches([0, 3]).named({"what": "name", "number": "id", "twice": "id"})
    assert [(c.name, str(c.type)) for c in named.columns] == [
        ("what", "string"), ("number", "bigint"), ("twice", "bigint"),
    ]  # fmt: skip
    (name,) = write_batches(named, Location(str(tmp_path)), codec="snappy")
    assert pq.read_table(tmp_path / name).to_pylist() == [
        {"what": None, "number": 0, "twice": 0},
        {"what": "row 1", "number": 1, "twice": 1},
        {"what": "row 2", "number": 2, "twice": 2},
    ]


def test_a_frame_of_batches_has_the_same_rows(batches: Make) -> None:
    given = batches([0, 50], [50, 120])
    frame = given.frame()
    assert frame.dtypes == list(COLUMNS.items())
    assert [row.id for row in frame.collect()] == list(range(120))
    assert (given.moved.read, given.moved.written) == (120, 0)
