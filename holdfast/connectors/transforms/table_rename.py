"""TableRename: give tables a new path by rule."""

from dataclasses import replace

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.naming import Find, Naming, javas_find
from holdfast.model.table import Table, TablePath


@options
class TableRenameOptions(Naming):
    """How tables are renamed."""


class TableRename(Transform[TableRenameOptions]):
    """Renames tables.  Of the database and the schema only the case changes."""

    name = "TableRename"

    def apply(self, rows: Rows) -> Rows:
        """Return the same rows under the new path."""
        return rows.renamed(self._path(rows.table.path, javas_find(self.context.stage)))

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        find = self.options.plainly
        return replace(table, path=self._path(table.path, find)) if find else None

    def _path(self, old: TablePath, find: Find) -> TablePath:
        rule = self.options
        return TablePath(
            table=rule.new_name(old.table, find),
            database=old.database and rule.cased(old.database),
            schema=old.schema and rule.cased(old.schema),
        )
