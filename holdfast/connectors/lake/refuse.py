"""Rows that no table of a lake takes."""

from collections.abc import Sequence

from holdfast.connectors.lake.footers import Part
from holdfast.connectors.lake.mark_options import MarkDoneOptions
from holdfast.errors import UserError
from holdfast.model.table import Column, Table


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


def refuse_nulls(columns: Sequence[Column], parts: Sequence[Part], about: str) -> None:
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
