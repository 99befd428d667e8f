"""Paimon's types, as its files spell them, and ours."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.connectors.lake.limits import Limit
from holdfast.model.types import Type, row

NOT_NULL = " NOT NULL"

NAMES = {
    # ours: Paimon's
    "string": "STRING", "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT",
    "int": "INT", "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bytes": "BYTES",
    "date": "DATE", "timestamp": "TIMESTAMP(6)",
    "timestamp_tz": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "binary_vector": "BYTES",
}  # fmt: skip
KINDS = {
    # Paimon's: ours
    "STRING": "string", "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint",
    "INT": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "BYTES": "bytes",
    "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamp_tz",
}  # fmt: skip
VECTORS = ("float_vector", "float16_vector", "bfloat16_vector")

_SPELLED = {"INTEGER": "INT", "CHAR": "STRING", "VARCHAR": "STRING", "BINARY": "BYTES",
            "VARBINARY": "BYTES", "NUMERIC": "DECIMAL", "DEC": "DECIMAL"}  # fmt: skip
_DEFAULTS = {"DECIMAL": (10, 0), "TIMESTAMP": (6, 0), "TIMESTAMP_LTZ": (6, 0)}
_LENGTH = re.compile(r"(CHAR|VARCHAR|BINARY|VARBINARY)(?:\s*\((\d+)\))?")
UNLIMITED = (1 << 31) - 1
_TYPE = re.compile(r"([A-Z_]+)\s*(?:\((\d+)(?:,\s*(\d+))?\))?(.*)")


@dataclass(frozen=True, slots=True)
class PaimonKind:
    """A type without parts: its plain name, and its digits where it has any."""

    name: str
    precision: int = 0
    scale: int = 0


@cache
def kind_of(text: str) -> PaimonKind:
    """Read a type without parts.  Whether it may be null does not count."""
    found = _TYPE.fullmatch(text.removesuffix(NOT_NULL).strip().upper())
    if not found:
        return PaimonKind(text)
    name = _SPELLED.get(found[1], found[1])
    if name == "TIMESTAMP" and "LOCAL TIME ZONE" in found[4]:
        name = "TIMESTAMP_LTZ"
    precision, scale = _DEFAULTS.get(name, (0, 0))
    if found[2] and name not in ("STRING", "BYTES"):
        precision, scale = int(found[2]), int(found[3] or 0)
    return PaimonKind(name, precision, scale)


def lengths(types: Mapping[str, Any]) -> dict[str, Limit]:
    """Return how long values may be, of the columns whose types say it."""
    found = {}
    for name, described in types.items():
        said = _LENGTH.fullmatch(str(described).removesuffix(NOT_NULL).strip().upper())
        if said and int(said[2] or 1) < UNLIMITED:
            text = said[1].endswith("CHAR")
            spelled = f"{said[1]}({said[2] or 1})"
            found[name] = Limit(spelled, int(said[2] or 1), text, not said[1].startswith("VAR"))
    return found


def nested_lengths(described: Any, depth: int = 0) -> bool:
    """Say whether a type has a part whose values may only be so long."""
    if isinstance(described, dict):
        parts = [described.get(key) for key in ("element", "key", "value")]
        parts += [field["type"] for field in described.get("fields", ())]
        return any(nested_lengths(part, depth + 1) for part in parts if part is not None)
    return depth > 0 and bool(lengths({"": described}))


def is_nullable(described: Any) -> bool:
    """Say whether a type lets values be null."""
    text = described["type"] if isinstance(described, dict) else described
    return not str(text).endswith(NOT_NULL)


def to_paimon(kind: Type, numbers: Iterator[int]) -> Any:
    """Return a type as Paimon's schema files have it; None for one that Paimon has not.

    `numbers` gives one to each field inside a row.
    """
    match kind.kind:
        case "decimal":
            return f"DECIMAL({kind.precision}, {kind.scale})"
        case "array":
            return _compound("ARRAY", element=to_paimon(kind.parts[0], numbers))
        case "map":
            key, value = (to_paimon(part, numbers) for part in kind.parts)
            return _compound("MAP", key=_required(key), value=value)
        case "row":
            fields = [
                {"id": next(numbers), "name": name, "type": to_paimon(part, numbers)}
                for name, part in kind.fields
            ]
            lacks = any(field["type"] is None for field in fields)
            return None if lacks else {"type": "ROW", "fields": fields}
        case "sparse_float_vector":
            return _compound("MAP", key=_required("INT"), value="FLOAT")
        case _ if kind.kind in VECTORS:
            return _compound("ARRAY", element="FLOAT")
    return NAMES.get(kind.kind)


def from_paimon(described: Any) -> Type | None:
    """Return our type for Paimon's; None where Spark cannot write it as Paimon wants it."""
    if isinstance(described, dict):
        return _compound_of(described)
    kind = kind_of(described)
    if kind.name == "DECIMAL":
        return Type("decimal", kind.precision, kind.scale)
    if kind.name.startswith("TIMESTAMP") and not 4 <= kind.precision <= 6:
        return None  # Spark writes microseconds
    name = KINDS.get(kind.name)
    return Type(name) if name else None


def _compound_of(described: dict[str, Any]) -> Type | None:
    match str(described["type"]).removesuffix(NOT_NULL):
        case "ARRAY":
            element = from_paimon(described["element"])
            return element and Type("array", parts=(element,))
        case "MAP":
            key, value = from_paimon(described["key"]), from_paimon(described["value"])
            return Type("map", parts=(key, value)) if key and value else None
        case "ROW":
            inner = {f["name"]: from_paimon(f["type"]) for f in described["fields"]}
            known = {name: one for name, one in inner.items() if one is not None}
            return row(known) if len(known) == len(inner) else None
    return None


def _compound(name: str, **parts: Any) -> Any:
    return None if None in parts.values() else {"type": name, **parts}


def _required(described: Any) -> Any:
    """Return a type that may not be null."""
    if isinstance(described, dict):
        return {**described, "type": described["type"] + NOT_NULL}
    return None if described is None else described + NOT_NULL
