"""Csv that the sink writes is what our source, Python's csv and DuckDB read, whatever is in it."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.unit.connectors.local_file.test_torture import read
from tests.unit.connectors.local_file.test_values_written import refused, write, written

pytestmark = pytest.mark.spark

Make = Callable[..., Any]
NASTY = [
    "a,b", 'say "hi"', '"', '""', '"a" b', '5" pipe', "a\nb", "a\r\nb", "a\rb", "\r", "\n", " a ",
    '\t"a"', "a||b", "a|", "|", "||", "\\", 'a\\"b', "#a", "\0", "a;\nb", "é😀", "null", "\x1f",
]  # fmt: skip
WAYS: list[dict[str, str]] = [
    {}, {"csv_string_quote_mode": "ALL"}, {"field_delimiter": "||"}, {"field_delimiter": "\x01"},
    {"row_delimiter": "\r\n"}, {"encoding": "gb18030"}, {"row_delimiter": ";\n"},
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_texts_come_back_from_csv_as_they_went(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path, way: dict[str, str]
) -> None:
    rows = [(number, text, text[::-1]) for number, text in enumerate(NASTY)]
    given = {"path": str(tmp_path), "file_format_type": "csv", "enable_header_write": True, **way}
    frame = spark.createDataFrame(rows, 'id int, `a,"b` string, w string').coalesce(1)
    write(sink(**given), frame)
    (file,) = written(tmp_path)
    schema = {"fields": {"id": "int", "v": "string", "w": "string"}}
    reading = {k: v for k, v in way.items() if k != "csv_string_quote_mode"}
    if reading.get("row_delimiter") == "\r\n":
        reading = {}  # how rows end without being told, too
    asked = {"path": str(file), "file_format_type": "csv", "skip_header_row_number": 1}
    found, _ = read(source(**asked, **reading, schema=schema).options, file)
    assert found == rows
    if len(way.get("field_delimiter", ",")) > 1 or "\n" in way.get("row_delimiter", "\n")[1:]:
        return
    delimiter = way.get("field_delimiter", ",")
    with file.open(newline="", encoding=way.get("encoding", "utf-8")) as opened:
        head, *told = csv.reader(opened, delimiter=delimiter, strict=True)
    assert head == ["id", 'a,"b', "w"]
    assert told == [[str(number), text, other] for number, text, other in rows]
    if not way:
        options = "header = true, all_varchar = true, quote = '\"', escape = '\"', delim = ','"
        asked_of = f"select * from read_csv('{file}', auto_detect = false, {options}, columns = "
        names = "{'id': 'VARCHAR', 'v': 'VARCHAR', 'w': 'VARCHAR'})"
        assert duckdb.sql(asked_of + names).fetchall() == [(str(n), v, w) for n, v, w in rows]


NESTED = {
    "a": "array<int>", "m": "map<string, array<int>>", "r": {"x": "int", "y": "string"},
    "s": "array<string>",
}  # fmt: skip
INSIDE = (
    "SELECT array(1, NULL) a, map('k', array(1, 2), 'l', NULL) m, named_struct('x', 1, 'y', 'q') r,"
    " array('b', 'c\u0003') s"
    " UNION ALL SELECT array(NULL, NULL), NULL, named_struct('x', NULL, 'y', 'q'), array('b')"
)


@pytest.mark.parametrize("form", ["csv", "text"])
def test_parts_of_lists_maps_and_rows_come_back(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path, form: str
) -> None:
    given = {"path": str(tmp_path), "file_format_type": form}
    rows = spark.sql(INSIDE).coalesce(1)
    write(sink(**given), rows)
    (file,) = written(tmp_path)
    found, _ = read(source(**given, schema={"fields": NESTED}).options, file)
    assert found == [
        ([1, None], [("k", [1, 2]), ("l", None)], {"x": 1, "y": "q"}, ["b", "c\x03"]),
        ([None, None], None, {"x": None, "y": "q"}, ["b"]),
    ]


@pytest.mark.parametrize("form", ["csv", "text", "excel"])
def test_a_part_that_would_be_read_as_two_is_refused(
    spark: SparkSession, sink: Make, tmp_path: Path, form: str
) -> None:
    mark = "\x01" if form == "excel" else "\x02"
    for number, value in enumerate(
        (f"named_struct('x', 1, 'y', 'a{mark}b')", f"array('a{mark}b')", f"map('a{mark}b', 1)")
    ):
        if form == "excel" and number:
            continue  # lists and maps are JSON there
        target = sink(path=str(tmp_path / str(number)), file_format_type=form)
        said = refused(target, spark.sql(f"SELECT 7 id, {value} v"))
        assert f"a character that separates elements: 'a{mark}b'" in said
        assert " Row: id = 7, v = " in said and "write json" in said
