"""What files say is what comes out, or the row is refused: the faults V1 to V18 on the way in."""

import bz2
import gzip
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows
from holdfast.connect.source import Budget, Slice
from holdfast.errors import HoldfastError, SourceLocation
from holdfast.model.job import Role, Stage
from holdfast.model.tree import Block
from holdfast.worker.failures import explained

pytestmark = pytest.mark.spark

Make = Callable[..., Any]

STAGE = Stage(
    "Source[0]-LocalFile",
    Role.SOURCE,
    "LocalFile",
    Block((), SourceLocation("job.conf", 3, 1)),
    (),
    None,
    1,
    SourceLocation("job.conf", 3, 1),
)


def opened(spark: SparkSession, source: Any) -> Rows:
    planned = source.plan(None, Budget(None, 0.0))
    assert isinstance(planned, Slice)
    return next(iter(source.read(spark, planned.content)))


def rows(spark: SparkSession, source: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in opened(spark, source).frame.collect()]


def refused(spark: SparkSession, source: Any) -> str:
    """Return the sentence that a job ends with."""
    with pytest.raises(HoldfastError) as caught, explained(STAGE):
        rows(spark, source)
    said = str(caught.value)
    assert type(caught.value).__name__ == "UserError", said
    assert "An error occurred" not in said and "Traceback" not in said and "\n" not in said
    return said


def fields(**kinds: Any) -> dict[str, Any]:
    return {"fields": kinds}


def json_source(source: Make, folder: Path, text: str | bytes, **kinds: Any) -> Any:
    data = text.encode() if isinstance(text, str) else text
    (folder / "a.json").write_bytes(data)
    return source(path=str(folder), file_format_type="json", schema=fields(**kinds))


EXACT = "12345678901234567890.123456789012345678"


@pytest.mark.parametrize("extra", ["", ', "t": "7"', ', "t": 7, "l": [1]'])
def test_v01_json_numbers_keep_all_their_digits(
    spark: SparkSession, source: Make, tmp_path: Path, extra: str
) -> None:
    text = f'{{"d": {EXACT}, "s": {EXACT}, "a": [{EXACT}], "q": "{EXACT}"{extra}}}\n'
    kind = "decimal(38, 18)"
    reading = json_source(
        source, tmp_path, text, d=kind, s="string", a=f"array<{kind}>", q=kind, t="int"
    )
    ((d, s, a, q, _),) = rows(spark, reading)
    assert (d, s, a, q) == (Decimal(EXACT), EXACT, [Decimal(EXACT)], Decimal(EXACT))


def test_v01_a_number_with_more_places_than_its_column_is_refused(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    reading = json_source(source, tmp_path, '{"d": 1.50}\n{"d": 1.005}\n', d="decimal(10, 2)")
    said = refused(spark, reading)
    assert "line 2" in said and "column d = '1.005' is not a decimal(10,2)" in said


@pytest.mark.parametrize("number", ["1e30", "1e20", "123456789012345678901.5", "1" * 60])
def test_v01_a_number_beyond_its_column_does_not_wrap_around(
    spark: SparkSession, source: Make, tmp_path: Path, number: str
) -> None:
    reading = json_source(source, tmp_path, f'{{"d": {number}}}\n', d="decimal(38, 18)")
    assert f"column d = '{number}'" in refused(spark, reading)


def test_v03_a_compact_day_is_a_day(spark: SparkSession, source: Make, tmp_path: Path) -> None:
    reading = json_source(source, tmp_path, '{"d": "20240101"}\n{"d": "2024-01-02"}\n', d="date")
    assert rows(spark, reading) == [(date(2024, 1, 1),), (date(2024, 1, 2),)]


def test_v04_a_declared_column_has_its_folders_value(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    for day in ("2024-01-01", "2024-01-02"):
        (tmp_path / f"dt={day}").mkdir()
        (tmp_path / f"dt={day}" / "a.json").write_text('{"n": 1, "dt": "1999-01-01"}\n{"n": 2}\n')
    regular = {"path": str(tmp_path), "file_format_type": "json"}
    kinds = fields(dt="date", n="int")
    found = sorted(rows(spark, source(**regular, schema=kinds)))
    one, two = date(2024, 1, 1), date(2024, 1, 2)
    assert found == [(one, 1), (one, 2), (two, 1), (two, 2)]
    said = refused(spark, source(**regular, schema=fields(dt="int", n="int")))
    assert "dt = '2024-01-0" in said and "no int" in said


def test_v06_only_marks_and_hidden_files_are_left_out(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    for name in ("_c.json", "b.json", ".hidden.json", "_SUCCESS", "_metadata"):
        (tmp_path / name).write_text('{"n": 1}\n')
    for folder in ("_temporary", ".holdfast", "_delta_log"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text('{"n": 9}\n')
    reading = source(path=str(tmp_path), file_format_type="json", schema=fields(n="int"))
    assert rows(spark, reading) == [(1,), (1,)]


def test_v06_a_copy_of_files_has_empty_ones_too(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    (tmp_path / "_u.bin").write_bytes(b"u")
    (tmp_path / "empty.bin").write_bytes(b"")
    (tmp_path / "_SUCCESS").write_bytes(b"")
    found = rows(spark, source(path=str(tmp_path), file_format_type="binary"))
    assert sorted((name, bytes(data), part) for data, name, part in found) == [
        ("_u.bin", b"u", 0), ("empty.bin", b"", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", '"240101"'), ("date", '"19723"'), ("date", "45322"), ("date", "20240101"),
        ("date", '"2024-01-01Tgarbage"'), ("date", '"2024-02-30"'), ("timestamp_tz", "17e11"),
        ("timestamp_tz", '"1704067200000"'), ("timestamp", "1704067200"), ("time", "36000"),
        ("timestamp", '"2024-01-01 10:00:00+02:00"'),
        ("timestamp", '"2024-01-01T10:00:00.1234567"'),
    ],
)  # fmt: skip
def test_v07_numbers_and_remains_are_no_times(
    spark: SparkSession, source: Make, tmp_path: Path, kind: str, value: str
) -> None:
    said = refused(spark, json_source(source, tmp_path, f'{{"v": {value}}}\n', v=kind))
    shown = value.strip('"')
    assert f"a.json, line 1: column v = '{shown}' is not a {kind}" in said


@pytest.mark.parametrize(("text", "kind"), [("33.7", "int"), ("9223372036854775808", "bigint")])
def test_v08_texts_of_cells_fit_or_are_refused(
    spark: SparkSession, source: Make, tmp_path: Path, text: str, kind: str
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.xml").write_text(f"<r><row><n>1</n></row><row><n>{text}</n></row></r>")
    xml = {"xml_row_tag": "row", "xml_use_attr_format": False, "schema": fields(n=kind)}
    said = refused(spark, source(path=str(tmp_path / "x"), file_format_type="xml", **xml))
    assert f"a.xml, row 2: column n = '{text}' is not" in said
    book = xlsxwriter.Workbook(str(tmp_path / "b.xlsx"))
    book.add_worksheet().write_string(0, 0, text)
    book.close()
    sheet = {"path": str(tmp_path / "b.xlsx"), "file_format_type": "excel"}
    said = refused(spark, source(**sheet, schema=fields(n=kind)))
    assert f"b.xlsx, row 1: column n = '{text}' is not" in said
    skipping = source(**sheet, schema=fields(n=kind), row_error_handle_way="SKIP")
    found = opened(spark, skipping)
    assert found.frame.collect() == []
    assert found.rejects is not None and found.rejects.value == 1


def xml_source(source: Make, folder: Path, rows: str | bytes, **options: Any) -> Any:
    (folder / "a.xml").write_bytes(rows if isinstance(rows, bytes) else f"<x>{rows}</x>".encode())
    given = {"xml_row_tag": "r", "xml_use_attr_format": False, "schema": fields(a="string")}
    return source(path=str(folder / "a.xml"), file_format_type="xml", **given | options)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("<r><a>1</a></r><r><a>2<b>3</b>4</a></r>", "row 2: column a = '<a>2<b>3</b>4</a>'"),
        ("<r><a>1</a><a>2</a></r>", "row 1: column a = '1, 2' is not a value"),
        ("<r><a>1</a><r><a>2</a></r></r>", "a row <r> stands inside another"),
        (b"<x><r><a>1</a></r><r><a>2", "it ends too soon: line 1, column 25"),
        (b'<?xml version="1.0" encoding="gbk"?><x><r><a>1</a></r></x>', "encoding = ..., say GBK"),
    ],
)
def test_xml_that_is_no_plain_row_is_refused_and_never_cut(
    spark: SparkSession, source: Make, tmp_path: Path, rows: str | bytes, said: str
) -> None:
    assert said in refused(spark, xml_source(source, tmp_path, rows))


def test_xml_tells_null_from_nothing_where_it_says_so(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    nil = 'xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"'
    reading = xml_source(source, tmp_path, f"<r><a {nil}/></r><r><a/></r><r><a>1<!--x-->2</a></r>")
    assert rows(spark, reading) == [(None,), ("",), ("12",)]


def test_v10_sheets_show_what_they_have(spark: SparkSession, source: Make, tmp_path: Path) -> None:
    book = xlsxwriter.Workbook(str(tmp_path / "b.xlsx"))
    sheet = book.add_worksheet()
    sheet.write_number(0, 0, (30 + 5 / 60) / 24, book.add_format({"num_format": "[h]:mm"}))
    sheet.write_string(1, 0, "_x0041_")
    sheet.write_number(2, 0, 1e16)
    sheet.write_number(3, 0, -0.0)
    sheet.write_formula(4, 0, "=1+1", None, 2)
    sheet.write_number(5, 0, -5 / 86400, book.add_format({"num_format": "[h]:mm:ss"}))
    book.close()
    reading = source(path=str(tmp_path), file_format_type="excel", schema=fields(s="string"))
    found = rows(spark, reading)
    texts = ["30:05:00", "_x0041_", "10000000000000000", "-0.0", "2", "-00:00:05"]
    assert found == [(text,) for text in texts]
    times = source(path=str(tmp_path), file_format_type="excel", schema=fields(s="time"))
    assert "row 1: column s = '30:05:00' is not a time" in refused(spark, times)


@pytest.mark.parametrize(
    ("formula", "value", "said"), [("=1/0", "#DIV/0!", "#DIV/0!"), ("=A1+1", "", "=A1+1")]
)
def test_v10_a_cell_without_a_value_is_not_null(
    spark: SparkSession, source: Make, tmp_path: Path, formula: str, value: str, said: str
) -> None:
    book = xlsxwriter.Workbook(str(tmp_path / "b.xlsx"))
    sheet = book.add_worksheet("One")
    sheet.write_number(0, 0, 1)
    sheet.write_formula(1, 0, formula, None, value)
    book.close()
    for kind in ("int", "string"):
        reading = source(path=str(tmp_path), file_format_type="excel", schema=fields(n=kind))
        assert f"row 2: column n = '{said}' is not a value" in refused(spark, reading)


@pytest.mark.parametrize("line", ['{"n": 1}{"n": 2}', '{"n": 1} trailing', "[1]", '{"n": 1', "7"])
def test_v15_a_line_is_one_object_or_refused(
    spark: SparkSession, source: Make, tmp_path: Path, line: str
) -> None:
    said = refused(spark, json_source(source, tmp_path, f'{{"n": 0}}\n{line}\n', n="int"))
    assert "a.json, line 2: it is no JSON object" in said


def test_v15_bad_lines_can_be_left_out(spark: SparkSession, source: Make, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"n":1}\n{"n":"x"}\n\xff\n{"n":2}{}\n[{"n":3},{"n":4}]\n')
    reading = source(
        path=str(tmp_path), file_format_type="json", schema=fields(n="int"),
        row_error_handle_way="SKIP",
    )  # fmt: skip
    found = opened(spark, reading)
    assert [tuple(r) for r in found.frame.collect()] == [(1,), (3,), (4,)]
    assert found.rejects is not None and found.rejects.value == 3


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_a_line_of_a_packed_json_file_is_named(
    spark: SparkSession, source: Make, tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    lines = b"".join(b'{"n": %d}\n' % n for n in range(200_000))
    file = tmp_path / f"a.json.{ending}"
    reading = source(path=str(tmp_path), file_format_type="json", schema=fields(n="int"))
    file.write_bytes(pack(lines))
    assert sorted(rows(spark, reading)) == [(n,) for n in range(200_000)]
    file.write_bytes(pack(lines.replace(b"190000", b"19000x", 1)))
    assert f"{file}, line 190001: it is no JSON object" in refused(spark, reading)
    file.write_bytes(pack(lines)[:-9])
    assert f"cannot read {file}: Compressed file ended" in refused(spark, reading)


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [("2.0", "int", 2), ("1e3", "bigint", 1000), ("-128.0", "tinyint", -128), ("-0.0", "int", 0)],
)
def test_whole_numbers_of_json_may_be_written_otherwise(
    spark: SparkSession, source: Make, tmp_path: Path, value: str, kind: str, wanted: int
) -> None:
    reading = json_source(source, tmp_path, f'{{"v": {value}}}\n', v=kind)
    assert rows(spark, reading) == [(wanted,)]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b'{"s": "\xff"}', "byte 0xff is no UTF-8"),
        (b'{"s": "\\ud800"}', "half of a surrogate pair"),
        (b'{"s": {"x": "\\ud800"}}', "half of a surrogate pair"),
    ],
)
def test_v17_what_is_no_text_is_refused_in_json(
    spark: SparkSession, source: Make, tmp_path: Path, line: bytes, rule: str
) -> None:
    said = refused(spark, json_source(source, tmp_path, b'{"s": "a"}\n' + line + b"\n", s="string"))
    assert "a.json, line 2" in said and rule in said


@pytest.mark.parametrize("text", ["12d", "0x1p3", "1e400", "1_000"])
def test_v18_java_has_no_say_in_what_a_number_is(
    spark: SparkSession, source: Make, tmp_path: Path, text: str
) -> None:
    said = refused(spark, json_source(source, tmp_path, f'{{"v": "{text}"}}\n', v="double"))
    assert f"column v = '{text}' is not a double" in said


def test_json_lines_of_many_kinds_are_read_in_parallel_parts(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    """Every part of a file gives the same rows as the whole, whatever lines are in it."""
    made = []
    for n in range(2000):
        line = {"n": n, "s": "x" * (n % 50), "t": f"2024-01-01 00:00:{n % 60:02d}", "m": {"k": n}}
        made.append(json.dumps(line) + ("\r\n" if n % 7 == 0 else "\n"))
    (tmp_path / "a.json").write_text("\ufeff" + "".join(made), newline="")
    kinds = {"n": "int", "s": "string", "t": "timestamp", "m": "map<string, bigint>"}
    plain = {k: v for k, v in kinds.items() if k != "m"}
    for chosen in (kinds, plain):
        reading = source(path=str(tmp_path), file_format_type="json", schema=fields(**chosen))
        found = sorted(rows(spark, reading))
        assert [r[0] for r in found] == list(range(2000))
        assert found[61][2] == datetime(2024, 1, 1, 0, 0, 1)


def test_instants_are_read_with_their_offset_or_in_utc(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    text = '{"t": "2024-01-01T10:00:00+02:00"}\n{"t": "2024-01-01 10:00:00"}\n'
    frame = opened(spark, json_source(source, tmp_path, text, t="timestamp_tz")).frame
    found = [t.timestamp() for (t,) in frame.collect()]
    assert found == [datetime(2024, 1, 1, hour, tzinfo=UTC).timestamp() for hour in (8, 10)]


def write_sheet(path: Path) -> None:
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    for number in range(5):
        sheet.write_number(number, 0, number)
    book.close()


LINES = "".join(f'{{"n": {n}}}\n' for n in range(5))
NUMBERS = pa.table({"n": range(5)})
SECONDS = pa.table({"n": range(5), "t": pa.array([0] * 5, pa.timestamp("ns"))})
COUNTED: dict[str, tuple[str, Callable[[Path], Any], dict[str, Any]]] = {
    "excel": ("excel", write_sheet, {}),
    "xml": (
        "xml",
        lambda path: path.write_text("<x>" + "<r><n>1</n></r>" * 5 + "</x>"),
        {"xml_row_tag": "r", "xml_use_attr_format": False},
    ),
    "json": ("json", lambda path: path.write_text(LINES), {}),
    "json in another encoding": (
        "json", lambda path: path.write_text(LINES, "utf-16"), {"encoding": "utf-16"},
    ),
    "orc of its C++ library": ("orc", lambda path: orc.write_table(NUMBERS, str(path)), {}),
    "parquet that only Arrow reads": ("parquet", lambda path: pq.write_table(SECONDS, path), {}),
    "pieces of a file": (
        "binary",
        lambda path: path.write_bytes(b"x" * 5),
        {"binary_chunk_size": 1, "binary_complete_file_mode": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTED)
def test_rows_are_counted_that_spark_does_not_read_itself(
    spark: SparkSession, source: Make, tmp_path: Path, case: str
) -> None:
    form, make, options = COUNTED[case]
    make(tmp_path / f"a.{'xlsx' if form == 'excel' else form}")
    if form != "binary":
        options = {**options, "schema": fields(n="bigint")}
    found = opened(spark, source(path=str(tmp_path), file_format_type=form, **options))
    assert len(found.frame.collect()) == 5
    (counts,) = found.moved
    assert (counts.read, counts.splits) == (5, 1), "Spark itself counts one row for each split"
    counts.close()
