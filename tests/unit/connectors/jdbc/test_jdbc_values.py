"""Rows of every type and spelling arrive as they were; the drivers read them back."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.errors import UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from tests.unit.connectors.jdbc.conftest import Server

pytestmark = pytest.mark.spark

NASTY = [
    "", "it's", 'say "x"', "back\\slash", "\\N", "NULL", "line\nbreak\r\n", "tab\t", "%s %(a)s",
    "\\.", ",;,", "Grüße 漢字 🦆", "'; DROP TABLE t; --", "x" * 5000, None,
]  # fmt: skip

ALL = """
SELECT true b, cast(-7 as tinyint) ti, cast(300 as smallint) si, 70000 i, 5000000000 bi,
  cast(0.1 as float) f, cast(1e300 as double) d, cast(12.50 as decimal(10,2)) n,
  cast('99999999999999999999999999.123456' as decimal(38,6)) big, 'text' s, X'00ff27' y,
  date'2024-02-29' dt, timestamp_ntz'2024-02-29 01:02:03.456789' ts,
  timestamp'2024-02-29 01:02:03.456789+02:00' tz, cast('01:02:03.5' as time(6)) t,
  array(1, null, 3) ia, array('a"b', 'c\\\\d', '') sa, map('k', 1) m,
  named_struct('x', 1, 'y', array('z')) r
UNION ALL SELECT null, null, null, null, null, null, null, null, null, null, null, null, null, null,
  null, null, null, null, null
"""


def put(server: Server, rows: Rows, number: int = 1, **options: Any) -> None:
    sink = server.sink(**options)
    sink.prepare([rows.table])
    sink.commit(
        CommitId("u", number), sink.write(Tables([rows]), Staging("1", "t", 1, number, "i"))
    )


def rows_of(spark: SparkSession, query: str, path: str = "shop.t") -> Rows:
    return Rows.of(path, spark.sql(query))


def test_every_type_arrives(server: Server, spark: SparkSession) -> None:
    put(server, rows_of(spark, ALL), table="everything")
    found = server.run("SELECT * FROM everything ORDER BY i")
    full, empty = sorted(found, key=lambda row: row[3] is None)
    assert set(empty) == {None}
    b, ti, si, i, bi, f, d, n, big, s, y, dt, ts, tz, t, ia, sa, m, r = full
    assert (bool(b), ti, si, i, bi) == (True, -7, 300, 70000, 5000000000)
    assert (round(f, 6), d) == (0.1, 1e300)
    assert (n, big) == (Decimal("12.50"), Decimal("99999999999999999999999999.123456"))
    assert (s, bytes(y), dt) == ("text", b"\x00\xff'", date(2024, 2, 29))
    assert ts == datetime(2024, 2, 29, 1, 2, 3, 456789)
    instant = datetime(2024, 2, 28, 23, 2, 3, 456789, UTC)
    if server.kind == "postgresql":
        assert tz == instant
        assert (t, ia, sa) == (time(1, 2, 3, 500000), [1, None, 3], ['a"b', "c\\d", ""])
        assert (m, r) == ({"k": 1}, {"x": 1, "y": ["z"]})
    else:
        ((utc,),) = server.run("SELECT unix_timestamp(tz) FROM everything WHERE tz IS NOT NULL")
        assert float(utc) == instant.timestamp()
        assert t.total_seconds() == 3723.5
        assert [json.loads(x) for x in (ia, sa, m, r)] == [
            [1, None, 3], ['a"b', "c\\d", ""], {"k": 1}, {"x": 1, "y": ["z"]},
        ]  # fmt: skip


def test_any_text_arrives(server: Server, spark: SparkSession) -> None:
    frame = spark.createDataFrame(list(enumerate(NASTY)), "id int, s string")
    put(server, Rows.of("shop.t", frame), table="texts")
    assert server.run("SELECT s FROM texts ORDER BY id") == [(s,) for s in NASTY]


@pytest.mark.parametrize("name", ['we"ird', "we`ird", "per%cent %s", "se;lect '", "Ünï"])
def test_any_name_will_do(server: Server, spark: SparkSession, name: str) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "k int, v string").toDF(name, f"{name}2")
    rows = Rows.of("shop.t", frame)
    put(server, rows, table=name, primary_keys=[name])
    mark = '"' if server.kind == "postgresql" else "`"
    quoted = mark + name.replace(mark, mark * 2) + mark
    assert sorted(server.run(f"SELECT * FROM {quoted}")) == [(1, "a"), (2, "b")]


def test_lengths_keys_and_nulls_of_the_stream_make_the_table(
    server: Server, spark: SparkSession
) -> None:
    columns = (
        Column("Id", Type("string"), nullable=False),
        Column("name", Type("string"), length=20),
        Column("at", Type("timestamp_tz"), nullable=False),
    )
    table = Table(TablePath("t"), columns)
    server.sink(table="made", primary_keys=["Id"], field_ide="LOWERCASE").prepare([table])
    found = server.run(
        "SELECT column_name, is_nullable, character_maximum_length FROM information_schema.columns"
        " WHERE table_name = 'made' ORDER BY ordinal_position"
    )
    assert [(n, null) for n, null, _ in found] == [("id", "NO"), ("name", "YES"), ("at", "NO")]
    assert found[1][2] == 20
    keys = server.run(
        "SELECT column_name FROM information_schema.key_column_usage WHERE table_name = 'made'"
    )
    assert keys == [("id",)]


@pytest.mark.parametrize(
    ("ddl", "value", "said"),
    [
        ("v int", "'x'", "x"),
        ("v varchar(3)", "'long'", "long|character varying"),
        ("v int", "5000000000", "out of range|5000000000"),
        ("v int NOT NULL", "cast(null as int)", "null"),
        ("v date", "'2024-02-31'", "2024-02-31"),
    ],
)
def test_a_value_that_does_not_fit_fails_when_it_is_staged(
    server: Server, spark: SparkSession, ddl: str, value: str, said: str
) -> None:
    server.run(f"CREATE TABLE narrow ({ddl})")
    sink = server.sink(table="narrow")
    rows = rows_of(spark, f"SELECT {value} AS v")
    with pytest.raises(UserError, match=f"(?i){said}") as refused:
        sink.write(Tables([rows]), Staging("1", "t", 1, 1, "i"))
    assert server.staged() == []
    message = str(refused.value)
    assert "narrow" in message and "holdfast_stage" not in message and "c0" not in message


CHANGED = [
    ("numeric(10,2)", "cast(1.005 as decimal(10,3))", "'1.005' does not fit"),
    ("numeric(10,2)", "cast(0.125 as double)", "'0.125' does not fit"),
    ("int", "cast(2.5 as double)", "'2.5' does not fit"),
    ("numeric(10,2)", "'1.005'", "'1.005' does not fit"),
    ("date", "timestamp_ntz'2024-02-29 10:11:12'", "its time of day would be lost"),
    ("time(0)", "cast('10:20:30.6' as time(6))", "its fraction of a second would be rounded"),
    ("timestamp(0)", "timestamp_ntz'2024-02-29 10:11:12.9'", "would be rounded"),
    ("time(6)", "'2024-01-31 10:20:30'", "its date would be lost"),
    ("varchar(3)", "'abc '", "it is longer than that"),
]


@pytest.mark.parametrize(("ddl", "value", "said"), CHANGED)
def test_a_value_that_a_server_would_change_is_refused(
    server: Server, spark: SparkSession, ddl: str, value: str, said: str
) -> None:
    """The server by itself takes each of these for another value, and says nothing."""
    ddl = ddl.replace("timestamp(0)", "datetime") if server.kind == "mysql" else ddl
    server.run(f"CREATE TABLE narrow (k int, v {ddl})")
    with pytest.raises(UserError, match=said) as refused:
        put(server, rows_of(spark, f"SELECT 7 AS k, {value} AS v"), table="narrow")
    assert "column v of narrow" in str(refused.value) and "Row: k = 7, v = " in str(refused.value)
    assert server.run("SELECT * FROM narrow") == [] and server.staged() == []


def test_values_that_fit_narrower_columns_arrive(server: Server, spark: SparkSession) -> None:
    moment = "datetime" if server.kind == "mysql" else "timestamp(0)"
    server.run(
        f"CREATE TABLE narrow (n numeric(10,2), i int, d date, t time(0), m {moment}, w int)"
    )
    query = (
        "SELECT cast(1.5 as decimal(38,18)) n, cast(2 as decimal(10,3)) i,"
        " timestamp_ntz'2024-02-29 00:00:00' d, cast('10:20:30' as time(6)) t,"
        " timestamp_ntz'2024-02-29 10:11:12' m, cast(-3 as double) w"
    )
    put(server, rows_of(spark, query), table="narrow")
    ((n, i, d, t, m, w),) = server.run("SELECT n, i, d, t, m, w FROM narrow")
    assert (n, i, d, w) == (Decimal("1.50"), 2, date(2024, 2, 29), -3)
    assert (str(t), m) == ("10:20:30", datetime(2024, 2, 29, 10, 11, 12))


def test_values_for_columns_of_text_are_written_as_text(
    server: Server, spark: SparkSession
) -> None:
    """As docs/values.md writes a value to text, whatever a server would make of it by itself."""
    texts = {
        "f": ("cast(0.1 as float)", "0.1"), "d": ("cast(1e300 as double)", "1e+300"),
        "n": ("cast(1.50 as decimal(38,18))", "1.500000000000000000"), "b": ("true", "true"),
        "dt": ("date'2024-02-29'", "2024-02-29"),
        "t": ("cast('01:02:03.5' as time(6))", "01:02:03.5"),
        "ts": ("timestamp_ntz'2024-02-29 01:02:03.5'", "2024-02-29 01:02:03.5"),
        "z": ("timestamp'2024-02-29 01:02:03.5+01:00'", "2024-02-29T00:02:03.5Z"),
    }  # fmt: skip
    server.run(f"CREATE TABLE texts ({', '.join(f'{name} text' for name in texts)})")
    query = ", ".join(f"{value} {name}" for name, (value, _) in texts.items())
    put(server, rows_of(spark, f"SELECT {query}"), table="texts")
    (found,) = server.run("SELECT * FROM texts")
    assert dict(zip(texts, found, strict=True)) == {n: text for n, (_, text) in texts.items()}


def test_keys_that_differ_in_case_are_rows_of_their_own(
    server: Server, spark: SparkSession
) -> None:
    rows = rows_of(spark, "SELECT explode(array('a', 'A', 'ä', 'ß', 'ss')) k, 1 v")
    for number in (1, 2):  # the table is made, and then it is there
        put(server, rows, number, table="cases", primary_keys=["k"])
        assert {k for (k,) in server.run("SELECT k FROM cases")} == {"a", "A", "ä", "ß", "ss"}


def test_v12_times_inside_rows_and_lists_keep_their_microseconds(
    server: Server, spark: SparkSession
) -> None:
    moment = "timestamp_ntz'2024-02-29 01:02:03.456789'"
    query = (
        f"SELECT 1 k, named_struct('t', {moment}, 'z', timestamp'2024-02-29 01:02:03.000001Z',"
        f" 'c', cast('10:20:30.5' as time(6)), 'd', date'2024-02-29') r,"
        f" array(named_struct('t', {moment})) l, map(date'2024-02-29', X'00ff') m"
    )
    put(server, rows_of(spark, query), table="inside")
    (found,) = server.run("SELECT r, l, m FROM inside")
    row, listed, keyed = (json.loads(v) if isinstance(v, str) else v for v in found)
    assert row == {
        "t": "2024-02-29T01:02:03.456789", "z": "2024-02-29T01:02:03.000001Z", "c": "10:20:30.5",
        "d": "2024-02-29",
    }  # fmt: skip
    assert (listed, keyed) == ([{"t": "2024-02-29T01:02:03.456789"}], {"2024-02-29": "AP8="})
