"""Build the DataFrame of one table: Spark's readers where they can, Python's where they must."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connectors.local_file import parse
from holdfast.connectors.local_file.batches import CELLS, FILE, LINE, VALUE, Reading, read_in_python
from holdfast.connectors.local_file.columnar import columnar_columns
from holdfast.connectors.local_file.find import local_path, partitions_of
from holdfast.connectors.local_file.formats import COLUMNAR, Format, python_encoding
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from holdfast.connectors.local_file.options import FileTable

BINARY_DDL = "data binary, relativePath string, partIndex bigint"


def read_files(
    spark: "SparkSession", table: "FileTable", files: Sequence[str], names: Sequence[str],
    careful: bool = True,
) -> "DataFrame":  # fmt: skip
    """Return the rows of these files, with the partition columns `names` last.

    Without care, a json row that Spark cannot read whole stops the job.
    """
    names = _added(table, names)
    if not files:
        return spark.createDataFrame([], _empty_ddl(table, names))
    if not table.native:
        return _python(spark, table, files, names)
    if not names:
        return _native(_Load(spark, files, [], None), table, careful)
    if base := _base(files, names):
        return _native(_Load(spark, files, names, base), table, careful)
    frames = [
        _with_literals(_native(_Load(spark, group, [], None), table, careful), names, values)
        for values, group in _by_values(files, names)
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def _added(table: "FileTable", names: Sequence[str]) -> list[str]:
    """Return the partition columns that are no columns of the files themselves."""
    own = table.schema.table.names if table.schema else ()
    return [n for n in names if n not in own]


def _native(load: "_Load", table: "FileTable", careful: bool) -> "DataFrame":
    extra = [quote(n) for n in load.names]
    if table.format in COLUMNAR:
        return columnar_columns(load, table, extra)
    lines: dict[str, str] = {}
    if table.row_delimiter != "\n":
        lines["lineSep"] = table.row_delimiter
    assert table.format is Format.JSON, "other texts are read by delimited.py"
    options = parse.time_options(table) | lines
    if not careful and parse.json_trusted(table):
        frame = load("json", parse.plain_ddl(table), options | parse.STRICT)
        return parse.trusted_columns(frame, table, extra)
    frame = load("json", parse.json_ddl(table), options | parse.TOLERANT)
    return parse.json_columns(frame, table, extra, parse.NATIVE_PLACE)


class _Load:
    """Spark's reader for one set of files.

    `base` is the folder below which it finds the partition columns `names`.
    """

    def __init__(
        self, spark: "SparkSession", files: Sequence[str], names: list[str], base: str | None
    ) -> None:
        self.spark = spark
        self.files = list(files)
        self.names = names
        self.base = base

    def __call__(
        self, kind: str, schema: "StructType | str | None", options: dict[str, str]
    ) -> "DataFrame":
        reader = self.spark.read.format(kind).options(**options)
        if self.base is not None:
            reader = reader.option("basePath", self.base)
        if isinstance(schema, str):
            schema += "".join(f", {quote(n)} string" for n in self.names)
        elif schema is not None:
            schema = _with_strings(schema, self.names)
        return (reader if schema is None else reader.schema(schema)).load(self.files)

    def of(self, files: Sequence[str]) -> "_Load":
        """Return the same reader for some of the files."""
        return _Load(self.spark, files, self.names, self.base)


def _with_strings(schema: "StructType", names: Sequence[str]) -> "StructType":
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*schema.fields, *(StructField(n, StringType()) for n in names)])


def _python(
    spark: "SparkSession", table: "FileTable", files: Sequence[str], names: list[str]
) -> "DataFrame":
    values = tuple(tuple(partitions_of(f).get(n) for n in names) for f in files) if names else ()
    reading = Reading(
        files=tuple(files),
        root=local_path(table.path),
        format=table.format,
        archive=table.archive_compress_codec,
        codec=table.compress_codec,
        encoding=python_encoding(table.encoding) or table.encoding,
        row_delimiter=table.row_delimiter,
        skip=table.skip_header_row_number,
        columns=table.schema.table.names if table.schema else (),
        partition_names=tuple(names),
        partitions=values,
        sheet=table.sheet_name,
        xml_row_tag=table.xml_row_tag or "",
        xml_attributes=bool(table.xml_use_attr_format),
        chunk=None if table.binary_complete_file_mode else table.binary_chunk_size,
    )
    extra = [quote(n) for n in names]
    if table.format is Format.BINARY:
        return read_in_python(spark, reading, BINARY_DDL)
    if table.format in (Format.EXCEL, Format.XML):
        ddl = f"{CELLS} array<string>, {FILE} string, {LINE} bigint"
        frame = read_in_python(spark, reading, ddl)
        return parse.cell_columns(frame, table, extra)
    ddl = f"{VALUE} string, {FILE} string, {LINE} bigint"
    frame = read_in_python(spark, reading, ddl)
    lines = parse.from_json(frame, table, extra)
    return parse.json_columns(lines, table, extra, parse.PYTHON_PLACE)


def _base(files: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the folder below which Spark finds exactly these partition columns, or None."""
    bases = set()
    for path in files:
        parts = path.split("/")[:-1]
        tail = parts[len(parts) - len(names) :]
        if [p.partition("=")[0] for p in tail] != list(names) or len(partitions_of(path)) != len(
            names
        ):
            return None
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


def _with_literals(frame: "DataFrame", names: Sequence[str], values: Sequence[Any]) -> "DataFrame":
    from pyspark.sql.functions import lit

    own = [n for n in names if n not in frame.columns]
    found = dict(zip(names, values, strict=True))
    return frame.select("*", *(lit(found[n]).cast("string").alias(n) for n in own))


def _empty_ddl(table: "FileTable", names: Sequence[str]) -> str:
    """Return the columns of a table without files, as far as the options tell."""
    if table.format is Format.BINARY:
        fields = [BINARY_DDL]
    elif table.declared:
        fields = [f"{quote(c.name)} {c.type.ddl}" for _, c in parse.kept(table)]
    else:
        fields = ["content string"]
    return ", ".join([*fields, *(f"{quote(n)} string" for n in names)])
