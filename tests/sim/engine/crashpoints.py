"""Crash before and after every durable step, one at a time and two at a time.

A plan that passes every label is run once in peace, to learn which moments there are.  Then it is
run again for each moment, with a kill or a long pause there; a run counts only if the moment came.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from tests.sim.engine import labels
from tests.sim.engine.run import run_seed
from tests.sim.engine.stages import STAGES
from tests.sim.engine.swarm import spread

WHENS = ("before", "after")
OCCURRENCES, OCCURRENCES_OF_MANY = 5, 3
SEEDS = (1, 2, 3)
PAIR_SEEDS = tuple(range(1, 25))
PAIR_STAGE = "everything"
CHUNK = 12

Crash = tuple[str, int, str]
"""A moment (`before:label`), which time it comes, and what happens then."""


@dataclass(frozen=True)
class Case:
    """One run: a stage, a seed and the crashes in it."""

    stage: str
    seed: int
    crashes: tuple[Crash, ...]

    def words(self) -> str:
        """Return what to give the command line to run just this."""
        points = " ".join(f"{point}#{count}={action}" for point, count, action in self.crashes)
        return f"--stage {self.stage} --seed {self.seed} {points}"


@dataclass(frozen=True)
class Verdict:
    """How a case went.  `missed` are the crashes whose moment never came."""

    case: Case
    violations: tuple[str, ...]
    missed: tuple[Crash, ...]

    @property
    def passed(self) -> bool:
        """Whether every crash happened and nothing was broken."""
        return not self.violations and not self.missed


def run_case(case: Case) -> Verdict:
    """Run one case."""
    plan = STAGES[case.stage]()
    armed = {(point, count): action for point, count, action in case.crashes}
    result = run_seed(case.seed, replace(plan, crashes=armed))
    struck = {
        (e["at_point"], e["count"]) for e in result.world.history.of("fault") if "at_point" in e
    }
    missed = tuple(c for c in case.crashes if c[:2] not in struck)
    return Verdict(case, tuple(result.violations), missed)


def run_chunk(cases: tuple[Case, ...]) -> tuple[Verdict, ...]:
    """Run some cases, one after the other."""
    return tuple(run_case(case) for case in cases)


def run_cases(cases: list[Case]) -> Iterator[Verdict]:
    """Run cases on all cores."""
    chunks = [tuple(cases[i : i + CHUNK]) for i in range(0, len(cases), CHUNK)]
    for verdicts in spread(run_chunk, chunks):
        yield from verdicts


def passed_points(stage: str, seed: int) -> dict[str, int]:
    """Return the moments of a stage that runs in peace, and how often each came."""
    return dict(sorted(run_seed(seed, STAGES[stage]()).world.hits.items()))


def single_cases() -> list[Case]:
    """Return a kill at several occurrences, and a pause at the first, of every moment."""
    cases = []
    for stage in STAGES:
        for point, times in passed_points(stage, SEEDS[0]).items():
            some = OCCURRENCES_OF_MANY if stage == PAIR_STAGE else OCCURRENCES
            for count in _spread_over(times, some):
                cases.append(Case(stage, SEEDS[0], ((point, count, "kill"),)))
            cases.append(Case(stage, SEEDS[0], ((point, 1, "pause"),)))
    return cases


def pair_cases() -> list[Case]:
    """Return every two moments of the stage that has them all, each with a kill."""
    points = passed_points(PAIR_STAGE, SEEDS[0])
    return [
        Case(PAIR_STAGE, SEEDS[0], ((one, 1, "kill"), (other, 1, "kill")))
        for one, other in combinations(points, 2)
    ]


def run_pairs(cases: list[Case]) -> Iterator[Verdict]:
    """Run pairs; where the first crash kept the second moment away, try again with other seeds."""
    for seed in PAIR_SEEDS:
        again = []
        for verdict in run_cases([replace(case, seed=seed) for case in cases]):
            if verdict.missed and not verdict.violations and seed != PAIR_SEEDS[-1]:
                again.append(verdict.case)
            else:
                yield verdict
        cases = again


@dataclass
class Coverage:
    """What was crashed at, and how it went: label -> before or after -> runs, failures."""

    runs: dict[tuple[str, str], int]
    failures: dict[tuple[str, str], int]

    def never(self) -> list[str]:
        """Return the moments that no run crashed at."""
        wanted = [(label, when) for label in sorted(labels.known()) for when in WHENS]
        return [f"{when}:{label}" for label, when in wanted if not self.runs.get((label, when))]

    def table(self) -> list[str]:
        """Return lines to print: a label each, with its runs before and after."""
        lines = [f"{'durable step':<30}{'before':>8}{'after':>8}  passed"]
        for label in sorted({name for name, _ in self.runs}):
            counts = [self.runs.get((label, when), 0) for when in WHENS]
            failed = sum(self.failures.get((label, when), 0) for when in WHENS)
            verdict = "yes" if all(counts) and not failed else f"NO ({failed} failed)"
            lines.append(f"{label:<30}{counts[0]:>8}{counts[1]:>8}  {verdict}")
        return lines


def coverage(verdicts: list[Verdict]) -> Coverage:
    """Count what single crashes covered."""
    runs: dict[tuple[str, str], int] = defaultdict(int)
    failures: dict[tuple[str, str], int] = defaultdict(int)
    for verdict in verdicts:
        for crash in verdict.case.crashes:
            if crash not in verdict.missed:
                when, _, label = crash[0].partition(":")
                runs[(label, when)] += 1
                failures[(label, when)] += bool(verdict.violations)
    return Coverage(dict(runs), dict(failures))


def _spread_over(times: int, some: int) -> list[int]:
    """Return the first, the last and some occurrences between them."""
    if times <= some:
        return list(range(1, times + 1))
    step = (times - 1) / (some - 1)
    return sorted({1 + round(i * step) for i in range(some)})
