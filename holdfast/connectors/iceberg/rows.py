"""Make rows ready for a table: its columns, their numbers, and where each row belongs.

Files keep the columns a table is partitioned by, as Iceberg's own writers do.  Spark sorts rows
into folders by texts made from them, which tell null from nothing.
"""

from holdfast.connect.rows import Rows
from holdfast.connectors.iceberg.codecs import CODECS
from holdfast.connectors.iceberg.field_ids import number_files
from holdfast.connectors.iceberg.options import CODEC, IcebergSinkOptions
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.iceberg.types import numbered
from holdfast.connectors.lake.fit import fitted
from holdfast.connectors.lake.footers import Part, staged_parts
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.staging import stage, stage_batches


def stage_rows(
    rows: Rows, table: IcebergTable, options: IcebergSinkOptions, folder: Location
) -> list[Part]:
    """Let Spark write rows into a folder; return its files, which know columns by their numbers."""
    names = partition_names(table.partitions)
    said = {**table.properties, **options.write_props}
    codec = CODECS.get(said.get(CODEC, "zstd").lower(), "zstd")
    ready = _fitted(rows, table, options)
    ids = {field.name: field.field_id for field in table.schema.fields}
    parts = None if names else stage_batches(ready, folder, codec=codec, field_ids=ids)
    if parts is not None:
        return parts
    about = f"Iceberg cannot write to {options.named}"
    kinds = {c.name: c.type.kind for c in table.columns}
    frame = keyed(numbered(ready.frame, table.schema), table.partitions, kinds, about)
    stage(frame, folder, partitions=names, codec=codec)
    number_files(folder, table.schema)
    return staged_parts(folder, names)


def _fitted(rows: Rows, table: IcebergTable, options: IcebergSinkOptions) -> Rows:
    """Return rows with the columns of the table."""
    about = f"Iceberg cannot write to {options.named}"
    return fitted(rows, table.columns, about, table.partitions)
