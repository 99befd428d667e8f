"""Cut delimited text into blocks of whole rows, and find the rows of a block."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.connectors.files.formats.csv_quotes import (
    CR,
    LF,
    NONE,
    Dialect,
    LineCounter,
    Places,
    Scan,
    last_end,
)

LOOK_BYTES = 1000
"""How much of a row that is too long is kept, to be shown."""


@dataclass
class RowBlock:
    """Rows of a text.

    `at` is where they begin in the text, `masked` the data with escaped bytes replaced, `turns`
    where quotes open and close, and `early` where a quote closes though its field continues.
    `unclosed`: the last row has a quote that nothing closes, or ends with an escape.  `too_long`:
    this is the begin of one row of more bytes than a row may have, and `lines` is how many lines it
    takes in.
    """

    at: int
    data: bytes
    masked: bytes
    turns: Places
    early: Places
    unclosed: bool = False
    too_long: bool = False
    lines: int = 0

    @cached_property
    def rows(self) -> "RowPlaces":
        """Where the rows begin and end; blank ones are none."""
        return _rows_of(self)

    def without(self, count: int) -> "tuple[RowBlock, int]":
        """Return what is left without the first lines, and how many of them were not in here.

        A line break inside quotes ends no line.
        """
        if self.too_long:
            return replace(self, data=b"", masked=b""), count - 1
        # A block ends with a row: a CR at its very end is the end of one.
        ends = _ends(np.frombuffer(self.masked, np.uint8), self.turns, False, 0)
        if len(ends) < count:
            last = int(ends[-1]) + 1 if len(ends) else 0
            missing = count - len(ends) - int(last < len(self.data))
            return replace(self, data=b"", masked=b""), missing
        cut = int(ends[count - 1]) + 1
        return self._from(cut), 0

    def _from(self, cut: int) -> "RowBlock":
        number = int(np.searchsorted(self.turns, cut))
        return RowBlock(
            self.at + cut, self.data[cut:], self.masked[cut:], self.turns[number:] - cut,
            self.early[self.early >= cut] - cut, self.unclosed,
        )  # fmt: skip


@dataclass(frozen=True)
class RowPlaces:
    """Where rows begin, where their last field ends, and where the next line begins."""

    starts: Places
    stops: Places
    ends: Places

    def number_at(self, places: Places) -> Places:
        """Return which rows these places are in."""
        return np.searchsorted(self.starts, places, "right") - 1


def blocks(chunks: Iterable[bytes], dialect: Dialect, row_bytes_max: int) -> Iterator[RowBlock]:
    """Yield the rows of a text, about a chunk of them at a time.  The text begins with a row."""
    cutter = _Cutter(dialect, row_bytes_max)
    data: bytes | None = None
    for following in filter(None, chunks):
        if data:
            yield from cutter.take(data, following)
        data = following
    if data:
        yield from cutter.take(data, b"")


class _Cutter:
    """Holds what is not yet a whole row."""

    def __init__(self, dialect: Dialect, row_bytes_max: int) -> None:
        self._scan = Scan(dialect)
        self._row_bytes_max = row_bytes_max
        self._at = 0
        self._held: list[tuple[bytes, bytes, Places, Places]] = []
        self._size = 0
        self._long: RowBlock | None = None
        self._lines = LineCounter()  # of the row that is too long

    def take(self, data: bytes, following: bytes) -> Iterator[RowBlock]:
        """Yield the rows that end in a chunk; without a following one, all that is left."""
        scan, inside = self._scan, self._scan.inside
        masked = scan.mask(data)
        after = following[0] if following else LF
        turns, early = scan.feed(masked, after)
        cut = len(data) if not following else last_end(masked, turns, inside)
        if not cut:
            cut = _after_cr(masked, turns, inside, after)
        if not cut:
            self._hold(data, masked, turns, early)
            return
        if self._long:
            # What is too long ends with the first row end in here, not with the last.
            end = _first_end(masked, turns, inside) or cut
            yield self._ended(masked[:end])
            self._at += end
            number = int(np.searchsorted(turns, end))
            data, masked, cut = data[end:], masked[end:], cut - end
            turns, early = turns[number:] - end, early[early >= end] - end
            if not cut:
                self._hold(data, masked, turns, early)
                return
        number = int(np.searchsorted(turns, cut))
        head = (data[:cut], masked[:cut], turns[:number], early[early < cut])
        yield self._block([*self._held, head], not following and (scan.inside or scan.escaped))
        self._at += self._size + cut
        self._held, self._size = [], 0
        self._hold(data[cut:], masked[cut:], turns[number:] - cut, early[early >= cut] - cut)

    def _hold(self, data: bytes, masked: bytes, turns: Places, early: Places) -> None:
        if not data:
            return
        if self._long:
            self._lines.add(masked)
            self._at += len(data)
            return
        self._held.append((data, masked, turns, early))
        self._size += len(data)
        if self._size > self._row_bytes_max:
            begin = b"".join(data for data, *_ in self._held)[:LOOK_BYTES]
            self._lines = LineCounter()
            for _, masked, *_ in self._held:
                self._lines.add(masked)
            self._long = RowBlock(self._at, begin, begin, NONE, NONE, too_long=True)
            self._at += self._size
            self._held, self._size = [], 0

    def _ended(self, masked: bytes) -> RowBlock:
        found, self._long = self._long, None
        assert found
        self._lines.add(masked)
        found.lines = self._lines.begun
        return found

    def _block(self, parts: list[tuple[bytes, bytes, Places, Places]], unclosed: bool) -> RowBlock:
        if len(parts) == 1:
            return RowBlock(self._at, *parts[0], unclosed=unclosed)
        turns, early, at = [], [], 0
        for data, _, some, closing in parts:
            turns.append(some + at)
            early.append(closing + at)
            at += len(data)
        whole = b"".join(data for data, *_ in parts)
        same = all(data is masked for data, masked, *_ in parts)
        masked = whole if same else b"".join(masked for _, masked, *_ in parts)
        return RowBlock(
            self._at, whole, masked, np.concatenate(turns), np.concatenate(early), unclosed
        )


def _after_cr(masked: bytes, turns: Places, inside: bool, after: int) -> int:
    """Return where the last row ends of a chunk in which rows end with CR alone; 0 if none does."""
    if b"\r" not in masked:
        return 0
    ends = _ends(np.frombuffer(masked, np.uint8), turns, inside, after)
    return int(ends[-1]) + 1 if len(ends) else 0


def _first_end(masked: bytes, turns: Places, inside: bool) -> int:
    ends = _ends(np.frombuffer(masked, np.uint8), turns, inside, LF)
    return int(ends[0]) + 1 if len(ends) else 0


def _ends(codes: Any, turns: Places, inside: bool, after: int) -> Places:
    """Return the places of the last bytes of rows: LF, or CR that no LF follows."""
    lf = codes == LF
    cr = codes == CR
    cr[:-1] &= ~lf[1:]
    cr[-1] &= after != LF
    ends = np.flatnonzero(lf | cr)
    if len(turns) or inside:
        ends = ends[((np.searchsorted(turns, ends) & 1) == 1) == inside]
    return ends


def _rows_of(block: RowBlock) -> RowPlaces:
    codes = np.frombuffer(block.masked, np.uint8)
    # A block ends with a row: a CR at its very end is the end of one.
    ends = _ends(codes, block.turns, False, 0)
    starts = np.concatenate([[0], ends + 1])
    stops = np.concatenate([ends, [len(codes)]])
    after = np.concatenate([ends + 1, [len(codes)]])
    with_cr = (stops > starts) & (stops < len(codes))
    behind = np.flatnonzero(with_cr)
    behind = behind[(codes[stops[behind]] == LF) & (codes[stops[behind] - 1] == CR)]
    stops[behind] -= 1
    some = stops > starts
    return RowPlaces(starts[some], stops[some], after[some])
