"""FakeSource: how many rows, in which slices, with which values."""

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.source import END, IDLE, Budget, Slice
from holdfast.connectors.fake.source import FakeSource
from holdfast.model.job import Mode
from holdfast.model.table import TablePath

Make = Callable[..., FakeSource]

NAME_AGE = {"fields": {"name": "string", "age": "int"}}
ALL = Budget(None, 0.0)


def slices(source: FakeSource, rows: int | None = None) -> list[Any]:
    """Return the content of every slice, without resting in between."""
    found: list[Any] = []
    position: Any = None
    while isinstance(planned := source.plan(position, Budget(rows, len(found) * 1e6)), Slice):
        found.append(planned.content)
        position = planned.after
    return found


def read(spark: SparkSession, source: FakeSource, rows: int | None = None) -> DataFrame:
    """Return all rows of a source with one table, read slice by slice."""
    frames = [next(iter(source.read(spark, content))).frame for content in slices(source, rows)]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole


def test_a_table_is_named_by_schema_then_output_then_default(make: Make) -> None:
    named = make(FakeSource, {"schema": {"table": "db.s.t", **NAME_AGE}})
    assert named.tables()[0].path == TablePath("t", "db", "s")
    assert named.tables()[0].catalog == "FakeSource"
    assert str(make(FakeSource, {"schema": NAME_AGE}).tables()[0].path) == "fake"
    bare = make(FakeSource, {"schema": NAME_AGE}, output=None)
    assert str(bare.tables()[0].path) == "default.default.default"


def test_without_checkpoints_everything_is_one_slice(make: Make) -> None:
    source = make(FakeSource, {"schema": NAME_AGE, "row.num": 9, "split.num": 3})
    planned = source.plan(None, ALL)
    assert isinstance(planned, Slice)
    assert source.plan(planned.after, ALL) is END


def test_with_checkpoints_each_round_is_a_slice_and_readers_rest_between(make: Make) -> None:
    given = {"schema": NAME_AGE, "row.num": 3, "split.num": 2, "split.read-interval": 3000}
    source = make(FakeSource, given, mode=Mode.STREAMING)
    first = source.plan(None, Budget(None, 100.0))
    assert isinstance(first, Slice)
    assert source.plan(first.after, Budget(None, 102.9)) is IDLE
    assert isinstance(source.plan(None, Budget(None, 101.0)), Slice), "a slice may be asked again"
    second = source.plan(first.after, Budget(None, 103.0))
    assert isinstance(second, Slice)
    assert second.after == [2, 0]
    assert source.plan(second.after, Budget(None, 1000.0)) is IDLE
    restarted = make(FakeSource, given, checkpointing=True)
    assert isinstance(restarted.plan(first.after, Budget(None, 0.0)), Slice)
    assert restarted.plan(second.after, Budget(None, 0.0)) is END


def test_splits_are_cut_as_seatunnel_cuts_them(make: Make) -> None:
    given = {"schema": NAME_AGE, "row.num": 5, "split.num": 4}
    assert len(slices(make(FakeSource, given, checkpointing=True))) == 3


def test_no_rows_is_the_end(make: Make) -> None:
    assert make(FakeSource, {"schema": NAME_AGE, "row.num": 0}).plan(None, ALL) is END


@pytest.mark.spark
def test_rows_are_the_same_however_they_are_sliced(make: Make, spark: SparkSession) -> None:
    given = {"schema": NAME_AGE, "row.num": 7, "split.num": 3}
    whole = make(FakeSource, given, parallelism=2)
    rounds = make(FakeSource, given, parallelism=2, checkpointing=True)
    frame = read(spark, whole)
    assert frame.rdd.getNumPartitions() == 2
    expected = Counter(map(tuple, frame.collect()))
    assert expected.total() == 14
    assert len(expected) == 14
    assert Counter(map(tuple, read(spark, rounds).collect())) == expected
    limited = make(FakeSource, given, parallelism=2, checkpointing=True)
    assert Counter(map(tuple, read(spark, limited, rows=4).collect())) == expected
    other = make(FakeSource, given, parallelism=2, job_id="2")
    assert Counter(map(tuple, read(spark, other).collect())) != expected


SIMPLE_KINDS = {
    "s": "string", "b": "boolean", "i1": "tinyint", "i2": "smallint", "i4": "int", "i8": "bigint",
    "f": "float", "d": "double", "n1": "decimal(10, 2)", "n2": "decimal(38, 18)",
    "n3": "decimal(5)",
    "y": "bytes", "day": "date", "at": "time", "ts": "timestamp", "tz": "timestamp_tz",
    "a": "array<string>", "m": "map<string, array<int>>", "aa": "array<array<bigint>>",
    "v": "float_vector", "v16": "float16_vector", "vb": "binary_vector",
    "vs": "sparse_float_vector", "mb": "map<boolean, int>", "r": {"x": "int", "y": {"z": "time"}},
}  # fmt: skip


@pytest.mark.spark
def test_every_type_has_values_and_only_null_has_none(make: Make, spark: SparkSession) -> None:
    fields = {**SIMPLE_KINDS, "none": "null"}
    source = make(FakeSource, {"schema": {"fields": fields}, "row.num": 20, "array.size": 9})
    rows = next(iter(source.read(spark, slices(source)[0])))
    found = rows.frame.collect()
    assert len(found) == 20
    assert rows.frame.schema["ts"].dataType.simpleString() == "timestamp_ntz"
    for row in found:
        assert [n for n, v in row.asDict().items() if v is None] == ["none"]
        assert len(row.s) == 5
        assert row.s.isalpha()
        assert bytes(row.y).isalpha()
        assert len(row.vb) == 1
        assert len(row.a) == len(row.aa) == 9
        assert len(row.v) == len(row.vs) == 4
        assert max(row.v16) <= 65504
        assert 1 <= len(row.mb) <= 2
        assert isinstance(row.at, time)
        assert row.day.year == row.ts.year == datetime.now().year
        assert 0 <= row.n1 < Decimal("1e8")
        assert 0 <= row.n2 < Decimal("1e20")
    assert len({row.n2 for row in found}) == 20


@pytest.mark.spark
def test_values_keep_to_ranges_and_templates(make: Make, spark: SparkSession) -> None:
    given = {
        "schema": {"fields": {k: v for k, v in SIMPLE_KINDS.items() if isinstance(v, str)}},
        "row.num": 50, "string.template": ["kris", "o'neil\\"], "tinyint.min": 1, "tinyint.max": 2,
        "smallint.min": -3, "smallint.max": -3, "int.template": [20, 21],
        "bigint.min": -(2**63), "bigint.max": 2**63 - 2, "float.min": 40, "float.max": 43,
        "double.min": -1.5, "double.max": -1.5, "date.year.template": [2023],
        "date.month.template": [2], "date.day.template": [31], "time.hour.template": [7],
        "time.minute.template": [8], "time.second.template": [9], "bytes.length": 0,
        "array.size": 0, "map.size": 0,
    }  # fmt: skip
    found = read(spark, make(FakeSource, given)).collect()
    assert {r.s for r in found} == {"kris", "o'neil\\"}
    assert {r.i1 for r in found} == {1, 2}
    assert {r.i2 for r in found} == {-3}
    assert {r.i4 for r in found} == {20, 21}
    assert {r.i8 < 0 for r in found} == {True, False}
    assert all(40 <= r.f <= 43 for r in found)
    assert {r.d for r in found} == {-1.5}
    assert {r.day for r in found} == {date(2023, 2, 28)}
    assert {r.ts for r in found} == {datetime(2023, 2, 28, 7, 8, 9)}
    assert {(len(r.a), len(r.m), len(r.y)) for r in found} == {(0, 0, 0)}


@pytest.mark.spark
def test_defaults_lengths_and_numbered_keys_are_kept(make: Make, spark: SparkSession) -> None:
    columns = [
        {"name": "id", "type": "int"},
        {"name": "code", "type": "string", "columnLength": 71},
        {"name": "day", "type": "date", "defaultValue": "2024/02/29"},
        {"name": "ok", "type": "boolean", "defaultValue": True},
    ]
    schema = {"columns": columns, "primaryKey": {"name": "pk", "columnNames": ["id"]}}
    given = {"schema": schema, "auto.increment.enabled": True, "auto.increment.start": 100}
    found = read(spark, make(FakeSource, given, parallelism=2)).collect()
    assert sorted(r.id for r in found) == list(range(100, 110))
    assert {len(r.code) for r in found} == {71}
    assert {(r.day, r.ok) for r in found} == {(date(2024, 2, 29), True)}


@pytest.mark.spark
def test_given_rows_are_emitted_whole_for_each_split_of_each_reader(
    make: Make, spark: SparkSession
) -> None:
    fields = {
        "s": "string", "n": "decimal(30, 8)", "y": "bytes", "at": "timestamp", "d": "date",
        "m": "map<string, int>", "a": "array<int>", "r": {"x": "int", "z": "string"}, "u": "null",
    }  # fmt: skip
    listed = ["测'\\", "99999.99999999", "bWk=", "2012-12-21 12:34:56.5", "CURRENT_DATE"]
    rows = [
        {"fields": [*listed, {"a.b": 1}, [1, None], [7, "w"], None]},
        {"fields": {"s": None, "a": [], "m": {}, "r": {"x": 1}}},
    ]
    given = {"schema": {"fields": fields}, "rows": rows, "split.num": 2}
    frame = read(spark, make(FakeSource, given, parallelism=2))
    assert frame.columns == list(fields)
    found = frame.collect()
    assert len(found) == 8
    first = found[0]
    assert first.s == "测'\\"
    assert first.n == Decimal("99999.99999999")
    assert bytes(first.y) == b"mi"
    assert first.at == datetime(2012, 12, 21, 12, 34, 56, 500000)
    assert first.d == datetime.now().date()
    assert (first.m, first.a, tuple(first.r)) == ({"a.b": 1}, [1, None], (7, "w"))
    assert (found[1].s, found[1].a, found[1].m, found[1].r.z) == (None, [], {}, None)


@pytest.mark.spark
def test_other_kinds_make_a_changelog_in_order(make: Make, spark: SparkSession) -> None:
    rows = [{"kind": k, "fields": [i]} for i, k in enumerate(["INSERT", "DELETE"])]
    given = {"schema": {"fields": {"id": "int"}}, "rows": rows, "split.num": 2}
    source = make(FakeSource, given, checkpointing=True)
    assert source.tables()[0].changelog
    found = [tuple(r) for r in read(spark, source).collect()]
    assert found == [(0, "INSERT", 0), (1, "DELETE", 1), (0, "INSERT", 2), (1, "DELETE", 3)]


@pytest.mark.spark
def test_each_table_has_its_own_options(make: Make, spark: SparkSession) -> None:
    tables = [
        {"row.num": n, "schema": {"table": f"test.t{n}", "fields": {"id": "bigint"}}}
        for n in (2, 3)
    ]
    source = make(FakeSource, {"tables_configs": tables}, parallelism=2)
    made = source.read(spark, slices(source)[0])
    assert {r.table.path.table: r.frame.count() for r in made} == {"t2": 4, "t3": 6}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "FakeSource: required option 'schema' is missing."),
        (
            {"schema": NAME_AGE, "rows": [{"fields": ["a", 1]}, {"fields": ["a"]}]},
            "FakeSource: rows[1]: the row has 1 values for 2 fields (name, age).",
        ),
        (
            {"schema": NAME_AGE, "rows": [{"fields": ["a", 3000000000]}]},
            "FakeSource: rows[0], column 'age': 3000000000 does not fit int,"
            " which holds -2147483648 to 2147483647.",
        ),
        (
            {"schema": NAME_AGE, "rows": [{"fields": {"nmae": "a"}}]},
            "FakeSource: rows[0]: there is no field 'nmae'. Fields: name, age.",
        ),
        (
            {"schema": NAME_AGE, "int.min": 5, "int.max": 4},
            "FakeSource: int.min = 5 is above int.max = 4.",
        ),
        (
            {"schema": NAME_AGE, "string.fake.mode": "template"},
            "FakeSource: string.fake.mode = template needs string.template = [ ... ].",
        ),
        (
            {"schema": NAME_AGE, "tinyint.template": [300]},
            "FakeSource: tinyint.template: 300 does not fit tinyint, which holds -128 to 127.",
        ),
        (
            {"schema": NAME_AGE, "date.month.template": [13]},
            "FakeSource: date.month.template: 13 is not in 1 to 12.",
        ),
        (
            {"tables_configs": [{"schema": NAME_AGE}, {"schema": NAME_AGE}]},
            "FakeSource: a schema without 'table' is given more than once."
            " Give each table a path of its own.",
        ),
        (
            {"schema": NAME_AGE, "row.nmu": 5},
            "FakeSource: unknown option 'row.nmu'. Did you mean 'row.num'?",
        ),
    ],
)
def test_mistakes_are_named(
    given: dict[str, Any], message: str, mistakes: Callable[..., list[str]]
) -> None:
    assert mistakes(FakeSource, given) == [message]
