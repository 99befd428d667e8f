"""Read ORC files of its C++ library as that library does, inside Spark's Python workers.

Java reads them otherwise: days before 1582 by another calendar, and fractions of a second before
1970 not at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc

from holdfast.connectors.local_file.convert import arrow_type
from holdfast.connectors.local_file.folders import with_folders
from holdfast.connectors.local_file.reasons import why
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.types import Type, from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

WRITER = "ORC_CPP"


def described(schema: pa.Schema) -> "StructType":
    """Return the columns of a file as Spark has them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def read_orc(
    spark: "SparkSession", files: Sequence[str], schema: "StructType", folders: Sequence[str]
) -> "DataFrame":
    """Return the rows of files with these columns, and the columns that folders name."""
    own = tuple(Column(f.name, from_spark(f.dataType.jsonValue())) for f in schema.fields)
    named = tuple(Column(name, Type("string")) for name in folders)
    ddl = ", ".join(f"{quote(c.name)} {c.type.ddl}" for c in (*own, *named))
    numbers = spark.range(0, len(files), 1, min(len(files), 256))
    return numbers.mapInArrow(_Reader(tuple(files), own, named), ddl)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The function that Spark's Python workers call."""

    files: tuple[str, ...]
    own: tuple[Column, ...]
    folders: tuple[Column, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for number in numbers:
                yield from self._file(self.files[number])

    def _file(self, path: str) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([(c.name, arrow_type(c.type)) for c in self.own])
        names = [c.name for c in (*self.own, *self.folders)]
        try:
            file = orc.ORCFile(path)
            for stripe in range(file.nstripes):
                found = pa.Table.from_batches([file.read_stripe(stripe)])
                rows = found.select(schema.names).cast(schema)
                yield from with_folders(rows, path, self.folders, names)
        except (pa.ArrowException, OSError) as error:
            raise UserError(
                f"LocalFile cannot read {path}: {why(error)[:200]}.", code="source.unreadable"
            ) from error
