"""Split: cut a text column into several."""

from collections.abc import Iterator

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import (
    add_columns,
    check_unique,
    column_text,
    find_columns,
    with_new,
)
from holdfast.model.table import Table
from holdfast.model.types import Type


@options
class SplitOptions:
    """What to cut, where, and into which columns."""

    separator: str  #: The separator of two parts, as a Java regular expression.
    split_field: str  #: The column to cut; it stays as it is. One that is not text is read as text.
    #: The new text columns, in order. The last one takes all that is left; null where a part is
    #: missing.
    output_fields: list[str]

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the columns."""
        if not self.output_fields:
            yield "output_fields", "'output_fields' is empty. Name at least one column."
        if twice := check_unique(self.output_fields, "'output_fields'"):
            yield "output_fields", f"{twice} Name each column once."


class Split(Transform[SplitOptions]):
    """Cuts one column into new text columns; one that exists is overwritten."""

    name = "Split"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with a column for each part."""
        from pyspark.sql import functions as F

        asked = self.options
        text = column_text(rows, asked.split_field, self.context.stage)
        parts = F.split(text, asked.separator, len(asked.output_fields))
        return add_columns(rows, {n: F.get(parts, i) for i, n in enumerate(asked.output_fields)})

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        find_columns(table, [self.options.split_field], self.context.stage)
        return with_new(table, {n: Type("string") for n in self.options.output_fields})
