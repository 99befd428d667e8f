"""Drive the simulator: random seeds, crash points, mutants.

python -m tests.sim seeds --seeds 5000 --first 0
python -m tests.sim replay 17
python -m tests.sim crashpoints [--pairs]
python -m tests.sim mutants
"""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.sim.engine import crashpoints
from tests.sim.engine.crashpoints import Case, Verdict
from tests.sim.engine.plan import random_plan
from tests.sim.engine.run import run_seed
from tests.sim.engine.shrink import shrink
from tests.sim.engine.stages import STAGES
from tests.sim.engine.swarm import OTHER_HASH_SEED, Outcome, Row, rows_known, run_seeds
from tests.sim.mutants import catalogue

TWICE = 200
SAY_S = 10.0
SHOWN = 5
STORY_LINES = 120
COMMAND = "python -m tests.sim"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if nothing is broken."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Simulate the control plane.")
    commands = parser.add_subparsers(dest="command", required=True)
    seeds = commands.add_parser("seeds", help="run random seeds on all cores")
    seeds.add_argument("--seeds", type=int, default=1000, help="how many")
    seeds.add_argument("--first", type=int, default=0, help="the first one")
    replay = commands.add_parser("replay", help="run one seed, and tell its story")
    replay.add_argument("seed", type=int)
    points = commands.add_parser("crashpoints", help="crash at every durable step")
    points.add_argument("--pairs", action="store_true", help="at every two of them")
    points.add_argument("--stage", choices=list(STAGES), help="run one case on this stage")
    points.add_argument("--seed", type=int, default=crashpoints.SEEDS[0])
    points.add_argument("at", nargs="*", help="before:LABEL#COUNT=kill, for one case")
    mutants = commands.add_parser("mutants", help="plant bugs; each must be caught")
    mutants.add_argument("--only", default="", help="those with this in their name")
    given = parser.parse_args(arguments)
    match given.command:
        case "seeds":
            return run_random(given.seeds, given.first)
        case "replay":
            return tell(given.seed)
        case "mutants":
            return plant(given.only)
        case _ if given.stage:
            return run_one_case(given.stage, given.seed, given.at)
        case _:
            return crash_pairs() if given.pairs else crash_singles()


class Progress:
    """Says now and then how far a long run is, and how fast."""

    def __init__(self, total: int, noun: str) -> None:
        self.total = total
        self.noun = noun
        self.done = 0
        self.began_s = self.said_s = time.monotonic()

    def add(self, count: int, broken: int) -> None:
        """Note that some more are done."""
        self.done += count
        if time.monotonic() - self.said_s > SAY_S or self.done == self.total:
            self.said_s = time.monotonic()
            pace = f"{self.per_minute():,.0f} {self.noun} a minute"
            print(f"{self.done:,} of {self.total:,}: {pace}, {broken} broken", flush=True)

    def per_minute(self) -> float:
        """Return the pace so far."""
        return self.done / max(0.001, time.monotonic() - self.began_s) * 60


def run_random(count: int, first: int) -> int:
    """Run random seeds, some of them twice, and show what is broken."""
    progress = Progress(count, "seeds")
    outcomes: dict[int, Outcome] = {}
    taken: set[Row] = set()
    for batch in run_seeds(range(first, first + count)):
        outcomes.update({o.seed: o for o in batch.outcomes})
        taken |= batch.rows
        progress.add(len(batch.outcomes), sum(bool(o.violations) for o in outcomes.values()))
    differ = unrepeatable(outcomes)
    broken = sorted(o.seed for o in outcomes.values() if o.violations)
    print(f"{len(taken)} of {len(rows_known())} rows of the machines' tables were taken.")
    print(f"{min(TWICE, count)} seeds run again with other hashes: {len(differ)} differ.")
    for seed in differ[:SHOWN]:
        print(f"  seed {seed} depends on the order of a set or a hash.")
    print(f"{count:,} seeds, {len(broken)} with violations.")
    for seed in broken[:SHOWN]:
        show(seed)
    return 1 if broken or differ else 0


def unrepeatable(outcomes: dict[int, Outcome]) -> list[int]:
    """Run some seeds again in processes with other hashes; return those that went otherwise."""
    every = max(1, len(outcomes) // TWICE)
    again = sorted(outcomes)[::every][:TWICE]
    return sorted(
        o.seed
        for batch in run_seeds(again, OTHER_HASH_SEED)
        for o in batch.outcomes
        if o.digest != outcomes[o.seed].digest
    )


def show(seed: int) -> None:
    """Print what a failing seed breaks, how to replay it, and the smallest story found."""
    small = shrink(seed, random_plan(seed))
    print(f"\nSeed {seed} breaks, and so does a smaller run ({small.runs} tried):")
    for violation in small.result.violations:
        print(f"  {violation}")
    print(f"Replay it: {COMMAND} replay {seed}\nThe smaller run: {small.plan}")
    print("\n".join(small.result.world.history.story().splitlines()[-STORY_LINES:]))


def tell(seed: int) -> int:
    """Run one seed and print its durable writes and faults."""
    result = run_seed(seed)
    print(random_plan(seed))
    print(result.world.history.story())
    for violation in result.violations:
        print(f"BROKEN {violation}")
    print(f"Seed {seed}: {len(result.violations)} violations, history {result.digest[:16]}.")
    return 1 if result.violations else 0


def crash_singles() -> int:
    """Crash once at every durable step, before and after it."""
    cases = crashpoints.single_cases()
    progress = Progress(len(cases), "crashes")
    verdicts: list[Verdict] = []
    for verdict in crashpoints.run_cases(cases):
        verdicts.append(verdict)
        progress.add(1, sum(not v.passed for v in verdicts))
    covered = crashpoints.coverage(verdicts)
    print("\n".join(covered.table()))
    for point in covered.never():
        print(f"NEVER HIT {point}")
    failed = _print_failed(verdicts)
    points = len(covered.runs)
    print(f"{points} crash points, {len(verdicts)} runs, {failed} failed.")
    return 1 if failed or covered.never() else 0


def crash_pairs() -> int:
    """Crash at every two durable steps in one run."""
    began_s = time.monotonic()
    cases = crashpoints.pair_cases()
    progress = Progress(len(cases), "pairs")
    verdicts: list[Verdict] = []
    for verdict in crashpoints.run_pairs(cases):
        verdicts.append(verdict)
        progress.add(1, sum(bool(v.violations) for v in verdicts))
    failed = _print_failed([v for v in verdicts if v.violations])
    missed = [v for v in verdicts if v.missed and not v.violations]
    for verdict in missed:
        print(f"not reached: {verdict.case.words()}")
    spent_s = time.monotonic() - began_s
    print(
        f"{len(verdicts):,} pairs in {spent_s:.0f} s: {failed} failed, {len(missed)} not reached."
    )
    return 1 if failed or missed else 0


def run_one_case(stage: str, seed: int, at: list[str]) -> int:
    """Run one case, as a failing one prints it, and tell its story."""
    crashes = []
    for words in at:
        point, _, rest = words.partition("#")
        count, _, action = rest.partition("=")
        crashes.append((point, int(count or 1), action or "kill"))
    verdict = crashpoints.run_case(Case(stage, seed, tuple(crashes)))
    print(verdict)
    return 0 if verdict.passed else 1


def _print_failed(verdicts: list[Verdict]) -> int:
    failed = [v for v in verdicts if not v.passed]
    for verdict in failed[:SHOWN]:
        print(f"FAILED {COMMAND} crashpoints {verdict.case.words()}")
        for text in verdict.violations or [f"not reached: {verdict.missed}"]:
            print(f"  {text}")
    return len(failed)


def plant(only: str) -> int:
    """Plant each bug and see that it is caught."""
    names = [name for name in catalogue.MUTANTS if only in name]
    found = list(catalogue.catch_all(names))
    print("\n".join(catalogue.table(found)))
    survivors = [c for c in found if c.survived]
    print(f"{len(found)} mutants, {len(survivors)} survived.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
