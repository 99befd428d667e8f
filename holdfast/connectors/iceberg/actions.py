"""What a write leaves for its commit: where each file is and will be, and what is in it."""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.connectors.iceberg.library import iceberg
from holdfast.connectors.lake.footers import ColumnStats, Part
from holdfast.connectors.lake.partitions import value_texts
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

VERSION = 1
BOUND_MAX = 16
"""Longer texts are cut to serve as bounds, as Iceberg's own writers do."""

_PLAIN_FOLDER = re.compile(r"[\w=.,+-]+(/[\w=.,+-]+)*")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a commit.  Paths are below the table; what is known by column is by its number.

    `partition` has a text for each partition column, or None for null; bounds are Iceberg's bytes
    in base64.
    """

    staged: str
    final: str
    bytes: int
    rows: int
    partition: list[str | None]
    offsets: list[int]
    sizes: dict[str, int]
    values: dict[str, int]
    nulls: dict[str, int]
    low: dict[str, str]
    high: dict[str, str]


@dataclass(frozen=True, slots=True)
class Staged:
    """What one write left out of sight in one table.

    `numbered`: whether files know columns by their numbers; if not, the table must map their names.
    `fields` has the type of each column by its number, and where names count, its name before it.
    """

    table: list[str]
    location: str
    folder: str
    spec: int
    fields: dict[str, str]
    numbered: bool
    files: list[File]
    partitions: list[str] = field(default_factory=list)

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


def file_of(
    part: Part, number: int, folder: str, schema: "Schema", partitions: Sequence[str]
) -> File:
    """Return how a staged file will be added to the table."""
    values = value_texts(part.partition)
    pairs = zip(partitions, values, strict=True)
    where = "/".join(f"{k}={'null' if v is None else v}" for k, v in pairs)
    # Spark gives files of one task the same name in every partition.
    name = f"{number:05}-{part.path.rpartition('/')[2]}"
    # Folders are only for people, so odd ones are left out.
    final = f"data/{where}/{name}" if _PLAIN_FOLDER.fullmatch(where) else f"data/{name}"
    known = {f.name: f for f in schema.fields}
    columns = {str(known[n].field_id): (known[n].field_type, s) for n, s in part.columns.items()
               if n in known}  # fmt: skip
    bounds = {number: _bounds(kind, stats) for number, (kind, stats) in columns.items()}
    return File(
        staged=f"{folder}/{part.path}",
        final=final,
        bytes=part.bytes,
        rows=part.rows,
        partition=values,
        offsets=list(part.offsets),
        sizes={n: s.bytes for n, (_, s) in columns.items()},
        values={n: s.values for n, (_, s) in columns.items()},
        nulls={n: s.nulls for n, (_, s) in columns.items() if s.nulls is not None},
        low={n: low for n, (low, _) in bounds.items() if low is not None},
        high={n: high for n, (_, high) in bounds.items() if high is not None},
    )


def data_file(file: File, location: str, metadata: "TableMetadata") -> "DataFile":
    """Return a file as a manifest of the table has it."""
    manifest, typedef = iceberg("manifest"), iceberg("typedef")
    to_value = iceberg("conversions").partition_to_py
    spec, schema = metadata.spec(), metadata.schema()
    kinds = [schema.find_field(field.source_id).field_type for field in spec.fields]
    values = [
        None if text is None else to_value(kind, text)
        for kind, text in zip(kinds, file.partition, strict=True)
    ]
    made: DataFile = manifest.DataFile.from_args(
        _table_format_version=metadata.format_version,
        content=manifest.DataFileContent.DATA,
        file_path=f"{location.rstrip('/')}/{file.final}",
        file_format=manifest.FileFormat.PARQUET,
        partition=typedef.Record(*values),
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        column_sizes=_numbers(file.sizes),
        value_counts=_numbers(file.values),
        null_value_counts=_numbers(file.nulls),
        nan_value_counts={},
        lower_bounds={int(n): base64.b64decode(b) for n, b in file.low.items()},
        upper_bounds={int(n): base64.b64decode(b) for n, b in file.high.items()},
        key_metadata=None,
        split_offsets=file.offsets,
        equality_ids=None,
        sort_order_id=None,
    )
    made.spec_id = spec.spec_id
    return made


def _numbers(stored: Mapping[str, int]) -> dict[int, int]:
    return {int(number): value for number, value in stored.items()}


def _bounds(kind: Any, stats: ColumnStats) -> tuple[str | None, str | None]:
    """Return the least and the greatest value as Iceberg's bytes; None where it has none."""
    low, high = stats.low, stats.high
    if low is None or high is None:
        return None, None
    cut = iceberg("utils.truncate")
    match low, high:
        case str(), str():
            low, high = low[:BOUND_MAX], cut.truncate_upper_bound_text_string(high, BOUND_MAX)
        case bytes(), bytes():
            low, high = low[:BOUND_MAX], cut.truncate_upper_bound_binary_string(high, BOUND_MAX)
    to_bytes = iceberg("conversions").to_bytes
    return _text(to_bytes(kind, low)), None if high is None else _text(to_bytes(kind, high))


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
