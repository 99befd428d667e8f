"""Make a failing run smaller: drop faults, jobs and wishes for as long as it still fails alike.

What is left is the story to read: a few durable writes and the faults between them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from tests.sim.engine.faults import Faults
from tests.sim.engine.plan import Plan
from tests.sim.engine.run import Result, run_seed

RUNS_MAX = 300
OTHER_SEEDS = 3


@dataclass
class Shrunk:
    """The smallest failing run that was found."""

    plan: Plan
    result: Result
    runs: int


def shrink(seed: int, plan: Plan) -> Shrunk:
    """Return a smaller run that breaks the same invariant; the given one if there is none."""
    best = run_seed(seed, plan)
    wanted = codes(best.violations)
    if not wanted:
        return Shrunk(plan, best, 1)
    runs, smaller = 1, True
    while smaller and runs < RUNS_MAX:
        smaller = False
        for candidate in _smaller(plan):
            # Dropping one thing shifts all later draws; another seed may fall into the same hole.
            for other in (best.seed, *range(OTHER_SEEDS)):
                runs += 1
                result = run_seed(other, candidate)
                if codes(result.violations) & wanted:
                    plan, best, smaller = candidate, result, True
                    break
            if smaller or runs >= RUNS_MAX:
                break
    return Shrunk(plan, best, runs)


def codes(violations: list[str] | tuple[str, ...]) -> set[str]:
    """Return the invariants that violations name, such as I44 or L3."""
    return {v.split(" ", 1)[0] for v in violations}


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans with one thing less, the largest things first."""
    if len(plan.jobs) > 1:
        for job in plan.jobs:
            yield replace(plan, jobs=tuple(j for j in plan.jobs if j != job))
    if plan.lives > 1:
        yield replace(plan, lives=plan.lives - 1)
    for i in range(len(plan.strikes)):
        yield replace(plan, strikes=plan.strikes[:i] + plan.strikes[i + 1 :])
    for i in range(len(plan.wishes)):
        yield replace(plan, wishes=plan.wishes[:i] + plan.wishes[i + 1 :])
    for point in plan.crashes:
        yield replace(plan, crashes={p: a for p, a in plan.crashes.items() if p != point})
    calm = Faults()
    for magnitude in fields(Faults):
        value = getattr(calm, magnitude.name)
        if getattr(plan.faults, magnitude.name) != value:
            yield replace(plan, faults=replace(plan.faults, **{magnitude.name: value}))
    for i, job in enumerate(plan.jobs):
        if len(job.sinks) > 1:
            jobs = (*plan.jobs[:i], replace(job, sinks=job.sinks[:1]), *plan.jobs[i + 1 :])
            yield replace(plan, jobs=jobs)
    if not plan.in_order:
        yield replace(plan, in_order=True)
