"""What columns are in Arrow.  Apart from `batches`, because Arrow takes its time to be imported: a
command that only asks a cluster something needs none of it.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from holdfast.model.table import Column

ARROW: dict[str, Any] = {
    "string": pa.string(), "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(),
    "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "date": pa.date32(), "timestamp": pa.timestamp("us"),
}  # fmt: skip
"""Kinds of columns that travel as batches, in addition to decimals, and what each is in Arrow."""


def arrow_schema(columns: Sequence[Column]) -> pa.Schema | None:
    """Return what columns are in Arrow; None if one of them cannot travel as batches."""
    fields = []
    for column in columns:
        kind = ARROW.get(column.type.kind)
        if column.type.kind == "decimal":
            kind = pa.decimal128(column.type.precision, column.type.scale)
        if kind is None:
            return None
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)
