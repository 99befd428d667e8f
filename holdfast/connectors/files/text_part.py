"""A text to read, or a part of one: the chunks of its bytes, again and again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.connectors.files.formats.csv_quotes import Lines
from holdfast.connectors.files.recode import Recoding
from holdfast.connectors.files.unpack import Packing, texts
from holdfast.errors import Unavailable

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
        lines = Lines()
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
    """Yield each text in a file.  The first reading of one goes on where this stands."""
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
