"""A store in a PostgreSQL database, for those who have one.

All calls of a process go over one connection, one after the other; each watch has its own, which
LISTENs and catches up by revision, so that a lost notification costs a second and never a change.
A request continues when its caller is cancelled, as it would on a server.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import psycopg
from psycopg import conninfo, sql

from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.store.contract import (
    Change,
    Compacted,
    Delete,
    Guard,
    Item,
    LeaseLost,
    Put,
    Store,
)
from holdfast.store.floor import Floor
from holdfast.store.limits import check_commit, check_key, check_prefix, closed
from holdfast.store.order import by_revision, prefix_end
from holdfast.store.postgres_schema import SCHEMA, VERSION

Row = tuple[Any, ...]

SETTINGS = (
    "select set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('lock_timeout', %s, false), set_config('statement_timeout', %s, false),"
    # What was answered is on disk, whatever the server's default; a stronger one is left alone.
    " case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"
    " then set_config('synchronous_commit', 'on', false) end"
)

LINE_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)


class Line:
    """A connection.  Created by `dial`; one question at a time."""

    def __init__(self, connection: psycopg.AsyncConnection[Row], timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    @classmethod
    async def dial(cls, address: dict[str, Any], timeout_s: float) -> "Line":
        """Connect to a server that takes writes.  Raises psycopg's errors, or TimeoutError."""
        async with asyncio.timeout(timeout_s):
            connection = await psycopg.AsyncConnection.connect(
                autocommit=True, prepare_threshold=None, **address
            )
        line = cls(connection, timeout_s)
        try:
            waits_ms = round(timeout_s * 1_000)
            await line.ask(sql.SQL(SETTINGS), (str(waits_ms // 2), str(waits_ms)))
        except BaseException:
            await line.close()
            raise
        return line

    @property
    def up(self) -> bool:
        """Say whether it can be asked."""
        return not self._connection.closed

    async def ask(self, query: sql.SQL | sql.Composed, values: tuple[Any, ...] = ()) -> list[Row]:
        """Ask one thing.  Raises psycopg's errors; one without an SQLSTATE is a lost line.

        A caller who is cancelled meanwhile hangs up: no one would take the answer.
        """
        timer = asyncio.get_running_loop().call_later(self._timeout_s, self.hang_up)
        answer = asyncio.ensure_future(self._connection.execute(query, values or None))
        try:
            cursor = await asyncio.shield(answer)
        except asyncio.CancelledError:
            self.hang_up()
            await asyncio.wait({answer})
            raise
        finally:
            timer.cancel()
        return await cursor.fetchall() if cursor.description else []

    async def hear(self, longest_s: float) -> None:
        """Wait for a notification, but no longer than a bound."""
        async for _ in self._connection.notifies(timeout=longest_s, stop_after=1):
            pass

    def hang_up(self) -> None:
        """Cut the connection, also under a call that waits on it."""
        if not self.up:
            return
        # The descriptor belongs to libpq; a copy of it can shut the connection they share.
        with socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as copy:
            try:
                copy.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The other side was faster.
                return

    async def close(self) -> None:
        """Release the connection."""
        await self._connection.close()


def read_address(url: str, timeout_s: float) -> dict[str, Any]:
    """Return a URL or connection string as libpq's options, with ours where it says nothing."""
    try:
        given = conninfo.conninfo_to_dict(url)
        for port in filter(None, str(given.get("port", "")).split(",")):
            int(port)
    except (psycopg.ProgrammingError, ValueError):
        # What libpq says of it may quote the password.
        raise UserError(
            "The address of the PostgreSQL store cannot be read. Write"
            " postgres://user:password@host:port/database, with %-codes for special characters.",
            code="store.url",
        ) from None
    defaults = {
        "application_name": "holdfast",
        "connect_timeout": max(2, round(timeout_s)),
        # Of several hosts, the one that takes writes; a standby would answer with old state.
        "target_session_attrs": "read-write",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }
    return defaults | given


HISTORY_REVISIONS = 1_000
TIMEOUT_S = 5.0
LOOK_S = 1.0
RETRY_S = 0.3
SCHEMA_NAME = "holdfast"
NAME_BYTES_MAX = 63
OPENING = 7_512_466_023
"""An advisory lock: of several processes that start together, one makes the tables."""

NOTHING_DONE = ("25", "40", "53", "55")
"""SQLSTATE classes raised before a commit: read-only server, conflict, resources, lock timeout."""

HOPELESS = ("28", "3D", "3F", "42")
"""SQLSTATE classes that trying again does not cure: no such user, database, schema, right."""


class PostgresStore:
    """A store in a schema of a database.  Created by `open`."""

    def __init__(
        self, address: dict[str, Any], schema: str, timeout_s: float, history_revisions: int
    ) -> None:
        self._address = address
        self._schema = sql.Identifier(schema)
        # A statement with values takes % for a placeholder, even inside a name.
        self._schema_doubled = sql.SQL(self._schema.as_string().replace("%", "%%"))
        self._name = f"PostgreSQL at {address.get('host', 'its default place')}"
        self._timeout_s = timeout_s
        self._history_revisions = history_revisions
        self._line: Line | None = None
        self._turn = asyncio.Lock()
        self._watches: set[Line] = set()
        self._requests: set[asyncio.Task[list[Row]]] = set()
        self._floor = Floor(self._name)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        schema: str = SCHEMA_NAME,
        timeout_s: float = TIMEOUT_S,
        history_revisions: int = HISTORY_REVISIONS,
    ) -> "PostgresStore":
        """Open a database by a libpq URL or connection string; make the schema if it is missing.

        Raises `UserError` if the schema is of another version.
        """
        if not schema or len(schema.encode()) > NAME_BYTES_MAX or "\0" in schema:
            raise UserError(
                f"A schema name has 1 to {NAME_BYTES_MAX} bytes; {schema!a} does not fit.",
                code="store.url",
            )
        store = cls(read_address(url, timeout_s), schema, timeout_s, history_revisions)
        try:
            await store._prepare(schema)
        except BaseException:
            await store.close()
            raise
        return store

    async def _prepare(self, schema: str) -> None:
        """Make the schema, or check that it is one this code knows."""
        line = await self._dialled()
        try:
            await self._make(line, schema)
            (version,) = (await line.ask(self._sql("select version from {schema}.meta")))[0]
        except psycopg.Error as error:
            raise self._explained(error, writes=False) from error
        if version != VERSION:
            raise UserError(
                f"The store in schema {schema} of {self._name} has version {version}; this"
                f" Holdfast knows {VERSION}. Use the Holdfast that created it, or another schema.",
                code="store.version",
            )

    async def _make(self, line: Line, schema: str) -> None:
        encoding, there = (
            await line.ask(
                self._sql("select current_setting('server_encoding'), to_regclass(%s) is not null"),
                (self._sql("{schema}.meta").as_string(),),
            )
        )[0]
        if encoding != "UTF8":
            raise UserError(
                f"The database of {self._name} keeps text as {encoding}; a store needs UTF8."
                " Create one with ENCODING 'UTF8'.",
                code="store.open",
            )
        if there:
            return
        script = sql.SQL(f"select pg_advisory_xact_lock({OPENING});" + SCHEMA).format(
            schema=self._schema, version=sql.Literal(VERSION), channel=sql.Literal(schema)
        )
        try:
            # Without values, all of it is one transaction.
            await line.ask(script)
        except psycopg.errors.DuplicateTable:
            # Another process was faster, and has created all of it.
            return

    async def get(self, key: str) -> Item | None:
        """Return a key's current value, or None."""
        check_key(key)
        # No key lies between: NUL is not allowed in one.
        items, _ = await self._items(key, key + "\x01")
        return items[0] if items else None

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Return all keys that start with a prefix, sorted, and the revision they are as of."""
        check_prefix(prefix)
        return await self._items(prefix, prefix_end(prefix))

    async def _items(self, low: str, high: str | None) -> tuple[list[Item], int]:
        floor = self._floor.at()
        rows = await self._call("read(%s, %s, %s)", low, high, writes=False)
        revision = self._floor.check(rows[0][0], floor)
        return [Item(*row[1:]) for row in rows if row[1] is not None], revision

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply all changes if all guards hold; return the revision, or None if one does not."""
        check_commit(guards, changes)
        puts = [change for change in changes if isinstance(change, Put)]
        floor = self._floor.at()
        rows = await self._call(
            "commit(%s, %s, %s::text[], %s::bigint[], %s::text[], %s::bytea[], %s::bigint[],"
            " %s::text[])",
            floor,
            [guard.key for guard in guards],
            [guard.revision for guard in guards],
            [put.key for put in puts],
            [put.value for put in puts],
            [put.lease for put in puts],
            [change.key for change in changes if isinstance(change, Delete)],
            writes=True,
        )
        outcome, revision = rows[0]
        self._floor.check(revision, floor)
        if outcome == "lease":
            raise LeaseLost(f"a lease of {', '.join(repr(put.key) for put in puts)} is gone")
        return revision if outcome == "done" else None

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """Yield changes below a prefix after a revision, one list a revision."""
        check_prefix(prefix)
        line: Line | None = None
        try:
            while True:
                self._floor.at()
                try:
                    line = line or await self._listening()
                    changes, lapse_s = await self._changes(line, prefix, after)
                    for made in by_revision(changes):
                        yield made
                        after = made[0].revision
                    await line.hear(min(lapse_s, LOOK_S))
                except (Unavailable, *LINE_ERRORS):
                    await self._drop(line)
                    line = None
                    await asyncio.sleep(RETRY_S)
        finally:
            await self._drop(line)

    async def _listening(self) -> Line:
        line = await self._dial()
        self._watches.add(line)
        try:
            await line.ask(self._sql("listen {schema}"))
        except BaseException:
            await self._drop(line)
            raise
        return line

    async def _changes(self, line: Line, prefix: str, after: int) -> tuple[list[Change], float]:
        """Return what changed after a revision, and in how many seconds the next lease lapses."""
        floor = max(self._floor.at(), after)
        values = (prefix, prefix_end(prefix), after)
        rows = await self._ask(line, "changes(%s, %s, %s, %s)", values, writes=False)
        revision, compacted, lapse_s, *_ = rows[0]
        self._floor.check(revision, floor)
        if after < compacted:
            raise Compacted(f"history up to {compacted} is gone; {after} was asked for")
        changes = [_change(*row[3:]) for row in rows if row[3] is not None]
        return changes, LOOK_S if lapse_s is None else max(0.0, lapse_s)

    async def grant_lease(self, ttl_s: float) -> int:
        """Return a new lease that lapses unless kept within `ttl_s`."""
        self._floor.at()
        rows = await self._call("grant_lease(%s, %s)", float(ttl_s), writes=True)
        return int(rows[0][0])

    async def keep_lease(self, lease: int) -> None:
        """Start the lease's time again."""
        self._floor.at()
        rows = await self._call("keep_lease(%s, %s)", lease, writes=True)
        if not rows[0][0]:
            raise LeaseLost(f"lease {lease} has lapsed")

    async def revoke_lease(self, lease: int) -> None:
        """End a lease at once, with the keys that hang on it."""
        self._floor.at()
        await self._call("revoke_lease(%s, %s)", lease, writes=True)

    async def close(self) -> None:
        """Release all connections; requests and watches under way fail."""
        self._floor.closed = True
        for line in (self._line, *self._watches):
            if line:
                line.hang_up()
        if self._requests:
            await asyncio.wait(self._requests)
        if self._line:
            await self._line.close()

    async def _call(self, function: str, *values: Any, writes: bool) -> list[Row]:
        """Call a function of the schema in turn, whether or not the caller waits to the end."""
        request = asyncio.create_task(self._request(function, values, writes))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        return await asyncio.shield(request)

    async def _request(self, function: str, values: tuple[Any, ...], writes: bool) -> list[Row]:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._turn.acquire()
        except TimeoutError as error:
            raise Unavailable(
                f"{self._name} is slow: earlier requests still wait.", code="store.slow"
            ) from error
        try:
            return await self._ask(await self._dialled(), function, values, writes)
        finally:
            self._turn.release()

    async def _ask(
        self, line: Line, function: str, values: tuple[Any, ...], writes: bool
    ) -> list[Row]:
        query = sql.SQL("select * from {schema}." + function).format(schema=self._schema_doubled)
        try:
            return await line.ask(query, (self._history_revisions, *values))
        except psycopg.Error as error:
            if error.sqlstate is None:
                await line.close()
            raise self._explained(error, writes) from error

    async def _dialled(self) -> Line:
        if self._line is None or not self._line.up:
            self._line = await self._dial()
        return self._line

    async def _dial(self) -> Line:
        self._floor.at()
        try:
            line = await Line.dial(self._address, self._timeout_s)
        except (psycopg.Error, TimeoutError) as error:
            reason = str(error).strip() or "no answer in time"
            raise Unavailable(
                f"{self._name} cannot be reached: {reason}.", code="store.postgres"
            ) from error
        if self._floor.closed:
            await line.close()
            raise closed(self._name)
        return line

    async def _drop(self, line: Line | None) -> None:
        if line:
            self._watches.discard(line)
            await line.close()

    def _explained(self, error: psycopg.Error, writes: bool) -> HoldfastError:
        """Return what an error means for the caller; raise it as it is if that is not known."""
        state = error.sqlstate
        if state is None and not isinstance(error, LINE_ERRORS):
            raise error
        said = f"{self._name}: {str(error).strip()}"
        if state and state.startswith(HOPELESS):
            return UserError(
                f"{said}. Check the user's rights and the schema.", code="store.postgres"
            )
        if not writes or (state and state.startswith(NOTHING_DONE)):
            return Unavailable(said, code="store.postgres")
        # A connection that ends says nothing of the commit that was under way.
        return OutcomeUnknown(said, code="store.postgres")

    def _sql(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=self._schema)


def _change(
    revision: int, key: str, value: bytes | None, created: int, lease: int | None
) -> Change:
    item = None if value is None else Item(key, value, revision, created, lease)
    return Change(key, item, revision)


async def open_url(url: str) -> Store:
    """Open the database that a URL names: libpq's URL, with `schema=` as one more parameter."""
    place, _, query = url.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    schema = dict(given).get("schema", SCHEMA_NAME)
    rest = urlencode([(name, value) for name, value in given if name != "schema"])
    return await PostgresStore.open(f"{place}?{rest}" if rest else place, schema=schema)
