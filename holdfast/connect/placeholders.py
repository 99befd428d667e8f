"""Fill `${table_name}` and its like in sink options, for each table that arrives."""

import dataclasses
import re
from typing import TypeVar

from holdfast.model.table import Table

T = TypeVar("T")

RESERVED = (
    "database_name",
    "schema_name",
    "table_name",
    "schema_full_name",
    "table_full_name",
    "primary_key",
    "unique_key",
    "field_names",
    "partition_keys",
    "comment",
)
"""Placeholders that belong to sinks: `-i` may not set them."""

_PATTERN = re.compile(r"\$\{(" + "|".join(RESERVED) + r")(?::([^}]*))?\}")


def resolve(value: T, table: Table) -> T:
    """Return options (or any part of them) with the placeholders of one table filled in."""
    facts = _facts(table)
    return _walk(value, facts)  # type: ignore[return-value]


def has_placeholder(text: str) -> bool:
    """Say whether a text names a table's placeholder."""
    return bool(_PATTERN.search(text))


def _facts(table: Table) -> dict[str, str]:
    path = table.path
    unique = [k for k in table.constraints if k.kind == "UNIQUE_KEY"]
    return {
        "database_name": path.database or "",
        "schema_name": path.schema or "",
        "table_name": path.table,
        "schema_full_name": ".".join(p for p in (path.database, path.schema) if p),
        "table_full_name": str(path),
        "primary_key": ",".join(table.primary_key.columns if table.primary_key else ()),
        "unique_key": ",".join(unique[0].columns if unique else ()),
        "field_names": ",".join(table.names),
        "partition_keys": ",".join(table.partitions),
        "comment": table.comment,
    }


def _walk(value: object, facts: dict[str, str]) -> object:
    if isinstance(value, str):
        # An untouched value is returned as it is: a StrEnum must not become plain text.
        found = _PATTERN.search(value)
        return _PATTERN.sub(lambda m: facts[m[1]] or m[2] or "", value) if found else value
    if isinstance(value, list):
        return [part for item in value for part in _spread(item, facts)]
    if isinstance(value, dict):
        return {k: _walk(v, facts) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and hasattr(type(value), "__holdfast_options__"):
        made = {f.name: _walk(getattr(value, f.name), facts) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **made)  # type: ignore[type-var]
    return value


def _spread(item: object, facts: dict[str, str]) -> list[object]:
    """A list item that is exactly one placeholder becomes as many items as the key has columns."""
    filled = _walk(item, facts)
    if isinstance(item, str) and _PATTERN.fullmatch(item) and isinstance(filled, str):
        return [part for part in filled.split(",") if part]
    return [filled]
