"""What a write leaves for its commit: where each file is and will be, and what a manifest says."""

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from holdfast.connectors.committables import Whole
from holdfast.connectors.lake.footers import ColumnStats, ParquetPart
from holdfast.connectors.lake.partitions import value_texts
from holdfast.connectors.paimon.binary_row import encode
from holdfast.connectors.paimon.folders import partition_folder, shown
from holdfast.connectors.paimon.manifests import VERSION as ENTRY_VERSION
from holdfast.connectors.paimon.manifests import Record
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.types import kind_of
from holdfast.model.tree import Plain

VERSION = 1
BOUND_MAX = 16
"""Longer texts are cut to serve as bounds, as Paimon's own writers do."""

_BYTES = ("_MIN_KEY", "_MAX_KEY", "_EMBEDDED_FILE_INDEX", "_MIN_VALUES", "_MAX_VALUES")
_EMPTY = encode([], [])


@dataclass(frozen=True, slots=True)
class PaimonFile:
    """One file of a commit.  Paths are below the table; `meta` is what a manifest says of it, with
    bytes in base64, as is the row of partition values; `values` has these as texts."""

    staged: str
    final: str
    partition: str
    values: dict[str, str | None]
    bucket: Whole
    buckets: int
    meta: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the file, which no other file of the table has."""
        return self.final.rpartition("/")[2]

    def entry(self, kind: int) -> Record:
        """Return this as an entry of a manifest."""
        return {
            "_VERSION": ENTRY_VERSION,
            "_KIND": kind,
            "_PARTITION": base64.b64decode(self.partition),
            "_BUCKET": self.bucket,
            "_TOTAL_BUCKETS": self.buckets,
            "_FILE": _unpacked(self.meta),
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What the footer of a file does not have: when it was written, the numbers of its rows, and
    how many of them say that a key is gone."""

    created_ms: int
    first: int
    last: int
    deletes: int = 0


@dataclass(frozen=True, slots=True)
class PaimonStaged:
    """What one write left out of sight in one table.

    `schema` and `mark`: the version of the columns that files were written with.
    """

    url: str
    folder: str
    schema: int
    mark: str
    files: list[PaimonFile]

    def to_plain(self) -> Plain:
        """Return this as a checkpoint stores it."""
        plain: Plain = asdict(self)
        return plain


def file_of(
    part: ParquetPart, name: str, folder: str, schema: PaimonSchema, facts: Facts
) -> PaimonFile:
    """Return how a staged file will be added to the table."""
    types = schema.types_of(schema.partitions)
    texts = value_texts(part.partition[: len(types)])
    values = [partition_value(text, kind) for text, kind in zip(texts, types, strict=True)]
    bucket = int(part.partition[-1] or 0) if schema.keys else 0
    where = partition_folder(values, schema)
    columns, stats = _stats(part.columns, schema, part.rows)
    low, high = _key_bounds(part, schema)
    meta: Record = {
        "_FILE_NAME": name,
        "_FILE_SIZE": part.bytes,
        "_ROW_COUNT": part.rows,
        "_MIN_KEY": low,
        "_MAX_KEY": high,
        "_KEY_STATS": {
            "_MIN_VALUES": low,
            "_MAX_VALUES": high,
            "_NULL_COUNTS": [0] * len(schema.own_keys),
        },
        "_VALUE_STATS": stats,
        "_MIN_SEQUENCE_NUMBER": facts.first,
        "_MAX_SEQUENCE_NUMBER": facts.last,
        "_SCHEMA_ID": schema.number,
        "_LEVEL": 0,
        "_EXTRA_FILES": [],
        "_CREATION_TIME": facts.created_ms,
        "_DELETE_ROW_COUNT": facts.deletes,
        "_FILE_SOURCE": 0,
        "_VALUE_STATS_COLS": columns,
    }
    return PaimonFile(
        staged=f"{folder}/{part.path}",
        final=f"{where}bucket-{bucket}/{name}",
        partition=_text(encode(values, types)),
        values=dict(zip(schema.partitions, map(shown, values), strict=True)),
        bucket=bucket,
        buckets=schema.buckets,
        meta=packed(meta),
    )


def in_bucket(file: PaimonFile) -> bool:
    """Say whether a file will be where readers look for one of its bucket and name."""
    *partition, bucket, name = ["", *file.final.split("/")]
    return (
        bucket == f"bucket-{file.bucket}"
        and all("=" in part for part in partition[1:])
        and name == file.meta.get("_FILE_NAME")
        and not file.meta.get("_EXTRA_FILES")
        and not file.meta.get("_EXTERNAL_PATH")
    )


def packed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest says as plain data."""
    return {key: _packed(value) for key, value in meta.items() if value is not None}


def partition_value(text: str | None, kind: str) -> Any:
    """Return the value of a folder's text."""
    if text is None:
        return None
    match kind_of(kind).name:
        case "STRING":
            return text
        case "BOOLEAN":
            return text == "true"
        case "DATE":
            return date(1970, 1, 1) + timedelta(days=int(text))
    return int(text)


def _stats(
    columns: Mapping[str, ColumnStats], schema: PaimonSchema, rows: int
) -> tuple[list[str], Record]:
    """Return the columns whose bounds are known, in the table's order, and these bounds."""
    known: dict[str, tuple[Any, Any, int]] = {}
    for name, kind in schema.types.items():
        stats = columns.get(name)
        if stats is None or stats.nulls is None or not isinstance(kind, str):
            continue
        bounds = (None, None) if stats.nulls == rows else _bounds(stats)
        if bounds is not None:
            known[name] = (*bounds, stats.nulls)
    types = schema.types_of(list(known))
    said = {
        "_MIN_VALUES": encode([low for low, _, _ in known.values()], types),
        "_MAX_VALUES": encode([high for _, high, _ in known.values()], types),
        "_NULL_COUNTS": [nulls for _, _, nulls in known.values()],
    }
    return list(known), said


def _bounds(stats: ColumnStats) -> tuple[Any, Any] | None:
    """Return the least and the greatest value; None where they are not known."""
    low, high = stats.low, stats.high
    if low is None or high is None or isinstance(low, bytes):
        return None
    if isinstance(high, str) and len(high) > BOUND_MAX:
        last = ord(high[BOUND_MAX - 1]) + 1
        if 0xD800 <= last <= 0xDFFF or last > 0x10FFFF:
            return None
        high = high[: BOUND_MAX - 1] + chr(last)
    return (low[:BOUND_MAX] if isinstance(low, str) else low), high


def _key_bounds(part: ParquetPart, schema: PaimonSchema) -> tuple[bytes, bytes]:
    """Return a row not above any key of a file, and one not below: no closer than they must be."""
    keys = schema.own_keys
    if not keys:
        return _EMPTY, _EMPTY
    types = schema.types_of(keys)
    stats = [part.columns[key] for key in keys]
    return encode([s.low for s in stats], types), encode([s.high for s in stats], types)


def _packed(value: Any) -> Any:
    if isinstance(value, bytes):
        return _text(value)
    return packed(value) if isinstance(value, dict) else value


def _unpacked(meta: Mapping[str, Any]) -> Record:
    return {
        key: base64.b64decode(value)
        if key in _BYTES
        else _unpacked(value)
        if isinstance(value, dict)
        else value
        for key, value in meta.items()
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
