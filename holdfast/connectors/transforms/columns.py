"""What most transforms do with columns: find one, add some, keep and rename some.

All of it keeps the hidden columns of a changelog and what is known about the table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.connect.options import nearest
from holdfast.connect.rows import Rows
from holdfast.connectors.sql.casts import as_text
from holdfast.connectors.sql.values import SqlValue
from holdfast.errors import UserError, UserErrors
from holdfast.model.table import Column, Key, Table
from holdfast.model.types import Type, quote

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression


def find_columns(table: Table, names: Iterable[str], stage: str) -> dict[str, Column]:
    """Return the columns by name, or raise: each that is missing, and which was perhaps meant."""
    found = {c.name: c for c in table.columns}
    known = list(table.names)
    wrong = [
        f"{stage}: table {table.path} has no column '{name}'.{nearest(name, known)}"
        f" Its columns are {', '.join(known)}."
        for name in names
        if name not in found
    ]
    if wrong:
        raise UserErrors(wrong, code="transform.no_column")
    return found


def column_text(rows: Rows, name: str, stage: str) -> "Expression":
    """Return a column as text, as Java would print it: a timestamp has a T in between."""
    from pyspark.sql import functions as F

    column = find_columns(rows.table, [name], stage)[name]
    return F.expr(as_text(SqlValue(quote(name)), column.type.kind))


def check_new(table: Table, names: Sequence[str], stage: str) -> None:
    """Raise if the table already has a column of one of these names."""
    for name in names:
        if table.column(name):
            raise UserError(
                f"{stage}: table {table.path} already has a column '{name}'."
                " Choose another name for the new column.",
                code="transform.column_exists",
            )


def check_unique(names: Sequence[str], about: str) -> str | None:
    """Return a sentence if a name is there twice, or None."""
    twice = sorted({n for n in names if names.count(n) > 1})
    return f"{about} names {', '.join(repr(n) for n in twice)} twice." if twice else None


def add_columns(
    rows: Rows, new: "Mapping[str, Expression]", details: Sequence[Column] = ()
) -> Rows:
    """Return the table with these columns at its end; one that exists is replaced in its place.

    `details` says what is known about the new columns beyond what Spark can tell.
    """
    from pyspark.sql import functions as F

    names = dict.fromkeys((*rows.table.names, *new))
    chosen = [new[n].alias(n) if n in new else F.col(quote(n)) for n in names]
    hidden = [F.col(quote(h)) for h in rows.hidden]
    kept = (c for c in rows.table.columns if c.name not in new)
    table = replace(rows.table, columns=(*kept, *details))
    return Rows.of(table, rows.frame.select(*chosen, *hidden))


def with_new(table: Table, new: Mapping[str, Column | Type]) -> Table:
    """Return what `add_columns` makes of a table, without its rows."""
    made = {n: Column(n, k) if isinstance(k, Type) else k for n, k in new.items()}
    kept = {c.name: c for c in table.columns}
    return replace(table, columns=tuple((kept | made).values()))


def choose_columns(rows: Rows, names: Mapping[str, str], stage: str) -> Rows:
    """Return the table with only these columns (old name to new name), in this order.

    A key whose columns are all kept follows their new names.
    """
    from pyspark.sql import functions as F

    table = chosen(rows.table, names, stage)
    columns = [F.col(quote(old)).alias(new) for old, new in names.items()]
    hidden = [F.col(quote(h)) for h in rows.hidden]
    return Rows.of(table, rows.frame.select(*columns, *hidden))


def chosen(table: Table, names: Mapping[str, str], stage: str) -> Table:
    """Return what `choose_columns` makes of a table, without its rows."""
    if twice := check_unique(list(names.values()), "the result"):
        raise UserError(
            f"{stage}: in table {table.path} {twice} Give each column a name of its own.",
            code="transform.column_twice",
        )
    found = find_columns(table, names, stage)
    columns = [replace(found[old], name=new) for old, new in names.items()]
    key = table.primary_key
    return replace(
        table,
        columns=tuple(columns),
        primary_key=_follow(key, names) if key else None,
        constraints=tuple(k for c in table.constraints if (k := _follow(c, names))),
        partitions=tuple(names[p] for p in table.partitions if p in names),
    )


def _follow(key: Key, names: Mapping[str, str]) -> Key | None:
    if not all(c in names for c in key.columns):
        return None
    return replace(key, columns=tuple(names[c] for c in key.columns))
