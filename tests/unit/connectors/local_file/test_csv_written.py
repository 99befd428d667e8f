"""Csv that the sink writes is what our source, Python's csv and DuckDB read, whatever is in it."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.unit.connectors.local_file.test_torture import read
from tests.unit.connectors.local_file.test_values_written import write, written

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
