"""Read ORC and Parquet files with Arrow, inside Spark's Python workers, where Java does not do.

Java reads ORC files of its C++ library differently: days before 1582 by another calendar, and
fractions of a second before 1970 not at all.  And it refuses Parquet's nanoseconds, which pandas
writes, its milliseconds of a day, half floats and UUIDs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.partition_folders import with_folders
from holdfast.connectors.files.reasons import why
from holdfast.connectors.files.splits import by_file
from holdfast.connectors.files.text_conversion import arrow_type
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain
from holdfast.model.types import Type, from_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

WRITER = "ORC_CPP"
FILE = "__holdfast_file"
"""The column with the file that a row is from: Spark does not know it of rows that Arrow reads."""

BATCH_ROWS = 1 << 16

NAMED = Column(FILE, Type("string"))

_SIMPLER: dict[Any, Any] = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0), pa.float16(): pa.float32(), pa.date64(): pa.date32(),
    pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}  # fmt: skip


def only_arrow_reads(footer: pq.FileMetaData) -> bool:
    """Say whether a Parquet file has columns that Spark refuses and Arrow reads."""
    columns = [footer.schema.column(n) for n in range(footer.num_columns)]
    if any(c.physical_type == "INT96" for c in columns):
        return False  # Arrow has those in nanoseconds, which end in the year 2262
    said = [json.loads(c.logical_type.to_json()) for c in columns]
    return any(
        s["Type"] in ("Float16", "UUID")
        or (s["Type"] == "Timestamp" and s["timeUnit"] == "nanoseconds")
        or (s["Type"] == "Time" and s["timeUnit"] == "milliseconds")
        for s in said
    )


def described(schema: pa.Schema) -> "StructType":
    """Return the columns of a file as Spark has them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    plain = pa.schema([(f.name, _simpler(f.type)) for f in schema])
    return from_arrow_schema(plain, prefer_timestamp_ntz=True)


def _simpler(kind: Any) -> Any:
    """Return the type that Spark has for one that only Arrow has."""
    if isinstance(kind, pa.BaseExtensionType):
        return _simpler(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _simpler(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.time64("ns")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        return pa.map_(_simpler(kind.key_type), _simpler(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_simpler(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _simpler(f.type)) for f in kind.fields])
    return _SIMPLER.get(kind, kind)


def read_with_arrow(
    spark: "SparkSession", form: FileFormat, files: Sequence[str], schema: "StructType",
    folders: Sequence[str],
) -> ArrowRows:  # fmt: skip
    """Return the rows of files with these columns, the file of each and what folders name."""
    own = tuple(Column(f.name, from_spark(f.dataType.jsonValue())) for f in schema.fields)
    named = tuple(Column(name, Type("string")) for name in folders)
    splits, size = by_file(files)
    read = _Reader(form, tuple(files), own, named)
    return ArrowRows(spark, (*own, NAMED, *named), splits, read, size)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The function that Spark's Python workers call."""

    form: FileFormat
    files: tuple[str, ...]
    own: tuple[Column, ...]
    folders: tuple[Column, ...]

    def __call__(self, split: Plain) -> Iterator[pa.RecordBatch]:
        for number in cast(list[int], split):
            yield from self._file(self.files[number])

    def _file(self, path: str) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([(c.name, arrow_type(c.type)) for c in self.own])
        names = [c.name for c in (*self.own, NAMED, *self.folders)]
        try:
            for batch in _parts(path, self.form):
                arrays = [_cast(path, batch, f.name, f.type) for f in schema]
                rows = pa.Table.from_arrays(arrays, schema=schema)
                rows = rows.append_column(FILE, pa.array([path] * len(rows), pa.string()))
                yield from with_folders(rows, path, self.folders, names)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, error) from error


def _parts(path: str, form: FileFormat) -> Iterator[pa.RecordBatch]:
    if form is FileFormat.PARQUET:
        with pq.ParquetFile(path) as found:
            yield from found.iter_batches(BATCH_ROWS, use_threads=False)
        return
    file = orc.ORCFile(path)
    for stripe in range(file.nstripes):
        yield file.read_stripe(stripe)


def _cast(path: str, batch: pa.RecordBatch, name: str, kind: Any) -> Any:
    values: Any = batch.column(name)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise UserError(
            f"LocalFile cannot read {path}: column {name}: {why(error)[:200]}."
            " A time has six places of a second here. Cut the others where the file is written, or"
            " leave the column out (read_columns).",
            code="source.value",
        ) from error


def unreadable(path: str, error: Exception) -> UserError:
    """Return what is said of a file that Arrow cannot read."""
    return UserError(f"LocalFile cannot read {path}: {why(error)[:200]}.", code="source.unreadable")
