"""A text to read, or a part of one, as UTF-8: one byte separates fields, and LF ends rows.

A delimiter of several bytes becomes a control character.  Where the text has that character, it
becomes a byte that UTF-8 never has; `restore` turns both back in values.  Bytes that are not of the
declared encoding become such a byte, too, and are found when a value is read.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connectors.files.formats.csv_quotes import LineCounter
from holdfast.connectors.files.unpack import Packing, texts
from holdfast.errors import Unavailable

WRONG, CONTROL, ENDED, RETURNED = 0xFE, 0xFF, 0xFD, 0xFC
"""Bytes that UTF-8 never has: for what is wrong, a control character, LF and CR."""

MARK = b"\xef\xbb\xbf"
_CONTROLS = (0x1F, 0x1E, 0x1D, 0x1C)


@dataclass(frozen=True, slots=True)
class Recoding:
    """How a text is recoded.  `delimiter` is empty where a line is one field."""

    delimiter: bytes
    row_end: bytes
    encoding: str | None
    """Python's name of it; None for UTF-8."""

    @property
    def between(self) -> int:
        """The byte that separates two fields afterwards."""
        if len(self.delimiter) == 1:
            return self.delimiter[0]
        return next(c for c in _CONTROLS if c not in self.delimiter + self.row_end)

    @property
    def plain(self) -> bool:
        """Whether delimiters and ends of rows are single bytes already."""
        return len(self.delimiter) == 1 and self.row_end == b"\n"

    @property
    def in_place(self) -> bool:
        """Whether every byte of a text stays where it is."""
        return self.encoding is None and len(self.delimiter) <= 1 and self.row_end == b"\n"

    def apply(self, chunks: Iterable[bytes], begin: bool = True) -> Iterator[bytes]:
        """Yield a text recoded; its first chunk is where it begins, unless `begin` says no."""
        if self.encoding:
            chunks = _decoded(chunks, self.encoding)
        if begin:
            chunks = _without_mark(chunks)
        return iter(chunks) if self.plain else self._swap(chunks)

    def restore(self, values: "pa.Array[Any]") -> "pa.Array[Any]":
        """Return values, as bytes, as they were before."""
        if len(self.delimiter) != 1:
            if self.delimiter:
                values = _replaced(values, bytes([self.between]), self.delimiter)
            values = _replaced(values, bytes([CONTROL]), bytes([self.between]))
        if self.row_end != b"\n":
            values = _replaced(values, b"\n", self.row_end)
            values = _replaced(values, bytes([ENDED]), b"\n")
            values = _replaced(values, bytes([RETURNED]), b"\r")
        return values

    def shown(self, row: bytes) -> str:
        """Return a row as people should see it."""
        values: Any = pa.array([row], pa.binary())
        found = self.restore(values)[0].as_py()
        return bytes(found).decode("utf-8", "replace")

    def _swap(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        table = bytearray(range(256))
        for byte in (CONTROL, WRONG, ENDED, RETURNED):
            table[byte] = WRONG
        swaps: dict[bytes, bytes] = {}
        if len(self.delimiter) != 1:
            table[self.between] = CONTROL
        if self.row_end != b"\n":
            table[0x0A], table[0x0D] = ENDED, RETURNED
            swaps[self.row_end.translate(table)] = b"\n"
        if len(self.delimiter) > 1:
            swaps[self.delimiter.translate(table)] = bytes([self.between])
        translated = (chunk.translate(table) for chunk in chunks)
        return _swapped(translated, swaps) if swaps else translated


def _swapped(chunks: Iterable[bytes], swaps: dict[bytes, bytes]) -> Iterator[bytes]:
    """Replace from left to right, the longer first; a chunk's end waits for the next chunk."""
    longest = max(map(len, swaps))
    pattern = re.compile(b"|".join(re.escape(s) for s in sorted(swaps, key=len, reverse=True)))
    held = b""
    for chunk in chunks:
        data = held + chunk
        safe = len(data) - (longest - 1)
        made, at = [], 0
        for match in pattern.finditer(data):
            if match.start() >= safe:
                break
            made += [data[at : match.start()], swaps[match[0]]]
            at = match.end()
        stop = max(at, safe, 0)
        made.append(data[at:stop])
        held = data[stop:]
        yield b"".join(made)
    if held:
        yield pattern.sub(lambda match: swaps[match[0]], held)


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(_HANDLER)
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogateescape")


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out a byte order mark at the begin."""
    begin = b""
    rest = iter(chunks)
    for chunk in rest:
        begin += chunk
        if len(begin) >= len(MARK) or not MARK.startswith(begin):
            break
    yield begin.removeprefix(MARK)
    yield from rest


def _replaced(values: "pa.Array[Any]", one: bytes, other: bytes) -> "pa.Array[Any]":
    arguments: Any = {"pattern": one, "replacement": other}
    return pc.replace_substring(values, **arguments)


def _wrong(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return chr(0xDC00 + WRONG), error.end


_HANDLER = "holdfast-wrong"
codecs.register_error(_HANDLER, _wrong)


CHUNK_BYTES = 4 << 20

Chunks = Iterable[bytes]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text, or a part of one: the file it is in, its place for people, and its chunks.

    `chunks` yields those of the part, as often as it is called, `begin` those of the whole text.
    `first` is the byte of the file at which a part begins.
    """

    path: str
    place: str
    chunks: Callable[[], Chunks]
    begin: Callable[[], Chunks]
    first: int = 0

    def line(self, at: int) -> int:
        """Return which line of the text begins at this place of the part."""
        lines = LineCounter()
        if self.first:
            for chunk in bytes_between(self.path, 0, self.first):
                lines.add(chunk)
        for chunk in self.chunks():
            lines.add(chunk[:at])
            at -= min(at, len(chunk))
            if not at:
                break
        return lines.count + 1


def part_of(path: str, first: int, end: int, recoding: Recoding) -> TextPart:
    """Return a part of a file whose bytes are the text."""
    size = Path(path).stat().st_size

    def chunks(low: int, high: int) -> Chunks:
        return recoding.apply(bytes_between(path, low, high), begin=not low)

    return TextPart(path, path, lambda: chunks(first, end), lambda: chunks(0, size), first)


def texts_in(path: str, packing: Packing, recoding: Recoding) -> Iterator[TextPart]:
    """Yield each text in a file.  The first reading of one continues from here."""
    for place, found in texts(path, packing):
        left = [found]

        def chunks(place: str = place, left: list[Iterator[bytes]] = left) -> Chunks:
            here = left.pop() if left else again(place)
            return recoding.apply(here)

        def again(place: str = place) -> Iterator[bytes]:
            for name, chunks in texts(path, packing):
                if name == place:
                    yield from chunks
                    return

        def begin(place: str = place) -> Chunks:
            return recoding.apply(again(place))

        yield TextPart(path, place, chunks, begin)


def bytes_between(path: str, first: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a file between two places."""
    with Path(path).open("rb", buffering=0) as file:
        file.seek(first)
        at = first
        while at < end:
            data = file.read(min(CHUNK_BYTES, end - at))
            if not data:
                raise Unavailable(f"{path} has become shorter while it was read.")
            yield data
            at += len(data)
