"""What a write leaves for its commit: where each file is and will be, and what is in it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from holdfast.connectors.lake.footers import ColumnStats, Part
from holdfast.model.tree import Plain

VERSION = 1
TEXT_MAX = 256
"""Longer texts are no use as bounds."""

_PLAIN_FOLDER = re.compile(r"[\w=.,+-]+(/[\w=.,+-]+)*")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a commit.  Paths are below the table."""

    staged: str
    final: str
    bytes: int
    rows: int
    partition: dict[str, str | None]
    stats: str


@dataclass(frozen=True, slots=True)
class Staged:
    """What one write left out of sight in one table."""

    url: str
    folder: str
    columns: str
    partitions: list[str]
    files: list[File]

    def to_plain(self) -> Plain:
        """Return this as a checkpoint stores it."""
        plain: Plain = asdict(self)
        return plain

    @classmethod
    def from_plain(cls, content: Plain) -> "Staged":
        """Read what `to_plain` wrote."""
        assert isinstance(content, dict)
        stored: dict[str, Any] = dict(content)
        return cls(**(stored | {"files": [File(**f) for f in stored["files"]]}))


def file_of(part: Part, folder: str, partitions: Sequence[str]) -> File:
    """Return how a staged file will be added to the table."""
    where, _, name = part.path.rpartition("/")
    # The log has paths as URLs; folders are only for people, so odd ones are named otherwise.  Not
    # left out: Spark gives files of one task the same name in every partition.
    if where and not _PLAIN_FOLDER.fullmatch(where):
        where = f"partition={hashlib.sha256(where.encode()).hexdigest()[:32]}"
    final = f"{where}/{name}" if where else name
    return File(
        staged=f"{folder}/{part.path}",
        final=final,
        bytes=part.bytes,
        rows=part.rows,
        partition=dict(zip(partitions, part.partition, strict=True)),
        stats=json.dumps(_stats(part.rows, part.columns)),
    )


def _stats(rows: int, columns: Mapping[str, ColumnStats]) -> dict[str, Any]:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name, stats in columns.items():
        pair = _bound(stats.low), _bound(stats.high, up=True)
        if None not in pair:
            low[name], high[name] = pair
    nulls = {name: stats.nulls for name, stats in columns.items() if stats.nulls is not None}
    return {"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _bound(value: Any, *, up: bool = False) -> Any:
    """Return a bound as Delta's JSON has it; None where it has none, or not exactly."""
    match value:
        case bool() | bytes() | None:
            return None
        case datetime():
            return _moment(value, up)
        case date():
            return value.isoformat()
        case Decimal():
            number = float(value)
            return number if Decimal(repr(number)) == value else None
        case str():
            return value if len(value) <= TEXT_MAX else None
        case int() | float():
            return value
    return None


def _moment(value: datetime, up: bool) -> str | None:
    """Return an instant in milliseconds, up where it bounds from above; no bound without zone."""
    if value.tzinfo is None:
        return None
    if up and value.microsecond % 1000:
        value += timedelta(milliseconds=1)
    return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
