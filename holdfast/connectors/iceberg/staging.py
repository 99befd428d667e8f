"""Let Spark write rows as files of a table: its columns, their numbers, and where each row belongs.

Files keep the columns a table is partitioned by, as Iceberg's own writers do.  Spark sorts rows
into folders by texts of theirs, which distinguish null from an empty text.

Every field in a file has the number that the table knows it by.  Spark writes the numbers of
columns and of fields inside rows, but none inside lists and maps; readers then find columns by
their names, and a dropped column comes back when one of its name is added.  So the footer of such
a file is changed afterwards; its rows stay where they are.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow.fs as fs

from holdfast.connect.rows import Rows
from holdfast.connectors.iceberg.library import iceberg
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.iceberg.table_properties import CODEC, CODECS
from holdfast.connectors.iceberg.thrift import Element, list_of, split_footer
from holdfast.connectors.iceberg.types import numbered
from holdfast.connectors.lake.fit import fitted
from holdfast.connectors.lake.footers import ParquetPart, staged_parts
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.staging import stage, stage_batches

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

MAGIC = b"PAR1"
TAIL = 8
"""The length of a footer, and the magic word behind it."""

WRITERS = 8
COPIED_AT_ONCE = 8 << 20


def stage_rows(
    rows: Rows, table: IcebergTable, options: IcebergSinkOptions, folder: Location
) -> list[ParquetPart]:
    """Let Spark write rows into a folder; return its files, which know columns by their numbers."""
    names = partition_names(table.partitions)
    said = {**table.properties, **options.write_props}
    codec = CODECS.get(said.get(CODEC, "zstd").lower(), "zstd")
    about = f"Iceberg cannot write to {options.named}"
    ready = fitted(rows, table.columns, about, table.partitions)
    ids = {field.name: field.field_id for field in table.schema.fields}
    parts = None if names else stage_batches(ready, folder, codec=codec, field_ids=ids)
    if parts is not None:
        return parts
    kinds = {c.name: c.type.kind for c in table.columns}
    frame = keyed(numbered(ready.frame, table.schema), table.partitions, kinds, about)
    stage(frame, folder, partitions=names, codec=codec)
    number_files(folder, table.schema)
    return staged_parts(folder, names)


def number_files(folder: Location, schema: "Schema") -> None:
    """Give the fields of every staged file their numbers, where they lack some."""
    found = [
        info.path
        for info in folder.listed(deep=True)
        if info.type is fs.FileType.File and not info.base_name.startswith((".", "_"))
    ]
    if found:
        with ThreadPoolExecutor(min(WRITERS, len(found))) as pool:
            list(pool.map(lambda path: _number_file(folder, path, schema), found))


def _number_file(folder: Location, path: str, schema: "Schema") -> None:
    with folder.files.open_input_file(path) as file:
        size = file.size()
        file.seek(size - TAIL)
        length = int.from_bytes(file.read(4), "little")
        end = size - TAIL - length
        file.seek(end)
        footer = bytes(file.read(length))
    changed = numbered_footer(footer, schema)
    if changed == footer:
        return
    tail = changed + len(changed).to_bytes(4, "little") + MAGIC
    if folder.is_local:
        with open(path, "r+b") as local:  # noqa: PTH123 - a path of pyarrow's
            local.seek(end)
            local.write(tail)
            local.truncate()
        return
    # An object cannot be changed: it is written again, under the same name when it is whole.
    with (
        folder.files.open_input_file(path) as old,
        folder.files.open_output_stream(path) as new,
    ):
        for at in range(0, end, COPIED_AT_ONCE):
            new.write(old.read(min(COPIED_AT_ONCE, end - at)))
        new.write(tail)


def numbered_footer(footer: bytes, schema: "Schema") -> bytes:
    """Return the footer of a file in which every field has its number."""
    before, elements, after = split_footer(footer)
    rest = iter(elements)
    root = next(rest)
    fields = {field.name: field for field in schema.fields}
    for _ in range(root.children):
        column = next(rest)
        field = fields[column.name]
        column.field_id = field.field_id
        _number(column, field.field_type, rest)
    return before + list_of(elements) + after


def _number(element: Element, kind: Any, rest: Iterator[Element]) -> None:
    """Number what is inside a field whose own number is set."""
    types = iceberg("types")
    if isinstance(kind, types.StructType):
        inner = {field.name: field for field in kind.fields}
        for _ in range(element.children):
            one = next(rest)
            one.field_id = inner[one.name].field_id
            _number(one, inner[one.name].field_type, rest)
    elif isinstance(kind, types.ListType):
        _inside(rest, [(kind.element_id, kind.element_type)])
    elif isinstance(kind, types.MapType):
        _inside(rest, [(kind.key_id, kind.key_type), (kind.value_id, kind.value_type)])


def _inside(rest: Iterator[Element], parts: Sequence[tuple[int, Any]]) -> None:
    """Number the parts of a list or a map, which are one level further down."""
    next(rest)  # the level that repeats has no number
    for number, kind in parts:
        part = next(rest)
        part.field_id = number
        _number(part, kind, rest)
