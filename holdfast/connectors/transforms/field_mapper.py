"""FieldMapper: choose, order and rename columns."""

from collections.abc import Iterator

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import check_unique, choose_columns, chosen
from holdfast.model.table import Table


@options
class FieldMapperOptions:
    """Which columns to keep, and their new names."""

    #: The columns to keep, in order, and the name each gets: old = new. All others are dropped.
    field_mapper: dict[str, str]

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the mapping as a whole."""
        if not self.field_mapper:
            yield "field_mapper", "'field_mapper' is empty. Name at least one column: old = new."
        if twice := check_unique(list(self.field_mapper.values()), "'field_mapper'"):
            yield "field_mapper", f"{twice} Give each column a name of its own."


class FieldMapper(Transform[FieldMapperOptions]):
    """Keeps the columns that are named, in that order, under new names."""

    name = "FieldMapper"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with the chosen columns."""
        return choose_columns(rows, self.options.field_mapper, self.context.stage)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        return chosen(table, self.options.field_mapper, self.context.stage)
