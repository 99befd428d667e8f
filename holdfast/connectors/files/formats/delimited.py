"""The rows of csv and text files: one reader for every way they are carried on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.arrow_types import arrow_schema
from holdfast.connect.rejects import Rejects, RowErrors
from holdfast.connect.rows import Rows
from holdfast.connectors.files.declared_columns import kept
from holdfast.connectors.files.format import Format, is_utf8, python_encoding
from holdfast.connectors.files.formats.csv import Delimited
from holdfast.connectors.files.formats.csv_quotes import Dialect
from holdfast.connectors.files.formats.csv_sifting import Rules
from holdfast.connectors.files.recode import Recoding
from holdfast.connectors.files.splits import at_rows, divide
from holdfast.connectors.files.text_values import Writing
from holdfast.connectors.files.unpack import Packing
from holdfast.connectors.files.values import SEPARATORS
from holdfast.model.table import Column
from holdfast.model.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.connectors.files.source_options import FileTable

DELIMITED = (Format.CSV, Format.TEXT)
CONTENT = Column("content", Type("string"))


def delimited_rows(
    spark: "SparkSession", table: "FileTable", files: Sequence[str], names: Sequence[str],
    stage: str, travel: bool,
) -> Rows:  # fmt: skip
    """Return the rows of csv or text files, with the partition columns `names` last.

    `travel`: a sink may have them as batches, where their types allow it.
    """
    rejects = Rejects() if table.row_error_handle_way is RowErrors.SKIP else None
    counter = rejects.begin(spark.sparkContext) if rejects else None
    reader = reader_of(table, names, stage)
    reader = reader.counting(counter)
    divided, size = divide(files, spark.sparkContext.defaultParallelism)
    whole = [f for f in files if reader.whole(f)]
    splits = at_rows(divided, reader.dialect, whole, reader.skip)
    columns = columns_of(reader)
    batches = ArrowRows(spark, columns, tuple(splits), reader, size)
    known = table.table().with_columns(columns)
    if travel and arrow_schema(columns) is not None:
        return Rows(known, batches.frame, batches, rejects)
    return Rows(known, batches.frame, None, rejects, batches.moved)


def columns_of(reader: Delimited) -> tuple[Column, ...]:
    """Return the columns that a reader yields."""
    own = tuple(reader.columns[n] for n in reader.kept)
    names = {c.name for c in own}
    added = (Column(n, Type("string")) for n in reader.partitions if n not in names)
    return (*own, *added)


def reader_of(table: "FileTable", names: Sequence[str], stage: str) -> Delimited:
    """Return the reader of a table's files."""
    encoding = None if is_utf8(table.encoding) else python_encoding(table.encoding)
    declared = table.declared
    delimiter = table.delimiter.encode() if declared else b""
    recoding = Recoding(delimiter, table.row_delimiter.encode(), encoding)
    quote = table.quote if declared else None
    escape = table.escape_char if declared and table.escape_char != quote else None
    dialect = Dialect(
        recoding.between, ord(quote) if quote else None, ord(escape) if escape else None
    )
    writing = Writing(
        (table.delimiter, *SEPARATORS[1:]),
        null_format=table.null_format if declared else None,
        date_format=table.date_format,
        datetime_format=table.datetime_format,
        time_format=table.time_format,
    )
    packing = Packing(table.format, table.archive_compress_codec, table.compress_codec)
    columns = table.schema.table.columns if table.schema and declared else (CONTENT,)
    return Delimited(
        stage, packing, recoding, dialect, writing,
        Rules(table.strict_mode, table.null_padding, table.max_line_size), columns,
        tuple(n for n, _ in kept(table)) if declared else (0,), tuple(names),
        table.skip_header_row_number, table.csv_use_header_line, table.encoding,
        table.row_error_handle_way,
    )  # fmt: skip
