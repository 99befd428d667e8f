"""TableRename: give tables a new path by rule."""

from holdfast.connect.options import options
from holdfast.connect.tables import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.naming import Naming, javas_find
from holdfast.model.table import TablePath


@options
class TableRenameOptions(Naming):
    """How tables are renamed."""


class TableRename(Transform[TableRenameOptions]):
    """Renames tables.  Of the database and the schema only the case changes."""

    name = "TableRename"

    def apply(self, rows: Rows) -> Rows:
        """Return the same rows under the new path."""
        old, rule = rows.table.path, self.options
        find = javas_find(self.context.stage)
        return rows.renamed(
            TablePath(
                table=rule.new_name(old.table, find),
                database=old.database and rule.cased(old.database),
                schema=old.schema and rule.cased(old.schema),
            )
        )
