"""TableMerge: several tables become one."""

from dataclasses import replace

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.model.table import Table, TablePath


@options
class TableMergeOptions:
    """The table that all become."""

    table: str  #: The name of the one table.
    database: str | None = None  #: Its database.
    schema: str | None = None  #: Its schema, for systems that have one below the database.


class TableMerge(Transform[TableMergeOptions]):
    """Gives every matching table one path; the engine unites tables with one path."""

    name = "TableMerge"

    def apply(self, rows: Rows) -> Rows:
        """Return the same rows under the one path."""
        return rows.renamed(self._path)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        return replace(table, path=self._path)

    @property
    def _path(self) -> TablePath:
        merged = self.options
        return TablePath(merged.table, merged.database, merged.schema)
