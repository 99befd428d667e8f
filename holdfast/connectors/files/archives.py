"""Read what Spark's readers do not: archives, foreign encodings, LZO whatever its ending.

These functions run inside Spark's Python workers: one file, or one member of an archive, at a
time, and Arrow batches out.
"""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import lzallright
import pyarrow as pa

from holdfast.connectors.files.format import ENDINGS, Archive, Codec, FileFormat
from holdfast.errors import UserError

LZO_MAGIC = b"\x89LZO\x00\r\n\x1a\n"
LZO_ADLER32_RAW, LZO_ADLER32_PACKED = 0x1, 0x2
LZO_CRC32_RAW, LZO_CRC32_PACKED = 0x100, 0x200
LZO_EXTRA = 0x40
CHUNK = 1 << 20

BROKEN = (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error)
"""What reading a broken or missing file raises."""


def members(path: str, archive: Archive, kind: FileFormat) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, bytes) of each file of a format in an archive, or of the file itself."""
    match archive:
        case Archive.NONE:
            with Path(path).open("rb") as plain:
                yield path, plain
        case Archive.GZ:
            with gzip.open(path) as unpacked:
                yield path, io.BufferedReader(unpacked)
        case Archive.ZIP:
            yield from _checked(path, kind, _zip(path))
        case Archive.TAR | Archive.TAR_GZ:
            yield from _checked(path, kind, _tar(path, archive))


def uncompressed(stream: IO[bytes], codec: Codec, name: str) -> IO[bytes]:
    """Return a stream of the bytes before they were compressed."""
    match codec:
        case Codec.NONE:
            return stream
        case Codec.LZO:
            return io.BufferedReader(LzoReader(stream, name), CHUNK)
        case Codec.GZIP:
            return io.BufferedReader(gzip.GzipFile(fileobj=stream), CHUNK)
        case Codec.ZLIB:
            return io.BytesIO(zlib.decompress(stream.read()))
        case _:
            codec_name: Any = str(codec)
            source: Any = pa.PythonFile(cast(io.IOBase, stream), "r")
            return io.BytesIO(pa.CompressedInputStream(source, codec_name).read())


def lines(text: IO[str], delimiter: str) -> Iterator[str]:
    """Yield the lines of a text; a delimiter of `\\n` also ends lines at `\\r` and `\\r\\n`."""
    if delimiter == "\n":
        for line in text:
            yield line.removesuffix("\n")
        return
    rest = ""
    while chunk := text.read(CHUNK):
        *whole, rest = (rest + chunk).split(delimiter)
        yield from whole
    if rest:
        yield rest


def text_of(stream: IO[bytes], encoding: str, delimiter: str) -> IO[str]:
    """Return decoded text, without a byte order mark."""
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    # None makes Python end lines as Java does; '' leaves foreign delimiters alone.
    newline = None if delimiter == "\n" else ""
    return io.TextIOWrapper(stream, encoding=name, newline=newline)


class LzoReader(io.RawIOBase):
    """The bytes inside a file that `lzop` (or SeaTunnel) wrote."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._ready = memoryview(b"")
        self._ended = False
        self.flags = self._header()

    def readable(self) -> bool:
        """Say yes: this is a stream to read from."""
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        """Fill `into` with the next bytes; 0 at the end."""
        while not self._ready and not self._ended:
            self._ready = memoryview(self._block())
        taken = min(len(into), len(self._ready))
        into[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def _header(self) -> int:
        if self._exactly(len(LZO_MAGIC)) != LZO_MAGIC:
            raise UserError(
                f"LocalFile cannot read {self._name}: it is not an LZO file."
                " Check option compress_codec."
            )
        version, _, _ = struct.unpack(">HHH", self._exactly(6))
        self._exactly(1 if version < 0x940 else 2)  # method, level
        (flags,) = struct.unpack(">I", self._exactly(4))
        self._exactly(4 + 4 + (4 if version >= 0x940 else 0))  # mode, times
        (length,) = self._exactly(1)
        self._exactly(length + 4)  # name, checksum of the header
        if flags & LZO_EXTRA:
            (extra,) = struct.unpack(">I", self._exactly(4))
            self._exactly(extra + 4)
        return int(flags)

    def _block(self) -> bytes:
        raw_bytes = self._stream.read(4)
        raw = struct.unpack(">I", raw_bytes)[0] if len(raw_bytes) == 4 else 0
        if not raw:
            self._ended = True
            return b""
        (packed,) = struct.unpack(">I", self._exactly(4))
        sums = [f for f in (LZO_ADLER32_RAW, LZO_CRC32_RAW) if self.flags & f]
        if packed < raw:
            sums += [f for f in (LZO_ADLER32_PACKED, LZO_CRC32_PACKED) if self.flags & f]
        self._exactly(4 * len(sums))
        data = self._exactly(packed)
        if packed >= raw:
            return data
        try:
            return bytes(lzallright.LZOCompressor.decompress(data, raw))
        except lzallright.LZOError as error:
            raise UserError(f"LocalFile cannot read {self._name}: broken LZO block.") from error

    def _exactly(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise UserError(f"LocalFile cannot read {self._name}: the LZO file ends too soon.")
        return data


def _zip(path: str) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as packed:
        for info in packed.infolist():
            if not info.is_dir():
                with packed.open(info) as stream:
                    yield info.filename, stream


def _tar(path: str, archive: Archive) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, "r:gz" if archive is Archive.TAR_GZ else "r:") as packed:
        for info in packed:
            stream = packed.extractfile(info) if info.isfile() else None
            if stream:
                yield info.name, stream


def _checked(
    path: str, kind: FileFormat, found: Iterator[tuple[str, IO[bytes]]]
) -> Iterator[tuple[str, IO[bytes]]]:
    """Pass on the members of one format; an archive without any is a mistake."""
    others: list[str] = []
    some = False
    for name, stream in found:
        base = name.rsplit("/", 1)[-1]
        if base.startswith(".") or name.startswith("__MACOSX/"):
            continue
        if not base.lower().endswith(ENDINGS[kind]):
            others.append(name)
            continue
        some = True
        yield name, stream
    if others and not some:
        raise UserError(
            f"LocalFile cannot read {path}: no file in it ends with"
            f" {' or '.join(ENDINGS[kind])}. It holds {', '.join(others[:5])}."
        )
