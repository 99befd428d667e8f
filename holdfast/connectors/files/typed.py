"""Read JSON, Excel and XML files into typed columns, by the rules of docs/values.md.

Spark's tasks do it in Python, with Arrow where a file is plain.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.arrow_types import arrow_schema
from holdfast.connect.rejects import Rejects, RowErrors
from holdfast.connect.rows import Rows
from holdfast.connectors.files.declared_columns import kept
from holdfast.connectors.files.discovery import local_path
from holdfast.connectors.files.format import Archive, Codec, FileFormat, is_utf8, python_encoding
from holdfast.connectors.files.formats.cell_rows import CellRows
from holdfast.connectors.files.formats.json import JsonReader
from holdfast.connectors.files.formats.json_rows import JsonRows
from holdfast.connectors.files.partition_folders import folder_columns
from holdfast.connectors.files.python_reading import Reading, Typed, read_in_python
from holdfast.connectors.files.row_rejects import Judge
from holdfast.connectors.files.splits import divide
from holdfast.connectors.files.text_conversion import Spelling
from holdfast.model.tree import Plain
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.connectors.files.source_options import FileTable

TYPED = (FileFormat.JSON, FileFormat.EXCEL, FileFormat.XML)
"""Formats that are read here."""


def read_typed(
    spark: "SparkSession", table: "FileTable", files: Sequence[str], names: Sequence[str],
    stage: str, travel: bool,
) -> Rows:  # fmt: skip
    """Return the rows of files; `names` are the columns that folders name.

    `travel`: a sink may have them as batches, where their types allow it.
    """
    columns, folders, inside = folder_columns([c for _, c in kept(table)], names)
    rejects = Rejects() if table.row_error_handle_way is RowErrors.SKIP else None
    counter = rejects.begin(spark.sparkContext) if rejects else None
    judge = Judge(stage, table.row_error_handle_way, counter)
    made = table.table().with_columns(columns)
    ddl = ", ".join(f"{quote(c.name)} {c.type.ddl}" for c in columns)
    order = tuple(c.name for c in columns)
    is_json = table.format is FileFormat.JSON
    spelling = Spelling(table.date_format, table.datetime_format, table.time_format, is_json)
    if not files:
        return Rows(made, spark.createDataFrame([], ddl))
    if is_json and _plain(table):
        read = JsonReader(JsonRows(inside, spelling), folders, order, judge)
        splits, size = divide(files, spark.sparkContext.defaultParallelism)
        numbered = cast(tuple[Plain, ...], tuple([n, part] for n, part in enumerate(splits)))
        batches = ArrowRows(spark, columns, numbered, read, size)
        if travel and arrow_schema(columns) is not None:
            return Rows(made, batches.frame, batches, rejects)
        return Rows(made, batches.frame, None, rejects, (batches.moved,))
    if is_json:
        rows: JsonRows | CellRows = JsonRows(inside, spelling)
    else:
        places = {c.name: at for at, c in kept(table)}
        at = tuple(places[c.name] for c in inside)
        rows = CellRows(inside, at, spelling, table.null_format, table.delimiter)
    reading = reading_of(table, files, Typed(rows, folders, order, judge))
    found = read_in_python(spark, reading, columns)
    return Rows(made, found.frame, None, rejects, (found.moved,))


def reading_of(
    table: "FileTable", files: Sequence[str], typed: Typed | None = None,
    partition_names: Sequence[str] = (), partitions: tuple[tuple[str | None, ...], ...] = (),
) -> Reading:  # fmt: skip
    """Return what a Python reader must know of a table."""
    return Reading(
        files=tuple(files),
        root=local_path(table.path),
        format=table.format,
        archive=table.archive_compress_codec,
        codec=table.compress_codec,
        encoding=python_encoding(table.encoding) or table.encoding,
        row_delimiter=table.row_delimiter,
        skip=table.skip_header_row_number,
        columns=table.schema.table.names if table.schema else (),
        partition_names=tuple(partition_names),
        partitions=partitions,
        sheet=table.sheet_name,
        xml_row_tag=table.xml_row_tag or "",
        xml_attributes=bool(table.xml_use_attr_format),
        chunk=None if table.binary_complete_file_mode else table.binary_chunk_size,
        typed=typed,
    )


def _plain(table: "FileTable") -> bool:
    """Say whether lines end as usual, in bytes that need no decoding."""
    return (
        is_utf8(table.encoding)
        and table.compress_codec is Codec.NONE
        and table.archive_compress_codec is Archive.NONE
        and table.row_delimiter == "\n"
        and not table.skip_header_row_number
    )
