"""Delta's description of columns, which is Spark's with some rules of its own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.types import Type, from_spark

NAMES = {
    "string": "string", "boolean": "boolean", "tinyint": "byte", "smallint": "short",
    "int": "integer", "bigint": "long", "float": "float", "double": "double", "bytes": "binary",
    "date": "date", "timestamp": "timestamp_ntz", "timestamp_tz": "timestamp",
    "binary_vector": "binary",
}  # fmt: skip
VECTORS = ("float_vector", "float16_vector", "bfloat16_vector")

FORBIDDEN_FIELDS = {
    "delta.invariants": "a column rule",
    "delta.generationExpression": "a generated column",
    "delta.identity.start": "an identity column",
}
FORBIDDEN_PROPERTIES = {
    "delta.columnMapping.mode": ("none", "column mapping"),
    "delta.enableRowTracking": ("false", "row tracking"),
}


def to_delta(columns: Sequence[Column], about: str) -> str:
    """Return columns as Delta's JSON.  Raises UserError for a type that Delta does not have."""
    fields = [_field(c.name, _described(c.type, c.name, about)) for c in columns]
    return json.dumps({"type": "struct", "fields": fields})


def from_delta(text: str) -> list[Column]:
    """Return the columns that Delta's JSON describes."""
    fields = json.loads(text)["fields"]
    return [Column(f["name"], from_spark(f["type"]), bool(f["nullable"])) for f in fields]


def refusals(text: str, properties: Mapping[str, str]) -> list[str]:
    """Return what a table asks of its writers that this one cannot do."""
    wrong = [
        f"{said} ({field['name']})"
        for field in json.loads(text)["fields"]
        for key, said in FORBIDDEN_FIELDS.items()
        if key in field["metadata"]
    ]
    wrong += [f"a check ({key})" for key in properties if key.startswith("delta.constraints.")]
    for key, (fine, said) in FORBIDDEN_PROPERTIES.items():
        if str(properties.get(key, fine)).lower() != fine:
            wrong.append(said)
    return wrong


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _described(kind: Type, name: str, about: str) -> Any:
    match kind.kind:
        case "decimal":
            return f"decimal({kind.precision},{kind.scale})"
        case "array":
            return _list(_described(kind.parts[0], name, about))
        case "row":
            fields = [_field(n, _described(t, name, about)) for n, t in kind.fields]
            return {"type": "struct", "fields": fields}
        case "map":
            key, value = (_described(part, name, about) for part in kind.parts)
            return _map(key, value)
        case "sparse_float_vector":
            return _map("integer", "float")
        case _ if kind.kind in VECTORS:
            return _list("float")
    if kind.kind not in NAMES:
        raise UserError(
            f"{about}: column {name} is {kind}, a type that Delta does not have."
            " Change it with a transform, such as CAST to string.",
            code="sink.type_unsupported",
        )
    return NAMES[kind.kind]


def _list(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def _map(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
