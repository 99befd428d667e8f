"""All mutants, by name."""

from collections.abc import Iterator

from holdfast.testing.sim import (
    mutants_commit,
    mutants_drain,
    mutants_end,
    mutants_fence,
    mutants_life,
    mutants_lost,
    mutants_open,
    mutants_saved,
    mutants_shown,
)
from holdfast.testing.sim.mutants import REGISTER, Caught, catch
from holdfast.testing.sim.swarm import spread

MODULES = (
    mutants_end, mutants_commit, mutants_drain, mutants_life, mutants_lost, mutants_fence,
    mutants_open, mutants_saved, mutants_shown,
)  # fmt: skip
MUTANTS = {one.name: one for one in REGISTER}
assert len(MUTANTS) == len(REGISTER), "two mutants have one name"


def catch_named(name: str) -> Caught:
    """Try one mutant."""
    return catch(MUTANTS[name])


def catch_all(names: list[str]) -> Iterator[Caught]:
    """Try mutants on all cores."""
    yield from spread(catch_named, names)


def table(found: list[Caught]) -> list[str]:
    """Return lines to print: each mutant, what caught it, and where."""
    lines = [f"{'mutant':<41} {'caught by':<22} where"]
    for caught in sorted(found, key=lambda c: c.mutant):
        by = ", ".join(caught.by) or "NOTHING"
        where = f"{caught.trial}, seed {caught.seed}" if caught.by else f"{caught.runs} runs"
        lines.append(f"{caught.mutant:<41} {by:<22} {where}")
    return lines
