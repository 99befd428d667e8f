"""Make rows ready for a table: its columns, their numbers, and where each row belongs.

Files keep the columns a table is partitioned by, as Iceberg's own writers do.  Spark sorts rows
into folders by texts made from them, which tell null from nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from holdfast.connect.tables import Rows
from holdfast.connectors.iceberg.codecs import CODECS
from holdfast.connectors.iceberg.options import CODEC, IcebergSinkOptions
from holdfast.connectors.iceberg.schema import has_numbers, is_numbered, numbered
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.lake.columns import fitted
from holdfast.connectors.lake.footers import Part, staged_parts
from holdfast.connectors.lake.place import Place
from holdfast.connectors.lake.stage import stage
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXTS = {
    # The text of a partition value by its type; instants and days as Iceberg counts them.
    "string": "{}", "boolean": "CAST({} AS STRING)", "int": "CAST({} AS STRING)",
    "bigint": "CAST({} AS STRING)", "decimal": "CAST({} AS STRING)",
    "date": "CAST(unix_date({}) AS STRING)", "timestamp_tz": "CAST(unix_micros({}) AS STRING)",
}  # fmt: skip


def partition_names(partitions: Sequence[str]) -> list[str]:
    """Return the names of the columns that Spark sorts rows into folders by."""
    return [f"__holdfast_p{number}" for number in range(len(partitions))]


def stage_rows(
    rows: Rows, table: IcebergTable, options: IcebergSinkOptions, folder: Place
) -> tuple[list[Part], bool]:
    """Let Spark write rows into a folder; return its files, and whether they have field ids."""
    names = partition_names(table.partitions)
    said = {**table.properties, **options.write_props}
    codec = CODECS.get(said.get(CODEC, "zstd").lower(), "zstd")
    frame = _fitted(rows, table, options)
    with_ids = is_numbered(table.schema)
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


def _fitted(rows: Rows, table: IcebergTable, options: IcebergSinkOptions) -> "DataFrame":
    """Return rows with the columns of the table."""
    about = f"Iceberg cannot write to {options.named}"
    return fitted(rows, table.columns, about, table.partitions).frame


def _keyed(frame: "DataFrame", table: IcebergTable) -> "DataFrame":
    """Return rows with a text for each partition column."""
    kinds = {c.name: c.type.kind for c in table.columns}
    texts = []
    for key, name in zip(table.partitions, partition_names(table.partitions), strict=True):
        value = quote(key)
        text = TEXTS[kinds[key]].format(value)
        texts.append(f"CASE WHEN {value} IS NULL THEN 'n' ELSE concat('v', {text}) END AS {name}")
    return frame.selectExpr("*", *texts) if texts else frame
