"""Random seeds: whatever happens, nothing is broken, and everything comes to rest."""

import pytest

from tests.sim.engine.swarm import run_seeds

SEEDS = 1000


@pytest.mark.timeout(1800)
def test_random_seeds_break_nothing() -> None:
    broken = {
        outcome.seed: outcome.violations
        for batch in run_seeds(range(SEEDS))
        for outcome in batch.outcomes
        if outcome.violations
    }
    assert broken == {}, "replay one: python -m tests.sim replay SEED"
