"""Jdbc keeps the contract of sinks on real servers; the drivers read what it has written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psycopg
import pymysql
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Committable
from holdfast.connectors.jdbc.database import Database
from holdfast.connectors.jdbc.options import JdbcDataSaveMode, JdbcSinkOptions
from holdfast.connectors.jdbc.staged_rows import content_of
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.connectors.save_modes import SchemaSaveMode
from holdfast.model.job import Mode
from holdfast.model.secret import Secret
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.mariadb import MariaDb, NoMariaDb
from tests.conformance.servers import Postgres
from tests.conformance.sink_checks import ALL, LONG, OPENINGS


@dataclass(frozen=True)
class Place:
    """A server and a table of it; plain data, sent to other processes."""

    kind: str
    port: int
    table: str
    keys: tuple[str, ...] = ()

    def connect(self) -> "psycopg.Connection[tuple[object, ...]] | pymysql.Connection[object]":
        if self.kind == "postgresql":
            return psycopg.connect(
                f"postgres://postgres@127.0.0.1:{self.port}/postgres", autocommit=True
            )
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", password="hush", database="test",
            autocommit=True,
        )  # fmt: skip

    def run(self, statement: str) -> list[tuple[int, str]]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)  # type: ignore[arg-type]
            return list(cursor.fetchall()) if cursor.description else []  # type: ignore[arg-type]
        finally:
            connection.close()


class Impatient(JdbcSink):
    """A sink whose server ends a transaction soon that a frozen leader has left open."""

    @property
    def database(self) -> Database:
        return replace(super().database, idle_s=1)


def open_sink(place: Place, **modes: Any) -> JdbcSink:
    database = "postgres" if place.kind == "postgresql" else "test"
    options = JdbcSinkOptions(
        url=f"jdbc:{place.kind}://127.0.0.1:{place.port}/{database}",
        user="postgres" if place.kind == "postgresql" else "root",
        password=Secret("hush"),
        table=place.table,
        primary_keys=list(place.keys) or None,
        **modes,
    )
    return Impatient(options, PluginContext("check", "check", "Sink[0]-Jdbc", Mode.STREAMING))


def read(place: Place) -> Iterable[tuple[int, str]]:
    return place.run(f"SELECT id, name FROM {place.table}")


def lose(place: Place, committables: Sequence[Committable]) -> None:
    """Drop the last table that was staged."""
    place.run(f"DROP TABLE {content_of(committables[-1]).tables[-1]}")


def put(place: Place, rows: Sequence[tuple[int, str]]) -> None:
    listed = ", ".join(f"({number}, '{name}')" for number, name in rows)
    place.run(f"INSERT INTO {place.table} (id, name) VALUES {listed}")


def staged(place: Place) -> int:
    found = place.run(
        "SELECT table_name, 1 FROM information_schema.tables"
        " WHERE table_name LIKE 'holdfast\\_stage\\_%'"
    )
    return len(found)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """A MariaDB server.  Without one, these tests fail and say why."""
    try:
        server = MariaDb()
    except NoMariaDb as error:
        pytest.fail(f"There is no MariaDB server, and none could be fetched: {error}")
    server.start()
    yield server
    server.remove()


def world(spark: SparkSession, place: Place, **modes: Any) -> SinkWorld:
    modes = modes or {"data_save_mode": JdbcDataSaveMode.DROP_DATA}
    for table, _ in place.run(
        "SELECT table_name, 1 FROM information_schema.tables"
        " WHERE table_name LIKE 'holdfast\\_stage\\_%'"
    ):
        place.run(f"DROP TABLE {table}")
    place.run(f"DROP TABLE IF EXISTS {place.table}, holdfast_commit")
    return SinkWorld(
        spark,
        partial(open_sink, place),
        partial(read, place),
        lose=partial(lose, place),
        foreign=partial(put, place),
        staged=partial(staged, place),
        emptying=partial(open_sink, place, **modes),
    )


@pytest.mark.parametrize("check", ALL)
def test_postgres(check: SinkCheck, spark: SparkSession, postgres: Postgres) -> None:
    print(run_sink_check(check, world(spark, Place("postgresql", postgres.port, "checked"))))


@pytest.mark.parametrize("check", LONG)
def test_postgres_by_key(check: SinkCheck, spark: SparkSession, postgres: Postgres) -> None:
    place = Place("postgresql", postgres.port, "checked_by_key", ("id",))
    print(run_sink_check(check, world(spark, place)))


@pytest.mark.parametrize("check", LONG)
def test_mariadb(check: SinkCheck, spark: SparkSession, mariadb: MariaDb) -> None:
    print(run_sink_check(check, world(spark, Place("mariadb", mariadb.port, "checked"))))


@pytest.mark.parametrize("check", LONG)
def test_mariadb_by_key(check: SinkCheck, spark: SparkSession, mariadb: MariaDb) -> None:
    place = Place("mariadb", mariadb.port, "checked_by_key", ("id",))
    print(run_sink_check(check, world(spark, place)))


@pytest.mark.parametrize("check", OPENINGS)
def test_postgres_makes_tables_anew(
    check: SinkCheck, spark: SparkSession, postgres: Postgres
) -> None:
    print(run_sink_check(check, anew(spark, Place("postgresql", postgres.port, "checked"))))


@pytest.mark.parametrize("check", OPENINGS)
def test_mariadb_makes_tables_anew(check: SinkCheck, spark: SparkSession, mariadb: MariaDb) -> None:
    print(run_sink_check(check, anew(spark, Place("mariadb", mariadb.port, "checked"))))


def anew(spark: SparkSession, place: Place) -> SinkWorld:
    return world(spark, place, schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA)
