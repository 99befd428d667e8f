"""`check --connect` at real databases: what it finds, that its GRANTs mend it, no change."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.connectors.jdbc.database import Needs
from holdfast.connectors.jdbc.prepare import look_at
from holdfast.connectors.jdbc.rights import missing_grants
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.model.table import Table
from tests.conformance.servers import Postgres, free_ports
from tests.unit.connectors.jdbc.conftest import Server

DDL = "id int, v string"
CHANGES = f"{DDL}, __kind string, __seq bigint"
MEND = re.compile(r"Mend it with: (.+)$")


def sink_of(server: Server, **options: Any) -> JdbcSink:
    """Return a sink of a user who has only the rights that a test gives."""
    given = {"url": server.url, "user": "shop", "password": "pw", "table": "t", **options}
    made = server.make(JdbcSink, given)
    assert isinstance(made, JdbcSink)
    return made


@pytest.fixture
def bare(server: Server) -> Server:
    """A server with a user `shop`, who may log in and nothing else."""
    if server.kind == "postgresql":
        if server.run("SELECT 1 FROM pg_roles WHERE rolname = 'shop'"):
            server.run("DROP OWNED BY shop")
            server.run("DROP ROLE shop")
        server.run("CREATE ROLE shop LOGIN PASSWORD 'pw'")
        server.run("GRANT USAGE ON SCHEMA public TO shop")
    else:
        server.run("DROP USER IF EXISTS shop@'%'")
        server.run("CREATE USER shop@'%' IDENTIFIED BY 'pw'")
        # Without any right on it, nobody may connect to a database of MariaDB.
        server.run("CREATE TABLE test.door (id int)")
        server.run("GRANT SELECT ON test.door TO shop@'%'")
    return server


def table_of(spark: SparkSession, ddl: str = DDL) -> Table:
    return Rows.of("shop.t", spark.createDataFrame([], ddl)).table


def said_by(sink: JdbcSink, tables: Sequence[Table]) -> list[str]:
    """Return what a look says, the error that ends it as the last."""
    found: list[str] = []
    try:
        for said in look_at(sink.database, [(sink.options_for(t), t) for t in tables]):
            found.append(said)
    except HoldfastError as error:
        found.append(str(error))
    return found


def everything(server: Server) -> list[tuple[Any, ...]]:
    """Return every schema and table there is, and every right on one."""
    ours = "NOT IN ('information_schema', 'pg_catalog', 'pg_toast', 'mysql', 'sys')"
    found = server.run(
        f"SELECT schema_name, '' FROM information_schema.schemata WHERE schema_name {ours}"
    )
    found += server.run(
        f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema {ours}"
    )
    return sorted(found)


def test_a_wrong_password_is_said_once_with_what_mends_it(
    bare: Server, postgres_server: Postgres, spark: SparkSession
) -> None:
    if bare.kind == "postgresql":  # whose tests trust everybody: not this one
        rules = postgres_server.data / "pg_hba.conf"
        trusting = rules.read_text()
        rules.write_text(f"host all shop 127.0.0.1/32 scram-sha-256\n{trusting}")
        bare.run("SELECT pg_reload_conf()")
    try:
        sink = sink_of(bare, password="wrong", table="${table_name}")
        both = [table_of(spark), replace(table_of(spark), comment="another")]
        (said,) = said_by(sink, both)
        # The right one gets in.
        assert "user and password" not in " ".join(said_by(sink_of(bare), both))
    finally:
        if bare.kind == "postgresql":
            rules.write_text(trusting)
            bare.run("SELECT pg_reload_conf()")
    assert "shop" in said and "Check user and password" in said
    assert "wrong" not in said, "no secret is told"


def test_no_route_and_no_database(bare: Server, spark: SparkSession) -> None:
    (port,) = free_ports(1)
    away = re.sub(r":\d+/", f":{port}/", bare.url)
    with pytest.raises(Unavailable, match="Check host and port in url"):
        list(sink_of(bare, url=away).look([], spark))
    there = re.sub(r"/(postgres|test)\?", "/nowhere?", bare.url)
    user = "postgres" if bare.kind == "postgresql" else "root"
    with pytest.raises(UserError, match=r"nowhere.*Create that database, or correct url"):
        list(sink_of(bare, url=there, user=user, password="hush").look([], spark))


def test_a_run_without_a_right_says_which_and_shows_no_statement(
    bare: Server, spark: SparkSession
) -> None:
    with pytest.raises(UserError) as refused:
        sink_of(bare, table="t").prepare([table_of(spark)])
    said = str(refused.value)
    assert "lacks" in said and MEND.search(said)
    assert "CREATE TABLE" not in said and "LINE" not in said, "our statements mend nothing"


def test_a_run_that_gets_in_nowhere_says_what_mends_it(bare: Server, spark: SparkSession) -> None:
    (port,) = free_ports(1)
    away = re.sub(r":\d+/", f":{port}/", bare.url)
    with pytest.raises(Unavailable, match=r"refused.*Check host and port in url") as refused:
        sink_of(bare, url=away, table="t").prepare([table_of(spark)])
    assert "Is the server running" not in str(refused.value)


def test_without_tables_the_login_and_the_staging_are_looked_at(
    bare: Server, spark: SparkSession
) -> None:
    (said,) = said_by(sink_of(bare), [])
    assert "lacks" in said and MEND.search(said)


def test_a_missing_table_that_nobody_makes(server: Server, spark: SparkSession) -> None:
    before = everything(server)
    modes = {"schema_save_mode": "ERROR_WHEN_SCHEMA_NOT_EXIST"}
    (said,) = list(server.sink(table="t", **modes).look([table_of(spark)], spark))
    assert "has no such table" in said and "Create it" in said
    assert everything(server) == before, "no table, no ledger, no schema"


def test_what_is_missing_is_not_made(server: Server, spark: SparkSession) -> None:
    before = everything(server)
    modes = {"schema_save_mode": "RECREATE_SCHEMA"}, {"data_save_mode": "DROP_DATA"}
    for options in ({"table": "sales.t"}, *({"table": "t", **mode} for mode in ({}, *modes))):
        assert list(server.sink(**options).look([table_of(spark)], spark)) == []
    assert everything(server) == before


def test_rows_that_are_there_stay(server: Server, spark: SparkSession) -> None:
    server.run("CREATE TABLE t (id int, v varchar(9))")
    server.run("INSERT INTO t VALUES (1, 'a')")
    table = table_of(spark)
    for mode in ("DROP_DATA", "APPEND_DATA"):
        assert list(server.sink(table="t", data_save_mode=mode).look([table], spark)) == []
    anew = server.sink(table="t", schema_save_mode="RECREATE_SCHEMA", primary_keys=["id"])
    assert list(anew.look([table], spark)) == [], "what differs is made anew"
    (said,) = server.sink(table="t", data_save_mode="ERROR_WHEN_DATA_EXISTS").look([table], spark)
    assert "there are rows in it" in said
    assert server.run("SELECT id, v FROM t") == [(1, "a")]


def test_several_problems_are_told_at_once(bare: Server, spark: SparkSession) -> None:
    bare.run("CREATE TABLE t (id date, more int NOT NULL)")
    if bare.kind == "mysql":
        bare.run("GRANT SELECT ON test.t TO shop@'%'")
    said = " ".join(said_by(sink_of(bare, primary_keys=["id"]), [table_of(spark)]))
    assert "column v is not in the table" in said
    assert "column more of the table may not be null" in said
    assert "column id is int in the stream and date in the table" in said
    assert "GRANT CREATE" in said and "GRANT INSERT" in said


CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    # the table that is there, the sink's options, the stream's columns
    "new table": ("", {}, DDL),
    "new table by key": ("", {"primary_keys": ["id"]}, DDL),
    "new table elsewhere": ("", {"table": "sales.t"}, DDL),
    "append": ("CREATE TABLE t (id int, v varchar(9))", {}, DDL),
    "upsert": ("CREATE TABLE t (id int PRIMARY KEY, v varchar(9))", {"primary_keys": ["id"]}, DDL),
    "keys alone": ("CREATE TABLE t (id int PRIMARY KEY)", {"primary_keys": ["id"]}, "id int"),
    "changelog": (
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(9))", {"primary_keys": ["id"]}, CHANGES,
    ),
    "drop data": ("CREATE TABLE t (id int, v varchar(9))", {"data_save_mode": "DROP_DATA"}, DDL),
    "no data": (
        "CREATE TABLE t (id int, v varchar(9))", {"data_save_mode": "ERROR_WHEN_DATA_EXISTS"}, DDL,
    ),
    "made anew": ("CREATE TABLE t (id int)", {"schema_save_mode": "RECREATE_SCHEMA"}, DDL),
    "query": (
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(9))",
        {"query": "INSERT INTO t (id, v) VALUES (?, ?)", "table": None}, DDL,
    ),
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES)
def test_the_grants_that_it_names_are_all_that_a_job_needs(
    case: str, bare: Server, spark: SparkSession
) -> None:
    """What is granted as it says is enough: it then finds nothing, and a job runs."""
    statement, options, ddl = CASES[case]
    if "elsewhere" in case and bare.kind == "postgresql":
        bare.run("CREATE SCHEMA sales")
    if statement:
        bare.run(statement)
    options = {name: value for name, value in options.items() if value is not None}
    given = sink_of(bare, **options)
    if "query" in options:
        given = server_query(bare, options["query"])
    table = table_of(spark, ddl)
    for _ in range(3):  # with a schema's rights, those of its tables are seen
        said = said_by(given, [table])
        for statement in {m[1] for s in said if (m := MEND.search(s))}:
            bare.run(statement)
        if not said:
            break
    assert said == []
    job(given, spark, table, ddl)
    assert bare.run(f"SELECT count(*) FROM {options.get('table', 't')}") == [(2,)]
    assert said_by(given, [table]) == [] or case == "no data", "its ledger is there now, too"


def server_query(server: Server, query: str) -> JdbcSink:
    given = {"url": server.url, "user": "shop", "password": "pw", "query": query}
    made = server.make(JdbcSink, given)
    assert isinstance(made, JdbcSink)
    return made


def job(sink: JdbcSink, spark: SparkSession, table: Table, ddl: str) -> None:
    """Write two rows as a job does."""
    orders = list(sink.prepare([table]))
    width = len(ddl.split(","))
    values = [(n, "a", "INSERT", n)[:width] for n in (1, 2)]
    rows = Rows.of("shop.t", spark.createDataFrame(values, ddl))
    made = list(sink.write(Tables([rows]), Staging("1", "t", 1, 1, "i")))
    sink.commit(CommitId("u", 1), [*orders, *made])


@pytest.mark.parametrize("missing", ["INSERT", "UPDATE", "SELECT"])
def test_one_right_that_is_missing_is_named_with_its_grant(
    missing: str, postgres: Server, spark: SparkSession
) -> None:
    server = postgres
    if not server.run("SELECT 1 FROM pg_roles WHERE rolname = 'shop'"):
        server.run("CREATE ROLE shop LOGIN PASSWORD 'pw'")
    server.run("GRANT USAGE, CREATE ON SCHEMA public TO shop")
    server.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    server.run("GRANT INSERT, UPDATE, SELECT ON t TO shop")
    server.run(f"REVOKE {missing} ON t FROM shop")
    (said,) = said_by(sink_of(server, primary_keys=["id"]), [table_of(spark)])
    assert said.endswith(
        f'lacks {missing} on table t. Mend it with: GRANT {missing} ON "t" TO "shop"'
    )
    # A right on each of the columns that are written is as good as one on the table.
    server.run(f"GRANT {missing} (id, v) ON t TO shop")
    assert said_by(sink_of(server, primary_keys=["id"]), [table_of(spark)]) == []


def test_a_schema_that_nobody_may_look_into(postgres: Server, spark: SparkSession) -> None:
    if not postgres.run("SELECT 1 FROM pg_roles WHERE rolname = 'shop'"):
        postgres.run("CREATE ROLE shop LOGIN PASSWORD 'pw'")
    postgres.run("GRANT USAGE, CREATE ON SCHEMA public TO shop")
    postgres.run("CREATE SCHEMA sales")
    postgres.run("CREATE TABLE sales.t (id int, v text)")
    said = said_by(sink_of(postgres, table="sales.t"), [table_of(spark)])
    assert "permission denied for schema sales" in said[0]
    assert said[-1].endswith('GRANT USAGE, CREATE ON SCHEMA "sales" TO "shop"')


def test_a_database_that_a_user_may_not_enter(postgres: Server, spark: SparkSession) -> None:
    if not postgres.run("SELECT 1 FROM pg_roles WHERE rolname = 'shop'"):
        postgres.run("CREATE ROLE shop LOGIN PASSWORD 'pw'")
    postgres.run("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC, shop")
    try:
        (said,) = said_by(sink_of(postgres), [])
        grant = MEND.search(said)
        assert grant, said
        postgres.run(grant[1])
        assert "permission denied for database" not in " ".join(said_by(sink_of(postgres), []))
    finally:
        postgres.run("GRANT CONNECT ON DATABASE postgres TO PUBLIC")


def test_a_server_that_takes_no_writes(postgres: Server, spark: SparkSession) -> None:
    sink = sink_of(postgres, url=f"{postgres.url}&options=-c%20default_transaction_read_only=on",
                   user="postgres")  # fmt: skip
    assert "it takes no writes" in " ".join(said_by(sink, []))


ALL = "GRANT ALL PRIVILEGES ON *.* TO `u`@`%`"
ON_T = Needs(ledger=False, table=("t",), there=True, rights=("INSERT", "UPDATE"))


@pytest.mark.parametrize(
    ("grants", "fine"),
    [
        ([ALL], True),
        (["GRANT USAGE ON *.* TO `u`@`%`"], False),
        (["GRANT INSERT, UPDATE ON `shop`.* TO `u`@`%`"], True),
        (["GRANT INSERT ON `shop`.* TO `u`@`%`", "GRANT UPDATE ON `shop`.`t` TO `u`@`%`"], True),
        (["GRANT INSERT, UPDATE ON `sh%`.* TO `u`@`%`"], True),
        (["GRANT INSERT, UPDATE ON `sho_`.* TO `u`@`%`"], True),
        (["GRANT INSERT, UPDATE ON `sho\\_`.* TO `u`@`%`"], False),
        (['GRANT INSERT, UPDATE ON "shop".* TO "u"@"%"'], True),
        (["GRANT INSERT, UPDATE ON SHOP.t TO u@%"], True),
        (["GRANT INSERT, UPDATE ON `a``b`.* TO `u`@`%`"], False),
        (["GRANT INSERT, UPDATE ON `shop`.`%` TO `u`@`%`"], False),
        (["GRANT INSERT (`a`, `b`), UPDATE (`a`) ON `shop`.`t` TO `u`@`%`"], True),
        (["GRANT EXECUTE ON PROCEDURE `shop`.`t` TO `u`@`%`"], False),
        (["GRANT PROXY ON ''@'%' TO `u`@`%`"], False),
        (["GRANT `clerk` TO `u`@`%`", "GRANT USAGE ON *.* TO `u`@`%`"], True),
        (["GRANT INSERT, UPDATE ON `shop`.* TO `u`@`%` WITH GRANT OPTION"], True),
    ],
)
def test_what_show_grants_says_is_read(grants: list[str], fine: bool) -> None:
    said = list(missing_grants(grants, "shop", "u@%", ON_T))
    assert bool(said) is not fine
    assert all(s.endswith("TO 'u'@'%'") for s in said)
