"""How rows are read: what is forgiven, and what ends a job."""

import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.connect.source import Budget, Slice
from holdfast.errors import UserError

pytestmark = pytest.mark.spark

Make = Callable[..., Any]


def rows(spark: SparkSession, source: Any) -> list[tuple[Any, ...]]:
    """Return all rows of a source's first table, read once more with care if need be."""
    planned = source.plan(None, Budget(None, 0.0))
    assert isinstance(planned, Slice)
    frame = next(iter(source.read(spark, planned.content))).frame
    try:
        return [tuple(row) for row in frame.collect()]
    except (PySparkException, Py4JError):
        if not source.read_carefully():
            raise
        return rows(spark, source)


def fields(**kinds: Any) -> dict[str, Any]:
    """Return a schema option."""
    return {"fields": kinds}


def test_text_lines_may_be_short_long_blank_or_dated_in_other_ways(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    lines = "1|a|2024-01-31|2024-01-31 16:00:48\n2|  |2024/1/31|20240131160048|more\n\n3\n"
    (tmp_path / "a.txt").write_text(lines)
    schema = fields(n="int", s="string", d="date", t="timestamp")
    reading = source(path=str(tmp_path), file_format_type="text", delimiter="|", schema=schema)
    day, moment = date(2024, 1, 31), datetime(2024, 1, 31, 16, 0, 48)
    assert rows(spark, reading) == [
        (1, "a", day, moment), (2, None, day, moment), (3, None, None, None),
    ]  # fmt: skip


def test_csv_fields_may_be_quoted_and_too_many_or_too_few(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    text = 'n,s,a\n1,"x, ""y""",1\x022\n2,b\n3,c,4,extra\n4,, 7\n'
    (tmp_path / "a.csv").write_text(text)
    schema = fields(n="int", s="string", a="array<int>")
    options = {"file_format_type": "csv", "schema": schema, "skip_header_row_number": 1}
    assert rows(spark, source(path=str(tmp_path), **options)) == [
        (1, 'x, "y"', [1, 2]), (2, "b", None), (3, "c", [4]), (4, None, [7]),
    ]  # fmt: skip


def test_csv_columns_may_follow_each_files_first_line(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("n,s\n1,x\n")
    (tmp_path / "b.csv").write_text("other,S,N\n?,y,2\n")
    schema = fields(s="string", n="int", d="date")
    options = {"file_format_type": "csv", "schema": schema, "csv_use_header_line": True}
    found = rows(spark, source(path=str(tmp_path), **options))
    assert sorted(found) == [("x", 1, None), ("y", 2, None)]


def test_json_numbers_may_be_text_and_fields_may_be_missing(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"n": 1, "r": {"A": "7"}}\n{"n": "2", "s": 5}\n')
    schema = fields(n="int", s="string", r={"A": "bigint"})
    reading = source(path=str(tmp_path), file_format_type="json", schema=schema)
    assert rows(spark, reading) == [(1, None, (7,)), (2, "5", None)]


@pytest.mark.parametrize(
    ("kind", "content"),
    [("text", "1\x01x\nabc\x01y\n"), ("csv", "1,x\nabc,y\n"), ("json", '{"n": 1}\n{"n": "abc"}\n')],
)
@pytest.mark.parametrize("skip", [0, 1])
def test_a_wrong_value_ends_the_job_and_is_named(
    spark: SparkSession, source: Make, tmp_path: Path, kind: str, content: str, skip: int
) -> None:
    (tmp_path / f"bad.{kind}").write_text("skipped\n" * skip + content)
    schema = fields(n="int", s="string")
    options = {"file_format_type": kind, "schema": schema, "skip_header_row_number": skip}
    with pytest.raises(PySparkException) as caught:
        rows(spark, source(path=str(tmp_path), **options))
    message = str(caught.value)
    assert f"bad.{kind}" in message
    assert "column n = 'abc' is not an int." in message


def test_an_archive_without_files_of_the_format_is_named(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("readme.md", "hello")
    zipped = {"archive_compress_codec": "zip", "file_format_type": "text"}
    with pytest.raises(PySparkException, match=r"no file in it ends with \.txt.*readme\.md"):
        rows(spark, source(path=str(tmp_path), **zipped))


def test_a_declared_column_that_a_file_lacks_is_named(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    spark.range(1).write.parquet(str(tmp_path / "p"))
    reading = source(
        path=str(tmp_path), file_format_type="parquet", schema=fields(id="string", x="int")
    )
    with pytest.raises(UserError, match=r"column x of .*Its columns: id\."):
        rows(spark, reading)


def test_partition_values_differ_by_file_and_are_text(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    for day, extra in (("01", ""), ("02", "deep/")):
        folder = tmp_path / f"day={day}" / extra
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(day)
    regular = {"path": str(tmp_path), "file_format_type": "text"}
    assert sorted(rows(spark, source(**regular))) == [("01", "01"), ("02", "02")]
    plain = source(**regular, parse_partition_from_path=False)
    assert sorted(rows(spark, plain)) == [("01",), ("02",)]
