"""What is in staged Parquet files, as their footers tell."""

import json
import math
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.parquet import FLOATS

READERS = 8


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What a file knows of one column.  `low` and `high` are None where it does not say."""

    values: int
    bytes: int
    nulls: int | None
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """A staged file: its path in the staging folder, and what is in it.

    `partition` has the text that Spark has sorted rows by for each partition column.  `columns`
    has the columns that are no rows, lists or maps.
    """

    path: str
    rows: int
    bytes: int
    partition: tuple[str, ...] = ()
    columns: dict[str, ColumnStats] = field(default_factory=dict)
    offsets: tuple[int, ...] = ()
    """Where each row group begins."""


def staged_parts(
    folder: Location, partitions: Sequence[str] = (), only: Container[str] | None = None
) -> list[ParquetPart]:
    """Return every staged file that has rows, or only some, in the order of their paths."""
    found = [
        info
        for info in folder.listed(deep=True)
        if info.type is fs.FileType.File
        and not info.base_name.startswith((".", "_"))
        and (only is None or info.base_name in only)
    ]
    if not found:
        return []

    def read(info: fs.FileInfo) -> ParquetPart:
        footer = pq.read_metadata(info.path, filesystem=folder.files)
        path = info.path[len(folder.path) + 1 :]
        return _part(path, int(info.size or 0), footer, len(partitions))

    with ThreadPoolExecutor(min(READERS, len(found))) as pool:
        return [part for part in pool.map(read, found) if part.rows]


def partition_values(path: str, count: int) -> tuple[str, ...]:
    """Return the texts in a path that Spark has sorted rows by."""
    return tuple(unquote(piece.partition("=")[2]) for piece in path.split("/")[:count])


def _part(path: str, size: int, footer: pq.FileMetaData, partitions: int) -> ParquetPart:
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    columns = {
        footer.schema.column(n).name: _stats([g.column(n) for g in groups], footer.schema.column(n))
        for n in range(footer.num_columns)
        if footer.schema.column(n).path == footer.schema.column(n).name
    }
    said = (footer.metadata or {}).get(FLOATS.encode(), b"{}")
    for name, (nulls, low, high) in json.loads(said).items():
        columns[name] = replace(columns[name], nulls=nulls, low=low, high=high)
    return ParquetPart(
        path=path,
        rows=footer.num_rows,
        bytes=size,
        partition=partition_values(path, partitions),
        columns=columns,
        offsets=tuple(sorted(_offset(g) for g in groups)),
    )


def _offset(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    dictionary = first.dictionary_page_offset
    return int(min(o for o in (first.data_page_offset, dictionary) if o is not None))


def _stats(chunks: Sequence[pq.ColumnChunkMetaData], column: pq.ColumnSchema) -> ColumnStats:
    known: list[Any] = [chunk.statistics for chunk in chunks]
    values = sum(int(chunk.num_values) for chunk in chunks)
    size = sum(int(chunk.total_compressed_size) for chunk in chunks)
    if any(s is None for s in known):
        return ColumnStats(values, size, None)
    counted = all(s.has_null_count for s in known)
    nulls = sum(int(s.null_count) for s in known) if counted else None
    # A row group of nulls alone has no bounds, and needs none.
    bounded = [s for s in known if s.num_values]
    if not bounded or not all(s.has_min_max for s in bounded):
        return ColumnStats(values, size, nulls)
    pairs = [_bounds(s, column) for s in bounded]
    if any(pair is None for pair in pairs):
        return ColumnStats(values, size, nulls)
    low = min(pair[0] for pair in pairs if pair)
    high = max(pair[1] for pair in pairs if pair)
    return ColumnStats(values, size, nulls, low, high)


def _bounds(stats: Any, column: pq.ColumnSchema) -> tuple[Any, Any] | None:
    """Return the least and the greatest value; None where they are not known."""
    try:
        low, high = stats.min, stats.max
    except pa.ArrowNotImplementedError:
        return _decimal_bounds(stats, column)
    except OverflowError:
        return None  # a day or an instant that Python has no year for
    if isinstance(low, float) and not (math.isfinite(low) and math.isfinite(high)):
        return None
    return low, high


def _decimal_bounds(stats: Any, column: pq.ColumnSchema) -> tuple[Any, Any] | None:
    """Small decimals are stored as whole numbers; pyarrow gives only these."""
    kind = column.logical_type
    if kind.type != "DECIMAL" or column.physical_type not in ("INT32", "INT64"):
        return None
    scale = int(json.loads(kind.to_json())["scale"])
    return (
        Decimal(int(stats.min_raw)).scaleb(-scale),
        Decimal(int(stats.max_raw)).scaleb(-scale),
    )
