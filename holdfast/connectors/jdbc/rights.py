"""The rights that a user lacks, by PostgreSQL's tables and by SHOW GRANTS of MySQL and MariaDB."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.connectors.jdbc.database import LEDGER, Name, Needs

if TYPE_CHECKING:
    from holdfast.connectors.jdbc.database import Database, Session

HERE = """
select current_user, current_schema(), current_setting('transaction_read_only') = 'on',
  has_database_privilege(current_database(), 'CREATE'), current_database()
"""

SCHEMA = """
select has_schema_privilege(oid, 'USAGE'), has_schema_privilege(oid, 'CREATE')
from pg_namespace where nspname = %s
"""

OWNED = "select pg_has_role(relowner, 'USAGE') from pg_class where oid = to_regclass(%s)"

BY_COLUMN = """
select coalesce(bool_and(has_column_privilege(attrelid, attnum, %s)), false) from pg_attribute
where attrelid = to_regclass(%s) and attname = any(%s)
"""


def missing_rights(database: "Database", session: "Session", needs: Needs) -> Iterator[str]:
    """Yield a sentence, with the statement that mends it, for each right that is missing."""
    rights = _Rights(database, session)
    yield from rights.staging(needs) if needs.table is None else rights.of_table(needs)


class _Rights:
    """What the user of one session may do."""

    def __init__(self, database: "Database", session: "Session") -> None:
        self._database = database
        self._session = session
        ((self._user, self._home, self._frozen, self._makes, self._named),) = session.run(HERE)
        self._to = f"TO {database.quote(self._user)}"

    def staging(self, needs: Needs) -> Iterator[str]:
        """Yield what keeps a job from its ledger and its staging tables."""
        if self._frozen:
            yield (
                "it takes no writes (a standby, or default_transaction_read_only is on)."
                " Name the primary in url."
            )
        if self._home is None:
            yield (
                f"the search path names no schema that user {self._user} may use. Add"
                f" ?currentSchema=name to url, or: GRANT USAGE, CREATE ON SCHEMA name {self._to}"
            )
            return
        yield from self._schema(self._home, makes=True)
        if needs.ledger:
            ledger = (self._home, LEDGER)
            yield from self._table(ledger, ("INSERT", "SELECT", "UPDATE"), ())

    def of_table(self, needs: Needs) -> Iterator[str]:
        """Yield what keeps a job from writing to a table."""
        assert needs.table is not None
        schema = needs.table[0] if len(needs.table) > 1 else self._home
        if schema is None:
            return  # said of the staging tables
        if schema != self._home:  # else it was said of the staging tables
            yield from self._schema(schema, makes=needs.makes)
        if not needs.there:
            return
        whole = ("TRUNCATE",) if needs.empties and not needs.makes else ()
        rights = () if needs.makes else needs.rights
        yield from self._table(needs.table, (*rights, *whole), needs.columns)
        owned = self._session.run(OWNED, (self._database.table(needs.table),))
        if needs.makes and owned and not owned[0][0]:
            yield (
                f"user {self._user} does not own the table, and so may not recreate it. Mend it"
                f" with: ALTER TABLE {self._database.table(needs.table)} OWNER {self._to}"
            )

    def _schema(self, name: str, *, makes: bool) -> Iterator[str]:
        found = self._session.run(SCHEMA, (name,))
        if not found:
            if makes and not self._makes:
                where = self._database.quote(self._named)
                yield (
                    f"there is no schema {name}, and user {self._user} may not make one. Mend it"
                    f" with: GRANT CREATE ON DATABASE {where} {self._to}"
                )
            return
        held = dict(zip(("USAGE", "CREATE"), found[0], strict=True))
        missing = [right for right, has in held.items() if not has and (makes or right == "USAGE")]
        if missing:
            yield (
                f"user {self._user} lacks {', '.join(missing)} on schema {name}. Mend it with:"
                f" GRANT {', '.join(missing)} ON SCHEMA {self._database.quote(name)} {self._to}"
            )

    def _table(
        self, table: Name, rights: tuple[str, ...], columns: tuple[str, ...]
    ) -> Iterator[str]:
        name = self._database.table(table)
        missing = [right for right in rights if not self._has(name, right, columns)]
        if missing:
            yield (
                f"user {self._user} lacks {', '.join(missing)} on table {'.'.join(table)}. Mend it"
                f" with: GRANT {', '.join(missing)} ON {name} {self._to}"
            )

    def _has(self, name: str, right: str, columns: tuple[str, ...]) -> bool:
        """Say whether a right is held on a table, or on each of its columns that matter."""
        asked = "select coalesce(has_table_privilege(to_regclass(%s), %s), false)"
        if self._session.run(asked, (name, right))[0][0]:
            return True
        if not columns or right in ("DELETE", "TRUNCATE"):
            return False
        return bool(self._session.run(BY_COLUMN, (right, name, list(columns)))[0][0])


STAGING = ("CREATE", "DROP", "INSERT", "SELECT")
"""What staging tables need, in the database they are created in."""

LEDGERS = ("INSERT", "SELECT", "UPDATE")

_PART = r"""(?:\*|`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^\s.`"]+)"""
_GRANT = re.compile(rf"GRANT (.+?) ON (?:TABLE )?({_PART})\.({_PART}) TO .*", re.IGNORECASE)
_NO_TABLE = re.compile(
    r"GRANT .+? ON (?:FUNCTION|PROCEDURE|PACKAGE(?: BODY)?) |GRANT PROXY ON ", re.IGNORECASE
)
_COLUMNS = re.compile(r"\s*\([^)]*\)")


def missing_grants(
    grants: Sequence[str], home: str, user: str, needs: Needs, *, made: bool = False
) -> Iterator[str]:
    """Yield a sentence, with the statement that mends it, for each place where rights are missing.

    `made`: the database of the table is created, too, or it cannot be seen by this user.  Where a
    role may give more than the list shows, nothing is said.
    """
    of_tables = [grant for grant in grants if not _NO_TABLE.match(grant)]
    found = [match for grant in of_tables if (match := _GRANT.fullmatch(grant))]
    if len(found) < len(of_tables):
        return
    for (database, table), rights in _wanted(home, needs, made):
        missing = [r for r in rights if not any(_gives(g, database, table, r) for g in found)]
        if missing:
            where = f"{_quoted(database)}.{_quoted(table) if table else '*'}"
            what = f"table {database}.{table}" if table else f"database {database}"
            yield (
                f"user {user} lacks {', '.join(missing)} on {what}. Mend it with:"
                f" GRANT {', '.join(missing)} ON {where} TO {_account(user)}"
            )


def _wanted(
    home: str, needs: Needs, made: bool
) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """Yield which rights are needed where; a table "" means all of a database."""
    if needs.table is None:
        if needs.ledger:
            yield (home, ""), STAGING
            yield (home, LEDGER), LEDGERS
        else:  # of a table that is not there, only rights to make it can be given
            yield (home, ""), (*STAGING, "UPDATE")
        return
    anew = ("CREATE", "DROP") if needs.there else ("CREATE",)
    rights = (*(anew if needs.makes else ()), *needs.rights)
    if needs.empties and not needs.makes and "DELETE" not in rights:
        rights = (*rights, "DELETE")
    database = needs.table[0] if len(needs.table) > 1 else home
    # Rights on a table alone do not make the database around it.
    yield (database, "" if made and needs.makes else needs.table[-1]), rights


def _gives(grant: re.Match[str], database: str, table: str, right: str) -> bool:
    """Say whether a grant gives a right; one for some columns of a table counts as one for it."""
    if not _matches(grant[2], database, like=True) or not _matches(grant[3], table, like=False):
        return False
    rights = {r.strip().upper() for r in _COLUMNS.sub("", grant[1]).split(",")}
    return bool({"ALL PRIVILEGES", "ALL", right} & rights)


def _matches(written: str, name: str, *, like: bool) -> bool:
    """Say whether a name in a grant covers a name; in databases' names % and _ stand for others.

    Whether case counts is the server's setting: here it does not, for a doubt is no problem.
    """
    if written == "*":
        return True
    mark = written[0] if written[0] in '`"' else ""  # sql_mode ANSI_QUOTES has double quotes
    bare = written[1:-1].replace(mark * 2, mark) if mark else written
    if not like:
        return bare.casefold() == name.casefold()
    parts = re.findall(r"\\.|.", bare, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    pattern = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) is not None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _account(user: str) -> str:
    name, _, host = user.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (name, host))
