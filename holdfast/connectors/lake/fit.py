"""Fit the rows of a stream to the columns of a table that exists, or say how they differ."""

from collections.abc import Mapping, Sequence

from holdfast.connect.rows import Rows
from holdfast.connectors.lake.footers import ParquetPart
from holdfast.connectors.lake.limits import Limit, limited
from holdfast.connectors.lake.mark_options import MarkDoneOptions
from holdfast.errors import UserError
from holdfast.model.table import Column, Table
from holdfast.model.types import Type, quote

WIDER = {
    "tinyint": ("smallint", "int", "bigint", "float", "double"),
    "smallint": ("int", "bigint", "float", "double"),
    "int": ("bigint", "double"),
    "bigint": (),
    "float": ("double",),
}
"""Which types hold every value of another."""

NO_LIMITS: Mapping[str, Limit] = {}
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def fit(
    there: Sequence[Column], arriving: Sequence[Column], about: str, partitions: Sequence[str] = ()
) -> dict[str, str]:
    """Return what is written to each column, as Spark SQL, in the order of the table.

    Names may differ in case, and a type may be widened.  Columns that do not arrive are left out,
    if the table lets them be null and they are no partitions.  Raises UserError that lists every
    difference.
    """
    known = {c.name.lower(): c for c in arriving} | {c.name: c for c in arriving}
    fits: dict[str, str] = {}
    wrong: list[str] = []
    for column in there:
        found = known.get(column.name) or known.get(column.name.lower())
        if found is None:
            if not column.nullable or column.name in partitions:
                wrong.append(f"{column.name} ({column.type}) does not arrive")
        elif not _holds(column.type, found.type):
            wrong.append(f"{column.name} is {column.type} in the table and arrives as {found.type}")
        else:
            value = quote(found.name)
            same = column.type.ddl == found.type.ddl
            fits[column.name] = value if same else f"CAST({value} AS {column.type.ddl})"
    taken = {c.name.lower() for c in there}
    wrong += [
        f"{c.name} ({c.type}) is not in the table" for c in arriving if c.name.lower() not in taken
    ]
    if wrong:
        raise UserError(
            f"{about}: the rows do not fit the table. {'; '.join(wrong)}."
            " Change the rows with a transform, or the table.",
            code="sink.schema_differs",
        )
    return fits


def fitted(
    rows: Rows, there: Sequence[Column], about: str, partitions: Sequence[str] = (),
    limits: Mapping[str, Limit] = NO_LIMITS,
) -> Rows:  # fmt: skip
    """Return rows with exactly the columns that are written."""
    fits = fit(there, rows.table.columns, about, partitions)
    return rows.projected(limited(fits, limits, about))


def matched(keys: Sequence[str], table: Table, about: str) -> list[str]:
    """Return columns as the table spells them."""
    known = {n.lower(): n for n in table.names}
    missing = [k for k in keys if k.lower() not in known]
    if missing:
        raise UserError(
            f"{about}: there is no column {' or '.join(missing)}."
            f" Columns: {', '.join(table.names)}.",
            code="sink.keys",
        )
    return [known[k.lower()] for k in keys]


def _holds(table: Type, rows: Type) -> bool:
    # Several kinds of ours, such as vectors, are one type to Spark and to tables.
    if table.ddl == rows.ddl or table.kind in WIDER.get(rows.kind, ()):
        return True
    if table.kind == "decimal" and rows.kind in DIGITS:
        return table.precision - table.scale >= DIGITS[rows.kind]
    if table.kind == rows.kind == "decimal":
        whole = table.precision - table.scale >= rows.precision - rows.scale
        return whole and table.scale >= rows.scale
    return False


def refuse_changelog(sink: str, table: Table) -> None:
    """Raise UserError for rows that update or delete others."""
    if table.changelog:
        raise UserError(
            f"{sink} adds rows only, and {table.path} has updates and deletes. Keep what you need"
            " with the transform FilterRowKind, or RowKindExtractor.",
            code="sink.changelog",
        )


def refuse_unpartitioned(about: str, partitions: Sequence[str], options: MarkDoneOptions) -> None:
    """Raise UserError if partitions are to be marked where there are none."""
    if options.mark_done is not None and not partitions:
        raise UserError(
            f"{about}: partition.mark-done-action marks partitions, and the table has none. Leave"
            " it out, or partition the table.",
            code="sink.no_partitions",
        )


def refuse_nulls(columns: Sequence[Column], parts: Sequence[ParquetPart], about: str) -> None:
    """Raise UserError if there are nulls where the table has none."""
    for column in columns:
        for part in parts if not column.nullable else ():
            stats = part.columns.get(column.name)
            if stats is not None and stats.nulls:
                raise UserError(
                    f"{about}: column {column.name} may not be null in the table, and"
                    f" {stats.nulls} rows have no value in it.",
                    code="sink.null",
                )
