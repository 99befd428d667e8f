"""What the Jdbc sink reads from a job file, before it meets a server."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.connectors.jdbc.address import read_url
from holdfast.connectors.jdbc.query import read_insert
from holdfast.connectors.jdbc.target import target_of
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.errors import UserError
from holdfast.model.table import Column, Key, Table, TablePath
from holdfast.model.types import Type

PG = "jdbc:postgresql://db:5433/shop"
TABLE = Table(
    TablePath("orders", "shop", "public"), (Column("Id", Type("int")), Column("b", Type("string")))
)


@pytest.mark.parametrize(
    ("url", "kind", "hosts", "database"),
    [
        (PG, "postgresql", (("db", 5433),), "shop"),
        ("jdbc:postgresql://a,b:7/x?ssl=true", "postgresql", (("a", 5432), ("b", 7)), "x"),
        ("jdbc:postgresql://[::1]:6/x", "postgresql", (("::1", 6),), "x"),
        ("jdbc:postgresql:x", "postgresql", (("localhost", 5432),), "x"),
        ("jdbc:mysql://h/x%20y?useSSL=false", "mysql", (("h", 3306),), "x y"),
        ("jdbc:mariadb://h:1/", "mariadb", (("h", 1),), ""),
    ],
)
def test_a_url_is_read(url: str, kind: str, hosts: Any, database: str) -> None:
    read = read_url(url)
    assert (read.kind, read.hosts, read.database) == (kind, hosts, database)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "postgres://x/y"}, "is no jdbc: URL"),
        ({"url": "jdbc:oracle:thin:@x"}, "names a oracle database"),
        ({"url": "jdbc:mysql://a,b/x"}, "names 2 hosts"),
        ({"url": "jdbc:mysql://a/"}, "names no database"),
        ({"url": "jdbc:mysql://a/", "database": "${database_name}"}, "names no database"),
        ({"url": PG, "table": None}, "give 'table'"),
        ({"url": PG, "query": "update t set a = ?"}, "not one INSERT"),
        ({"url": PG, "query": "insert into t(a) values (?), (?)"}, "one VALUES"),
        ({"url": PG, "query": "insert into t(a, b) values (?, :b)"}, "both ? and :name"),
        ({"url": PG, "query": "insert into t(a) values (1)"}, "no ?"),
        ({"url": PG, "data_save_mode": "CUSTOM_PROCESSING"}, "needs custom_sql"),
    ],
)
def test_mistakes_are_named(mistakes: Callable[..., list[str]], given: Any, said: str) -> None:
    options = {k: v for k, v in {"table": "t", **given}.items() if v is not None}
    (message,) = mistakes(JdbcSink, options)
    assert said in message


def test_secrets_are_not_shown(make: Callable[..., Any]) -> None:
    options = {"url": PG, "table": "t", "password": "hush", "properties": {"sslpassword": "hush"}}
    sink = make(JdbcSink, options)
    assert "hush" not in repr(sink.options)
    assert "hush" not in repr(sink.database)
    assert sink.options.address.password == "hush"


@pytest.mark.parametrize(
    ("given", "table"),
    [
        ({"table": "t"}, ("t",)),
        ({"table": "sales.t", "database": "shop"}, ("sales", "t")),
        ({"table": "shop.sales.t"}, ("sales", "t")),
        ({"table": "${schema_name}.x_${table_name}"}, ("public", "x_orders")),
        ({"generate_sink_sql": True}, ("orders",)),
        ({"url": "jdbc:mysql://h/shop", "table": "t", "database": "shop"}, ("t",)),
        ({"url": "jdbc:mysql://h/shop", "table": "t", "database": "other"}, ("other", "t")),
        ({"url": "jdbc:mysql://h/shop", "table": "other.t"}, ("other", "t")),
    ],
)
def test_a_table_is_named(make: Callable[..., Any], given: Any, table: tuple[str, ...]) -> None:
    sink = make(JdbcSink, {"url": PG, **given})
    assert target_of(sink.options_for(TABLE), TABLE, TABLE.names).table == table


def test_keys_come_from_options_or_the_stream(make: Callable[..., Any]) -> None:
    def keys(table: Table = TABLE, **given: Any) -> tuple[str, ...]:
        options = make(JdbcSink, {"url": PG, "table": "t", **given}).options_for(table)
        return target_of(options, table, table.names).keys

    keyed = Table(TABLE.path, TABLE.columns, primary_key=Key("pk", ("Id",)))
    assert keys() == ()
    assert keys(keyed) == ("Id",)
    assert keys(primary_keys=["b"]) == ("b",)
    assert keys(keyed, primary_keys=["${primary_key}"], field_ide="LOWERCASE") == ("id",)
    assert keys(keyed, enable_upsert=False) == ()
    with pytest.raises(UserError, match="primary_keys has x"):
        keys(primary_keys=["x"])
    with pytest.raises(UserError, match="Give primary_keys"):
        keys(Table(TABLE.path, TABLE.columns, changelog=True))


def test_another_database_of_postgres_is_refused(make: Callable[..., Any]) -> None:
    options = make(JdbcSink, {"url": PG, "table": "t", "database": "other"}).options
    with pytest.raises(UserError, match="not that of url"):
        target_of(options, TABLE, TABLE.names)


def test_a_query_must_fit_the_stream(make: Callable[..., Any]) -> None:
    def target(query: str, table: Table = TABLE) -> Any:
        return target_of(make(JdbcSink, {"url": PG, "query": query}).options, table, table.names)

    assert target("insert into T(x, y) values (?, ?)").columns == ("x", "y")
    assert target("insert into t values (:b)").sources == ("b",)
    with pytest.raises(UserError, match=r"1 \? in it, and shop.public.orders has 2 columns"):
        target("insert into t(x) values (?)")
    with pytest.raises(UserError, match="wants :z"):
        target("insert into t(x) values (:z)")
    with pytest.raises(UserError, match="updates and deletes"):
        changes = Table(TABLE.path, TABLE.columns, changelog=True)
        target("insert into t(x, y) values (?, ?)", changes)


def test_a_query_reads_a_staging_table() -> None:
    insert = read_insert(
        'INSERT INTO "T" (a, b) VALUES (?, lower(?)) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b',
        "postgresql",
    )
    assert insert.places == (0, None)
    assert insert.conflict == ("a",)
    assert insert.select_from("FROM s", ["c0", "c1"]) == (
        'INSERT INTO "T" (a, b) SELECT "c0", LOWER("c1") FROM s'
        " ON CONFLICT(a) DO UPDATE SET b = EXCLUDED.b"
    )
