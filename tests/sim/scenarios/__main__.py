"""Play scenarios by hand, or write the page about them."""

import argparse
import sys
from pathlib import Path

from tests.sim.scenarios.catalogue import simulated
from tests.sim.scenarios.page import page
from tests.sim.scenarios.run import SEEDS, Outcome, play_window


def main(arguments: list[str]) -> int:
    """Play the named windows, or all; return 1 if one does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.scenarios")
    parser.add_argument("windows", nargs="*", help="window ids such as E13; all if none is given")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--story", action="store_true", help="print what happened")
    parser.add_argument("--write", type=Path, help="write the page about all windows here")
    asked = parser.parse_args(arguments)
    if asked.write:
        asked.write.write_text(page())
        return 0
    unknown = sorted(set(asked.windows) - set(simulated()))
    if unknown:
        parser.error(f"not simulated: {', '.join(unknown)}; known: {', '.join(simulated())}")
    outcomes = [
        outcome
        for window in asked.windows or simulated()
        for outcome in play_window(window, tuple(asked.seeds))
    ]
    for outcome in outcomes:
        _print(outcome, asked.story)
    failed = [o for o in outcomes if not o.passed]
    print(f"{len(outcomes)} plays, {len(failed)} failed")
    return 1 if failed else 0


def _print(outcome: Outcome, story: bool) -> None:
    if story:
        print(outcome.world.history.story())
    if story or not outcome.passed:
        print(outcome.window, outcome.scenario, "seed", outcome.seed, outcome.told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
