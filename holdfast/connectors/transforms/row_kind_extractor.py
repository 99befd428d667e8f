"""RowKindExtractor: turn a changelog into rows that say what they did."""

from dataclasses import replace
from typing import Literal

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import add_columns, check_new, with_new
from holdfast.model.table import HIDDEN, KINDS, Column, Table
from holdfast.model.types import Type


@options
class RowKindExtractorOptions:
    """How the row kind is shown."""

    custom_field_name: str = "row_kind"  #: The name of the new column.
    #: SHORT gives +I, -U, +U and -D; FULL gives INSERT, UPDATE_BEFORE, UPDATE_AFTER and DELETE.
    transform_type: Literal["SHORT", "FULL"] = "SHORT"


class RowKindExtractor(Transform[RowKindExtractorOptions]):
    """Writes each row's kind into a new last column and makes every row an INSERT."""

    name = "RowKindExtractor"

    def apply(self, rows: Rows) -> Rows:
        """Return a table that only grows."""
        from pyspark.sql import functions as F

        detail = self._detail(rows.table)
        kind = rows.kind_sql if self.options.transform_type == "FULL" else short_kind_sql(rows)
        shown = add_columns(rows, {detail.name: F.expr(kind)}, [detail])
        return shown.with_frame(shown.frame.drop(*HIDDEN))

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        detail = self._detail(table)
        return replace(with_new(table, {detail.name: detail}), changelog=False)

    def _detail(self, table: Table) -> Column:
        new = self.options.custom_field_name
        check_new(table, [new], self.context.stage)
        return Column(new, Type("string"), nullable=False, length=13)


def short_kind_sql(rows: Rows) -> str:
    """Return a Spark SQL expression for the row kind's short name."""
    if not rows.table.changelog:
        return "'+I'"
    cases = " ".join(f"WHEN '{kind}' THEN '{short}'" for kind, short in KINDS.items())
    return f"CASE {rows.kind_sql} {cases} END"
