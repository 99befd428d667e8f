"""Make rows ready for a table: its columns, their numbers, and where each row belongs.

Files keep the columns a table is partitioned by, as Iceberg's own writers do.  Spark sorts rows
into folders by texts made from them, which tell null from nothing.
"""

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from holdfast.connect.tables import Rows
from holdfast.connectors.iceberg.codecs import CODECS
from holdfast.connectors.iceberg.options import CODEC, IcebergSinkOptions
from holdfast.connectors.iceberg.schema import has_numbers, is_numbered, numbered
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.lake.columns import fitted
from holdfast.connectors.lake.footers import Part, staged_parts
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.place import Place
from holdfast.connectors.lake.stage import stage, stage_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage_rows(
    rows: Rows, table: IcebergTable, options: IcebergSinkOptions, folder: Place
) -> tuple[list[Part], bool]:
    """Let Spark write rows into a folder; return its files, and whether they have field ids."""
    names = partition_names(table.partitions)
    said = {**table.properties, **options.write_props}
    codec = CODECS.get(said.get(CODEC, "zstd").lower(), "zstd")
    ready = _fitted(rows, table, options)
    with_ids = is_numbered(table.schema)
    ids = {field.name: field.field_id for field in table.schema.fields}
    parts = None if names else stage_batches(ready, folder, codec=codec, field_ids=ids)
    if parts is not None:
        return parts, True
    frame = ready.frame
    if with_ids:
        stage(_keyed(numbered(frame, table.schema), table), folder, partitions=names, codec=codec)
        parts = staged_parts(folder, names)
        if not parts or has_numbers(
            pq.read_schema(f"{folder.path}/{parts[0].path}", filesystem=folder.files)
        ):
            return parts, True
        folder.remove("")  # Spark has optimised them away: the table will find columns by name
    stage(_keyed(frame, table), folder, partitions=names, codec=codec)
    return staged_parts(folder, names), False


def _fitted(rows: Rows, table: IcebergTable, options: IcebergSinkOptions) -> Rows:
    """Return rows with the columns of the table."""
    about = f"Iceberg cannot write to {options.named}"
    return fitted(rows, table.columns, about, table.partitions)


def _keyed(frame: "DataFrame", table: IcebergTable) -> "DataFrame":
    """Return rows with a text for each partition column."""
    return keyed(frame, table.partitions, {c.name: c.type.kind for c in table.columns})
