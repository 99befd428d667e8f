"""Stage rows as files, with Spark's writers or, for formats it has none for, Python's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.rows import Rows, aliased, projected
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.formats.xml import check_names
from holdfast.connectors.files.python_writing import encoded_lines, write_in_python
from holdfast.connectors.files.values import (
    SEPARATORS,
    Quoting,
    TextStyle,
    line_sql,
    literal,
    text_sql,
)
from holdfast.connectors.json_text import (
    instant_text,
    json_ready,
    row_text,
    storable,
    storable_in_orc,
    text_of_bytes,
)
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.parquet import write_batches
from holdfast.errors import UserError
from holdfast.model.table import Table
from holdfast.model.types import Type, from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from holdfast.connectors.files.sink_options import LocalFileSinkOptions

PARTITION = "__p"
"""Helper columns `__p0`, `__p1`... that Spark makes folders of."""

CSV_KINDS = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal",
    "date",
)  # fmt: skip
"""Types that Spark's csv writer writes as we want them."""

PROLEPTIC = {"orc.proleptic.gregorian": "true"}
"""Makes ORC files say that days before 1582 are counted by the calendar of today."""

SHEET_KINDS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double")


@dataclass(frozen=True, slots=True)
class PartitionedColumns:
    """Which columns go into files, and which into the names of folders."""

    columns: tuple[str, ...]
    partitions: tuple[str, ...]


def layout_of(
    options: "LocalFileSinkOptions", names: tuple[str, ...], table: Table
) -> PartitionedColumns:
    """Return where each column goes.  Raises UserError for columns that do not exist."""
    wanted = _matched(options.sink_columns or list(names), names, "sink_columns", table)
    keys = _matched(options.partition_by or [], wanted, "partition_by", table)
    if not options.is_partition_field_write_in_file:
        wanted = tuple(n for n in wanted if n not in keys)
    if not names:
        raise UserError(
            f"LocalFile gets rows of {table.path} that have no columns. Give its source a schema.",
            code="sink.no_columns",
        )
    if not wanted:
        raise UserError(
            f"LocalFile has no column of {table.path} left to write: partition_by takes them all."
            " Set is_partition_field_write_in_file = true.",
            code="sink.no_columns",
        )
    if options.file_format_type is FileFormat.XML:
        check_names(wanted)
    return PartitionedColumns(wanted, keys)


def stage(
    rows: Rows, options: "LocalFileSinkOptions", layout: PartitionedColumns, folder: str
) -> dict[str, int]:
    """Write rows into a new folder; return the rows of files that Python has counted."""
    batches = _batches(rows, options, layout)
    if batches is not None:
        return write_batches(
            batches, Location(folder), codec=options.spark_codec, rows_max=options.rows_max
        )
    return _by_frame(rows.visible, options, layout, folder)


def _batches(
    rows: Rows, options: "LocalFileSinkOptions", layout: PartitionedColumns
) -> ArrowRows | None:
    """Return rows as tasks write them without Spark's engine; None if only Spark writes such."""
    if (
        rows.batches is None
        or options.file_format_type is not FileFormat.PARQUET
        or layout.partitions
    ):
        return None
    if options.parquet_avro_write_timestamp_as_int96 or options.create_empty_file_when_no_data:
        return None
    batches = rows.batches.named({name: name for name in layout.columns})
    return batches.joined() if options.single_file_mode else batches


def _by_frame(
    frame: "DataFrame", options: "LocalFileSinkOptions", layout: PartitionedColumns, folder: str
) -> dict[str, int]:
    kinds = {f.name: from_spark(f.dataType.jsonValue()) for f in frame.schema.fields}
    helpers = [
        f"{_folder_text(quote(n), kinds[n])} AS {PARTITION}{i}"
        for i, n in enumerate(layout.partitions)
    ]
    if options.single_file_mode:
        frame = frame.coalesce(1)
    columns = [(n, kinds[n]) for n in layout.columns]
    match options.file_format_type:
        case FileFormat.PARQUET if options.parquet_avro_write_timestamp_as_int96:
            return write_in_python(_stored(frame, columns, helpers), options, folder, len(helpers))
        case FileFormat.PARQUET:
            _native(_stored(frame, columns, helpers), options, folder, len(helpers), {})
        case FileFormat.ORC:
            ready = partial(storable_in_orc, row=_row_of(columns))
            rows = _stored(frame, columns, helpers, ready)
            _native(rows, options, folder, len(helpers), PROLEPTIC)
        case FileFormat.CSV if options.plain_text and csv_by_spark(options):
            extra = csv_options(options, len(columns)) | {
                "header": str(options.enable_header_write).lower()
            }
            _native(_csv(frame, options, columns, helpers), options, folder, len(helpers), extra)
        case FileFormat.JSON if options.plain_text:
            made = [f"{json_ready(quote(n), t)} AS {quote(n)}" for n, t in columns]
            rows = frame.selectExpr(*made, *helpers)
            extra = {"ignoreNullFields": "false", "lineSep": options.row_delimiter}
            _native(rows, options, folder, len(helpers), extra)
        case FileFormat.TEXT | FileFormat.CSV | FileFormat.JSON:
            _lines(frame, options, columns, helpers, folder)
        case FileFormat.BINARY:
            return write_in_python(_parts(frame), options, folder, 0)
        case FileFormat.EXCEL | FileFormat.XML:
            rows = frame.selectExpr(*helpers, *_cells(columns, options))
            if helpers:
                rows = rows.sortWithinPartitions(*(f"{PARTITION}{i}" for i in range(len(helpers))))
            return write_in_python(rows, options, folder, len(helpers))
    return {}


def header_of(options: "LocalFileSinkOptions", layout: PartitionedColumns) -> bytes:
    """Return the line of column names."""
    names = list(layout.columns)
    if options.file_format_type is FileFormat.CSV and options.csv_string_quote_mode != "NONE":
        names = [_quoting(options).quoted(name) for name in names]
    return (options.delimiter.join(names) + options.row_delimiter).encode(options.encoding)


def csv_by_spark(options: "LocalFileSinkOptions") -> bool:
    """Say whether Spark's csv writer puts rows together rightly."""
    usual = len(options.delimiter) == 1 and options.row_delimiter == "\n"
    return usual and options.csv_string_quote_mode != "NONE"


def _quoting(options: "LocalFileSinkOptions") -> Quoting:
    always = options.csv_string_quote_mode == "ALL"
    return Quoting(options.delimiter, options.row_delimiter, always)


def csv_options(options: "LocalFileSinkOptions", columns: int) -> dict[str, str]:
    """Return what Spark's csv writer must know."""
    # A row of one column would be an empty line, which is no row to any reader.
    nothing = '""' if columns == 1 else ""
    return {
        "sep": options.delimiter,
        "escape": '"',
        "quoteAll": str(options.csv_string_quote_mode == "ALL").lower(),
        "nullValue": nothing,
        "emptyValue": nothing,
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        "dateFormat": options.date_format,
    }


def _native(
    rows: "DataFrame", options: "LocalFileSinkOptions", folder: str, helpers: int,
    extra: dict[str, str], kind: str | None = None,
) -> None:  # fmt: skip
    writer = rows.write.format(kind or str(options.file_format_type)).options(**extra)
    writer = writer.option("compression", options.spark_codec)
    if options.rows_max:
        writer = writer.option("maxRecordsPerFile", options.rows_max)
    if helpers:
        writer = writer.partitionBy(*(f"{PARTITION}{i}" for i in range(helpers)))
    writer.mode("errorifexists").save(folder)


def _stored(
    frame: "DataFrame", columns: list[tuple[str, Type]], helpers: list[str],
    ready: Callable[[str, Type], str] = storable,
) -> "DataFrame":  # fmt: skip
    made = {n: ready(quote(n), t) for n, t in columns}
    return frame.selectExpr(*aliased(made), *helpers) if helpers else projected(frame, made)


def _csv(
    frame: "DataFrame", options: "LocalFileSinkOptions", columns: list[tuple[str, Type]],
    helpers: list[str],
) -> "DataFrame":  # fmt: skip
    style = _writing(options, columns)
    made = [
        f"{quote(n) if t.kind in CSV_KINDS else text_sql(quote(n), t, style)} AS {quote(n)}"
        for n, t in columns
    ]
    return frame.selectExpr(*made, *helpers)


def _lines(
    frame: "DataFrame", options: "LocalFileSinkOptions", columns: list[tuple[str, Type]],
    helpers: list[str], folder: str,
) -> None:  # fmt: skip
    """Write lines that one expression makes of each row."""
    match options.file_format_type:
        case FileFormat.JSON:
            made = (f"{literal(n)}, {json_ready(quote(n), t)}" for n, t in columns)
            line = f"to_json(named_struct({', '.join(made)}), map('ignoreNullFields', 'false'))"
        case FileFormat.CSV if csv_by_spark(options):
            pairs = ", ".join(
                f"{literal(k)}, {literal(v)}" for k, v in csv_options(options, len(columns)).items()
            )
            frame = _csv(frame, options, columns, helpers)
            helpers = [f"{PARTITION}{i}" for i in range(len(helpers))]
            names = ", ".join(quote(n) for n, _ in columns)
            line = f"to_csv(struct({names}), map({pairs}))"
        case FileFormat.CSV if options.csv_string_quote_mode != "NONE":
            line = _quoting(options).line_sql(columns, _writing(options, columns))
        case _:
            line = line_sql(columns, _writing(options, columns))
    rows = frame.selectExpr(f"{line} AS value", *helpers)
    if not options.plain_text:
        rows = encoded_lines(rows, options.encoding)
    extra = {"lineSep": options.row_delimiter}
    _native(rows, options, folder, len(helpers), extra, "text")


def _cells(columns: list[tuple[str, Type]], options: "LocalFileSinkOptions") -> list[str]:
    """Return the columns of Excel and XML files: text, and numbers where a sheet has numbers."""
    style = TextStyle(
        (options.delimiter, *SEPARATORS[1:]), True,
        options.date_format, options.datetime_format, options.time_format, _row_of(columns),
    )  # fmt: skip
    made = []
    for name, kind in columns:
        value = quote(name)
        if (
            options.file_format_type is FileFormat.EXCEL
            and kind.kind == "decimal"
            and kind.precision <= 15
        ):
            value = f"CAST({value} AS DOUBLE)"
        elif options.file_format_type is FileFormat.XML or kind.kind not in SHEET_KINDS:
            value = text_sql(value, kind, style)
        made.append(f"{value} AS {quote(name)}")
    return made


def _parts(frame: "DataFrame") -> "DataFrame":
    """Bring the parts of each binary file together, in order."""
    names = ["data", "relativePath", "partIndex"]
    if [c for c in frame.columns if c in names] != names:
        raise UserError(
            "LocalFile writes binary files only from rows of a binary source (columns data,"
            f" relativePath, partIndex), not from {', '.join(frame.columns)}.",
            code="sink.not_binary",
        )
    rows = frame.select(*names).repartition("relativePath")
    return rows.sortWithinPartitions("relativePath", "partIndex")


def _row_of(columns: list[tuple[str, Type]]) -> str:
    return row_text([name for name, _ in columns])


def _writing(options: "LocalFileSinkOptions", columns: list[tuple[str, Type]]) -> TextStyle:
    return TextStyle(
        (options.delimiter, *SEPARATORS[1:]),
        False,
        options.date_format,
        options.datetime_format,
        options.time_format,
        _row_of(columns),
    )


def _folder_text(value: str, kind: Type) -> str:
    """Return SQL for the text that a folder is named by; one mark before it distinguishes '' from
    null."""
    text = f"CAST({value} AS STRING)"
    if kind.kind == "timestamp":
        text = f"replace({text}, ' ', 'T')"
    elif kind.kind == "timestamp_tz":
        text = instant_text(value)
    elif kind.kind == "bytes":
        text = text_of_bytes(value)
    return f"concat('=', {text})"


def _matched(
    wanted: list[str], names: tuple[str, ...], about: str, table: Table
) -> tuple[str, ...]:
    """Return columns as the table spells them; upper and lower case do not matter."""
    known = {n.lower(): n for n in names} | {n: n for n in names}
    missing = [n for n in wanted if n not in known and n.lower() not in known]
    if missing:
        raise UserError(
            f"LocalFile cannot write column {' or '.join(missing)} ({about}): {table.path} has no"
            f" such column to write. Columns: {', '.join(names)}.",
            code="sink.column_missing",
        )
    return tuple(known.get(n) or known[n.lower()] for n in wanted)
