"""FieldRename: give every column of a table a new name by rule."""

from holdfast.connect.options import option, options
from holdfast.connect.tables import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import choose_columns
from holdfast.connectors.transforms.naming import Naming, javas_find


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
        given = {s.field_name: s.target_name for s in reversed(self.options.specific)}
        find = javas_find(self.context.stage)
        names = {n: given.get(n) or self.options.new_name(n, find) for n in rows.table.names}
        return choose_columns(rows, names, self.context.stage)
