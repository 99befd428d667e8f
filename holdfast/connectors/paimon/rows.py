"""Make rows ready for a table without keys: its columns, and where each row belongs.

Files have all columns of the table, those it is partitioned by too, as Paimon's own writers do.
"""

from collections.abc import Sequence

from holdfast.connect.rows import Rows
from holdfast.connectors.lake.fit import fit
from holdfast.connectors.lake.footers import Part, staged_parts
from holdfast.connectors.lake.limits import limited
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.staging import stage, stage_batches
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.connectors.paimon.types import lengths
from holdfast.model.table import Column

LONG_DIGITS = 18
"""So many digits of a decimal are stored as a number."""

CODEC, CODEC_DEFAULT = "file.compression", "zstd"
CODECS = {
    # Paimon's name: Spark's
    "zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4_raw", "none": "none",
    "uncompressed": "none",
}  # fmt: skip


def stage_rows(rows: Rows, table: PaimonTable, folder: Location, about: str) -> list[Part]:
    """Let Spark write rows into a folder; return its files."""
    schema = table.schema
    names = partition_names(schema.partitions)
    kinds = {c.name: c.type.kind for c in schema.columns(about)}
    ready, codec = rows.projected(column_sql(rows, table, about)), codec_of(schema)
    plain = without_dictionary(schema.columns(about))
    parts = None if names else stage_batches(ready, folder, codec=codec, plain=plain)
    if parts is not None:
        return parts
    frame = keyed(ready.frame, schema.partitions, kinds, about)
    stage(frame, folder, partitions=names, codec=codec, plain=plain)
    return staged_parts(folder, names)


def column_sql(rows: Rows, table: PaimonTable, about: str) -> dict[str, str]:
    """Return what is written to each column of the table, as Spark SQL; null where none arrives."""
    columns = table.schema.columns(about)
    fits = fit(columns, rows.table.columns, about, table.schema.partitions)
    fits = limited(fits, lengths(table.schema.types), about)
    return {c.name: fits.get(c.name, f"CAST(NULL AS {c.type.ddl})") for c in columns}


def without_dictionary(columns: Sequence[Column]) -> list[str]:
    """Return the columns that files must have no dictionary of.

    Paimon's Java looks for a decimal of more than 18 digits by its shortest bytes, which no
    dictionary has: it would skip the rows.
    """
    return [c.name for c in columns if c.type.kind == "decimal" and c.type.precision > LONG_DIGITS]


def codec_of(schema: PaimonSchema) -> str:
    """Return how files of a table are compressed, as Spark calls it."""
    return CODECS.get(schema.options.get(CODEC, CODEC_DEFAULT).lower(), "zstd")
