"""Divide the files of a slice among Spark's tasks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

from holdfast.connectors.files.formats.csv_quotes import LF, Dialect, Scan, next_end
from holdfast.model.tree import Plain

SPLIT_BYTES_MAX = 128 << 20
SPLIT_BYTES_LEAST = 4 << 20
"""Less is not worth a task of its own."""

TASKS_MAX = 256
"""Into more tasks no slice is divided whose files are read whole."""

CHUNK_BYTES = 4 << 20
LOOK_BYTES = 1 << 16
MARK = b"\xef\xbb\xbf"

Part = tuple[str, int, int]


def divide(files: Sequence[str], cores: int) -> tuple[list[Plain], int]:
    """Return what each task reads, as a list of [path, first byte, end], and the bytes of all.

    All tasks get about as much, in the order of the files, and each core gets as many tasks.
    """
    sizes = [Path(file).stat().st_size for file in files]
    total = sum(sizes)
    rounds = -(-total // (SPLIT_BYTES_MAX * cores))
    count = max(1, min(cores * rounds, total // SPLIT_BYTES_LEAST))
    splits: list[Plain] = []
    for first, end in pairwise(total * n // count for n in range(count + 1)):
        splits.append(_between(files, sizes, first, end))
    return splits, total


def by_file(files: Sequence[str]) -> tuple[tuple[Plain, ...], int]:
    """Return the numbers of the files that each task reads whole, and the bytes of all."""
    count = min(len(files), TASKS_MAX)
    numbers = range(len(files))
    size = sum(Path(file).stat().st_size for file in files)
    return tuple(list(numbers[n::count]) for n in range(count)), size


def parts_of(split: Plain) -> Iterator[Part]:
    """Yield path, first byte and end of each part of a split."""
    yield from cast(list[Part], split)


def numbered(split: Plain) -> tuple[int, list[Part]]:
    """Return the number of a split of rows, and its parts."""
    number, parts = cast(tuple[int, list[Part]], split)
    return number, parts


def at_rows(
    splits: Iterable[Plain], dialect: Dialect, whole: Iterable[str], skip: int = 0
) -> list[Plain]:
    """Return splits with their numbers, whose parts begin and end where rows do.

    Files in `whole` are not divided: the split that has the begin of one has all of it.  So it has
    the lines to skip at the begin of each file.
    """
    places: dict[str, set[int]] = {}
    parts = [list(parts_of(split)) for split in splits]
    for path, first, end in (part for some in parts for part in some):
        places.setdefault(path, set()).update((first, end))
    undivided = set(whole)
    moved: dict[str, dict[int, int]] = {}
    for path, own in places.items():
        size = max(own)
        inner = sorted(own - {0, size})
        least = 0
        for _ in range(skip if inner and skip > 1 and path not in undivided else 0):
            least = row_starts(path, [least + 1], dialect)[least + 1]
        found = (
            dict.fromkeys(inner, size) if path in undivided else row_starts(path, inner, dialect)
        )
        moved[path] = {0: 0, **{p: max(at, least) for p, at in found.items()}, size: size}
    made: list[Plain] = []
    for number, some in enumerate(parts):
        here: list[Plain] = [
            [path, moved[path][first], moved[path][end]]
            for path, first, end in some
            if moved[path][first] < moved[path][end]
        ]
        made.append([number, here])
    return made


def row_starts(path: str, places: Sequence[int], dialect: Dialect) -> dict[int, int]:
    """Return where the first row begins that does not begin before each place of a file.

    Quotes are followed from the file's begin: nothing else shows whether a line is inside of them.
    """
    if not places:
        return {}
    with Path(path).open("rb", buffering=0) as file:
        if dialect.quote is None and dialect.escape is None:
            return {place: _line_start(file, place) for place in places}
        return _follow(file, list(places), dialect)


def _follow(file: BinaryIO, left: list[int], dialect: Dialect) -> dict[int, int]:
    scan, found = Scan(dialect), {}
    base = len(MARK) if file.read(len(MARK)) == MARK else 0
    file.seek(base)
    data = file.read(CHUNK_BYTES)
    while data and left:
        following = file.read(CHUNK_BYTES)
        inside = scan.inside
        masked = scan.mask(data)
        turns, _ = scan.feed(masked, following[0] if following else LF)
        while left and left[0] - 1 < base + len(data):
            end = next_end(masked, turns, inside, max(left[0] - 1 - base, 0))
            if end < 0:
                break
            found[left.pop(0)] = base + end
        base, data = base + len(data), following
    return found | dict.fromkeys(left, base)


def _line_start(file: BinaryIO, place: int) -> int:
    """Return where the first line begins that does not begin before a place of a file."""
    at = place - 1
    file.seek(at)
    while read := file.read(LOOK_BYTES):
        found = read.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(read)
    return at


def _between(files: Sequence[str], sizes: Sequence[int], first: int, end: int) -> Plain:
    """Return the parts of files that lie between two places of all bytes, laid end to end."""
    parts: list[Plain] = []
    begins = 0
    for file, size in zip(files, sizes, strict=True):
        low, high = max(first - begins, 0), min(end - begins, size)
        if low < high:
            parts.append([file, low, high])
        begins += size
    return parts
