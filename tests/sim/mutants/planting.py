"""Planted bugs: each must be caught, by the invariant it breaks.

A mutant replaces a piece of the product while it is applied, says what it breaks, and names trials
that show it: random seeds, a crash at a named moment, or a script for one window.  A trial counts
only if the same run passes without the mutant.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from tests.sim.engine.plan import Plan, random_plan
from tests.sim.engine.run import run_seed
from tests.sim.engine.shrink import codes
from tests.sim.engine.stages import bounded


@dataclass(frozen=True)
class Trial:
    """Runs that may show a mutant: one plan with many seeds, or random plans (None)."""

    name: str
    seeds: range
    plan: Callable[[], Plan] | None = None


@dataclass(frozen=True)
class Mutant:
    """A planted bug.  `fires` are the invariants that may catch it."""

    name: str
    breaks: str
    fires: tuple[str, ...]
    trials: tuple[Trial, ...]
    apply: Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Caught:
    """What became of a mutant: what fired and where, or that it survived."""

    mutant: str
    breaks: str
    by: tuple[str, ...] = ()
    trial: str = ""
    seed: int = -1
    runs: int = 0

    @property
    def survived(self) -> bool:
        """Whether nothing fired that should."""
        return not self.by


REGISTER: list[Mutant] = []


def mutant(
    breaks: str, fires: str, *trials: Trial
) -> Callable[[Callable[[], Iterator[None]]], Callable[[], Iterator[None]]]:
    """Enter a mutant into the register; the function applies it, yields, and takes it back."""

    def enter(apply: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
        name = apply.__name__.replace("_", " ")
        REGISTER.append(Mutant(name, breaks, tuple(fires.split()), trials, contextmanager(apply)))
        return apply

    return enter


@contextmanager
def swapped(owner: Any, name: str, new: Any) -> Iterator[None]:
    """Replace an attribute for a while."""
    old = owner.__dict__[name]
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


def seeds(count: int, first: int = 0) -> Trial:
    """Random seeds."""
    return Trial("random seeds", range(first, first + count))


def crash(
    point: str, count: int = 1, action: str = "kill", stage: Callable[[], Plan] = bounded
) -> Trial:
    """A crash at a moment of a stage."""
    plan = lambda: replace(stage(), crashes={(point, count): action})  # noqa: E731
    return Trial(f"{action} {point}#{count} of {stage.__name__}", range(10), plan)


def scene(plan: Callable[[], Plan], count: int = 20) -> Trial:
    """A plan for one window."""
    return Trial((plan.__doc__ or plan.__name__).partition(".")[0], range(count), plan)


def catch(one: Mutant) -> Caught:
    """Try a mutant until it is caught."""
    runs = 0
    for trial in one.trials:
        for seed in trial.seeds:
            runs += 1
            fired = codes(_violations(trial, seed, one.apply())) & set(one.fires)
            if fired and not _violations(trial, seed, nullcontext()):
                by = tuple(sorted(fired))
                return Caught(one.name, one.breaks, by, trial.name, seed, runs)
    return Caught(one.name, one.breaks, runs=runs)


def _violations(trial: Trial, seed: int, applied: AbstractContextManager[None]) -> list[str]:
    plan = trial.plan() if trial.plan else random_plan(seed)
    with applied:
        return run_seed(seed, plan).violations
