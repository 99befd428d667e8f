"""Filter: keep or drop columns by name."""

from collections.abc import Iterator

from holdfast.connect.options import option, options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import (
    check_unique,
    choose_columns,
    chosen,
    find_columns,
)
from holdfast.model.table import Table


@options
class FilterOptions:
    """Which columns stay."""

    #: The columns to keep, in the order they are to have.
    include_fields: list[str] | None = option(None, aliases=("fields",))
    #: The columns to drop; all others keep their order.
    exclude_fields: list[str] | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the options together."""
        if (self.include_fields is None) == (self.exclude_fields is None):
            yield "exclude_fields", "give one of 'include_fields' and 'exclude_fields', not both."
        if twice := check_unique(self.include_fields or [], "'include_fields'"):
            yield "include_fields", f"{twice} Name each column once."


class Filter(Transform[FilterOptions]):
    """Keeps the columns that are named, or drops them."""

    name = "Filter"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with the columns that stay."""
        return choose_columns(rows, self._kept(rows.table), self.context.stage)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        return chosen(table, self._kept(table), self.context.stage)

    def _kept(self, table: Table) -> dict[str, str]:
        kept = self.options.include_fields
        if kept is None:
            dropped = self.options.exclude_fields or []
            find_columns(table, dropped, self.context.stage)
            kept = [n for n in table.names if n not in dropped]
        return {n: n for n in kept}
