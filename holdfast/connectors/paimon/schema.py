"""A table's columns, keys and options, as `schema/schema-<N>` has them; the highest N counts."""

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.connectors.paimon.types import NOT_NULL, from_paimon, is_nullable, to_paimon
from holdfast.errors import UserError
from holdfast.model.table import Column

VERSION = 3
FOLDER = "schema"
_NAME = re.compile(r"schema-(\d+)")


@dataclass(frozen=True)
class PaimonSchema:
    """One version of what a table is."""

    content: Mapping[str, Any]

    @property
    def number(self) -> int:
        """Which version this is."""
        return int(self.content["id"])

    @property
    def types(self) -> dict[str, Any]:
        """The type of each column, as Paimon spells it."""
        return {field["name"]: field["type"] for field in self.content["fields"]}

    @property
    def partitions(self) -> list[str]:
        """The columns the table is partitioned by."""
        return list(self.content["partitionKeys"])

    @property
    def keys(self) -> list[str]:
        """The primary key; none if rows are only added."""
        return list(self.content["primaryKeys"])

    @property
    def own_keys(self) -> list[str]:
        """The primary key within a partition."""
        return [key for key in self.keys if key not in self.partitions]

    @property
    def options(self) -> dict[str, str]:
        """The table's options."""
        return dict(self.content.get("options") or {})

    @property
    def buckets(self) -> int:
        """Into how many buckets each partition is divided; below zero, Paimon decides."""
        return int(self.options.get("bucket", "-1"))

    @property
    def mark(self) -> str:
        """What distinguishes this version from another one that has its number."""
        told = {k: v for k, v in self.content.items() if k != "timeMillis"}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]

    def is_left_by(self, later: "PaimonSchema") -> bool:
        """Say whether a later version has none of these columns: the table was recreated."""
        first = min(int(f["id"]) for f in later.content["fields"])
        return first > int(self.content["highestFieldId"])

    def is_like(self, other: "PaimonSchema", about: str) -> bool:
        """Say whether another version has the same columns, keys and options."""
        mine, theirs = (
            (one.columns(about), one.keys, one.partitions, one.options) for one in (self, other)
        )
        return mine == theirs

    def types_of(self, names: Sequence[str]) -> list[str]:
        """Return the types of these columns, which have no parts."""
        return [str(self.types[name]) for name in names]

    def columns(self, about: str) -> list[Column]:
        """Return the columns.  Raises UserError for a type that this sink cannot write."""
        found = []
        for field in self.content["fields"]:
            kind = from_paimon(field["type"])
            if kind is None:
                raise UserError(
                    f"{about}: column {field['name']} is {_spelled(field['type'])}, a type that"
                    " this sink does not write.",
                    code="sink.table_refused",
                )
            said = field.get("description") or ""
            found.append(Column(field["name"], kind, is_nullable(field["type"]), comment=said))
        return found


def new_schema(
    columns: Sequence[Column], partitions: Sequence[str], keys: Sequence[str],
    options: Mapping[str, str], comment: str, about: str, old: PaimonSchema | None = None,
) -> PaimonSchema:  # fmt: skip
    """Return the first version of a table, or one after an old one, with columns of its own.

    Raises UserError for a type that Paimon lacks.
    """
    numbers = count(old.content["highestFieldId"] + 1 if old else 0)
    fields = [_field(column, column.name in keys, numbers, about) for column in columns]
    content = {
        "version": VERSION,
        "id": old.number + 1 if old else 0,
        "fields": fields,
        "highestFieldId": next(numbers) - 1,
        "partitionKeys": list(partitions),
        "primaryKeys": list(keys),
        "options": dict(options),
        "comment": comment,
        "timeMillis": int(time.time() * 1000),
    }
    return PaimonSchema(content)


def load_schema(table: Path, number: int | None = None) -> PaimonSchema | None:
    """Read the latest version, or one version; None if there is none."""
    if number is None:
        number = max(_listed(table), default=None)
    if number is None:
        return None
    try:
        text = (table / FOLDER / f"schema-{number}").read_text()
    except FileNotFoundError:
        return None
    return PaimonSchema(json.loads(text))


def save_schema(table: Path, schema: PaimonSchema) -> bool:
    """Make this a version of a table; False if there is one of its number."""
    target = table / FOLDER / f"schema-{schema.number}"
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
    try:
        beside.write_text(json.dumps(schema.content, indent=2))
        os.link(beside, target)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _listed(table: Path) -> Iterator[int]:
    try:
        names = [path.name for path in (table / FOLDER).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        found = _NAME.fullmatch(name)
        if found:
            yield int(found[1])


def _field(column: Column, key: bool, numbers: "count[int]", about: str) -> dict[str, Any]:
    number = next(numbers)
    kind = to_paimon(column.type, numbers)
    if kind is None:
        raise UserError(
            f"{about}: column {column.name} is {column.type}, a type that Paimon does not have or"
            " Spark does not write as Paimon does. Change it with a transform, such as CAST to"
            " string.",
            code="sink.type_unsupported",
        )
    made: dict[str, Any] = {"id": number, "name": column.name, "type": kind}
    if key:
        made["type"] = f"{kind}{NOT_NULL}"
    if column.comment:
        made["description"] = column.comment
    return made


def _spelled(described: Any) -> str:
    return str(described["type"]) if isinstance(described, dict) else str(described)
