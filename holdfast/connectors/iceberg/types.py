"""Columns as Iceberg describes them, and the numbers it knows them by."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connectors.iceberg.library import iceberg
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.types import Type, quote, row

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, StructType
    from pyspark.sql import DataFrame

NAMES = {
    # ours: Iceberg's
    "string": "string", "boolean": "boolean", "tinyint": "int", "smallint": "int", "int": "int",
    "bigint": "long", "float": "float", "double": "double", "bytes": "binary", "date": "date",
    "time": "time", "timestamp": "timestamp", "timestamp_tz": "timestamptz",
    "binary_vector": "binary",
}  # fmt: skip
KINDS = {
    # Iceberg's: ours
    "string": "string", "boolean": "boolean", "int": "int", "long": "bigint", "float": "float",
    "double": "double", "binary": "bytes", "date": "date", "time": "time",
    "timestamp": "timestamp", "timestamptz": "timestamp_tz",
}  # fmt: skip
FIELD_ID = "parquet.field.id"
"""What Spark calls the number of a column when it writes Parquet."""

VECTORS = ("float_vector", "float16_vector", "bfloat16_vector")


def to_iceberg(columns: Sequence[Column], identifiers: Sequence[str], about: str) -> "Schema":
    """Return columns as Iceberg's schema.  Raises UserError for a type that Iceberg lacks."""
    numbers = iter(range(1, 1 << 30))
    fields = []
    keys = []
    for column in columns:
        key = column.name in identifiers
        described = _field(column.name, _described(column.type, numbers, column, about), numbers)
        described |= {"required": key} | ({"doc": column.comment} if column.comment else {})
        fields.append(described)
        if key:
            keys.append(described["id"])
    made: Schema = iceberg("schema").Schema.model_validate(
        {"type": "struct", "fields": fields, "identifier-field-ids": keys}
    )
    return made


def from_iceberg(schema: "Schema", about: str) -> list[Column]:
    """Return the columns of a schema.  Raises UserError for a type this sink cannot write."""
    columns = []
    for field in schema.fields:
        kind = _kind(field.field_type)
        if kind is None:
            raise UserError(
                f"{about}: column {field.name} is {field.field_type}, a type that this sink does"
                " not write.",
                code="sink.table_refused",
            )
        columns.append(Column(field.name, kind, not field.required, comment=field.doc or ""))
    return columns


def numbered(frame: "DataFrame", schema: "Schema") -> "DataFrame":
    """Return the same rows; Parquet files of them will know columns by the table's numbers.

    All but those inside lists and maps, which Spark does not write.
    """
    from pyspark.sql.types import StructType

    known = {field.name: field for field in schema.fields}
    described = frame.schema.jsonValue()
    rows = [field for field in described["fields"] if _is_row(field["type"])]
    for field in rows:
        inner: Any = known[field["name"]].field_type
        _number(field["type"], inner)
    if rows:
        # Fields inside rows only: an alias that says the same would be taken for redundant.
        frame = frame.to(StructType.fromJson(described))
    return frame.select(
        *(
            frame[quote(name)].alias(name, metadata={FIELD_ID: known[name].field_id})
            for name in frame.columns
        )
    )


def _number(described: dict[str, Any], struct: "StructType") -> None:
    known = {field.name: field for field in struct.fields}
    for field in described["fields"]:
        found = known[field["name"]]
        field["metadata"] = {FIELD_ID: found.field_id}
        if _is_row(field["type"]):
            inner: Any = found.field_type
            _number(field["type"], inner)


def _is_row(described: Any) -> bool:
    return isinstance(described, dict) and described["type"] == "struct"


def _field(name: str, kind: Any, numbers: Iterator[int]) -> dict[str, Any]:
    return {"id": next(numbers), "name": name, "type": kind, "required": False}


def _described(kind: Type, numbers: Iterator[int], column: Column, about: str) -> Any:
    match kind.kind:
        case "decimal":
            return f"decimal({kind.precision}, {kind.scale})"
        case "array":
            return _list(_described(kind.parts[0], numbers, column, about), numbers)
        case "row":
            fields = [
                _field(n, _described(t, numbers, column, about), numbers) for n, t in kind.fields
            ]
            return {"type": "struct", "fields": fields}
        case "map":
            key, value = (_described(part, numbers, column, about) for part in kind.parts)
            return _map(key, value, numbers)
        case "sparse_float_vector":
            return _map("int", "float", numbers)
        case _ if kind.kind in VECTORS:
            return _list("float", numbers)
    if kind.kind not in NAMES:
        raise UserError(
            f"{about}: column {column.name} is {column.type}, a type that Iceberg does not have."
            " Change it with a transform, such as CAST to string.",
            code="sink.type_unsupported",
        )
    return NAMES[kind.kind]


def _list(element: Any, numbers: Iterator[int]) -> dict[str, Any]:
    about = {"element-id": next(numbers), "element-required": False}
    return {"type": "list", "element": element, **about}


def _map(key: Any, value: Any, numbers: Iterator[int]) -> dict[str, Any]:
    about = {"key-id": next(numbers), "value-id": next(numbers), "value-required": False}
    return {"type": "map", "key": key, "value": value, **about}


def _kind(kind: "IcebergType") -> Type | None:
    """Return our type for Iceberg's; None where there is none."""
    types = iceberg("types")
    found: Any = kind
    if isinstance(kind, types.DecimalType):
        return Type("decimal", found.precision, found.scale)
    if isinstance(kind, types.ListType):
        element = _kind(found.element_type)
        return element and Type("array", parts=(element,))
    if isinstance(kind, types.MapType):
        key, value = _kind(found.key_type), _kind(found.value_type)
        return Type("map", parts=(key, value)) if key and value else None
    if isinstance(kind, types.StructType):
        inner = {field.name: _kind(field.field_type) for field in found.fields}
        known = {name: one for name, one in inner.items() if one is not None}
        return row(known) if len(known) == len(inner) else None
    name = KINDS.get(str(kind))
    return Type(name) if name else None
