"""The Jdbc sink."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import (
    ANYBODY,
    CommitId,
    Committable,
    Leftovers,
    Opening,
    Sink,
    Staging,
    WritePreview,
    modes_in,
)
from holdfast.connectors.committables import Admitting, CommittableCheck, life_of_user
from holdfast.connectors.jdbc.committer import commit, drop, sweep
from holdfast.connectors.jdbc.database import REFUSED, Database, FoundColumn, Session, StagedTable
from holdfast.connectors.jdbc.dialects.mysql import MySql
from holdfast.connectors.jdbc.dialects.postgres import Postgres
from holdfast.connectors.jdbc.load_task import Chunk
from holdfast.connectors.jdbc.opening import JdbcOrder, is_opened, one_for_each
from holdfast.connectors.jdbc.options import JdbcSinkOptions
from holdfast.connectors.jdbc.prepare import (
    check,
    check_order,
    find_new,
    find_target,
    look_at,
    prepare_table,
)
from holdfast.connectors.jdbc.staged_rows import VERSION, StagedRows, content_of
from holdfast.connectors.jdbc.staging import STAGED, is_apart, load, stage_columns, stage_name
from holdfast.connectors.jdbc.target import Target, check_content, key_of, target_of
from holdfast.connectors.save_modes import SchemaSaveMode
from holdfast.errors import HoldfastError, UserError, UserErrors
from holdfast.model.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("holdfast")

KINDS: dict[str, type[Database]] = {"postgresql": Postgres, "mysql": MySql, "mariadb": MySql}


class JdbcSink(Admitting, Sink[JdbcSinkOptions]):
    """Tables of PostgreSQL, MySQL or MariaDB.  Every row arrives once."""

    name = "Jdbc"
    example = """\
url = "jdbc:postgresql://localhost:5432/shop"
user = "shop"
password = ${?SHOP_PASSWORD}
database = "shop"
table = "public.rows"
"""
    notes = """
No Java driver is needed: `pip install 'holdfast[postgres]'` or `'holdfast[mysql]'` brings the
native ones.

**Exactly once, always.** Spark loads rows into a staging table (`holdfast_stage_...`) that no
reader looks at. When a checkpoint is durable, the leader moves them into the target in one
transaction, which also writes the number of the checkpoint to the table `holdfast_commit`. A
commit that is repeated finds its number there and does nothing. This costs a second write inside
the database, and is done with `is_exactly_once = false` too: without it a job that continues after
a failure would write rows twice. Both tables are in the database of `url`; for PostgreSQL, in the
first schema of the search path (`?currentSchema=`). The user needs the right to create tables
there. Keep `holdfast_commit`; a row of it may go once its job is over for good.

**Keys.** With `primary_keys` (or a key of the stream) rows are inserted or updated, and a
changelog's deletes are applied; the target needs a primary key or unique index on just these
columns. Of several changes of one key in a checkpoint the last one counts: by the changelog's own
sequence where the source has one, else by the order of Spark's partitions and of the rows in
each. Slices follow each other. An update that changes a key deletes the old one.

**Values.** Instants (`timestamp_tz`) are written in UTC. Lists become arrays of PostgreSQL where
the column is one; maps, rows and other lists become JSON. Values that do not fit fail the job
when they are staged, never at the commit; among them are those that the database would round or
cut without a word (`1.005` for `numeric(10,2)`, a moment for a `DATE`, parts of a second for
MySQL's `DATETIME`). Widen the column, or convert the value before (Sql). [Values](../values.md)

**query.** One `INSERT ... VALUES` with `?` or `:name` is turned into an INSERT that reads the
staging table, with its expressions and its ON CONFLICT or ON DUPLICATE KEY part. Other statements
are refused: they could happen more than once. `generate_sink_sql = true` overrides it. Save
modes need `table`.
"""

    def __init__(self, options: JdbcSinkOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._keeps: set[str] = set()  # tables whose columns this incarnation may not choose

    @classmethod
    def keyed(cls, options: JdbcSinkOptions) -> bool:
        """Say whether rows surely go by key: the options name one."""
        return (
            options.generated
            and options.enable_upsert
            and bool(options.primary_keys)
            and not any("${" in key for key in options.primary_keys or ())
        )

    @classmethod
    def destination(cls, options: JdbcSinkOptions, table: Table) -> str:
        """Name the database and its table."""
        named = options.table or ("" if options.query else table.path.table)
        return f"{options.address.shown}{f', table {named}' if named else ''}"

    @classmethod
    def writing(cls, options: JdbcSinkOptions, table: Table) -> WritePreview:
        """Say by which key rows are replaced, or that a query says what they do."""
        if not options.generated:
            return WritePreview(how="each row goes through query")
        upserts = options.enable_upsert or table.changelog
        keys = tuple(options.primary_keys or ()) or key_of(table)
        return WritePreview(keys if upserts else (), modes=modes_in(options))

    def check_libraries(self) -> None:
        """Raise UserError if a library is not here."""
        self.database.check_libraries()

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        target_of(self.options_for(table), table, table.names)

    def look(self, tables: Sequence[Table], spark: "SparkSession") -> Iterator[str]:
        """Log in, compare each table with its stream, and ask for the rights that a job needs."""
        return look_at(self.database, [(self.options_for(t), t) for t in tables])

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Make tables that are missing, and check that the stream fits."""
        database, orders = self.database, []
        self._keeps |= opening.earlier
        with database.session("prepare") as session, self._allowed(tables):
            database.create_ledger(session)
            for table in tables:
                options = self.options_for(table)
                target = target_of(options, table, table.names)
                order = prepare_table(database, session, options, target, table, opening)
                orders += [order.committable(str(table.path))] if order else []
        return orders

    @contextmanager
    def _allowed(self, tables: Sequence[Table]) -> Iterator[None]:
        """Where the server refuses something, say which right is missing, and its GRANT."""
        try:
            yield
        except UserError as error:
            if error.code == REFUSED:
                missing = list(look_at(self.database, [(self.options_for(t), t) for t in tables]))
                if missing:
                    raise UserErrors(missing, code="sink.rights") from error
            raise

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Load each table into a staging table of its own."""
        committables: list[Committable] = []
        try:
            for number, rows in enumerate(tables):
                committables += self._write(
                    rows, StagedTable(stage_name(staging.name, number), staging.name), staging.life
                )
        except BaseException:
            self._drop_quietly(
                [content_of(c) for c in committables]
            )  # no checkpoint will name them
            raise
        return committables

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Move staged rows into their tables, all or none."""
        life = life_of_user(identifier.user)
        staged = [(self._staged(c, life), c.rows) for c in committables if not c.opening]
        orders = one_for_each(self._order(c, life) for c in committables if c.opening)
        check = partial(self._check_owners, identifier, committables)
        commit(self.database, identifier, staged, orders, self.options.max_commit_attempts, check)

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove staging tables."""
        drop(self.database, [self._staged(c) for c in committables if not c.opening])

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove staging tables of a job, or of former attempts of a task of it."""
        sweep(self.database, leftovers)

    @property
    def database(self) -> Database:
        """The server, which each session connects to."""
        address = self.options.address
        return KINDS[address.kind](address, self.options.transaction_timeout_sec)

    def _staged(self, committable: Committable, life: str | None = None) -> StagedRows:
        check = CommittableCheck(self, committable, life)
        return check_content(check, self.options, STAGED)

    def _order(self, committable: Committable, life: str | None) -> JdbcOrder:
        check = CommittableCheck(self, committable, life)
        return check_order(check, self.options, self.database)

    def _check_owners(
        self,
        identifier: CommitId,
        committables: Sequence[Committable],
        there: Sequence[StagedTable],
    ) -> None:
        """Refuse staging tables that another life has made."""
        owners, life = {s.table: s.owner for s in there}, life_of_user(identifier.user)
        for one in (c for c in committables if not c.opening):
            owner = owners.get(content_of(one).staged)
            if owner:
                CommittableCheck(self, one, life).attempt(owner, spelled=False)

    def _write(self, rows: Rows, staged: StagedTable, life: str) -> list[Committable]:
        options, database, table = self.options_for(rows.table), self.database, rows.table
        target = target_of(options, table, table.names)
        with database.session("prepare") as session:
            found = find_target(database, session, options, target, table)
            anew = self._anew(session, options, target, table, life)
            check(database, session, options, target, table, anew)
            found = anew or found
            apart = is_apart(database, rows, target)
            columns = stage_columns(database, target, table, found, apart)
            database.create_stage(session, staged, columns)
        content = _content(staged, target, table, options, tuple(c.name for c in found), apart)
        try:
            chunks = load(database, staged, target, rows, columns, options.batch_size, apart)
        except BaseException:
            self._drop_quietly([content])
            raise
        if not chunks:
            drop(database, [content])
            return []
        return [_committable(content, table, chunks)]

    def _anew(
        self, session: Session, options: JdbcSinkOptions, target: Target, table: Table, life: str
    ) -> list[FoundColumn]:
        """Return the columns that the first commit gives the table; none if they stay."""
        wanted = options.generated and options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
        if not wanted or str(table.path) in self._keeps or is_opened(session, life, target.table):
            return []
        return find_new(session.database, options, table)

    def _drop_quietly(self, contents: Sequence[StagedRows]) -> None:
        """Remove staging tables after something else failed: that failure is the one to report."""
        try:
            drop(self.database, contents)
        except HoldfastError as error:
            log.warning("Staging tables stay until they are swept up: %s", error)


def _content(
    staged: StagedTable,
    target: Target,
    table: Table,
    options: JdbcSinkOptions,
    found: tuple[str, ...],
    apart: bool,
) -> StagedRows:
    return StagedRows(
        staged.table,
        (),
        target.table,
        target.columns or found,
        target.keys,
        table.changelog and bool(target.keys),
        (options.query or "") if target.insert else "",
        len(target.sources),
        apart,
    )


def _committable(content: StagedRows, table: Table, chunks: list[Chunk]) -> Committable:
    ordered = sorted(chunks, key=lambda c: c.number)
    whole = replace(content, chunks=tuple(c.number for c in ordered))
    rows, size = sum(c.rows for c in chunks), sum(c.bytes for c in chunks)
    return Committable(VERSION, str(table.path), rows, size, whole.to_plain())
