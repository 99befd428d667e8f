"""Read Parquet files with Arrow, inside Spark's Python workers.

Only columns that Spark and Arrow read alike: numbers, texts, dates, local times, as the first file
has them.  A file that differs from it raises NotArrowReadable, and Spark reads the slice.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.connect.arrow_rows import ArrowRows, NotArrowReadable
from holdfast.connect.arrow_types import arrow_schema
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.splits import divide, parts_of
from holdfast.model.table import Column
from holdfast.model.tree import Plain
from holdfast.model.types import Type, from_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.connectors.files.source_options import FileTable

BATCH_ROWS = 1 << 16

SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
SPARKS_VERSION = b"org.apache.spark.version"
SPARKS_OLD_DATES = b"org.apache.spark.legacy"
"""How keys begin that say that old dates were counted by the Julian calendar."""

WHOLE = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
BARE = {
    "BOOLEAN": "boolean", "INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double",
}  # fmt: skip
"""What columns are that say nothing but how they are stored."""


def parquet_batches(
    spark: "SparkSession", table: "FileTable", files: Sequence[str]
) -> ArrowRows | None:
    """Return Parquet files as batches; None if only Spark reads such a table."""
    if table.format is not FileFormat.PARQUET or table.declared or table.read_columns:
        return None
    try:
        columns = _columns(pq.read_metadata(files[0]))
        if columns and any(_columns(pq.read_metadata(f)) != columns for f in files[1:]):
            return None  # Spark puts files of several shapes together
    except (pa.ArrowException, OSError):
        return None  # Spark says better what is wrong with it
    if columns is None:
        return None
    splits, size = divide(files, spark.sparkContext.defaultParallelism)
    return ArrowRows(spark, columns, tuple(splits), ParquetReader(columns), size)


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Reads parts of Parquet files.  A part owns the row groups whose middle is in it."""

    columns: tuple[Column, ...]

    def __call__(self, split: Plain) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split.  Raises NotArrowReadable for one that Spark must read."""
        schema = arrow_schema(self.columns)
        assert schema is not None
        for path, first, end in parts_of(split):
            try:
                yield from self._rows(path, first, end, schema)
            except (pa.ArrowException, OSError) as error:
                raise NotArrowReadable(f"{path}: {' '.join(str(error).split())[:200]}") from error

    def _rows(self, path: str, first: int, end: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            if _columns(file.metadata) != self.columns:
                raise NotArrowReadable(f"{path} has other columns than the first file")
            groups = [
                number
                for number in range(file.metadata.num_row_groups)
                if first <= _middle(file.metadata.row_group(number)) < end
            ]
            batches = file.iter_batches(BATCH_ROWS, row_groups=groups, use_threads=False)
            for batch in batches if groups else ():
                made = batch if batch.schema == schema else batch.cast(schema)
                for column in made.columns:
                    if pa.types.is_string(column.type):
                        column.validate(full=True)  # Arrow does not look whether texts are UTF-8
                yield made


def _columns(footer: pq.FileMetaData) -> tuple[Column, ...] | None:
    """Return a file's columns; None if there is one that only Spark reads as Spark does."""
    kinds: dict[str, Type] = {}
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        kind = _type(column)
        # A dot would name a field inside a row.
        if kind is None or column.path != column.name or "." in column.name:
            return None
        kinds[column.name] = kind
    if len({name.lower() for name in kinds}) < footer.num_columns or not kinds:
        return None
    said = footer.metadata or {}
    if SPARKS_SCHEMA in said and _sparks(said[SPARKS_SCHEMA]) != kinds:
        return None  # an interval, say, which Spark stores as a number
    old = said.get(SPARKS_VERSION, b"3") < b"3" or any(k.startswith(SPARKS_OLD_DATES) for k in said)
    if old and any(kind.kind in ("date", "timestamp") for kind in kinds.values()):
        return None
    return tuple(Column(name, kind) for name, kind in kinds.items())


def _sparks(written: bytes) -> dict[str, Type] | None:
    """Return the columns as Spark has described them."""
    fields = json.loads(written)["fields"]
    if not all(isinstance(field["type"], str) for field in fields):
        return None
    return {field["name"]: from_spark(field["type"]) for field in fields}


def _type(column: pq.ColumnSchema) -> Type | None:
    """Return a type that Spark and Arrow read alike; None for all others."""
    if column.max_repetition_level or column.max_definition_level > 1:
        return None
    said: dict[str, Any] = json.loads(column.logical_type.to_json())
    match said["Type"], column.physical_type:
        case "None", physical if column.converted_type == "NONE" and physical in BARE:
            return Type(BARE[physical])
        case "String", "BYTE_ARRAY":
            return Type("string")
        case "Date", "INT32":
            return Type("date")
        case "Int", "INT32" | "INT64" if said["isSigned"]:
            return Type(WHOLE[said["bitWidth"]])
        case "Decimal", "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY" if said["precision"] <= 38:
            return Type("decimal", said["precision"], said["scale"])
        case "Timestamp", "INT64" if said["timeUnit"] in ("milliseconds", "microseconds"):
            return None if said["isAdjustedToUTC"] else Type("timestamp")
    return None


def _middle(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    begins = first.dictionary_page_offset or first.data_page_offset
    size = sum(group.column(n).total_compressed_size for n in range(group.num_columns))
    return int(begins + size // 2)
