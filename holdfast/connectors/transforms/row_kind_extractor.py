"""RowKindExtractor: turn a changelog into rows that say what they did."""

from typing import Literal

from holdfast.connect.options import options
from holdfast.connect.tables import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import add_columns, check_new
from holdfast.model.table import HIDDEN, KINDS, Column
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

        new = self.options.custom_field_name
        check_new(rows, [new], self.context.stage)
        kind = rows.kind_sql if self.options.transform_type == "FULL" else short_kind_sql(rows)
        detail = Column(new, Type("string"), nullable=False, length=13)
        shown = add_columns(rows, {new: F.expr(kind)}, [detail])
        return shown.with_frame(shown.frame.drop(*HIDDEN))


def short_kind_sql(rows: Rows) -> str:
    """Return a Spark SQL expression for the row kind's short name."""
    if not rows.table.changelog:
        return "'+I'"
    cases = " ".join(f"WHEN '{kind}' THEN '{short}'" for kind, short in KINDS.items())
    return f"CASE {rows.kind_sql} {cases} END"
