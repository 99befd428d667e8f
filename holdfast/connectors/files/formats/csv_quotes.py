"""Follow quotes through delimited text, chunk by chunk, with numpy.

A quote opens a field only where a field begins.  Inside, two quotes are one character, and any
other quote closes the field.  A quote in the middle of a field that no quote opened is a character.

As long as every second quote is where a field begins and the others where one ends (or in a
pair), the number of quotes so far says where they are inside, and nothing is looped over.  Quotes
that break this rule (`5" pipe`, `"a" b`) are followed one by one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

LF, CR = 10, 13

Places = np.ndarray[Any, np.dtype[np.int64]]

NONE: Places = np.empty(0, np.int64)
NEUTRAL = ord("x")
"""What replaces an escaped byte where only quotes and ends of rows are looked for."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The bytes that structure a text: one between fields, and those that quote and escape."""

    delimiter: int
    quote: int | None
    escape: int | None = None


class Scan:
    """Where quotes open and close, for chunk after chunk of a text that begins outside of them."""

    def __init__(self, dialect: Dialect) -> None:
        self.inside = False
        """Whether the text fed so far ends inside of quotes."""

        self.escaped = False
        """Whether an escape is before the next chunk."""

        self._quote = dialect.quote
        self._escape = dialect.escape
        self._before = LF  # the last byte of the chunk before: a text begins like a row
        self._in_field = False  # that byte was a quote which is nothing but a character
        self._beside = np.zeros(256, np.bool_)  # what may stand before an opening quote
        self._beside[[dialect.delimiter, LF, CR]] = True
        if dialect.quote is not None:
            self._beside[dialect.quote] = True

    def mask(self, data: bytes) -> bytes:
        """Return a chunk in which escaped bytes mean nothing.  Once for each chunk, in order."""
        escape = self._escape
        if escape is None or not data:
            return data
        codes = np.frombuffer(data, np.uint8)
        found = np.flatnonzero(codes == escape)
        escaped = [0] if self.escaped else []
        if len(found):
            # Of escapes in a row, the first one escapes the second, the third the fourth.
            first = np.concatenate([[True], np.diff(found) > 1])
            begins = np.maximum.accumulate(np.where(first, np.arange(len(found)), 0))
            odd = (np.arange(len(found)) - begins) & 1
            if self.escaped and found[0] == 0:
                run = int(np.flatnonzero(np.append(first[1:], True))[0]) + 1
                odd[:run] ^= 1
            escaped += (found[odd == 0] + 1).tolist()
        self.escaped = bool(escaped) and escaped[-1] == len(data)
        places = [place for place in escaped if place < len(data)]
        if not places:
            return data
        masked = codes.copy()
        masked[places] = NEUTRAL
        return masked.tobytes()

    def feed(self, masked: bytes, after: int) -> tuple[Places, Places]:
        """Follow a chunk whose next byte is `after` (LF at the end of the text).

        Returns the places of the quotes that open or close, and of those among them that close
        though the field continues.
        """
        if self._quote is None or not masked:
            return NONE, NONE
        codes = np.frombuffer(masked, np.uint8)
        quotes = np.flatnonzero(codes == self._quote)
        before, self._before = self._before, masked[-1]
        if not len(quotes):
            self._in_field = False
            return NONE, NONE
        previous = codes[quotes - 1]
        following = codes[np.minimum(quotes + 1, len(codes) - 1)]
        if quotes[0] == 0:
            previous[0] = before
        if quotes[-1] == len(codes) - 1:
            following[-1] = after
        opening = slice(int(self.inside), None, 2)
        closing = slice(1 - int(self.inside), None, 2)
        regular = (
            self._beside[previous[opening]].all()
            and self._beside[following[closing]].all()
            and not (self._in_field and quotes[0] == 0)
        )
        if regular:
            self.inside ^= bool(len(quotes) & 1)
            self._in_field = False
            return quotes, NONE
        return self._follow(quotes, self._beside[previous], self._beside[following], len(codes))

    def _follow(
        self, quotes: Places, may_open: Any, may_close: Any, size: int
    ) -> tuple[Places, Places]:
        """Follow quotes of which some are characters, or close too early."""
        even = (np.arange(len(quotes)) & 1) == 0
        # The places to stop at, if quotes of even number stand outside, and if they stand inside.
        stops = (
            np.flatnonzero(np.where(even, ~may_open, ~may_close)),
            np.flatnonzero(np.where(even, ~may_close, ~may_open)),
        )
        characters: list[int] = []
        early: list[int] = []
        at, shift = 0, int(self.inside)
        if self._in_field and quotes[0] == 0:
            at = _run(quotes, 0)
            characters += range(at)
            shift ^= at & 1
        while at < len(quotes):
            there = stops[shift]
            number = int(np.searchsorted(there, at))
            if number == len(there):
                break
            at = int(there[number])
            if shift ^ (at & 1):
                early.append(int(quotes[at]))
                at += 1
            else:
                end = _run(quotes, at)
                characters += range(at, end)
                shift ^= (end - at) & 1
                at = end
        turns = np.delete(quotes, characters) if characters else quotes
        self.inside ^= bool(len(turns) & 1)
        last = len(quotes) - 1
        self._in_field = bool(characters) and characters[-1] == last and quotes[last] == size - 1
        return turns, np.array(early, np.int64)


def _run(quotes: Places, at: int) -> int:
    """Return the number of the first quote that does not stand right behind the one before."""
    at += 1
    while at < len(quotes) and quotes[at] == quotes[at - 1] + 1:
        at += 1
    return at


def last_end(masked: bytes, turns: Places, inside: bool) -> int:
    """Return where the last row that ends with LF ends; 0 if none does.

    `turns` are the places where quotes open and close, `inside` whether the text begins inside.
    """
    at = len(masked)
    while True:
        at = masked.rfind(b"\n", 0, at)
        if at < 0:
            return 0
        number = int(np.searchsorted(turns, at))
        if not inside ^ (number & 1):
            return at + 1
        if not number:
            return 0
        at = int(turns[number - 1])


def next_end(masked: bytes, turns: Places, inside: bool, at: int) -> int:
    """Return where the first row that ends with LF at or after a place ends; -1 if none does."""
    while True:
        at = masked.find(b"\n", at)
        if at < 0:
            return -1
        number = int(np.searchsorted(turns, at))
        if not inside ^ (number & 1):
            return at + 1
        if number == len(turns):
            return -1
        at = int(turns[number])


class LineCounter:
    """Counts ends of lines: LF, CR LF, or CR alone."""

    def __init__(self) -> None:
        self.count = 0
        self._last = LF

    def add(self, data: bytes) -> None:
        """Count on."""
        if not data:
            return
        self.count += data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
        if self._last == CR and data[0] == LF:
            self.count -= 1
        self._last = data[-1]

    @property
    def begun(self) -> int:
        """How many lines there are, the one counted that has no end."""
        return self.count + int(self._last not in (LF, CR))
