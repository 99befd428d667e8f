"""Parquet and ORC: columns as the files have them, or as the user declares them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.connectors.local_file.formats import Format
from holdfast.connectors.local_file.values import literal
from holdfast.errors import UserError
from holdfast.model.types import Type, from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from holdfast.connectors.local_file.options import FileTable


class Load(Protocol):
    """Reads files with Spark."""

    files: list[str]

    def __call__(
        self, kind: str, schema: "StructType | str | None", options: dict[str, str]
    ) -> "DataFrame":
        """Return the rows of the files; without a schema, with the columns the files have."""


def columnar_columns(load: Load, table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Return the columns of Parquet or ORC files.

    A timestamp in a file is a local time, as SeaTunnel reads it: Spark's session runs in UTC.
    """
    found = load(table.format, None, {})
    names = {name.strip("`") for name in extra}
    schema = _without(found.schema, names)
    local = _local_times(schema)
    # Parquet's own reader can be asked for local times, which costs nothing; ORC's cannot.
    asked = local if table.format is Format.PARQUET else schema
    if asked != schema or extra:
        found = load(table.format, asked, {})
    kinds = {f.name: from_spark(f.dataType.jsonValue()) for f in schema.fields}
    wanted = _wanted(table, local)
    columns = []
    for name, kind in wanted.items():
        own = _own_name(name, kinds, load.files[0])
        value = quote(own)
        here = from_spark(local[own].dataType.jsonValue())
        if table.format is Format.ORC:
            value = cast_sql(value, kinds[own], here)
        columns.append(f"{value if kind is None else cast_sql(value, here, kind)} AS {quote(name)}")
    return found.selectExpr(*columns, *extra)


def cast_sql(value: str, here: Type, wanted: Type, level: int = 0) -> str:
    """Return SQL for a value of one type as another; fields of rows are matched by name."""
    if here == wanted:
        return value
    name = f"c{level}"
    match here.kind, wanted.kind:
        case "row", "row":
            own = {n.lower(): (n, t) for n, t in here.fields}
            fields = ", ".join(
                f"{literal(n)}, {_field(value, own.get(n.lower()), t, level)}"
                for n, t in wanted.fields
            )
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({fields}) END"
        case "array", "array":
            inner = cast_sql(name, here.parts[0], wanted.parts[0], level + 1)
            return f"transform({value}, {name} -> {inner})"
    return f"CAST({value} AS {wanted.ddl})"


def _field(value: str, own: tuple[str, Type] | None, wanted: Type, level: int) -> str:
    if own is None:
        return f"CAST(NULL AS {wanted.ddl})"
    return cast_sql(f"{value}.{quote(own[0])}", own[1], wanted, level)


def _wanted(table: "FileTable", schema: "StructType") -> dict[str, Type | None]:
    """Return the columns to give, in order; None where the file's type will do."""
    declared = {c.name: c.type for c in table.schema.table.columns} if table.schema else {}
    kinds: dict[str, Type | None] = dict(declared) or dict.fromkeys(schema.names)
    if table.read_columns:
        return {name: kinds.get(name) for name in table.read_columns}
    return kinds


def _own_name(name: str, kinds: dict[str, Type], file: str) -> str:
    if name in kinds:
        return name
    for own in kinds:
        if own.lower() == name.lower():
            return own
    known = ", ".join(kinds)
    raise UserError(
        f"LocalFile cannot read column {name} of {file}: the file has none of that name."
        f" Its columns: {known}.",
        code="source.column_missing",
    )


def _without(schema: "StructType", names: set[str]) -> "StructType":
    from pyspark.sql.types import StructType

    return StructType([f for f in schema.fields if f.name not in names])


def _local_times(schema: "StructType") -> "StructType":
    from pyspark.sql.types import StructType

    return StructType.fromJson(_swapped(schema.jsonValue()))


def _swapped(described: Any) -> Any:
    """Return the JSON of a Spark type with every instant turned into a local time."""
    if described == "timestamp":
        return "timestamp_ntz"
    if isinstance(described, dict):
        types = ("type", "elementType", "keyType", "valueType", "fields")
        return {k: _swapped(v) if k in types else v for k, v in described.items()}
    if isinstance(described, list):
        return [_swapped(item) for item in described]
    return described
