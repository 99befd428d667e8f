"""What sinks write is what other readers find, or it is refused: V2, V5, V9, V11, V13, V14, V17."""

import csv
import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.orc as orc
import pytest
from pyspark.sql import DataFrame, SparkSession
from python_calamine import CalamineWorkbook

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.connect.source import Budget
from holdfast.errors import HoldfastError, SourceLocation, UserError
from holdfast.model.job import Role, Stage
from holdfast.model.tree import Block
from holdfast.worker.failures import explained

pytestmark = pytest.mark.spark

Make = Callable[..., Any]

BUDGET = Budget(None, 0.0)
HERE = SourceLocation("job.conf", 9, 1)
STAGE = Stage("Sink[0]-LocalFile", Role.SINK, "LocalFile", Block((), HERE), (), None, 1, HERE)


def write(sink: Any, rows: DataFrame) -> None:
    tables = Tables([Rows.of("db.t", rows)])
    sink.prepare([r.table for r in tables])
    sink.commit(CommitId("r", 1), sink.write(tables, Staging("7", "p1t0", 1, 1)))


def written(folder: Path) -> list[Path]:
    found = (p for p in folder.rglob("*") if p.is_file())
    return sorted(p for p in found if not any(part.startswith(".") for part in p.parts))


def refused(sink: Any, rows: DataFrame) -> str:
    with pytest.raises(HoldfastError) as caught, explained(STAGE):
        write(sink, rows)
    said = str(caught.value)
    assert isinstance(caught.value, UserError), said
    assert "An error occurred" not in said and "Traceback" not in said and "\n" not in said
    return said


MOMENT = "timestamp_ntz'2024-01-31 16:00:48.123456'"


def test_v02_orc_has_timestamps_and_no_numbers_for_them(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path
) -> None:
    old = "timestamp_ntz'1500-01-02 03:04:05.000006'"
    rows = spark.sql(
        f"SELECT {MOMENT} t, array({MOMENT}) a, named_struct('x', {MOMENT}) r,"
        f" map('k', {MOMENT}) m,"
        f" cast('10:20:30.5' as time(6)) c, {old} o, date'1500-01-02' d,"
        " timestamp_ntz'1969-12-31 23:59:58.999999' b"
    )
    write(sink(path=str(tmp_path), file_format_type="orc"), rows)
    (file,) = written(tmp_path)
    names = [*"tarmcdb"]  # pyarrow cannot show the year 1500 in nanoseconds
    (found,) = orc.ORCFile(str(file)).read(columns=names).to_pylist()
    moment = datetime(2024, 1, 31, 16, 0, 48, 123456)
    assert (found["t"], found["a"], found["r"]) == (moment, [moment], {"x": moment})
    assert dict(found["m"]) == {"k": moment}
    assert found["c"] == "10:20:30.5"
    assert found["d"] == date(1500, 1, 2)
    assert found["b"] == datetime(1969, 12, 31, 23, 59, 58, 999999)
    reading = source(path=str(tmp_path), file_format_type="orc")
    back = next(iter(reading.read(spark, reading.plan(None, BUDGET).content))).frame
    (row,) = back.collect()
    assert (row.t, row.o, row.d, row.b) == (
        moment,
        datetime(1500, 1, 2, 3, 4, 5, 6),
        found["d"],
        found["b"],
    )


def test_v02_orc_refuses_what_it_cannot_tell_apart(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    for kind in ("timestamp_ntz", "timestamp"):
        rows = spark.sql(f"SELECT 7 id, {kind}'1969-12-31 23:59:59.5' t")
        said = refused(sink(path=str(tmp_path), file_format_type="orc"), rows)
        assert "column t has the time 1969-12-31 23:59:59.5" in said
        assert " Row: id = 7, t = 1969-12-31 23:59:59.5. Write Parquet" in said


@pytest.mark.parametrize("quotes", ["MINIMAL", "ALL", "NONE"])
@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_v05_each_row_of_one_column_is_a_line(
    spark: SparkSession, sink: Make, tmp_path: Path, quotes: str, encoding: str
) -> None:
    rows = spark.createDataFrame([("a",), (None,), ("",), ("b",)], "s string").coalesce(1)
    options = {"csv_string_quote_mode": quotes, "encoding": encoding}
    write(sink(path=str(tmp_path), file_format_type="csv", **options), rows)
    (file,) = written(tmp_path)
    lines = file.read_text().splitlines()
    assert len(lines) == 4
    if quotes != "NONE":
        with file.open(newline="") as opened:
            assert list(csv.reader(opened)) == [["a"], [""], [""], ["b"]]


def test_v09_sheets_keep_all_digits_or_refuse(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path
) -> None:
    numbers = [0.1 + 0.2, 1.7976931348623157e308, -0.0, 5e-324, math.inf, math.nan, 123456789.125]
    rows = spark.createDataFrame([(n,) for n in numbers], "d double").coalesce(1)
    write(sink(path=str(tmp_path / "a"), file_format_type="excel"), rows)
    options = {"file_format_type": "excel", "skip_header_row_number": 1}
    reading = source(path=str(tmp_path / "a"), **options, schema={"fields": {"d": "double"}})
    frame = next(iter(reading.read(spark, reading.plan(None, BUDGET).content))).frame
    assert [repr(d) for (d,) in frame.collect()] == [repr(n) for n in numbers]
    (file,) = written(tmp_path / "a")
    cells = CalamineWorkbook.from_path(str(file)).get_sheet_by_index(0).to_python()
    assert cells[1:3] == [[0.1 + 0.2], [1.7976931348623157e308]]
    longest = spark.sql("SELECT 'x' s UNION ALL SELECT repeat('y', 32768)")
    said = refused(sink(path=str(tmp_path / "b"), file_format_type="excel"), longest)
    assert "column s" in said and "32,768" in said and "32,767" in said


def test_v11_keys_of_maps_are_text(spark: SparkSession, sink: Make, tmp_path: Path) -> None:
    rows = spark.sql(
        "SELECT map(X'00ff', 1) b, map(date'2024-01-31', 1) d,"
        f" map('k', map(date'2024-01-31', X'01')) n, map({MOMENT}, {MOMENT}) t,"
        " map(cast('10:20:30' as time(6)), 1) c,"
        " map(timestamp'2024-01-31 16:00:48+01:00', 1) z"
    )
    write(sink(path=str(tmp_path), file_format_type="json"), rows)
    (file,) = written(tmp_path)
    moment = "2024-01-31T16:00:48.123456"
    assert json.loads(file.read_text()) == {
        "b": {"AP8=": 1}, "d": {"2024-01-31": 1}, "n": {"k": {"2024-01-31": "AQ=="}},
        "t": {moment: moment}, "c": {"10:20:30": 1}, "z": {"2024-01-31T15:00:48.000000Z": 1},
    }  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "xml", "json"])
def test_v13_folders_tell_null_from_nothing_and_from_its_mark(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path, form: str
) -> None:
    values = ["a", "", None, "__HIVE_DEFAULT_PARTITION__", "=x", "%3D"]
    rows = spark.createDataFrame(list(enumerate(values)), "n int, p string").coalesce(1)
    options = {"file_format_type": form}
    if form == "xml":
        options["xml_use_attr_format"] = True
    write(sink(path=str(tmp_path), partition_by=["p"], **options), rows)
    names = {f.parent.name for f in written(tmp_path)}
    assert names == {
        "p=a", "p=", "p=__HIVE_DEFAULT_PARTITION__", "p=%5F_HIVE_DEFAULT_PARTITION__", "p=%3Dx",
        "p=%253D",
    }  # fmt: skip
    if form == "xml":
        options["xml_row_tag"] = "RECORD"
    kinds = {} if form == "parquet" else {"schema": {"fields": {"n": "int"}}}
    reading = source(path=str(tmp_path), **options, **kinds)
    frame = next(iter(reading.read(spark, reading.plan(None, BUDGET).content))).frame
    assert sorted(tuple(r) for r in frame.select("n", "p").collect()) == list(enumerate(values))


def test_the_folder_of_an_instant_has_its_zone(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    rows = spark.sql("SELECT 1 n, timestamp'2024-01-31 16:00:48.5+01:00' z")
    write(sink(path=str(tmp_path), file_format_type="parquet", partition_by=["z"]), rows)
    (file,) = written(tmp_path)
    assert unquote(file.parent.name) == "z=2024-01-31T15:00:48.5Z"


def test_v13_a_folder_needs_a_name(spark: SparkSession, sink: Make, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, "")], "n int, p string")
    target = sink(path=str(tmp_path), partition_by=["p"], partition_dir_expression="${v0}")
    assert "a value is empty" in refused(target, rows)


@pytest.mark.parametrize("attributes", [True, False])
def test_v14_xml_is_well_formed_and_keeps_every_character(
    spark: SparkSession, sink: Make, tmp_path: Path, attributes: bool
) -> None:
    text = "a\rb\r\nc\td\ne <&\"'>]]>"
    rows = spark.createDataFrame([(text,)], "`a-b` string")
    options = {"file_format_type": "xml", "xml_use_attr_format": attributes}
    write(sink(path=str(tmp_path / "a"), **options), rows)
    (file,) = written(tmp_path / "a")
    record = ET.parse(file).getroot()[0]
    assert (record.get("a-b") if attributes else record[0].text) == text
    for name in ("a b", "1a", "x:y", ""):
        odd = spark.sql(f"SELECT 1 AS `{name or ' '}`")
        said = refused(sink(path=str(tmp_path / "b"), **options), odd)
        assert "as XML" in said and "Rename it" in said


def test_characters_that_a_file_cannot_have_are_refused_with_their_row(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(7, "a\x01b")], "id int, s string")
    options: dict[str, Any] = {"file_format_type": "xml", "xml_use_attr_format": False}
    said = refused(sink(path=str(tmp_path / "a"), **options), rows)
    assert "column s as XML: 'a\\x01b' has the character U+0001" in said
    assert " Row: id = 7, s = a\\x01b. Take it out" in said
    rows = spark.createDataFrame([(7, "🦆")], "id int, s string")
    options = {"file_format_type": "csv", "encoding": "gbk"}
    said = refused(sink(path=str(tmp_path / "b"), **options), rows)
    assert "cannot write '🦆' in gbk" in said and " Row: 7,🦆. Use encoding = UTF-8" in said


@pytest.mark.parametrize("form", ["csv", "text", "xml", "excel"])
def test_v17_bytes_that_are_no_text_are_refused(
    spark: SparkSession, sink: Make, tmp_path: Path, form: str
) -> None:
    options = {"file_format_type": form, "xml_use_attr_format": False}
    rows = spark.sql("SELECT 7 id, X'61ff' b")
    said = refused(sink(path=str(tmp_path / "a"), **options), rows)
    assert "column b" in said and "61FF" in said and "TO_BASE64" in said
    assert " Row: id = 7, b = a" in said
    write(sink(path=str(tmp_path / "b"), **options), spark.sql("SELECT X'6162' b, 1 n"))
    assert len(written(tmp_path / "b")) == 1


@pytest.mark.parametrize("form", ["csv", "text", "xml"])
def test_times_are_written_with_their_fractions(
    spark: SparkSession, sink: Make, tmp_path: Path, form: str
) -> None:
    rows = spark.sql(
        f"SELECT {MOMENT} t, timestamp_ntz'2024-01-31 16:00:48' w, cast('10:20:30.5' as time(6)) c,"
        " timestamp'2024-01-31 16:00:48.5+01:00' z"
    )
    options = {"file_format_type": form, "xml_use_attr_format": True}
    write(sink(path=str(tmp_path), **options), rows)
    (file,) = written(tmp_path)
    text = file.read_text()
    for shown in (
        "2024-01-31 16:00:48.123456", "2024-01-31 16:00:48", "10:20:30.5", "2024-01-31T15:00:48.5Z",
    ):  # fmt: skip
        assert shown in text
