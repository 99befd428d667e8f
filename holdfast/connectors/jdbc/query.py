"""Read the INSERT that a user wrote, and make it one that takes its rows from a staging table."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

DIALECTS = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
INSTEAD = "Give 'table' and 'primary_keys' instead: updates and deletes then come from the stream."


@dataclass(frozen=True, slots=True)
class Insert:
    """One INSERT ... VALUES with placeholders."""

    dialect: str
    statement: exp.Insert
    table: tuple[str, ...]
    columns: tuple[str, ...]
    """The columns it names; none if it names none."""

    values: tuple[exp.Expression, ...]
    named: tuple[str, ...]
    """The names of its placeholders in order; empty texts for `?`."""

    @property
    def places(self) -> tuple[int | None, ...]:
        """For each placeholder, which value is just that; None if it is inside one."""
        found: list[int | None] = []
        for position, value in enumerate(self.values):
            inside = len(list(value.find_all(exp.Placeholder)))
            found += [position if isinstance(value, exp.Placeholder) else None] * inside
        return tuple(found)

    @property
    def updates(self) -> bool:
        """Whether it may change rows that are there, so that the order of rows matters."""
        return self.statement.args.get("conflict") is not None

    def select_from(self, staged: str, source: Sequence[str]) -> str:
        """Return the statement with its rows taken from `staged`, a FROM clause.

        `source` has a column of it for each placeholder, quoted.
        """
        left = iter(source)
        values = [
            v.transform(lambda n: _column(next(left)) if isinstance(n, exp.Placeholder) else n)
            for v in self.values
        ]
        written = ", ".join(v.sql(self.dialect) for v in values)
        bare = self.statement.copy()
        conflict, returning = bare.args.pop("conflict", None), bare.args.pop("returning", None)
        assert returning is None
        bare.set("expression", exp.Placeholder(this="rows_come_here"))
        head = bare.sql(self.dialect)
        marker = exp.Placeholder(this="rows_come_here").sql(self.dialect)
        tail = f" {conflict.sql(self.dialect)}" if conflict else ""
        return head.replace(marker, f"SELECT {written} {staged}") + tail

    @property
    def conflict(self) -> tuple[str, ...]:
        """The columns of ON CONFLICT (...) DO UPDATE; a row of a key may then come only once."""
        found = self.statement.args.get("conflict")
        if self.dialect != "postgres" or not isinstance(found, exp.OnConflict):
            return ()
        if not found.args.get("expressions"):
            return ()
        return tuple(_folded(i, "postgres") for i in _keys(found))


def read_insert(query: str, kind: str) -> Insert:
    """Read a query.  Raises ValueError with a sentence for what is no plain INSERT."""
    dialect = DIALECTS[kind]
    try:
        parsed = sqlglot.parse(query, dialect=dialect)
    except sqlglot.errors.SqlglotError as error:
        reason = str(error).partition(". Line")[0].rstrip(".")
        raise ValueError(f"query cannot be read: {reason}. {INSTEAD}") from error
    found = [p for p in parsed if p is not None]
    if len(found) != 1 or not isinstance(found[0], exp.Insert):
        raise ValueError(f"query is not one INSERT, so its rows could not arrive once. {INSTEAD}")
    return _checked(found[0], dialect)


def _checked(insert: exp.Insert, dialect: str) -> Insert:
    rows, target = insert.expression, insert.this
    if not isinstance(rows, exp.Values) or len(rows.expressions) != 1:
        raise ValueError(f"query must have one VALUES (...). {INSTEAD}")
    if insert.args.get("returning"):
        raise ValueError("query may not have RETURNING: its rows are not read.")
    first = rows.expressions[0]
    values = tuple(first.expressions) if isinstance(first, exp.Tuple) else (first,)
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(_folded(c, dialect) for c in target.expressions)
        target = target.this
    if not isinstance(target, exp.Table) or (columns and len(columns) != len(values)):
        raise ValueError("query has not as many values as columns.")
    parts = [p for p in (target.args.get("db"), target.this) if p]
    table = tuple(_folded(p, dialect) for p in parts)
    placeholders = [p for v in values for p in v.find_all(exp.Placeholder, bfs=False)]
    if not placeholders:
        raise ValueError("query has no ? in its VALUES.")
    named = tuple("" if p.name in ("", "?") else p.name for p in placeholders)
    if len(set(map(bool, named))) > 1:
        raise ValueError("query has both ? and :name in it. Use one of them.")
    return Insert(dialect, insert, table, columns, values, named)


def _folded(name: exp.Expression, dialect: str) -> str:
    """Return an identifier as the database stores it: PostgreSQL folds what is not quoted."""
    identifier = name if isinstance(name, exp.Identifier) else name.this
    while not isinstance(identifier, exp.Identifier):
        identifier = identifier.this
    text = str(identifier.this)
    return text.lower() if dialect == "postgres" and not identifier.quoted else text


def _keys(conflict: exp.OnConflict) -> list[exp.Expression]:
    keys = conflict.args.get("conflict_keys") or []
    return list(keys)


def _column(quoted: str) -> exp.Expression:
    return exp.column(exp.to_identifier(quoted, quoted=True))
