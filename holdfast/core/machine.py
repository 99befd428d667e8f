"""State machines as tables: rows of (from, on, to), checked whenever a status may change.

A table is data: the simulation must take every row of it, and the diagrams in `docs/` are drawn
from it.  Late and repeated events are rows too; a move without a row is a bug and raises.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Protocol

Row = tuple[StrEnum, type, StrEnum]


class Event(Protocol):
    """What a step takes in.

    `label` names it in crash points and in the histories of the oracle, so it stays what it is
    when the class gets a better name.
    """

    label: ClassVar[str]


class TransitionTable:
    """A named table.  `taken` collects the rows that were used, for the test that asks for all."""

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name = name
        self.rows = tuple(rows)
        self.taken: set[Row] = set()
        assert len(set(rows)) == len(rows), f"{name} has a row twice"

    def check(self, old: StrEnum, event: object, new: StrEnum) -> None:
        """Accept a move that is a row of the table; anything else is a bug in a `step`."""
        row = (old, type(event), new)
        if row not in self.rows:
            raise AssertionError(f"{self.name}: {event} must not take {old} to {new}")
        self.taken.add(row)
