"""Copy: a column again, under another name."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import add_columns, find_columns, with_new
from holdfast.model.table import Column, Table
from holdfast.model.types import quote


@options
class CopyOptions:
    """Which columns to copy."""

    fields: dict[str, str] | None = None  #: New columns and what each is a copy of: new = old.
    src_field: str | None = None  #: The one column to copy; an older way to say it.
    dest_field: str | None = None  #: The name of the copy of `src_field`.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the options together."""
        if self.fields is None and not (self.src_field and self.dest_field):
            yield "fields", "give 'fields { new = old }', or both 'src_field' and 'dest_field'."
        elif self.fields == {}:
            yield "fields", "'fields' is empty. Name at least one copy: new = old."

    @property
    def copies(self) -> dict[str, str]:
        """New names and the columns they copy; `fields` wins where both forms are given."""
        return self.fields or {self.dest_field or "": self.src_field or ""}


class Copy(Transform[CopyOptions]):
    """Copies columns to new ones at the end; a new name that exists is overwritten."""

    name = "Copy"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with the copies."""
        from pyspark.sql import functions as F

        details = list(self._found(rows.table).values())
        copies = self.options.copies
        return add_columns(rows, {n: F.col(quote(o)) for n, o in copies.items()}, details)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        return with_new(table, self._found(table))

    def _found(self, table: Table) -> dict[str, Column]:
        copies = self.options.copies
        found = find_columns(table, copies.values(), self.context.stage)
        return {new: replace(found[old], name=new) for new, old in copies.items()}
