"""Build the DataFrame of a table of Parquet, ORC or binary files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connectors.files.declared_columns import kept
from holdfast.connectors.files.discovery import DEFAULT_PARTITION, partitions_of
from holdfast.connectors.files.format import Format
from holdfast.connectors.files.formats.columnar import columnar_columns
from holdfast.connectors.files.python_reading import read_in_python
from holdfast.connectors.files.typed import reading_of
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from holdfast.connectors.files.source_options import FileTable

BINARY_DDL = "data binary, relativePath string, partIndex bigint"


def read_files(
    spark: "SparkSession", table: "FileTable", files: Sequence[str], names: Sequence[str],
    stage: str,
) -> "DataFrame":  # fmt: skip
    """Return the rows of these files, with the partition columns `names` last."""
    if not files:
        return spark.createDataFrame([], _empty_ddl(table, names))
    if table.format is Format.BINARY:
        found = tuple(tuple(partitions_of(f).get(n) for n in names) for f in files)
        return read_in_python(spark, reading_of(table, files, None, names, found), BINARY_DDL)
    if not names or (base := _base(files, names)):
        return columnar_columns(
            _Load(spark, files, names, base if names else None), table, names, stage
        )
    whole: DataFrame | None = None
    for values, group in _by_values(files, names):
        rows = columnar_columns(_Load(spark, group, names, None, values), table, names, stage)
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
        values: Sequence[str | None] = (),
    ) -> None:  # fmt: skip
        self.spark = spark
        self.files = list(files)
        self.names = names
        self.base = base
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
        return _Load(self.spark, files, self.names, self.base, self.values)


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
    if table.format is Format.BINARY:
        fields = dict(part.split() for part in BINARY_DDL.split(", "))
    elif table.declared:
        fields = {c.name: c.type.ddl for _, c in kept(table)}
    fields = fields or {"content": "string"}
    fields |= {n: "string" for n in names if n not in fields}
    return ", ".join(f"{quote(n)} {kind}" for n, kind in fields.items())
