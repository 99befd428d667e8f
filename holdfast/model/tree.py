"""A parsed job file: scalars, lists and blocks, each knowing its place.

All formats (HOCON, JSON, YAML, SQL) become this tree, so that checking and its error positions
are written once.  A dotted key may be nested (`row.num = 1` as a block `row` with an entry `num`)
or whole (`"row.num"`, and every dotted key deeper in a plug-in's block, where it may be a column's
name): `Block.find` and `Block.leaves` see through both, `Block.get` does not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.errors import SourceLocation

if TYPE_CHECKING:
    Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]
    """What a tree becomes when its places are dropped: exactly what JSON can hold."""
else:
    # Decoders of messages and blobs cannot follow a type that refers to itself.
    Plain = Any


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value.  `text` is what the file says, for values whose digits matter (decimals)."""

    value: str | int | float | bool | None
    text: str
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Items:
    """A list, in order."""

    items: tuple["Node", ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a block and what it holds; `place` is the key's."""

    key: str
    node: "Node"
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Block:
    """Keys in the order the file gives them; no key occurs twice."""

    entries: tuple[Entry, ...]
    place: SourceLocation

    def get(self, key: str) -> "Node | None":
        """Return the value of exactly this key, or None."""
        return next((e.node for e in self.entries if e.key == key), None)

    def find(self, path: str) -> Entry | None:
        """Return the entry for a dotted path, whether the file nested it or quoted it whole."""
        for entry in self.entries:
            if entry.key == path:
                return entry
            if isinstance(entry.node, Block) and path.startswith(entry.key + "."):
                found = entry.node.find(path[len(entry.key) + 1 :])
                if found:
                    return found
        return None

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, Entry]]:
        """Yield every (dotted path, entry) that is not itself a block of further entries."""
        for entry in self.entries:
            path = f"{prefix}{entry.key}"
            if isinstance(entry.node, Block) and entry.node.entries:
                yield from entry.node.leaves(path + ".")
            else:
                yield path, entry


Node = Scalar | Items | Block


def to_plain(node: Node) -> Plain:
    """Return the tree without its places."""
    match node:
        case Scalar(value=value):
            return value
        case Items(items=items):
            return [to_plain(item) for item in items]
        case Block(entries=entries):
            return {entry.key: to_plain(entry.node) for entry in entries}
