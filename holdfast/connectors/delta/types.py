"""Delta's description of columns, which is Spark's with some rules of its own."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.connectors.lake.limits import Limit
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
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps the type of a column whose texts may only be so long; Delta has none."""

_LENGTH = re.compile(r"(char|varchar)\((\d+)\)")

KEPT_FEATURES = frozenset({
    "appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed",
    "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint",
})  # fmt: skip
"""Table features that ask nothing of who only adds files, unless columns or properties use them."""

FEATURES_FROM = 7
"""From this version on, writers must know a table's features, and not those of its version."""

WRITER_VERSION_MAX = 5

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


def refusals(text: str, properties: Mapping[str, str], protocol: Any) -> list[str]:
    """Return what a table asks of its writers that this one cannot do."""
    wrong = []
    for path, field in _fields(json.loads(text)):
        about = field["metadata"]
        wrong += [f"{said} ({path})" for key, said in FORBIDDEN_FIELDS.items() if key in about]
        limit = str(about.get(LENGTH, ""))
        if limit and not _LENGTH.fullmatch(limit):
            wrong.append(f"texts of limited length inside {path} ({limit})")
    wrong += [f"a check ({key})" for key in properties if key.startswith("delta.constraints.")]
    for key, (fine, said) in FORBIDDEN_PROPERTIES.items():
        if str(properties.get(key, fine)).lower() != fine:
            wrong.append(said)
    version = protocol.min_writer_version
    if version >= FEATURES_FROM:
        features = sorted(set(protocol.writer_features or ()) - KEPT_FEATURES)
        wrong += [f"the table feature {name}" for name in features]
    elif version > WRITER_VERSION_MAX:
        wrong.append(f"writers of version {version}")
    return wrong


def lengths(text: str) -> dict[str, Limit]:
    """Return how long texts may be, of the columns that say it."""
    found = {}
    for field in json.loads(text)["fields"]:
        said = _LENGTH.fullmatch(str(field["metadata"].get(LENGTH, "")))
        if said:
            found[field["name"]] = Limit(said[0], int(said[2]), exact=said[1] == "char")
    return found


def _fields(described: Any, within: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field, also inside others, with its path."""
    if not isinstance(described, dict):
        return
    for field in described.get("fields", ()):
        path = f"{within}{field['name']}"
        yield path, field
        yield from _fields(field["type"], f"{path}.")
    for part in ("elementType", "keyType", "valueType"):
        yield from _fields(described.get(part), within)


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
