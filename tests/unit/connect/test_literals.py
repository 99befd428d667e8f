"""Values of a job file as literals of Spark SQL."""

from datetime import datetime
from typing import Any

import pytest

from holdfast.connect.literals import comparable, literal
from holdfast.errors import SourceLocation
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.model.types import parse_type

HERE = SourceLocation("job.conf", 1, 1)


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Block(tuple(Entry(k, node(v), HERE) for k, v in value.items()), HERE)
    if isinstance(value, list):
        return Items(tuple(node(v) for v in value), HERE)
    return Scalar(value, str(value).lower() if isinstance(value, bool) else str(value), HERE)


@pytest.mark.parametrize(
    ("value", "kind", "sql"),
    [
        ("it's \\", "string", "'it\\'s \\\\'"),
        ([1, {"a": True}], "string", "'[1,{\"a\":true}]'"),
        (None, "int", "CAST(NULL AS int)"),
        ("anything", "null", "CAST(NULL AS void)"),
        ("True", "boolean", "TRUE"),
        (" 7 ", "tinyint", "CAST('7' AS tinyint)"),
        ("7.0", "bigint", "CAST('7' AS bigint)"),
        ("1.25", "float", "CAST('1.25' AS float)"),
        ("1e3", "decimal(6,2)", "CAST('1000' AS decimal(6,2))"),
        ("0.10", "decimal(2,1)", "CAST('0.10' AS decimal(2,1))"),
        ("bWk=", "bytes", "X'6d69'"),
        ("2023/4/2", "date", "CAST('2023-04-02' AS date)"),
        ("20230402", "date", "CAST('2023-04-02' AS date)"),
        ("7:08", "time", "CAST('07:08:00' AS time(6))"),
        ("2023-04-02 07:08:09.5", "timestamp", "CAST('2023-04-02T07:08:09.5' AS timestamp_ntz)"),
        ("2023-04-02", "timestamp", "CAST('2023-04-02T00:00:00' AS timestamp_ntz)"),
        (
            "2023-04-02T07:08:09+08:00",
            "timestamp_tz",
            "CAST('2023-04-02T07:08:09+08:00' AS timestamp)",
        ),
        ([], "array<int>", "CAST(array() AS array<int>)"),
        ({"a": {"b": "x"}}, "map<string, string>", "map('a.b', 'x')"),
        ({"1": "x"}, "map<int, string>", "map(CAST('1' AS int), 'x')"),
        ({"b": "x"}, "{a = int, b = string}", "named_struct('a', CAST(NULL AS int), 'b', 'x')"),
        ([0.5], "float_vector", "array(CAST('0.5' AS float))"),
    ],
)
def test_values_become_literals(value: Any, kind: str, sql: str) -> None:
    assert literal(node(value), parse_type(kind)) == sql


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("1", "boolean", "'1' is not a boolean"),
        ("1.5", "int", "'1.5' is not a whole number, which int needs"),
        (128, "tinyint", "128 does not fit tinyint, which holds -128 to 127"),
        ("1e39", "float", "1e39 does not fit float"),
        ("1.23", "decimal(3,1)", "1.23 has more than 1 digits after the point of decimal(3,1)"),
        ("100", "decimal(3,1)", "100 has more than 2 digits before the point of decimal(3,1)"),
        ("NaN", "decimal(3,1)", "'NaN' is not a number, which decimal(3,1) needs"),
        ("?", "bytes", "'?' is not base64, which bytes need"),
        ("2023-02-30", "date", "'2023-02-30' is not a date: day is out of range for month"),
        ("25:00", "time", "'25:00' is not a time: hour must be in 0..23"),
        ("now", "timestamp", "'now' is not a timestamp such as 2023-04-22T23:20:58"),
        ([1], "int", "a list is not a int"),
        ("a", "array<int>", "'a' is not a list, which array<int> needs"),
        ([1], "map<string, int>", "a list is not a block { ... }, which map<string, int> needs"),
        ([1], "{a = int, b = int}", "the row has 1 values for 2 fields (a, b)"),
    ],
)
def test_values_that_do_not_fit_are_refused(value: Any, kind: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        literal(node(value), parse_type(kind))
    assert str(refused.value).startswith(message)


def test_current_moments_stand_for_now_only_where_there_is_one() -> None:
    now = datetime(2023, 4, 22, 23, 20, 58)
    assert literal(node("current_date"), parse_type("date"), now) == "CAST('2023-04-22' AS date)"
    assert literal(node("current_time"), parse_type("time"), now) == "CAST('23:20:58' AS time(6))"
    with pytest.raises(ValueError):
        literal(node("current_date"), parse_type("date"))


def test_maps_are_compared_as_sorted_entries() -> None:
    assert comparable("c", parse_type("array<int>")) == "c"
    assert comparable("c", parse_type("map<string, int>")) == (
        "array_sort(transform(map_entries(c), m0 -> struct(m0.key AS key, m0.value AS value)))"
    )
