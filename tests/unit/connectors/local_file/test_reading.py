"""How rows are read: what is forgiven, and what ends a job."""

import gzip
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.connect.source import Budget, Slice
from holdfast.connectors.files.reading import reader_of
from holdfast.connectors.files.values import named
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.types import parse_type
from tests.unit.connectors.local_file.torture import CASES, COLUMNS

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
    reading = source(
        path=str(tmp_path), file_format_type="text", delimiter="|", schema=schema,
        null_padding=True, strict_mode=False,
    )  # fmt: skip
    day, moment = date(2024, 1, 31), datetime(2024, 1, 31, 16, 0, 48)
    assert rows(spark, reading) == [
        (1, "a", day, moment), (2, "  ", day, moment), (3, None, None, None),
    ]  # fmt: skip


def test_csv_fields_may_be_quoted_and_too_many_or_too_few(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    text = 'n,s,a\n1,"x, ""y""",1\x022\n2,b\n3,c,4,extra\n4,, 7\n'
    (tmp_path / "a.csv").write_text(text)
    schema = fields(n="int", s="string", a="array<int>")
    options = {
        "file_format_type": "csv", "schema": schema, "skip_header_row_number": 1,
        "null_padding": True, "strict_mode": False,
    }  # fmt: skip
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


EDGES: dict[str, tuple[str, Any, str]] = {
    "boolean": ("tRuE", True, "yes"),
    "tinyint": ("-128", -128, "128"),
    "bigint": ("+9223372036854775807", 9223372036854775807, "9223372036854775808"),
    "float": ("0.1", 0.10000000149011612, "1e39"),
    "decimal(38,18)": ("12345678901234567890.1", Decimal("12345678901234567890.1"), "1.5e30"),
    "decimal(4,2)": ("1.500", Decimal("1.50"), "1.555"),
    "date": ("2024年1月5日", date(2024, 1, 5), "2024-01-05Tgarbage"),
    "timestamp": ("2024/1/5 10:11", datetime(2024, 1, 5, 10, 11), "2024-01-05 10:11:12Z"),
    "timestamp_tz": ("2024-01-05T10:11:12+02:00", datetime(2024, 1, 5, 8, 11, 12), "17"),
    "time": ("10:11:12.5", time(10, 11, 12, 500000), "24:00"),
    "bytes": ("é", "é".encode(), ""),
    "array<int>": ("1\x022", [1, 2], "1\x02x"),
    "map<string, int>": ("a\x031\x02b\x032", {"a": 1, "b": 2}, "a\x03x"),
    "float_vector": ("[1.5; 2]".replace(";", ","), [1.5, 2.0], "x"),
}


@pytest.mark.parametrize("form", ["csv", "text"])
def test_every_type_reaches_spark_from_csv_and_text(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    names = [f"c{n}" for n in range(len(EDGES))]
    texts = [text for text, _, _ in EDGES.values()]
    (tmp_path / f"a.{form}").write_text("|".join(texts) + "\n")
    schema = fields(**dict(zip(names, EDGES, strict=True)), r={"a": "int", "b": "string"}, n="null")
    (tmp_path / f"a.{form}").write_text("|".join([*texts, "7\x02x", "?"]) + "\n")
    reading = source(path=str(tmp_path), file_format_type=form, delimiter="|", schema=schema)
    (found,) = rows(spark, reading)
    wanted = [value for _, value, _ in EDGES.values()]
    assert list(found) == [*wanted, (7, "x"), None]


@pytest.mark.parametrize("kind", [kind for kind, edge in EDGES.items() if edge[2]])
def test_what_is_no_value_is_refused_and_never_guessed(
    source: Make, tmp_path: Path, kind: str
) -> None:
    text = EDGES[kind][2]
    (tmp_path / "a.csv").write_text(f"1|{EDGES[kind][0]}\n2|{text}\n")
    schema = fields(n="int", v=kind)
    reading = source(path=str(tmp_path), file_format_type="csv", delimiter="|", schema=schema)
    reader = reader_of(reading.options, [], "S")
    file = tmp_path / "a.csv"
    with pytest.raises(UserError, match=r"a\.csv, line 2: column v = '") as refused:
        list(reader([0, [[str(file), 0, file.stat().st_size]]]))
    assert f"is not {named(parse_type(kind))}" in str(refused.value)


def test_bad_rows_are_left_out_and_counted_by_spark_too(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text('1,a\nx,b\n2,"c\nd"\n3\n')
    (tmp_path / "b.csv").write_text("4,e,f\n")
    schema = fields(n="int", s="string")
    reading = source(
        path=str(tmp_path), file_format_type="csv", schema=schema, row_error_handle_way="skip"
    )
    planned = reading.plan(None, Budget(None, 0.0))
    (read,) = reading.read(spark, planned.content)
    for _ in range(2):
        assert [tuple(r) for r in read.frame.collect()] == [(1, "a"), (2, "c\nd")]
    assert read.rejects and read.rejects.value == 3, "however often Spark reads a split"
    read.rejects.close()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_torture_files_are_read_by_spark_in_batch_and_streaming_packed_and_not(
    spark: SparkSession, source: Make, tmp_path: Path, packed: bool, mode: Mode
) -> None:
    plain = [c for c in CASES if not c.options and c.columns is COLUMNS and c.file == "a.csv"]
    assert len(plain) >= 40
    for number, case in enumerate(plain):
        path = tmp_path / f"{number:03}.csv{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(case.content) if packed else case.content)
    reading = source(
        mode, path=str(tmp_path), file_format_type="csv", schema=fields(**COLUMNS),
        row_error_handle_way="SKIP",
    )  # fmt: skip
    reading.settle_ns = 0
    found: list[Any] = []
    rejected, position = 0, None
    while isinstance(planned := reading.plan(position, Budget(40, 0.0)), Slice):
        (read,) = reading.read(spark, planned.content)
        found += [tuple(row) for row in read.frame.collect()]
        assert read.rejects
        rejected += read.rejects.value
        read.rejects.close()
        position = planned.after
    wanted = [row for case in plain for row in case.rows]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    assert rejected == sum(case.rejected for case in plain if case.rule)


@pytest.mark.parametrize("written", [False, True])
def test_the_value_in_a_folders_name_counts_though_files_may_have_the_column(
    spark: SparkSession, source: Make, tmp_path: Path, written: bool
) -> None:
    folder = tmp_path / "day=2024-01-05"
    folder.mkdir()
    (folder / "a.csv").write_text("1,1999-09-09,x\n" if written else "1,x\n")
    schema = fields(n="int", day="date", s="string")
    found = rows(spark, source(path=str(tmp_path), file_format_type="csv", schema=schema))
    assert found == [(1, date(2024, 1, 5), "x")]


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


@pytest.mark.parametrize("packed", [False, True])
def test_the_other_torture_files_are_streamed_with_their_options(
    spark: SparkSession, source: Make, tmp_path: Path, packed: bool
) -> None:
    """Each is a table of its own, for it has options or columns of its own."""
    odd = [c for c in CASES if (c.options or c.columns is not COLUMNS) and c.file == "a.csv"]
    assert len(odd) >= 30
    tables = []
    for number, case in enumerate(odd):
        path = tmp_path / f"{number:03}.csv{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(case.content) if packed else case.content)
        tables.append({
            "path": str(path), "file_format_type": "csv", "row_error_handle_way": "SKIP",
            "schema": {"table": f"t{number}", "fields": {**case.columns}}, **case.options,
        })  # fmt: skip
    reading = source(Mode.STREAMING, tables_configs=tables)
    reading.settle_ns = 0
    planned = reading.plan(None, Budget(None, 0.0))
    read = {r.table.path.table: r for r in reading.read(spark, planned.content)}
    for number, case in enumerate(odd):
        rows_of = read[f"t{number}"]
        columns = [
            f"unix_micros({c}) AS {c}" if t == "timestamp_tz" else c
            for c, t in case.columns.items()
        ]
        found = [tuple(row) for row in rows_of.frame.selectExpr(*columns).collect()]
        wanted = [tuple(micros(v) for v in row) for row in case.rows]
        assert found == wanted, case.name
        assert rows_of.rejects
        assert rows_of.rejects.value == (case.rejected if case.rule else 0), case.name
        rows_of.rejects.close()


def micros(value: Any) -> Any:
    """Return an instant as Spark numbers it; anything else as it is."""
    if not isinstance(value, datetime):
        return value
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
