"""What a write leaves for its commit: where each file is and will be, and what is in it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from holdfast.connectors.committables import Whole
from holdfast.connectors.delta.partitions import log_value
from holdfast.connectors.lake.footers import ColumnStats, ParquetPart
from holdfast.connectors.lake.partitions import escaped, value_texts
from holdfast.model.tree import Plain

VERSION = 1
TEXT_MAX = 256
"""Longer texts are no use as bounds."""

LAST_MOMENT = datetime.max.replace(tzinfo=UTC) - timedelta(milliseconds=1)

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
FOLDER_MAX = 250
"""Disks bear names of 255 bytes."""


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """One file of a commit.  Paths are below the table."""

    staged: str
    final: str
    bytes: Whole
    rows: Whole
    partition: dict[str, str | None]
    stats: str


@dataclass(frozen=True, slots=True)
class DeltaStaged:
    """What one write left out of sight in one table."""

    url: str
    folder: str
    columns: str
    partitions: list[str]
    files: list[DeltaFile]

    def to_plain(self) -> Plain:
        """Return this as a checkpoint stores it."""
        plain: Plain = asdict(self)
        return plain


def file_of(part: ParquetPart, number: int, folder: str, kinds: Mapping[str, str]) -> DeltaFile:
    """Return how a staged file will be added to the table; `kinds`: by what it is partitioned."""
    texts = zip(kinds.items(), value_texts(part.partition), strict=True)
    values = {key: log_value(text, kind) for (key, kind), text in texts}
    # The log has the values; but some readers take them from the folders, named as Hive does.
    pieces = [f"{escaped(k)}={NULL_FOLDER if v is None else escaped(v)}" for k, v in values.items()]
    where = "/".join(pieces)
    if any(len(piece.encode()) > FOLDER_MAX for piece in pieces):
        # No "=" in it, or readers would take it for a value.
        where = hashlib.sha256(json.dumps(list(values.values())).encode()).hexdigest()[:32]
    name = part.path.rpartition("/")[2]
    if where:
        # Spark gives files of one task the same name in every partition, and a text may have the
        # folder of null.
        name = f"{number:05}-{name}"
    return DeltaFile(
        staged=f"{folder}/{part.path}",
        final=f"{where}/{name}" if where else name,
        bytes=part.bytes,
        rows=part.rows,
        partition=values,
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
        if value > LAST_MOMENT:
            return None  # the next millisecond is in a year of five digits
        value += timedelta(milliseconds=1)
    # Not strftime: on Linux it writes the year 1 with one digit.
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
