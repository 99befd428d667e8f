"""What the first commit of an incarnation does to a table before it adds rows, once for each.

The ledger has a row for each incarnation and table.  PostgreSQL does everything in the transaction
of the commit.  To MySQL and MariaDB, statements like DROP TABLE end a transaction: there, a table
is recreated and a script is run just before, by a session that holds a lock.  A server ends a
session that lies idle, and its lock with it: a leader that was paused there can do no more.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from holdfast.connect.sink import CommitId, Committable
from holdfast.connectors.jdbc.database import LEDGER, Database, Name, Session
from holdfast.connectors.save_modes import data_exists
from holdfast.model.tree import Plain

VERSION = 1

Mode = Literal["anew", "clear", "empty", "script"]
"""Recreate the table, remove its rows, refuse any, or run what the user wrote."""


@dataclass(frozen=True, slots=True)
class JdbcOrder:
    """What is to be done to a table, for which incarnation (`life`).  `statements` are to be run,
    if any."""

    table: Name
    life: str
    mode: Mode
    statements: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        """Under whose name the ledger knows that it is done."""
        return user_of(self.life, self.table)

    def committable(self, table: str) -> Committable:
        """Return this for a checkpoint."""
        content: Plain = {k: list(v) if k in LISTS else v for k, v in asdict(self).items()}
        return Committable(VERSION, table, 0, 0, content, opening=True)


LISTS = ("table", "statements")


def one_for_each(orders: Iterable[JdbcOrder]) -> list[JdbcOrder]:
    """Return the save modes, one for each table, always in the same order."""
    found: dict[Name, JdbcOrder] = {}
    for order in orders:
        found.setdefault(order.table, order)
    return sorted(found.values(), key=lambda o: o.table)


def user_of(life: str, table: Name) -> str:
    """Return the name in the ledger of an incarnation that opens a table."""
    return f"{life}.opened {'.'.join(table)}"


def key_of(user: str) -> str:
    """Return the key of a row of the ledger."""
    return hashlib.sha256(user.encode()).hexdigest()


def is_opened(session: Session, life: str, table: Name) -> bool:
    """Say whether an incarnation has opened a table."""
    key = key_of(user_of(life, table))
    found = session.run(f"SELECT number FROM {LEDGER} WHERE id = %s", (key,))
    return bool(found) and found[0][0] >= 0


def run_before(
    database: Database, session: Session, identifier: CommitId, orders: Iterable[JdbcOrder],
    check: Callable[[], None],
) -> None:  # fmt: skip
    """Do what ends a transaction, unless it was done; where nothing does, do nothing.

    `check` raises where the commit that follows cannot succeed.
    """
    due = [o for o in orders if o.mode in ("anew", "script") and database.ddl_commits]
    if not due:
        return
    with database.alone(session):
        # A finished commit has done this, too, whatever happened to the rows of the ledger.
        user = key_of(identifier.user)
        found = session.run(f"SELECT number FROM {LEDGER} WHERE id = %s", (user,))
        if found and found[0][0] >= identifier.number:
            return
        check()
        for order in due:
            if not is_opened(session, order.life, order.table):
                _do(database, session, order)
                _say_done(session, order)


def run_inside(database: Database, session: Session, orders: Iterable[JdbcOrder]) -> None:
    """Do what belongs to the transaction of the commit, unless it was done."""
    for order in orders:
        key = key_of(order.user)
        ((number,),) = session.run(f"SELECT number FROM {LEDGER} WHERE id = %s FOR UPDATE", (key,))
        if number < 0:
            _do(database, session, order)
            _say_done(session, order)


def _say_done(session: Session, order: JdbcOrder) -> None:
    session.run(
        f"UPDATE {LEDGER} SET number = 0, committed_at = CURRENT_TIMESTAMP WHERE id = %s",
        (key_of(order.user),),
    )


def _do(database: Database, session: Session, order: JdbcOrder) -> None:
    name = database.table(order.table)
    match order.mode:
        case "anew":
            session.run(f"DROP TABLE IF EXISTS {name}")
            create, *scripts = order.statements
            session.run(create)
            for script in scripts:
                database.run_script(session, script)
        case "clear":
            session.run(database.clear(name))
        case "script":
            for script in order.statements:
                database.run_script(session, script)
        case "empty":
            if session.run(f"SELECT 1 FROM {name} LIMIT 1"):
                raise data_exists("Jdbc", ".".join(order.table))
