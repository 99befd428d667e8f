"""Metadata: show what is known about a row besides its columns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.connect.options import nearest, option, options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import (
    add_columns,
    check_new,
    check_unique,
    with_new,
)
from holdfast.connectors.transforms.row_kind_extractor import short_kind_sql
from holdfast.model.table import Table
from holdfast.model.types import Type

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

KEYS = {
    # what is asked for: the type of its column
    "Database": "string",
    "Table": "string",
    "RowKind": "string",
    "EventTime": "bigint",
    "Delay": "bigint",
    "Partition": "string",
}


@options
class MetadataOptions:
    """What to show, and where."""

    #: What to show and the new column for it: Database, Table, RowKind (+I, -U, +U, -D),
    #: EventTime and Delay (milliseconds), Partition. Null where the source does not know.
    metadata_fields: dict[str, str] = option({})

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the mapping."""
        for key in self.metadata_fields:
            if key not in KEYS:
                hint = nearest(key, list(KEYS))
                good = ", ".join(KEYS)
                yield "metadata_fields", f"'{key}' is not one of {good}.{hint}"
        if twice := check_unique(list(self.metadata_fields.values()), "'metadata_fields'"):
            yield "metadata_fields", f"{twice} Give each column a name of its own."


class Metadata(Transform[MetadataOptions]):
    """Adds columns with the table's path and the row's kind."""

    name = "Metadata"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with the new columns at its end."""
        fields = self.options.metadata_fields
        check_new(rows.table, list(fields.values()), self.context.stage)
        return add_columns(rows, {new: _value(rows, key) for key, new in fields.items()})

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        fields = self.options.metadata_fields
        check_new(table, list(fields.values()), self.context.stage)
        return with_new(table, {new: Type(KEYS[key]) for key, new in fields.items()})


def _value(rows: Rows, key: str) -> "Expression":
    from pyspark.sql import functions as F

    if key == "RowKind":
        return F.expr(short_kind_sql(rows))
    known = {"Database": rows.table.path.database, "Table": rows.table.path.table}
    return F.lit(known.get(key)).cast(KEYS[key])
