"""Run many seeds on all cores, in processes of their own.

Each process is started afresh with a hash seed of our choice, so that whatever depends on the order
of a set shows as two histories of one seed that differ.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from holdfast.core.checkpoint import CHECKPOINT
from holdfast.core.commit import COMMIT
from holdfast.core.completion import COMPLETION
from holdfast.core.election import ELECTION
from holdfast.core.job import JOB
from holdfast.core.pipeline import PIPELINE
from holdfast.core.task import TASK
from tests.sim.engine.run import run_seed

T = TypeVar("T")
R = TypeVar("R")

MACHINES = (TASK, CHECKPOINT, COMPLETION, COMMIT, PIPELINE, JOB, ELECTION)
BATCH = 10
HASH_SEED, OTHER_HASH_SEED = "1", "4242"

Row = tuple[str, str, str, str]
"""A row of a machine's table in words: machine, from, event, to."""


@dataclass(frozen=True)
class Outcome:
    """How one seed went."""

    seed: int
    violations: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class Batch:
    """How some seeds went, and the rows that this process has ever taken."""

    outcomes: tuple[Outcome, ...]
    rows: frozenset[Row]


def run_batch(seeds: Sequence[int]) -> Batch:
    """Run some random seeds, one after the other."""
    outcomes = []
    for seed in seeds:
        result = run_seed(seed)
        outcomes.append(Outcome(seed, tuple(result.violations), result.digest))
    return Batch(tuple(outcomes), rows_taken())


def rows_taken() -> frozenset[Row]:
    """Return the rows of all machines that were taken in this process."""
    return frozenset(
        (m.name, old.value, event.__name__, new.value)
        for m in MACHINES
        for old, event, new in m.taken
    )


def rows_known() -> frozenset[Row]:
    """Return all rows of all machines."""
    return frozenset(
        (m.name, old.value, event.__name__, new.value)
        for m in MACHINES
        for old, event, new in m.rows
    )


def run_seeds(seeds: Iterable[int], hash_seed: str = HASH_SEED) -> Iterator[Batch]:
    """Run seeds on all cores; yield how they went as they come in, in no certain order."""
    numbers = list(seeds)
    batches = [numbers[i : i + BATCH] for i in range(0, len(numbers), BATCH)]
    yield from spread(run_batch, batches, hash_seed)


def spread(work: Callable[[T], R], parts: Sequence[T], hash_seed: str = HASH_SEED) -> Iterator[R]:
    """Do work on all cores, in fresh processes; yield each result as it comes."""
    context = multiprocessing.get_context("spawn")
    cores = max(1, min(len(parts), os.cpu_count() or 1))
    with hashing(hash_seed), ProcessPoolExecutor(cores, mp_context=context) as pool:
        waiting: set[Future[R]] = {pool.submit(work, part) for part in parts}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


@contextmanager
def hashing(seed: str) -> Iterator[None]:
    """Let processes started meanwhile hash with this seed."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = seed
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
