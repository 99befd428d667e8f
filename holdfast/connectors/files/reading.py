"""Build the rows of a table: of csv and text files, or of Parquet, ORC and binary files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connect.arrow_rows import ArrowCounts, ArrowRows
from holdfast.connect.arrow_types import arrow_schema
from holdfast.connect.rejects import Rejects, RowErrors
from holdfast.connect.rows import Rows
from holdfast.connectors.files.declared_columns import kept
from holdfast.connectors.files.discovery import DEFAULT_PARTITION, partitions_of
from holdfast.connectors.files.format import FileFormat, is_utf8, python_encoding
from holdfast.connectors.files.formats.columnar import columnar_columns
from holdfast.connectors.files.formats.csv import Delimited
from holdfast.connectors.files.formats.csv_quotes import Dialect
from holdfast.connectors.files.formats.csv_sifting import RowRules
from holdfast.connectors.files.python_reading import read_in_python
from holdfast.connectors.files.splits import at_rows, divide
from holdfast.connectors.files.text_part import Recoding
from holdfast.connectors.files.text_values import TextNotation
from holdfast.connectors.files.typed import reading_of
from holdfast.connectors.files.unpack import Packing
from holdfast.connectors.files.values import SEPARATORS
from holdfast.model.table import Column
from holdfast.model.types import Type, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from holdfast.connectors.files.source_options import FileTable

BINARY_COLUMNS: tuple[Column, ...] = (
    Column("data", Type("bytes")),
    Column("relativePath", Type("string")),
    Column("partIndex", Type("bigint")),
)


def read_files(
    spark: "SparkSession", table: "FileTable", files: Sequence[str], names: Sequence[str],
    stage: str, moved: list[ArrowCounts],
) -> "DataFrame":  # fmt: skip
    """Return the rows of these files, with the partition columns `names` last.

    What counts rows that Spark does not read itself is added to `moved`.
    """
    if not files:
        return spark.createDataFrame([], _empty_ddl(table, names))
    if table.format is FileFormat.BINARY:
        found = tuple(tuple(partitions_of(f).get(n) for n in names) for f in files)
        carried = read_in_python(
            spark, reading_of(table, files, None, names, found), BINARY_COLUMNS
        )
        moved.append(carried.moved)
        return carried.frame()
    if not names or (base := _base(files, names)):
        return columnar_columns(
            _Load(spark, files, names, base if names else None, moved), table, names, stage
        )
    whole: DataFrame | None = None
    for values, group in _by_values(files, names):
        rows = columnar_columns(
            _Load(spark, group, names, None, moved, values), table, names, stage
        )
        whole = rows if whole is None else whole.unionByName(rows, allowMissingColumns=True)
    assert whole is not None
    return whole


class _Load:
    """Spark's reader for one set of files.

    `base` is the folder below which it finds the partition columns `names`; without one, their
    values are given.
    """

    def __init__(
        self, spark: "SparkSession", files: Sequence[str], names: Sequence[str], base: str | None,
        moved: list[ArrowCounts], values: Sequence[str | None] = (),
    ) -> None:  # fmt: skip
        self.spark = spark
        self.files = list(files)
        self.names = names
        self.base = base
        self.moved = moved
        self.values = values

    def __call__(
        self, kind: str, schema: "StructType | None", options: dict[str, str]
    ) -> "DataFrame":
        reader = self.spark.read.format(kind).options(**options)
        if self.base is not None:
            reader = reader.option("basePath", self.base)
            schema = None if schema is None else _with_strings(schema, self.names)
        frame = (reader if schema is None else reader.schema(schema)).load(self.files)
        return self.placed(frame) if self.base is None else frame

    def placed(self, frame: "DataFrame") -> "DataFrame":
        """Return rows with the values of the partition columns, where those are given."""
        from pyspark.sql.functions import lit

        if not self.values:
            return frame
        found = zip(self.names, self.values, strict=True)
        own = [lit(value).cast("string").alias(name) for name, value in found]
        return frame.drop(*self.names).select("*", *own)

    def of(self, files: Sequence[str]) -> "_Load":
        """Return the same reader for some of the files."""
        return _Load(self.spark, files, self.names, self.base, self.moved, self.values)


def _with_strings(schema: "StructType", names: Sequence[str]) -> "StructType":
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*schema.fields, *(StructField(n, StringType()) for n in names)])


def _base(files: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the folder below which Spark finds exactly these partition columns, or None."""
    bases = set()
    for path in files:
        parts = path.split("/")[:-1]
        tail = parts[len(parts) - len(names) :]
        found = partitions_of(path)
        if [p.partition("=")[0] for p in tail] != list(names) or len(found) != len(names):
            return None
        if any(value in ("", DEFAULT_PARTITION) for value in found.values()):
            return None  # Spark takes both for null
        bases.add("/".join(parts[: len(parts) - len(names)]))
    return bases.pop() if len(bases) == 1 else None


def _by_values(
    files: Sequence[str], names: Sequence[str]
) -> list[tuple[tuple[str | None, ...], list[str]]]:
    groups: dict[tuple[str | None, ...], list[str]] = {}
    for path in files:
        found = partitions_of(path)
        groups.setdefault(tuple(found.get(n) for n in names), []).append(path)
    return list(groups.items())


def _empty_ddl(table: "FileTable", names: Sequence[str]) -> str:
    """Return the columns of a table without files, as far as the options tell."""
    fields: dict[str, Any] = {}
    if table.format is FileFormat.BINARY:
        fields = {c.name: c.type.ddl for c in BINARY_COLUMNS}
    elif table.declared:
        fields = {c.name: c.type.ddl for _, c in kept(table)}
    fields = fields or {"content": "string"}
    fields |= {n: "string" for n in names if n not in fields}
    return ", ".join(f"{quote(n)} {kind}" for n, kind in fields.items())


DELIMITED = (FileFormat.CSV, FileFormat.TEXT)
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
    return Rows(known, batches.frame, None, rejects, (batches.moved,))


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
    writing = TextNotation(
        (table.delimiter, *SEPARATORS[1:]),
        padding=table.null_padding,
        strict=table.strict_mode,
        null_format=table.null_format if declared else None,
        date_format=table.date_format,
        datetime_format=table.datetime_format,
        time_format=table.time_format,
    )
    packing = Packing(table.format, table.archive_compress_codec, table.compress_codec)
    columns = table.schema.table.columns if table.schema and declared else (CONTENT,)
    return Delimited(
        stage, packing, recoding, dialect, writing,
        RowRules(table.strict_mode, table.null_padding, table.max_line_size), columns,
        tuple(n for n, _ in kept(table)) if declared else (0,), tuple(names),
        table.skip_header_row_number, table.csv_use_header_line, table.encoding,
        table.row_error_handle_way,
    )  # fmt: skip
