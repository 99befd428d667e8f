"""Which of a table's declared columns are read, and where in a row each is."""

from typing import TYPE_CHECKING

from holdfast.model.table import Column

if TYPE_CHECKING:
    from holdfast.connectors.files.source_options import FileTable


def kept(table: "FileTable") -> list[tuple[int, Column]]:
    """Return the columns to read, each with its place in a row of the file."""
    assert table.schema is not None
    columns = list(enumerate(table.schema.table.columns))
    if not table.read_columns:
        return columns
    named = {c.name: (i, c) for i, c in columns}
    return [named[name] for name in table.read_columns]
