"""FieldRename: give every column of a table a new name by rule."""

from holdfast.connect.options import option, options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import choose_columns, chosen
from holdfast.connectors.transforms.naming import Find, Naming, javas_find
from holdfast.model.table import Table


@options
class Specific:
    """A column whose new name follows no rule."""

    field_name: str  #: The column's name now.
    target_name: str  #: The name it gets; no other rule touches it.


@options
class FieldRenameOptions(Naming):
    """How columns are renamed."""

    #: Columns that get a name of their own; tables without such a column are left as they are.
    specific: list[Specific] = option([])


class FieldRename(Transform[FieldRenameOptions]):
    """Renames all columns; primary key, constraints and partitions follow."""

    name = "FieldRename"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with its columns renamed."""
        names = self._names(rows.table, javas_find(self.context.stage))
        return choose_columns(rows, names, self.context.stage)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        find = self.options.plainly
        return chosen(table, self._names(table, find), self.context.stage) if find else None

    def _names(self, table: Table, find: Find) -> dict[str, str]:
        given = {s.field_name: s.target_name for s in reversed(self.options.specific)}
        return {n: given.get(n) or self.options.new_name(n, find) for n in table.names}
