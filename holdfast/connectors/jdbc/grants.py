"""What SHOW GRANTS of MySQL and MariaDB says, and which rights are missing in it."""

import re
from collections.abc import Iterator, Sequence

from holdfast.connectors.jdbc.database import LEDGER, Needs

STAGING = ("CREATE", "DROP", "INSERT", "SELECT")
"""What staging tables need, in the database they are made in."""

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

    `made`: the database of the table is made, too, or it cannot be seen by this user.  Where a
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
    """Yield which rights are needed where; a table "" stands for all of a database."""
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
