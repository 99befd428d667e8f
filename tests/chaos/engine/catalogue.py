"""All scenarios."""

from holdfast.errors import UserError
from tests.chaos.engine import (
    windows_a,
    windows_b,
    windows_c,
    windows_d,
    windows_e,
    windows_f,
    windows_f2,
    windows_g,
    windows_p,
    windows_w,
)
from tests.chaos.engine.scene import SCENARIOS, Scenario

GROUPS = (
    windows_a, windows_b, windows_c, windows_d, windows_e, windows_f, windows_f2, windows_g,
    windows_p, windows_w,
)  # fmt: skip
"""Importing them has registered their scenarios."""


def chosen(store: str, only: list[str]) -> list[Scenario]:
    """Return the scenarios for a store: all of them, or those of some windows.

    A window may be named with a kind of sink: F05 is with every kind, F05-delta with one.
    """
    mine = sorted((s for s in SCENARIOS if store in s.stores), key=lambda s: s.key)
    unknown = [w for w in only if w not in {name for s in mine for name in (s.window, s.key)}]
    if unknown:
        raise UserError(f"There is no scenario for {', '.join(unknown)}.  See --list.")
    return [s for s in mine if not only or {s.window, s.key} & {*only}]


def beginning(scenarios: list[Scenario], first: str) -> list[Scenario]:
    """Return them from a window on ("": all)."""
    if not first:
        return scenarios
    at = next((n for n, s in enumerate(scenarios) if first in {s.window, s.key}), None)
    if at is None:
        raise UserError(f"There is no scenario for {first} among those chosen.  See --list.")
    return scenarios[at:]


def part(scenarios: list[Scenario], which: str) -> list[Scenario]:
    """Return one of several parts ("2/5": the second of five); each has scenarios of all groups."""
    if not which:
        return scenarios
    number, _, count = which.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise UserError(f"{which!r} is no part.  Write 2/5 for the second of five parts.")
    return scenarios[int(number) - 1 :: int(count)]


def rotating(store: str, turn: int, count: int) -> list[Scenario]:
    """Return a few scenarios of all groups: as turns pass, every one has its day.

    Those for each kind of sink are left out: see `with_sinks`.
    """
    mine = [s for s in chosen(store, []) if not s.sink]
    turns = -(-len(mine) // count)
    return mine[turn % turns :: turns]


def with_sinks(store: str, turn: int, count: int) -> list[Scenario]:
    """Return a few of the scenarios for each kind of sink: as turns pass, every one has its day.

    MariaDB is not on every machine, and to fetch it takes a network.
    """
    mine = [s for s in chosen(store, []) if s.sink and s.sink != "jdbc-mysql"]
    return [mine[(turn * count + n) % len(mine)] for n in range(count)]
