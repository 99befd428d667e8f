"""Fill `${table_name}` and its like in sink options, for each table that arrives."""

import dataclasses
import re
from collections.abc import Callable
from typing import TypeVar

from holdfast.model.table import Table, TablePath

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

OF_PATHS = RESERVED[:5]
"""Those of them that a table's path tells."""

_NAME = re.compile(r"[\w$.-]*")
_PATTERN = re.compile(r"\$\{(" + "|".join(RESERVED) + r")(?::([^}]*))?\}")


def resolve(value: T, table: Table) -> T:
    """Return options (or any part of them) with the placeholders of one table filled in."""
    facts = _facts(table)
    return _walk(value, facts)  # type: ignore[return-value]


def has_placeholder(text: str) -> bool:
    """Say whether a text names a table's placeholder."""
    return bool(_PATTERN.search(text))


def stands_for(
    template: str, text: str, refused: Callable[[str], bool] = lambda part: False
) -> bool:
    """Say whether a text may be a path with placeholders, filled in for some table.

    What has a placeholder in it stands for one part of the path, which leads nowhere else and is
    not `refused`.
    """
    wanted, found = _PATTERN.sub("\0", template).split("/"), text.split("/")
    return len(wanted) == len(found) and all(
        (part not in ("", ".", "..") and not refused(part) and _fills(want, part))
        if "\0" in want
        else want == part
        for want, part in zip(wanted, found, strict=True)
    )


def filled_for(template: str, path: TablePath, text: str) -> bool:
    """Say whether a statement is a template filled in for the table at a path.

    The parts of the path must be plain names then, and what else is known of the table, such as its
    columns, may be any words.
    """
    facts, pattern, at = _facts(Table(path)), "", 0
    for found in _PATTERN.finditer(template):
        pattern += re.escape(template[at : found.start()])
        filled = facts[found[1]] or found[2] or ""
        if found[1] in OF_PATHS and (not _NAME.fullmatch(filled) or "--" in filled):
            return False
        pattern += re.escape(filled) if found[1] in OF_PATHS else r"[\w$, ]*"
        at = found.end()
    return re.fullmatch(pattern + re.escape(template[at:]), text) is not None


def _fills(template: str, part: str) -> bool:
    pattern = ".*".join(map(re.escape, template.split("\0")))
    return re.fullmatch(pattern, part, re.DOTALL) is not None


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
