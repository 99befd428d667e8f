"""Which files to read next: pure decisions over a listing and a position.

A position is one of
    {"table": 1, "after": "/data/b.csv"}      read up to this file of this table, in order
    {"marks": [{"ns": 17, "paths": [...]}]}   for each table: read all that changed before `ns`,
                                              and these that changed at that very moment
    {"done": true}                            a bounded source has been read whole
None of them grows with the number of files read.
"""

from collections.abc import Sequence
from itertools import takewhile

from holdfast.connect.source import END, IDLE, NoSlice, Slice
from holdfast.connectors.files.discovery import FoundFile
from holdfast.model.tree import Plain

BYTES_PER_ROW = 100
"""A guess, to fill a slice with about as many rows as it may have."""

ROWS_MAX = 1_000_000
"""About how many rows a slice takes where a checkpointing job names no number."""

Listing = Sequence[Sequence[FoundFile]]


def once(
    listing: Listing, names: Sequence[Sequence[str]], position: Plain, rows: int | None,
    checkpointing: bool,
) -> Slice | NoSlice:  # fmt: skip
    """Return the next files of a bounded source, about `rows` rows of them, or all at once."""
    if position is None and (rows is None or not checkpointing):
        return _everything(listing, names)
    return _in_order(listing, names, position, rows or ROWS_MAX)


def _everything(listing: Listing, names: Sequence[Sequence[str]]) -> Slice:
    return Slice(_content(listing, names), {"done": True})


def _in_order(
    listing: Listing, names: Sequence[Sequence[str]], position: Plain, rows: int
) -> Slice | NoSlice:
    """Return the next files by table and path, about `rows` rows of them, at least one file."""
    place = position if isinstance(position, dict) else {}
    if place.get("done"):
        return END
    if not any(listing):
        return _everything(listing, names)
    table, after = place.get("table", 0), place.get("after", "")
    assert isinstance(table, int) and isinstance(after, str)
    for number in range(table, len(listing)):
        left = [f for f in listing[number] if number > table or f.path > after]
        if left:
            taken = _within(left, rows)
            chosen: list[Sequence[FoundFile]] = [[] for _ in listing]
            chosen[number] = taken
            return Slice(_content(chosen, names), {"table": number, "after": taken[-1].path})
    return END


def as_they_come(
    listing: Listing, names: Sequence[Sequence[str]], position: Plain, rows: int | None,
    before_ns: int, earlier: Listing = (),
) -> Slice | NoSlice:  # fmt: skip
    """Return files that are new since the position, oldest first, up to the first to wait for.

    One that changed before `before_ns` need not be waited for, nor one that was moved there and
    was seen, just so, at an `earlier` look.  A look is not one moment: a file may arrive behind
    it and have an older time than one seen later in it.  It would never be read, had we gone on to
    the later one.  Whatever arrives after a look that saw a file is not older than that file.
    """
    marks = _marks(position, len(listing))
    chosen: list[Sequence[FoundFile]] = []
    for number, (files, mark) in enumerate(zip(listing, marks, strict=True)):
        new = sorted((f for f in files if _is_new(f, mark)), key=lambda f: (f.changed_ns, f.path))
        seen = frozenset(earlier[number]) if earlier else frozenset()
        whole = list(
            takewhile(lambda f: f.changed_ns < before_ns or (f.moved and f in seen), new)  # noqa: B023
        )
        chosen.append(_within(whole, rows) if rows is not None and whole else whole)
    if position is not None and not any(chosen):
        return IDLE
    after: Plain = {
        "marks": [_mark(files, mark) for files, mark in zip(chosen, marks, strict=True)]
    }
    return Slice(_content(chosen, names), after)


Mark = tuple[int, frozenset[str]]


def _marks(position: Plain, count: int) -> list[Mark]:
    stored = position.get("marks") if isinstance(position, dict) else None
    marks: list[Mark] = []
    for mark in stored if isinstance(stored, list) else []:
        assert isinstance(mark, dict)
        ns, paths = mark["ns"], mark["paths"]
        assert isinstance(ns, int) and isinstance(paths, list)
        marks.append((ns, frozenset(str(p) for p in paths)))
    return marks + [(0, frozenset())] * (count - len(marks))


def _is_new(file: FoundFile, mark: Mark) -> bool:
    ns, paths = mark
    return file.changed_ns > ns or (file.changed_ns == ns and file.path not in paths)


def _mark(read: Sequence[FoundFile], mark: Mark) -> Plain:
    ns, paths = mark
    last = max((f.changed_ns for f in read), default=ns)
    same = {f.path for f in read if f.changed_ns == last} | (paths if last == ns else frozenset())
    return {"ns": last, "paths": [*sorted(same)]}


def _within(files: Sequence[FoundFile], rows: int) -> list[FoundFile]:
    taken: list[FoundFile] = []
    for file in files:
        rows -= file.size // BYTES_PER_ROW + 1
        if taken and rows < 0:
            break
        taken.append(file)
    return taken


def _content(listing: Listing, names: Sequence[Sequence[str]]) -> Plain:
    return [
        {"files": [f.path for f in files], "partitions": list(columns)}
        for files, columns in zip(listing, names, strict=True)
    ]
