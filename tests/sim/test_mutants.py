"""Planted bugs are caught, each by an invariant that it breaks."""

import pytest

from tests.oracle.promises import PROMISES
from tests.sim.engine.faults import Faults
from tests.sim.engine.plan import Plan
from tests.sim.engine.run import run_seed
from tests.sim.engine.shrink import codes, shrink
from tests.sim.engine.world import JobSpec
from tests.sim.mutants.catalogue import MUTANTS, catch_all

MUTANTS_MIN = 40


@pytest.mark.timeout(1800)
def test_every_mutant_is_caught() -> None:
    found = list(catch_all(list(MUTANTS)))
    assert [c.mutant for c in found if c.survived] == []
    assert len(found) == len(MUTANTS) >= MUTANTS_MIN


def test_mutants_name_invariants_that_exist() -> None:
    named = {code for mutant in MUTANTS.values() for code in mutant.fires}
    assert named - set(PROMISES) <= {"E"}


def test_a_mutant_leaves_nothing_behind() -> None:
    before = run_seed(3).digest
    for mutant in MUTANTS.values():
        with mutant.apply():
            pass
    assert run_seed(3).digest == before


def test_a_failing_run_is_made_smaller() -> None:
    needed, idle = ("after:table.commit", 1), ("before:pipeline.HooksFinished", 3)
    plan = Plan(
        jobs=(JobSpec("j"), JobSpec("k", rows=4)),
        lives=2,
        faults=Faults(message_lost=0.01),
        crashes={needed: "kill", idle: "kill"},
    )
    with MUTANTS["commit without filter"].apply():
        small = shrink(0, plan)
    assert "I48" in codes(small.result.violations)
    assert (len(small.plan.jobs), small.plan.lives) == (1, 1)
    assert small.plan.faults.message_lost == 0.0
    assert small.plan.crashes == {needed: "kill"}
