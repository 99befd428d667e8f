"""All mutants, by name."""

from collections.abc import Iterator

from tests.sim.engine.swarm import spread
from tests.sim.mutants import (
    commits,
    drains,
    ends,
    fences,
    lifecycle,
    lost_checkpoints,
    openings,
    saved_states,
    shown,
)
from tests.sim.mutants.planting import REGISTER, Caught, catch

MODULES = (
    ends, commits, drains, lifecycle, lost_checkpoints, fences,
    openings, saved_states, shown,
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
