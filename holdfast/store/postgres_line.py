"""One connection to PostgreSQL that answers in time or is hung up.

psycopg's way to give up on a query is to ask the server to cancel it and to wait for that, which
takes long when the server is gone.  Here a timer shuts the socket instead: the query fails at once,
and the connection is not used again.
"""

import asyncio
import os
import socket
from typing import Any

import psycopg
from psycopg import conninfo, sql

from holdfast.errors import UserError

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
    """A connection.  Made by `dial`; one question at a time."""

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

        A caller who is cancelled meanwhile hangs up: the answer would belong to nobody.
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
        """Cut the connection under whoever waits on it."""
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
        """Let go of the connection."""
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
