"""All scenarios."""

from holdfast.errors import UserError
from holdfast.testing.chaos import (
    windows_a,
    windows_b,
    windows_c,
    windows_d,
    windows_e,
    windows_w,
)
from holdfast.testing.chaos.scene import SCENARIOS, Scenario

GROUPS = (windows_a, windows_b, windows_c, windows_d, windows_e, windows_w)
"""Importing them has registered their scenarios."""


def chosen(store: str, only: list[str]) -> list[Scenario]:
    """Return the scenarios for a store: all of them, or those of some windows."""
    mine = sorted((s for s in SCENARIOS if store in s.stores), key=lambda s: s.window)
    unknown = [w for w in only if w not in {s.window for s in mine}]
    if unknown:
        raise UserError(f"There is no scenario for {', '.join(unknown)}.  See --list.")
    return [s for s in mine if not only or s.window in only]


def rotating(store: str, turn: int, count: int) -> list[Scenario]:
    """Return a few scenarios of all groups: as turns pass, every one has its day."""
    mine = chosen(store, [])
    turns = -(-len(mine) // count)
    return mine[turn % turns :: turns]
