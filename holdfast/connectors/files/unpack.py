"""The bytes of a file or of the files in an archive, unpacked as its options or its name say."""

import bz2
import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from holdfast.connectors.files.archives import LzoReader, members, uncompressed
from holdfast.connectors.files.format import Archive, Codec, FileFormat
from holdfast.errors import UserError

CHUNK_BYTES = 4 << 20
ENDINGS = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".lzo", ".zst", ".zstd")
"""Endings of names that say how a file is packed."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How files are packed, as their table's options say."""

    format: FileFormat
    archive: Archive = Archive.NONE
    codec: Codec = Codec.NONE

    @property
    def told(self) -> bool:
        """Whether the options say how; else a file's name may."""
        return self.archive is not Archive.NONE or self.codec is not Codec.NONE

    def applies(self, path: str) -> bool:
        """Say whether a file's bytes are not the text itself."""
        return self.told or path.lower().endswith(ENDINGS)


def texts(path: str, packing: Packing) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the place and the chunks of bytes of each text in a file; read each before the next."""
    archive = packing.archive
    for name, stream in members(path, archive, packing.format):
        place = path if archive in (Archive.NONE, Archive.GZ) else f"{path}!{name}"
        if packing.told:
            yield place, _chunks(uncompressed(stream, packing.codec, place))
        else:
            yield place, by_name(path, stream)


def by_name(path: str, stream: IO[bytes]) -> Iterator[bytes]:
    """Return the bytes of a file that is packed as the end of its name says."""
    match Path(path).suffix.lower():
        case ".gz":
            return _chunks(gzip.GzipFile(fileobj=stream))
        case ".bz2":
            return _chunks(bz2.BZ2File(stream))
        case ".deflate":
            return _inflated(stream)
        case ".zst" | ".zstd":
            opened: Any = stream
            source: Any = pa.PythonFile(opened, "r")
            return _chunks(pa.CompressedInputStream(source, "zstd"))
        case ".snappy":
            return _framed(stream, pa.Codec("snappy"), _snappy_size, path)
        case ".lz4":
            return _framed(stream, pa.Codec("lz4_raw"), _lz4_size, path)
        case ".lzo":
            return _chunks(LzoReader(stream, path))
    return _chunks(stream)


def _chunks(stream: Any) -> Iterator[bytes]:
    while data := stream.read(CHUNK_BYTES):
        yield data


def _inflated(stream: IO[bytes]) -> Iterator[bytes]:
    packed = zlib.decompressobj()
    while data := stream.read(1 << 16):
        yield packed.decompress(data)
    yield packed.flush()
    if not packed.eof:
        raise EOFError("it ends too soon")


def _framed(stream: IO[bytes], codec: Any, size_of: Any, path: str) -> Iterator[bytes]:
    """Unpack what Hadoop wrote: blocks, each the size of its bytes and then its packed parts."""
    while head := stream.read(4):
        (left,) = struct.unpack(">I", _exactly(head, 4, path))
        while left:
            (packed,) = struct.unpack(">I", _exactly(stream.read(4), 4, path))
            part = _exactly(stream.read(packed), packed, path)
            size = size_of(part)
            if not 0 < size <= left:
                raise UserError(f"LocalFile cannot read {path}: a packed block is damaged.")
            yield codec.decompress(part, size, asbytes=True)
            left -= size


def _snappy_size(part: bytes) -> int:
    """Return the size of what is packed: the number that the packed bytes begin with."""
    size = 0
    for place, byte in enumerate(part[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return size


def _lz4_size(part: bytes) -> int:
    """Return the size of what is packed, which only the lengths of all its pieces tell."""
    size = at = 0
    while at < len(part):
        token = part[at]
        literals, at = _lz4_length(part, at + 1, token >> 4)
        size, at = size + literals, at + literals
        if at >= len(part):
            break
        repeated, at = _lz4_length(part, at + 2, token & 15)
        size += repeated + 4
    return size


def _lz4_length(part: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while at < len(part):
            length, at = length + part[at], at + 1
            if part[at - 1] < 255:
                break
    return length, at


def _exactly(data: bytes, size: int, path: str) -> bytes:
    if len(data) != size:
        raise UserError(f"LocalFile cannot read {path}: it ends too soon.")
    return data
