"""What all readers of job files share: places, plain values, and how reading stops at a mistake."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable

from holdfast.errors import JobFileProblem, SourceLocation
from holdfast.model.tree import Block, Entry, Items, Node, Scalar

DEPTH_MAX = 50
"""How deep blocks and lists may nest: no job needs more, and Python's stack is finite."""

SIZE_MAX = 1_000_000
"""How many characters substitutions may add to a job."""

NODE_SIZE = 10
"""How many characters a node without text counts for."""

ROLES = ("source", "transform", "sink")
"""The top-level keys that hold plug-ins."""

At = Callable[[int], SourceLocation]
"""Tell the place of an offset in the text that is read."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class Unreadable(Exception):
    """Reading stops here.  Caught by `load.parse_job`, which puts the mistake into its report."""

    def __init__(self, place: SourceLocation, message: str) -> None:
        super().__init__(message)
        self.mistake = JobFileProblem(place, message)


class LineIndex:
    """Where the lines of a text start, to tell the place of any offset."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def at(self, offset: int) -> SourceLocation:
        """Return the place of an offset."""
        line = bisect_right(self._starts, offset)
        return SourceLocation(self.file, line, offset - self._starts[line - 1] + 1)


def plain(text: str, place: SourceLocation) -> Scalar:
    """Return the value of an unquoted word: true, false, null, a number or text.

    A number too large for 64 bits stays text, as in SeaTunnel; no digit is lost either way.
    """
    if text in _WORDS:
        return Scalar(_WORDS[text], text, place)
    found = _NUMBER.fullmatch(text)
    if found and (found[1] or found[2]):
        number = float(text)
        return Scalar(number if math.isfinite(number) else text, text, place)
    if found and len(text) <= 20 and -(2**63) <= int(text) < 2**63:
        return Scalar(int(text), text, place)
    return Scalar(text, text, place)


def merged(base: Block, *over: Block) -> Block:
    """Return the blocks as one: blocks under one key merge, of other values the last wins."""
    entries = {e.key: e for e in base.entries}
    for entry in (e for block in over for e in block.entries):
        old = entries.get(entry.key)
        if old and isinstance(old.node, Block) and isinstance(entry.node, Block):
            entries[entry.key] = Entry(entry.key, merged(old.node, entry.node), old.place)
        else:
            entries[entry.key] = entry
    return Block(tuple(entries.values()), base.place)


def size(node: Node, enough: int = SIZE_MAX) -> int:
    """Return how large a tree is; stop counting soon after `enough`."""
    match node:
        case Scalar(text=text):
            return NODE_SIZE + len(text)
        case Items(items=items):
            children = list(items)
        case Block(entries=entries):
            children = [e.node for e in entries]
    total = NODE_SIZE
    for child in children:
        if total > enough:
            break
        total += size(child, enough - total)
    return total


def quote(text: str) -> str:
    """Return what was found, short and on one line, as a message shows it."""
    shown = text if len(text) <= 40 else text[:37] + "..."
    return "'" + shown.replace("\n", " ") + "'"
