"""One seed is one history, also in a process that hashes otherwise."""

import pytest

from tests.sim.engine.run import run_seed
from tests.sim.engine.swarm import HASH_SEED, OTHER_HASH_SEED, run_seeds

SEEDS = range(5000, 5200)


def digests(hash_seed: str) -> dict[int, str]:
    return {o.seed: o.digest for batch in run_seeds(SEEDS, hash_seed) for o in batch.outcomes}


@pytest.mark.timeout(1200)
def test_histories_do_not_depend_on_hashes() -> None:
    assert digests(HASH_SEED) == digests(OTHER_HASH_SEED)


def test_a_seed_runs_the_same_after_others() -> None:
    first = run_seed(7).digest
    run_seed(8)
    assert run_seed(7).digest == first


def test_other_seeds_give_other_histories() -> None:
    assert run_seed(7).digest != run_seed(9).digest
