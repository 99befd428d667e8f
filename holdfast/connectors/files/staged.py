"""What a write has left in its staging folder, and the names its files will have."""

import gzip
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.orc as orc
import pyarrow.parquet as pq

from holdfast.connectors.files.archives import (
    LZO_ADLER32_RAW,
    LZO_CRC32_RAW,
    LzoReader,
    uncompressed,
)
from holdfast.connectors.files.discovery import DEFAULT_PARTITION
from holdfast.connectors.files.format import LINES, Codec, FileFormat
from holdfast.connectors.files.names import partition_folder

if TYPE_CHECKING:
    from holdfast.connectors.files.sink_options import LocalFileSinkOptions

MARKED = "%3D"
"""What values begin with in the names of staged folders; null does not."""

SMALL = 512
"""A compressed file without rows is smaller than this."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A staged file: its path in the staging folder, rows (-1: unknown) and bytes."""

    path: str
    rows: int
    bytes: int


def staged_parts(
    folder: Path, options: "LocalFileSinkOptions", counted: dict[str, int], header: bytes
) -> list[FilePart]:
    """Return every staged file that has rows; all of them, if empty files are wanted."""
    parts = sorted(_found(folder, options, counted, header), key=lambda p: p.path)
    full = [p for p in parts if p.rows]
    if full or not options.create_empty_file_when_no_data:
        return full
    return parts[:1]


def folder_of(part: FilePart, options: "LocalFileSinkOptions", keys: tuple[str, ...]) -> str:
    """Return the partition folder a staged file belongs into; nothing without partitions."""
    values = [
        _value(piece.partition("=")[2])
        for piece in part.path.split("/")[:-1]
        if piece.startswith("__p")
    ]
    return partition_folder(options.partition_dir_expression, keys, values) if keys else ""


def _value(staged: str) -> str:
    """Return a value as a folder's name has it: not null, though it may look so."""
    if not staged.startswith(MARKED):
        return staged
    value = staged.removeprefix(MARKED)
    return f"%5F{value[1:]}" if value == DEFAULT_PARTITION else value


def prepend(path: Path, line: bytes, codec: Codec) -> None:
    """Put a line before the first one of a file, without reading the rest of it."""
    whole = path.with_name(f".{path.name}.header")
    with path.open("rb") as old, whole.open("wb") as new:
        if codec is Codec.GZIP:
            new.write(gzip.compress(line))
        elif codec is Codec.LZO:
            flags = LzoReader(old, str(path)).flags
            end = old.tell()
            old.seek(0)
            new.write(old.read(end))
            new.write(_lzo_block(line, flags))
        else:
            new.write(line)
        shutil.copyfileobj(old, new, 1 << 20)
    whole.replace(path)


def _found(
    folder: Path, options: "LocalFileSinkOptions", counted: dict[str, int], header: bytes
) -> Iterator[FilePart]:
    for where, _, names in os.walk(folder):
        for name in names:
            if name.startswith((".", "_")) and options.file_format_type is not FileFormat.BINARY:
                continue
            path = Path(where) / name
            below = str(path.relative_to(folder))
            if counted and below not in counted:
                continue  # left by a task that ran twice
            size = path.stat().st_size
            yield FilePart(below, _rows(path, size, options, counted.get(below), header), size)


def _rows(
    path: Path, size: int, options: "LocalFileSinkOptions", counted: int | None, header: bytes
) -> int:
    if counted is not None:
        return counted
    if options.file_format_type is FileFormat.PARQUET:
        return int(pq.read_metadata(path).num_rows)
    if options.file_format_type is FileFormat.ORC:
        return int(orc.ORCFile(str(path)).nrows)
    if options.file_format_type in LINES and _is_empty(path, size, options, header):
        return 0
    return -1


def _is_empty(path: Path, size: int, options: "LocalFileSinkOptions", header: bytes) -> bool:
    if not size:
        return True
    if size > SMALL + len(header):
        return False
    # Hadoop frames these two in its own way; a file of them without rows is a few bytes.
    if options.codec in (Codec.SNAPPY, Codec.LZ4):
        return size <= 8
    with path.open("rb") as file:
        content = uncompressed(file, options.codec, str(path)).read()
    return not content or (options.enable_header_write and content == header)


def _lzo_block(data: bytes, flags: int) -> bytes:
    """Return bytes as a block of an LZO file that is stored as it is."""
    block = struct.pack(">II", len(data), len(data))
    if flags & LZO_ADLER32_RAW:
        block += struct.pack(">I", zlib.adler32(data))
    if flags & LZO_CRC32_RAW:
        block += struct.pack(">I", zlib.crc32(data))
    return block + data
