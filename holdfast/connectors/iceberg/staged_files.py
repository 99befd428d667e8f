"""What a write leaves for its commit: where each file is and will be, and what is in it."""

import base64
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.connectors.committables import Whole
from holdfast.connectors.iceberg.library import iceberg
from holdfast.connectors.iceberg.table_properties import final_path, metrics_of
from holdfast.connectors.lake.footers import ColumnStats, ParquetPart
from holdfast.connectors.lake.partitions import value_texts
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata

    from holdfast.connectors.iceberg.table import IcebergTable

VERSION = 1
FOLDER_MAX = 200
"""Disks bear names of 255 bytes."""

_PLAIN_FOLDER = re.compile(r"[\w=.,+-]+(/[\w=.,+-]+)*")


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """One file of a commit.  Paths are below the table; what is known by column is by its number.

    `partition` has a text for each partition column, or None for null; bounds are Iceberg's bytes
    in base64.
    """

    staged: str
    final: str
    bytes: Whole
    rows: Whole
    partition: list[str | None]
    offsets: list[Whole]
    sizes: dict[str, Whole]
    values: dict[str, Whole]
    nulls: dict[str, Whole]
    low: dict[str, str]
    high: dict[str, str]


@dataclass(frozen=True, slots=True)
class IcebergStaged:
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
    files: list[IcebergFile]
    partitions: list[str] = field(default_factory=list)

    def to_plain(self) -> Plain:
        """Return this as a checkpoint stores it."""
        plain: Plain = asdict(self)
        return plain


def file_of(
    part: ParquetPart,
    number: int,
    folder: str,
    table: "IcebergTable",
    properties: Mapping[str, str],
) -> IcebergFile:
    """Return how a staged file will be added to the table; `properties` has the table's wishes."""
    values = value_texts(part.partition)
    pairs = zip(table.partitions, values, strict=True)
    where = "/".join(f"{k}={'null' if v is None else v}" for k, v in pairs)
    # Spark gives files of one task the same name in every partition.
    name = f"{number:05}-{part.path.rpartition('/')[2]}"
    # Folders are only for people, so odd ones are left out.
    plain = len(where) <= FOLDER_MAX and _PLAIN_FOLDER.fullmatch(where)
    final = final_path(properties, table.location, where if plain else "", name)
    known = {f.name: f for f in table.schema.fields}
    columns, bounds = {}, {}
    for column, stats in part.columns.items():
        mode, most = metrics_of(properties, column)
        if column in known and mode != "none":
            key = str(known[column].field_id)
            columns[key] = stats
            if mode != "counts":
                bounds[key] = _bounds(known[column].field_type, stats, most)
    return IcebergFile(
        staged=f"{folder}/{part.path}",
        final=final,
        bytes=part.bytes,
        rows=part.rows,
        partition=values,
        offsets=list(part.offsets),
        sizes={n: s.bytes for n, s in columns.items()},
        values={n: s.values for n, s in columns.items()},
        nulls={n: s.nulls for n, s in columns.items() if s.nulls is not None},
        low={n: low for n, (low, _) in bounds.items() if low is not None},
        high={n: high for n, (_, high) in bounds.items() if high is not None},
    )


def data_file(file: IcebergFile, location: str, metadata: "TableMetadata") -> "DataFile":
    """Return a file as a manifest of the table has it."""
    manifest, typedef = iceberg("manifest"), iceberg("typedef")
    spec, schema = metadata.spec(), metadata.schema()
    kinds = [schema.find_field(field.source_id).field_type for field in spec.fields]
    values = [
        None if text is None else _partition_value(kind, text)
        for kind, text in zip(kinds, file.partition, strict=True)
    ]
    # Without the version of the table: the library's writer of manifests makes version 1 of this.
    made: DataFile = manifest.DataFile.from_args(
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


def _partition_value(kind: Any, text: str) -> Any:
    # The library takes the text that Spark names a folder of nulls by for null.
    if isinstance(kind, iceberg("types").StringType):
        return text
    return iceberg("conversions").partition_to_py(kind, text)


def _numbers(stored: Mapping[str, int]) -> dict[int, int]:
    return {int(number): value for number, value in stored.items()}


def _bounds(kind: Any, stats: ColumnStats, most: int | None) -> tuple[str | None, str | None]:
    """Return the least and the greatest value as Iceberg's bytes; None where it has none.

    Texts and bytes longer than `most` are cut, as Iceberg's own writers do.
    """
    low, high = stats.low, stats.high
    if low is None or high is None:
        return None, None
    cut = iceberg("utils.truncate")
    match low, high:
        case str(), str() if most:
            low, high = low[:most], cut.truncate_upper_bound_text_string(high, most)
        case bytes(), bytes() if most:
            low, high = low[:most], cut.truncate_upper_bound_binary_string(high, most)
    to_bytes = iceberg("conversions").to_bytes
    return _text(to_bytes(kind, low)), None if high is None else _text(to_bytes(kind, high))


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
