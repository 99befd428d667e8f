"""Every row once: ledger, chunks, crashes, broken lines, leftovers; and the save modes."""

import importlib
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Leftovers, Opening, Staging
from holdfast.connectors.jdbc.database import Session
from holdfast.connectors.jdbc.staged_rows import content_of
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from tests.conformance.servers import Postgres
from tests.unit.connectors.jdbc.conftest import Server
from tests.unit.connectors.opening import open_tables

pytestmark = pytest.mark.spark

TABLE = Table(TablePath("t", "shop"), (Column("id", Type("bigint")), Column("v", Type("string"))))


def stage(
    sink: JdbcSink, spark: SparkSession, ids: range, number: int = 1, path: str = "shop.t",
    attempt: int = 1, life: str = "i",
) -> list[Committable]:  # fmt: skip
    frame = spark.range(ids.start, ids.stop, 1, 2).selectExpr("id", "concat('v', id) AS v")
    staging = Staging("1", "task", attempt, number, life)
    return list(sink.write(Tables([Rows.of(path, frame)]), staging))


def ids(server: Server, table: str = "t") -> list[int]:
    return sorted(number for (number,) in server.run(f"SELECT id FROM {table}"))


def test_only_chunks_that_spark_reported_count(server: Server, spark: SparkSession) -> None:
    sink = server.sink(table="t")
    made = stage(sink, spark, range(4))
    (one,) = [content_of(c) for c in made]
    assert (made[0].rows, len(one.chunks)) == (4, 2)
    # As if a task had run again after its transaction.
    server.run(
        f"INSERT INTO {one.staged} (c0, c1, holdfast_chunk)"
        f" SELECT c0, c1, 999 FROM {one.staged} WHERE holdfast_chunk = {one.chunks[0]}"
    )
    sink.commit(CommitId("u", 1), made)
    assert ids(server) == [0, 1, 2, 3]


def test_tables_of_a_commit_show_together(server: Server, spark: SparkSession) -> None:
    sink = server.sink(table="out_${table_name}")
    made = stage(sink, spark, range(3), 1, "shop.a") + stage(sink, spark, range(2), 2, "shop.b")
    server.run("ALTER TABLE out_b ADD CONSTRAINT small CHECK (id < 1)")
    with pytest.raises(UserError, match="small"):
        sink.commit(CommitId("u", 1), made)
    assert (ids(server, "out_a"), ids(server, "out_b")) == ([], [])
    server.run("ALTER TABLE out_b DROP CONSTRAINT small")
    sink.commit(CommitId("u", 1), made)
    assert (ids(server, "out_a"), ids(server, "out_b")) == ([0, 1, 2], [0, 1])


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_line_that_breaks_at_the_commit(
    server: Server, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, applied: bool,
    attempts: int,
) -> None:  # fmt: skip
    sink = server.sink(table="t", max_commit_attempts=attempts)
    sink.prepare([TABLE])
    made = stage(sink, spark, range(3))
    whole, broken = Session.run, threading.Event()

    def run(self: Session, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        if statement == "COMMIT" and not broken.is_set():
            broken.set()
            if applied:
                whole(self, statement)
            raise Unavailable("the line is down")
        return whole(self, statement, values)

    monkeypatch.setattr(Session, "run", run)
    if attempts == 1:
        with pytest.raises(OutcomeUnknown):
            sink.commit(CommitId("u", 1), made)
        assert ids(server) == ([0, 1, 2] if applied else [])
    sink.commit(CommitId("u", 1), made)
    assert ids(server) == [0, 1, 2]
    assert server.staged() == []


def test_staged_rows_that_are_missing_are_noticed(server: Server, spark: SparkSession) -> None:
    for keys in ([], ["id"]):
        sink = server.sink(table=f"t{len(keys)}", primary_keys=keys)
        made = stage(sink, spark, range(5), 1 + len(keys))
        server.run(f"DELETE FROM {content_of(made[0]).staged} WHERE c0 = 3")
        with pytest.raises(UserError, match="has 4 rows of 5"):
            sink.commit(CommitId("u", 1), made)
        assert ids(server, f"t{len(keys)}") == []


def test_staged_rows_survive_a_crash_of_the_server(
    postgres: Server, postgres_server: Postgres, spark: SparkSession
) -> None:
    sink = postgres.sink(table="t")
    made = stage(sink, spark, range(100))
    postgres_server.stop()
    with pytest.raises(Unavailable):
        sink.commit(CommitId("u", 1), made)
    postgres_server.start()
    sink.commit(CommitId("u", 1), made)
    assert ids(postgres) == list(range(100))


def test_the_watermark_is_kept_and_never_goes_back(server: Server, spark: SparkSession) -> None:
    sink = server.sink(table="t")
    for number, mark in enumerate((None, 7, 5, None), 1):
        sink.commit(CommitId("u", number, mark), [])
    assert server.run("SELECT commit_user, number, watermark FROM holdfast_commit") == [("u", 4, 7)]


def test_only_leftovers_are_swept(server: Server, spark: SparkSession) -> None:
    sink = server.sink(table="t")
    stage(sink, spark, range(2), 1, attempt=1)
    kept = stage(sink, spark, range(2, 4), 2, attempt=2)
    sink.sweep(Leftovers("1", "i", "task", 2))
    assert server.staged() == [content_of(kept[0]).staged]
    sink.sweep(Leftovers("1", "other"))
    sink.commit(CommitId("u", 1), kept)
    stage(sink, spark, range(2), 3)
    sink.sweep(Leftovers("1", "i"))
    assert server.staged() == []
    assert ids(server) == [2, 3]


def test_a_task_that_nobody_waits_for_is_cut_off(postgres: Server, spark: SparkSession) -> None:
    sink = postgres.sink(table="t")
    made = stage(sink, spark, range(2))
    with sink.database.session("stage") as zombie:
        zombie.run("BEGIN")
        zombie.run(
            f"INSERT INTO {content_of(made[0]).staged} (c0, c1, holdfast_chunk) VALUES (9, '', 999)"
        )
        sink.commit(CommitId("u", 1), made)
        assert ids(postgres) == [0, 1]
        assert postgres.staged() == []


def test_save_modes(server: Server) -> None:
    def prepare(**options: Any) -> None:
        server.sink(table="t", **options).prepare([TABLE])

    with pytest.raises(UserError, match="no such table"):
        prepare(schema_save_mode="ERROR_WHEN_SCHEMA_NOT_EXIST")
    prepare(data_save_mode="ERROR_WHEN_DATA_EXISTS")
    server.run("INSERT INTO t VALUES (1, 'a')")
    prepare()
    with pytest.raises(UserError, match="there are rows in it"):
        prepare(data_save_mode="ERROR_WHEN_DATA_EXISTS")
    script = "INSERT INTO t VALUES (2, 'b;%s'); DELETE FROM t WHERE id = 1"
    custom = {"data_save_mode": "CUSTOM_PROCESSING", "custom_sql": script}
    for modes in (custom, {"data_save_mode": "DROP_DATA"}, {"schema_save_mode": "RECREATE_SCHEMA"}):
        prepare(**modes)
        assert ids(server) == [1], "nothing is changed before the first commit"
    open_tables(server.sink(table="t", **custom), [TABLE])
    assert server.run("SELECT * FROM t") == [(2, "b;%s")]
    open_tables(server.sink(table="t", data_save_mode="DROP_DATA"), [TABLE])
    assert ids(server) == []
    open_tables(server.sink(table="t", data_save_mode="ERROR_WHEN_DATA_EXISTS"), [TABLE])
    server.run("ALTER TABLE t ADD COLUMN more int")
    open_tables(server.sink(table="t", schema_save_mode="RECREATE_SCHEMA"), [TABLE])
    assert server.run("SELECT * FROM t") == []
    server.run("INSERT INTO t VALUES (1, 'a')")


def test_a_table_is_made_anew_with_its_first_rows(server: Server, spark: SparkSession) -> None:
    server.run("CREATE TABLE t (id date, other int NOT NULL)")
    anew = partial(server.sink, table="t", schema_save_mode="RECREATE_SCHEMA")
    one, known = anew(), frozenset({str(TABLE.path)})
    due = one.prepare([TABLE], Opening("1.i"))
    first = stage(one, spark, range(2))
    again = anew()  # an attempt that goes on from a checkpoint which is not visible yet
    again.prepare([TABLE], Opening("1.i", known))
    second = stage(again, spark, range(2, 4), attempt=2)
    assert server.run("SELECT * FROM t") == []
    one.commit(CommitId("1.i.1.s", 1), [*due, *first])
    one.commit(CommitId("1.i.1.s", 2), second)
    one.commit(CommitId("1.i.1.s", 1), [*due, *first])
    assert ids(server) == [0, 1, 2, 3]
    later = anew()
    assert later.prepare([TABLE], Opening("1.y", known, known)) == []
    one.commit(CommitId("1.y.1.s", 1), stage(later, spark, range(4, 6), attempt=3, life="y"))
    assert ids(server) == [0, 1, 2, 3, 4, 5]


def test_differences_are_named(server: Server) -> None:
    server.run("CREATE TABLE t (id date, other int NOT NULL, filled int NOT NULL DEFAULT 1)")
    with pytest.raises(UserError) as said:
        server.sink(table="t").prepare([TABLE])
    message = str(said.value)
    assert "column v is not in the table, which has id, other, filled" in message
    assert "column other of the table may not be null" in message
    assert "column id is bigint in the stream and date in the table" in message
    assert "filled of" not in message


def test_schemas_and_databases_are_made(server: Server, spark: SparkSession) -> None:
    named = {"table": "sales.t"} if server.kind == "postgresql" else {"database": "sales"}
    sink = server.sink(**{"table": "t", **named})
    sink.prepare([TABLE])
    sink.commit(CommitId("u", 1), stage(sink, spark, range(3)))
    assert ids(server, "sales.t") == [0, 1, 2]


def test_an_engine_without_transactions_is_refused(mariadb: Server) -> None:
    mariadb.run("CREATE TABLE t (id bigint, v text) ENGINE=MyISAM")
    with pytest.raises(UserError, match="no transactions"):
        mariadb.sink(table="t").prepare([TABLE])


def test_who_may_not_and_what_is_not_there(server: Server) -> None:
    with pytest.raises(UserError, match=r"(?i)nowhere"):
        server.sink(table="t", url=server.url.replace("/postgres?", "/nowhere?").replace(
            "/test?", "/nowhere?")).prepare([TABLE])  # fmt: skip
    sink = server.sink(table="t")
    address = replace(sink.options.address, hosts=(("127.0.0.1", 1),))
    with (
        pytest.raises(Unavailable, match=r"127\.0\.0\.1"),
        replace(sink.database, address=address).session("commit"),
    ):
        pass


def test_a_missing_driver_is_named(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    for url, extra in (("jdbc:mysql://h/x", "mysql"), ("jdbc:postgresql://h/x", "postgres")):
        with pytest.raises(UserError, match=rf"pip install 'holdfast\[{extra}\]'"):
            make(JdbcSink, {"url": url, "table": "t"}).prepare([TABLE])
