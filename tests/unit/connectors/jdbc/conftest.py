"""Real servers, and sinks for tables of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pymysql
import pytest

from holdfast.connectors.jdbc.writer import JdbcSink
from tests.conformance.mariadb import MariaDb, NoMariaDb
from tests.conformance.servers import Postgres

Make = Callable[..., JdbcSink]


@dataclass
class Server:
    """A database to test with; `run` goes around the sink, by the driver alone."""

    kind: str
    url: str
    connect: Callable[[], Any]
    make: Callable[..., Any]

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def sink(self, **options: Any) -> JdbcSink:
        given = {"url": self.url, "user": "root", "password": "hush", **options}
        if self.kind == "postgresql":
            given["user"] = "postgres"
        made = self.make(JdbcSink, given)
        assert isinstance(made, JdbcSink)
        return made

    def staged(self) -> list[str]:
        pattern = "'holdfast\\_stage\\_%'"
        found = self.run(
            f"SELECT table_name FROM information_schema.tables WHERE table_name LIKE {pattern}"
        )
        return [name for (name,) in found]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    server = Postgres()
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDb]:
    try:
        server = MariaDb()
    except NoMariaDb as error:
        pytest.fail(f"There is no MariaDB server, and none could be fetched: {error}")
    server.start()
    yield server
    server.remove()


@pytest.fixture
def postgres(postgres_server: Postgres, make: Callable[..., Any]) -> Server:
    """An empty PostgreSQL database."""

    def connect() -> Any:
        return psycopg.connect(postgres_server.url, autocommit=True)

    url = f"jdbc:postgresql://127.0.0.1:{postgres_server.port}/postgres?reWriteBatchedInserts=true"
    server = Server("postgresql", url, connect, make)
    server.run("DROP SCHEMA IF EXISTS sales CASCADE")
    server.run("DROP SCHEMA public CASCADE")
    server.run("CREATE SCHEMA public")
    return server


@pytest.fixture
def mariadb(mariadb_server: MariaDb, make: Callable[..., Any]) -> Server:
    """An empty MariaDB database."""
    url = f"jdbc:mysql://127.0.0.1:{mariadb_server.port}/test?useSSL=false"
    server = Server("mysql", url, mariadb_server.connect, make)
    connection: pymysql.connections.Connection[Any] = mariadb_server.connect(database=None)
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS sales")
        cursor.execute("DROP DATABASE test")
        cursor.execute("CREATE DATABASE test CHARACTER SET utf8mb4")
    connection.close()
    return server


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    """Each of the two."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Server)
    return found
