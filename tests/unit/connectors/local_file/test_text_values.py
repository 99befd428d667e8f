"""A text has one value, whether Arrow reads its whole column or each text is looked at."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.connectors.files.formats.csv import _Reading
from holdfast.connectors.files.reading import reader_of
from holdfast.connectors.files.text_values import TextNotation, converted
from holdfast.connectors.files.times import parsed, pattern_of
from holdfast.model.types import Type, parse_type

Make = Callable[..., Any]
WRITING = TextNotation(tuple(",\x02\x03\x04\x05"))

NUMBERS = """
    0 5 -5 +5 --5 007 -0 -007 +0 0x1F 0X1f -0x10 0xg x1 1x 1_000 1'000 1L 127 128 -128 -129 255
    32767 32768 2147483647 2147483648 -2147483649 9223372036854775807 9223372036854775808
    99999999999999999999999999999999999999999 00000000000000000000000000000000000000007
    1. .5 -.5 +.5 . - + -. 1.0 1.50 1.2300 1.239 -1.235 0.005 1.2.3 1..2 1e5 1E3 1E+3 1e-2 1e 1e+ e5
    1.5E10 1e0 1e05 1E400 1e-400 -1e-400 1E38 9999999999.99 9999999999.994 10000000000 1E9 1E10
    3.4028235E38 3.4028236E38 1.4E-45 16777217 33554435 0.1 0.3 4.9E-324 1.7976931348623159E308
    9007199254740993 1e23 1.00000017881393421514957253748 nan NaN -nan inf -Inf Infinity 1d 1f 1.5d
    0x1p3 ١٢٣ １２３ true TRUE True tRuE false FALSE fAlSe yes no y 1 0 null NULL NA \\N
    """.split()  # noqa: SIM905
TIMES = [
    "2024-01-05", "2024-1-5", "2024-02-30", "2023-02-29", "2024", "2024-01", "0001-01-01",
    "0000-01-01", "1582-10-10", "9999-12-31", "10000-01-01", "-2024-01-05", "24-01-05", "20240105",
    "2024/01/05", "2024.1.5", "05.01.2024", "2024年1月5日", "2024-01-05Z", "2024-01-05T", "45322",
    "2024-01-05Tgarbage", "2024-01-05 10", "2024-01-05 10:11", "2024-01-05T10:11:12", "now",
    "2024-01-05 10:11:12Z", "2024-01-05 10:11:12+01:00", "2024-01-05 24:00:00", "1704448272000",
    "2024-01-05 10:11:12.1", "2024-01-05 10:11:12.123456", "2024-01-05 10:11:12.1234567",
    "2024-01-05 10:11:12.123456000", "2024-01-05 10:60:00", "20240105101112", "2024/1/5 10:11:12",
    "1969-12-31 23:59:59.999999", "2024-01-05 1:2:3", "10:11:12", "10:11", "24:00", "10:11:12.5",
]  # fmt: skip
KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(12,2)",
    "decimal(38,10)", "date", "timestamp", "timestamp_tz", "time", "string", "bytes",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_has_one_value_on_both_ways(
    source: Make, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    for text in ["", " ", " 5 ", *NUMBERS, *TIMES]:
        path.write_text(f"7,{text}\n")
        schema = {"fields": {"n": "int", "v": kind}}
        table = source(
            path=str(path), file_format_type="csv", schema=schema, row_error_handle_way="SKIP"
        ).options  # fmt: skip
        read = reader_of(table, [], "S")
        split: Any = [0, [[str(path), 0, path.stat().st_size]]]
        fast = [batch.to_pydict() for batch in read(split)]
        with monkeypatch.context() as patch:
            patch.setattr(_Reading, "_fast", lambda *_: None)
            careful = [batch.to_pydict() for batch in read(split)]
        assert repr(fast) == repr(careful), text


ROW = Type("row", parts=(Type("int"), Type("string")), names=("a", "b"))


def test_rows_inside_columns_may_be_shorter_or_longer_where_the_job_says_so() -> None:
    loose = replace(WRITING, padding=True, strict=False)
    assert one("1", "row", loose) == one("1\x02", "row") == {"a": 1, "b": None}
    assert one("1\x02x\x02y", "row", loose) == {"a": 1, "b": "x"}


def one(text: str, kind: str, writing: TextNotation = WRITING) -> Any:
    type_ = ROW if kind == "row" else parse_type(kind)
    values, wrong = converted(pa.array([text]), type_, writing)
    return "refused" if wrong else values[0].as_py()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1e-3", "decimal(4,3)", "0.001"), ("1.2300", "decimal(4,2)", "1.23"),
        ("1.239", "decimal(4,2)", "refused"), ("100", "decimal(4,2)", "refused"),
        ("1e999999", "decimal(4,2)", "refused"), ("240101", "date", "refused"),
        ("2024-01-05 00:00", "date", date(2024, 1, 5)),
        ("a\x03\x02b\x031", "map<string,int>", None),
        ("a\x031\x02a\x032", "map<string,int>", "refused"),
        ("[1, null]", "float_vector", "refused"),
        ("[1e400]", "float_vector", "refused"), ("[1e39]", "float_vector", "refused"),
        ("[1" + "0" * 400 + "]", "float_vector", "refused"), ("[true]", "float_vector", "refused"),
        ("[" * 100_000, "float_vector", "refused"),
        ('{"99999999999": 1}', "sparse_float_vector", "refused"),
        ("0001-01-01 00:00:00+02:00", "timestamp_tz", "refused"),
        ("9999-12-31 23:59:59-02:00", "timestamp_tz", "refused"),
        ('{"3": 0.5}', "sparse_float_vector", [(3, 0.5)]), ("\x02\x02", "array<int>", [None] * 3),
        ("1\x02", "array<int>", [1, None]), ("\x031", "map<string,int>", "refused"),
        ("1\x02x", "row", {"a": 1, "b": "x"}), ("1", "row", "refused"),
        ("1\x02x\x02y", "row", "refused"),
    ],
)  # fmt: skip
def test_a_value_is_exact_or_refused(text: str, kind: str, value: Any) -> None:
    found = one(text, kind)
    if value is None:
        assert found == [("a", None), ("b", 1)]
    else:
        assert (str(found) if kind.startswith("decimal") else found) == value


@pytest.mark.parametrize(
    ("java", "text", "value"),
    [
        ("dd/MM/yyyy HH:mm:ss", "31/01/2024 10:11:12", datetime(2024, 1, 31, 10, 11, 12)),
        ("dd/MM/yyyy HH:mm:ss", "30/02/2024 10:11:12", "refused"),
        ("dd/MM/yyyy HH:mm:ss", "1/01/2024 10:11:12", "refused"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-01-31T10:11:12.123",
         datetime(2024, 1, 31, 10, 11, 12, 123000)),
        ("d MMM yy h:mm a", "5 Jan 24 1:02 PM", datetime(2024, 1, 5, 13, 2)),
        ("d MMM yy h:mm a", "5 Jan 24 13:02 PM", "refused"),
        ("yyyyMMddHHmmss", "20240131101112", datetime(2024, 1, 31, 10, 11, 12)),
    ],
)  # fmt: skip
def test_a_pattern_says_how_times_are_written(java: str, text: str, value: Any) -> None:
    assert one(text, "timestamp", TextNotation((",",), datetime_format=java)) == value
    many, wrong = converted(
        pa.array([text, None, ""]),
        parse_type("timestamp"),
        TextNotation((",",), datetime_format=java),
    )
    assert (many.to_pylist() == [value, None, None]) != bool(wrong)


def test_a_pattern_that_cannot_be_followed_is_told_with_its_letter() -> None:
    with pytest.raises(ValueError, match="'EEE' in it is not supported"):
        pattern_of("EEE yyyy")
    with pytest.raises(ValueError, match="opens a quote"):
        pattern_of("yyyy'")
    found = parsed("2024-01-31+02:00", "yyyy-MM-ddXXX")
    assert found and (found.date(), found.zone) == (date(2024, 1, 31), 7200)
