"""Manifests: Avro files that name the data files of a table, and lists of such manifests.

Records are kept as they are: what others have written stays unchanged.  A manifest with fields
we do not know is never merged with others.
"""

import io
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.connect.library import load_library
from holdfast.connectors.paimon.binary_row import decode, encode
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.snapshots import Snapshot, write_durably

ADD, DELETE = 0, 1
VERSION = 2

MERGE_COUNT, MERGE_COUNT_DEFAULT = "manifest.merge-min-count", "30"
SMALL_BYTES = 512 * 1024
"""Only manifests smaller than this are merged: merging is Python's work."""

CODECS = {"zstd": "zstandard", "snappy": "snappy", "none": "null", "null": "null",
          "deflate": "deflate"}  # fmt: skip

Record = dict[str, Any]


def _optional(kind: Any) -> list[Any]:
    return ["null", kind]


def _list(items: Any) -> Record:
    return {"type": "array", "items": items}


def _record(name: str, fields: Mapping[str, Any]) -> Record:
    described = [
        {"name": key, "type": kind, "default": None}
        if isinstance(kind, list)
        else {"name": key, "type": kind}
        for key, kind in fields.items()
    ]
    return {"type": "record", "name": f"org.apache.paimon.avro.generated.{name}",
            "fields": described}  # fmt: skip


def _stats(name: str) -> Record:
    counts = _optional(_list(["null", "long"]))
    return _record(name, {"_MIN_VALUES": "bytes", "_MAX_VALUES": "bytes", "_NULL_COUNTS": counts})


FILE = _record("record__FILE", {
    "_FILE_NAME": "string", "_FILE_SIZE": "long", "_ROW_COUNT": "long",
    "_MIN_KEY": "bytes", "_MAX_KEY": "bytes",
    "_KEY_STATS": _stats("record__FILE__KEY_STATS"),
    "_VALUE_STATS": _stats("record__FILE__VALUE_STATS"),
    "_MIN_SEQUENCE_NUMBER": "long", "_MAX_SEQUENCE_NUMBER": "long",
    "_SCHEMA_ID": "long", "_LEVEL": "int", "_EXTRA_FILES": _list("string"),
    "_CREATION_TIME": _optional({"type": "long", "logicalType": "timestamp-millis"}),
    "_DELETE_ROW_COUNT": _optional("long"), "_EMBEDDED_FILE_INDEX": _optional("bytes"),
    "_FILE_SOURCE": _optional("int"), "_VALUE_STATS_COLS": _optional(_list("string")),
    "_EXTERNAL_PATH": _optional("string"), "_FIRST_ROW_ID": _optional("long"),
    "_WRITE_COLS": _optional(_list("string")), "_WRITE_COLS_SEQUENCES": _optional(_list("long")),
})  # fmt: skip
ENTRY = _record("record", {
    "_VERSION": "int", "_KIND": "int", "_PARTITION": "bytes", "_BUCKET": "int",
    "_TOTAL_BUCKETS": "int", "_FILE": FILE,
})  # fmt: skip
MANIFEST = _record("record", {
    "_VERSION": "int", "_FILE_NAME": "string", "_FILE_SIZE": "long", "_NUM_ADDED_FILES": "long",
    "_NUM_DELETED_FILES": "long", "_PARTITION_STATS": _stats("record__PARTITION_STATS"),
    "_SCHEMA_ID": "long", "_MIN_BUCKET": _optional("int"), "_MAX_BUCKET": _optional("int"),
    "_MIN_LEVEL": _optional("int"), "_MAX_LEVEL": _optional("int"),
    "_MIN_ROW_ID": _optional("long"), "_MAX_ROW_ID": _optional("long"),
    "_TOTAL_BUCKETS": _optional("int"), "_EXTRA_FILES": _optional(_list("string")),
})  # fmt: skip

FILE_FIELDS = frozenset(field["name"] for field in FILE["fields"])
MANIFEST_FIELDS = frozenset(field["name"] for field in MANIFEST["fields"])


class Manifests:
    """The manifests of one table.  `written` has the names of those written here."""

    def __init__(self, table: Path, schema: PaimonSchema) -> None:
        self.folder = table / "manifest"
        self.written: list[str] = []
        self.schema = schema

    def entries(self, manifest: str) -> list[Record]:
        """Return what a manifest says, in its order."""
        return self._read(manifest)

    def listed(self, name: str | None) -> list[Record]:
        """Return the manifests that a list names, in its order."""
        return self._read(name) if name else []

    def of(self, snapshot: Snapshot | None) -> list[Record]:
        """Return the manifests of a state, in their order."""
        if snapshot is None:
            return []
        names = (snapshot.content["baseManifestList"], snapshot.content["deltaManifestList"])
        return [one for name in names for one in self.listed(name)]

    def live(self, snapshot: Snapshot | None) -> list[Record]:
        """Return the entries of all files of a state."""
        listed = self.of(snapshot)
        return live(entry for one in listed for entry in self.entries(one["_FILE_NAME"]))

    def write(self, entries: Sequence[Record]) -> Record:
        """Write a manifest; return what a list says of it."""
        name = f"manifest-{uuid.uuid4()}-0"
        size = self._write(name, _entry_schema(), entries)
        files = [entry["_FILE"] for entry in entries]
        totals = {entry["_TOTAL_BUCKETS"] for entry in entries}
        total = totals.pop() if len(totals) == 1 else -1
        rows = [_row_range(file) for file in files]
        known = None not in rows
        return {
            "_VERSION": VERSION,
            "_FILE_NAME": name,
            "_FILE_SIZE": size,
            "_NUM_ADDED_FILES": sum(entry["_KIND"] == ADD for entry in entries),
            "_NUM_DELETED_FILES": sum(entry["_KIND"] == DELETE for entry in entries),
            "_PARTITION_STATS": self._partition_stats(entries),
            "_SCHEMA_ID": max(file["_SCHEMA_ID"] for file in files),
            "_MIN_BUCKET": min(entry["_BUCKET"] for entry in entries),
            "_MAX_BUCKET": max(entry["_BUCKET"] for entry in entries),
            "_MIN_LEVEL": min(file["_LEVEL"] for file in files),
            "_MAX_LEVEL": max(file["_LEVEL"] for file in files),
            "_MIN_ROW_ID": min(r[0] for r in rows if r) if known else None,
            "_MAX_ROW_ID": max(r[1] for r in rows if r) if known else None,
            "_TOTAL_BUCKETS": total if total > 0 else None,
            "_EXTRA_FILES": None,
        }

    def write_list(self, manifests: Sequence[Record]) -> tuple[str, int]:
        """Write a list of manifests; return its name and size."""
        name = f"manifest-list-{uuid.uuid4()}-0"
        return name, self._write(name, _manifest_schema(), manifests)

    def merged(self, manifests: Sequence[Record]) -> list[Record]:
        """Return manifests that say the same: the last ones as one, if they are many and small.

        Only neighbours are merged, as the order counts: a file is added before it is deleted.
        """
        first = len(manifests)
        while first and _is_small(manifests[first - 1]):
            first -= 1
        tail = manifests[first:]
        if len(tail) < int(self.schema.options.get(MERGE_COUNT, MERGE_COUNT_DEFAULT)):
            return list(manifests)
        entries = [entry for one in tail for entry in self.entries(one["_FILE_NAME"])]
        if any(set(entry["_FILE"]) - FILE_FIELDS for entry in entries):
            return list(manifests)  # of a later version of Paimon
        left = live(entries)
        return [*manifests[:first], *([self.write(left)] if left else [])]

    def drop_written(self) -> None:
        """Remove what was written here, and is in no snapshot."""
        for name in self.written:
            (self.folder / name).unlink(missing_ok=True)

    def _partition_stats(self, entries: Sequence[Record]) -> Record:
        """Return the least and the greatest partition values, and how many are null."""
        types = self.schema.types_of(self.schema.partitions)
        values = {row: decode(row, types) for row in {entry["_PARTITION"] for entry in entries}}
        columns = list(zip(*values.values(), strict=True))
        known = [[v for v in column if v is not None] for column in columns]
        return {
            "_MIN_VALUES": encode([min(c, default=None) for c in known], types),
            "_MAX_VALUES": encode([max(c, default=None) for c in known], types),
            "_NULL_COUNTS": [
                sum(values[entry["_PARTITION"]][at] is None for entry in entries)
                for at in range(len(types))
            ],
        }

    def _read(self, name: str) -> list[Record]:
        data = (self.folder / name).read_bytes()
        return list(_avro().reader(io.BytesIO(data)))

    def _write(self, name: str, schema: Any, records: Iterable[Record]) -> int:
        wanted = self.schema.options.get("manifest.compression", "zstd").lower()
        buffer = io.BytesIO()
        _avro().writer(buffer, schema, records, codec=CODECS.get(wanted, "zstandard"))
        data = buffer.getvalue()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.written.append(name)
        write_durably(self.folder / name, data)
        return len(data)


def live(entries: Iterable[Record]) -> list[Record]:
    """Return what is left of entries after those that delete what others have added."""
    left: dict[tuple[Any, ...], Record] = {}
    for entry in entries:
        key = _key(entry)
        if entry["_KIND"] == DELETE and key in left:
            del left[key]
        else:
            left[key] = entry
    return list(left.values())


def _key(entry: Record) -> tuple[Any, ...]:
    file = entry["_FILE"]
    extra = tuple(file.get("_EXTRA_FILES") or ())
    return (entry["_PARTITION"], entry["_BUCKET"], file["_LEVEL"], file["_FILE_NAME"], extra,
            file.get("_EMBEDDED_FILE_INDEX"), file.get("_EXTERNAL_PATH"))  # fmt: skip


def _is_small(manifest: Record) -> bool:
    return manifest["_FILE_SIZE"] < SMALL_BYTES and not (
        set(manifest) - MANIFEST_FIELDS or manifest.get("_EXTRA_FILES")
    )


def _row_range(file: Record) -> tuple[int, int] | None:
    first = file.get("_FIRST_ROW_ID")
    return None if first is None else (first, first + file["_ROW_COUNT"] - 1)


def check_entry(entry: Record) -> None:
    """Raise an error of the library, or ValueError, where a manifest cannot say this."""
    if not set(entry["_FILE"]) <= FILE_FIELDS:
        raise ValueError("it has fields that manifests do not have")
    _avro().schemaless_writer(io.BytesIO(), _entry_schema(), entry)


def check_library() -> None:
    """Raise UserError if the library that reads manifests is not installed."""
    _avro()


def _avro() -> Any:
    return load_library("fastavro", "Paimon", "paimon")


@cache
def _entry_schema() -> Any:
    return _avro().parse_schema(ENTRY)


@cache
def _manifest_schema() -> Any:
    return _avro().parse_schema(MANIFEST)
