"""Columns whose values are in the names of folders, such as `day=2024-01-31`."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from holdfast.connectors.files.discovery import partitions_of
from holdfast.connectors.files.text_conversion import arrow_type, value_of
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.types import Type


def folder_columns(
    declared: Sequence[Column], names: Sequence[str]
) -> tuple[tuple[Column, ...], tuple[Column, ...], tuple[Column, ...]]:
    """Return all columns of a table, those in the folders' names, and those in the files.

    What folders say counts, also for a column that the schema declares.
    """
    own = {c.name for c in declared}
    columns = (*declared, *(Column(n, Type("string")) for n in names if n not in own))
    folders = tuple(c for c in columns if c.name in names)
    return columns, folders, tuple(c for c in columns if c.name not in names)


def folder_value(path: str, column: Column) -> Any:
    """Return the value of a column in a path's folders.  Raises UserError if it is none."""
    text = partitions_of(path).get(column.name)
    try:
        return value_of(text, column.type)
    except ValueError as error:
        raise UserError(
            f"LocalFile cannot read {path}: its folder says {column.name} = '{text}', which is no"
            f" {column.type}. Declare the column as string, or set parse_partition_from_path ="
            " false.",
            code="source.partition",
        ) from error


def with_folders(
    rows: pa.Table, path: str, folders: Sequence[Column], names: Sequence[str]
) -> list[pa.RecordBatch]:
    """Return rows of a file with the values that its folders have, columns in the order given."""
    for column in folders:
        value = pa.scalar(folder_value(path, column), arrow_type(column.type))
        rows = rows.append_column(column.name, pa.repeat(value, rows.num_rows))
    return rows.select(list(names)).to_batches()
