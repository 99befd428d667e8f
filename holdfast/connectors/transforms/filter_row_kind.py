"""FilterRowKind: keep or drop rows of a changelog by what they do."""

from collections.abc import Iterator
from typing import Literal

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.model.table import KIND, KINDS, Table

Kind = Literal["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"]


@options
class FilterRowKindOptions:
    """Which rows stay."""

    include_kinds: list[Kind] | None = None  #: The row kinds to keep; all others are dropped.
    exclude_kinds: list[Kind] | None = None  #: The row kinds to drop; all others are kept.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the options together."""
        if (self.include_kinds is None) == (self.exclude_kinds is None):
            yield "exclude_kinds", "give one of 'include_kinds' and 'exclude_kinds', not both."

    @property
    def kept(self) -> list[str]:
        """The row kinds that stay."""
        if self.include_kinds is not None:
            return list(self.include_kinds)
        return [k for k in KINDS if k not in (self.exclude_kinds or [])]


class FilterRowKind(Transform[FilterRowKindOptions]):
    """Keeps rows by kind.  Every row of a table that only grows is an INSERT."""

    name = "FilterRowKind"

    def apply(self, rows: Rows) -> Rows:
        """Return the rows of the kinds that stay."""
        from pyspark.sql import functions as F

        kept = self.options.kept
        if rows.table.changelog:
            return rows.with_frame(rows.frame.where(F.col(KIND).isin(kept)))
        if "INSERT" in kept:
            return rows
        return rows.with_frame(rows.frame.where(F.lit(False)))

    def foresee(self, table: Table) -> Table | None:
        """Return the table, which stays as it is."""
        return table
