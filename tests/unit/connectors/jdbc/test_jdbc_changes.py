"""Keys: rows replace each other, changelogs are applied in their order, queries are obeyed."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Staging
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.errors import UserError
from tests.unit.connectors.jdbc.conftest import Server

pytestmark = pytest.mark.spark

DDL = "id int, v string"
CHANGES = f"{DDL}, __kind string, __seq bigint"


def stage(
    sink: JdbcSink, spark: SparkSession, rows: list[tuple[Any, ...]], number: int,
    ddl: str = DDL, partitions: int = 2,
) -> list[Committable]:  # fmt: skip
    frame = spark.createDataFrame(rows, ddl).repartition(partitions)
    return list(sink.write(Tables([Rows.of("shop.t", frame)]), Staging("1", "t", 1, number, "i")))


def content(server: Server) -> list[tuple[Any, ...]]:
    return sorted(server.run("SELECT id, v FROM t"))


def start(server: Server, spark: SparkSession, ddl: str = DDL, **options: Any) -> JdbcSink:
    sink = server.sink(table="t", primary_keys=["id"], **options)
    sink.prepare([Rows.of("shop.t", spark.createDataFrame([], ddl)).table])
    return sink


def test_rows_of_a_key_replace_each_other(server: Server, spark: SparkSession) -> None:
    sink = start(server, spark)
    sink.commit(CommitId("u", 1), stage(sink, spark, [(1, "a"), (2, "a"), (3, None)], 1))
    later = stage(sink, spark, [(2, "b")], 2) + stage(sink, spark, [(2, "c"), (4, "c")], 3)
    sink.commit(CommitId("u", 2), later)
    assert content(server) == [(1, "a"), (2, "c"), (3, None), (4, "c")]
    assert server.staged() == []


def test_the_last_row_of_a_key_wins_in_a_slice(server: Server, spark: SparkSession) -> None:
    sink = start(server, spark)
    frame = spark.range(0, 3000, 1, 3).selectExpr(
        "cast(id % 7 as int) AS id", "cast(id as string) AS v"
    )
    rows = Tables([Rows.of("shop.t", frame)])
    sink.commit(CommitId("u", 1), sink.write(rows, Staging("1", "t", 1, 1, "i")))
    assert content(server) == [(k, str(max(range(k, 3000, 7)))) for k in range(7)]


def test_a_changelog_is_applied_in_its_order(server: Server, spark: SparkSession) -> None:
    sink = start(server, spark, CHANGES)
    first = [(n, "old", "INSERT", n) for n in range(1, 7)]
    sink.commit(CommitId("u", 1), stage(sink, spark, first, 1, CHANGES))
    changes = [
        (1, "old", "UPDATE_BEFORE", 10), (1, "new", "UPDATE_AFTER", 11),
        (2, None, "DELETE", 12),
        (3, "old", "UPDATE_BEFORE", 13), (9, "moved", "UPDATE_AFTER", 14),
        (4, None, "DELETE", 15), (4, "again", "INSERT", 16),
        (5, "x", "UPDATE_AFTER", 17), (5, "x", "DELETE", 18),
        (7, "seven", "INSERT", 19), (7, "seven", "DELETE", 20),
    ]  # fmt: skip
    made = stage(sink, spark, changes, 2, CHANGES, partitions=4)
    made += stage(sink, spark, [(6, None, "DELETE", 21), (8, "eight", "INSERT", 22)], 3, CHANGES)
    for _ in range(2):
        sink.commit(CommitId("u", 2), made)
    assert content(server) == [(1, "new"), (4, "again"), (8, "eight"), (9, "moved")]


def test_columns_that_the_stream_does_not_have_are_kept(
    server: Server, spark: SparkSession
) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(9), note varchar(9))")
    server.run("INSERT INTO t VALUES (1, 'a', 'keep')")
    sink = start(server, spark)
    sink.commit(CommitId("u", 1), stage(sink, spark, [(1, "b"), (2, "b")], 1))
    assert sorted(server.run("SELECT * FROM t")) == [(1, "b", "keep"), (2, "b", None)]


def test_a_table_of_nothing_but_keys(server: Server, spark: SparkSession) -> None:
    sink = server.sink(table="t", primary_keys=["id", "v"])
    for number in (1, 2):
        made = stage(sink, spark, [(1, "a"), (1, "b"), (1, "a")], number)
        sink.commit(CommitId("u", number), made)
    assert content(server) == [(1, "a"), (1, "b")]


def test_without_upsert_a_key_that_is_there_fails(server: Server, spark: SparkSession) -> None:
    sink = start(server, spark, enable_upsert=False)
    sink.commit(CommitId("u", 1), stage(sink, spark, [(1, "a")], 1))
    made = stage(sink, spark, [(1, "b"), (2, "b")], 2)
    with pytest.raises(UserError, match=r"(?i)duplicate"):
        sink.commit(CommitId("u", 2), made)
    assert content(server) == [(1, "a")]


def test_a_table_without_the_key_is_refused(server: Server, spark: SparkSession) -> None:
    server.run("CREATE TABLE t (id int, v varchar(9), PRIMARY KEY (id, v))")
    with pytest.raises(UserError, match=r"no primary key or unique index .* \(it has: id, v\)"):
        start(server, spark)


def test_a_query_inserts(server: Server, spark: SparkSession) -> None:
    server.run("CREATE TABLE t (id int, v varchar(20), at date)")
    sink = server.sink(
        query="insert into t(v, id, at) values (concat('<', ?, '>'), ? + 1, '2024-01-31')"
    )
    frame = spark.createDataFrame([("a", 1), ("b", 2)], "x string, y int")
    rows = Rows.of("shop.t", frame)
    sink.prepare([rows.table])
    made = sink.write(Tables([rows]), Staging("1", "t", 1, 1, "i"))
    for _ in range(2):
        sink.commit(CommitId("u", 1), made)
    assert content(server) == [(2, "<a>"), (3, "<b>")]


def test_a_query_updates_in_order(server: Server, spark: SparkSession) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))")
    tail = {
        "postgresql": "ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v",
        "mysql": "ON DUPLICATE KEY UPDATE v = VALUES(v)",
    }[server.kind]
    sink = server.sink(query=f"INSERT INTO t VALUES (:id, :v) {tail}")
    frame = spark.range(0, 100, 1, 3).selectExpr("cast(id % 3 as int) id", "string(id) v", "1 z")
    made = sink.write(Tables([Rows.of("shop.t", frame)]), Staging("1", "t", 1, 1, "i"))
    sink.commit(CommitId("u", 1), made)
    assert content(server) == [(0, "99"), (1, "97"), (2, "98")]
