"""Find the rows of a block that do not fit their table, and make the others fit to be parsed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.connectors.files.formats.csv_blocks import RowBlock
from holdfast.connectors.files.formats.csv_quotes import Dialect, LineCounter, Places

CORRECT = "Correct the row"
PAD = f"{CORRECT}, set null_padding = true to read missing fields as null"
CUT = f"{CORRECT}, set strict_mode = false to leave surplus fields out"
KEEP = f"{CORRECT}, set strict_mode = false to keep that text"
CLOSE = "Close the quote, set quote_char to what quotes fields"


@dataclass(frozen=True, slots=True)
class RowRules:
    """What is asked of a row."""

    strict: bool = True
    padding: bool = False
    row_bytes_max: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Misfitting:
    """A row of a block that does not fit; `lines` counts those that it takes in."""

    number: int
    rule: str
    remedy: str = CORRECT
    lines: int = 1


@dataclass(frozen=True, slots=True)
class Sifted:
    """The rows that fit, as bytes to be parsed, with their numbers in the block; and the others."""

    data: bytes
    numbers: Places
    misfits: list[Misfitting]


def sift(block: RowBlock, width: int, dialect: Dialect, rules: RowRules) -> Sifted:
    """Return the rows of a block that have this many fields, or get them."""
    rows = block.rows
    between, fields = _fields(block, dialect)
    found: dict[int, Misfitting] = {}
    found.update(_by_width(fields, _ends_empty(block, dialect), width, rules))
    found.update(_too_long(block, rules))
    if rules.strict:
        for number in rows.number_at(block.early).tolist():
            rule = "text follows the closing quote of a field"
            found[number] = Misfitting(number, rule, KEEP)
    if block.unclosed:
        last = len(rows.starts) - 1
        lines = _lines(block, last)
        rule = "a quote is opened and never closed, or an escape_char ends the text"
        rule += f"; it takes in {lines:,} lines" if lines > 1 else ""
        found[last] = Misfitting(last, rule, CLOSE, lines)
    keep = np.ones(len(rows.starts), np.bool_)
    keep[list(found)] = False
    surplus = np.flatnonzero(keep & (fields > width))
    short = np.flatnonzero(keep & (fields < width))
    data = _assembled(block, keep, _cuts(block, between, surplus, width), short, fields, width,
                      bytes([dialect.delimiter]))  # fmt: skip
    return Sifted(data, np.flatnonzero(keep), [found[n] for n in sorted(found)])


def _lines(block: RowBlock, number: int) -> int:
    """Return how many lines a row takes in."""
    lines = LineCounter()
    lines.add(block.masked[int(block.rows.starts[number]) : int(block.rows.stops[number])])
    return lines.begun


def surplus_is_empty(block: RowBlock, width: int, dialect: Dialect) -> bool:
    """Say whether every row has one field more than the table, and nothing in it."""
    _, fields = _fields(block, dialect)
    return bool((fields == width + 1).all() and _ends_empty(block, dialect).all())


def width_of(block: RowBlock, dialect: Dialect) -> int:
    """Return how many fields the first row has."""
    return int(_fields(block, dialect)[1][0])


def _ends_empty(block: RowBlock, dialect: Dialect) -> Any:
    """Return for each row whether its last field is empty, and not its only one."""
    rows = block.rows
    last = np.frombuffer(block.masked, np.uint8)[rows.stops - 1]
    return (last == dialect.delimiter) & (rows.stops - rows.starts > 1)


def _fields(block: RowBlock, dialect: Dialect) -> tuple[Places, Places]:
    """Return where delimiters are, and how many fields each row has."""
    rows = block.rows
    between = np.flatnonzero(np.frombuffer(block.masked, np.uint8) == dialect.delimiter)
    if len(block.turns):
        between = between[(np.searchsorted(block.turns, between) & 1) == 0]
    first, last = np.searchsorted(between, rows.starts), np.searchsorted(between, rows.stops)
    return between, last - first + 1


def _by_width(
    fields: Places, ends_empty: Any, width: int, rules: RowRules
) -> dict[int, Misfitting]:
    found = {}
    if not rules.padding:
        for number in np.flatnonzero(fields < width).tolist():
            rule = f"it has {_count(int(fields[number]))}, and the table has {width}"
            found[number] = Misfitting(number, rule, PAD)
    if rules.strict:
        # One field more, and nothing in it, is what a delimiter at each row's end makes.
        surplus = (fields > width) & ~((fields == width + 1) & ends_empty)
        for number in np.flatnonzero(surplus).tolist():
            rule = f"it has {_count(int(fields[number]))}, and the table has {width}"
            found[number] = Misfitting(number, rule, CUT)
    return found


def _count(fields: int) -> str:
    return "1 field" if fields == 1 else f"{fields} fields"


def _too_long(block: RowBlock, rules: RowRules) -> dict[int, Misfitting]:
    if len(block.data) <= rules.row_bytes_max:
        return {}
    sizes = block.rows.stops - block.rows.starts
    return {
        number: too_long(number, rules.row_bytes_max, _lines(block, number))
        for number in np.flatnonzero(sizes > rules.row_bytes_max).tolist()
    }


def too_long(number: int, row_bytes_max: int, lines: int = 1) -> Misfitting:
    """Return what is wrong with a row of more bytes than a row may have."""
    rule = f"it has more than {row_bytes_max:,} bytes"
    rule += f" in {lines:,} lines; a quote may be open" if lines > 1 else ""
    return Misfitting(number, rule, f"{CORRECT}, raise max_line_size", lines)


def _cuts(block: RowBlock, between: Places, surplus: Places, width: int) -> dict[int, int]:
    """Return where the fields that a table has end, for rows with surplus ones."""
    first = np.searchsorted(between, block.rows.starts[surplus])
    places = between[first + width - 1] if len(surplus) else surplus
    return dict(zip(surplus.tolist(), places.tolist(), strict=True))


def _assembled(
    block: RowBlock, keep: Any, cuts: dict[int, int], short: Places, fields: Places, width: int,
    delimiter: bytes,
) -> bytes:  # fmt: skip
    """Return the rows that are kept, cut or padded to the width of the table."""
    rows, data = block.rows, block.data
    padded = set(short.tolist())
    changed = sorted({*cuts, *padded, *np.flatnonzero(~keep).tolist()})
    made: list[bytes] = []
    at = 0
    for number in changed:
        start, stop = int(rows.starts[number]), int(rows.stops[number])
        made.append(data[at:start])
        at = int(rows.ends[number])
        if keep[number]:
            made.append(data[start : cuts.get(number, stop)])
            if number in padded:
                made.append(delimiter * (width - int(fields[number])))
            made.append(b"\n")
    made.append(data[at:])
    return b"".join(made)
