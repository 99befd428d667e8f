"""A crash before or after any durable step, at its first or a later time, breaks nothing."""

import pytest

from tests.sim.engine.crashpoints import (
    Case,
    coverage,
    passed_points,
    run_case,
    run_cases,
    single_cases,
)


@pytest.mark.timeout(1800)
def test_every_durable_step_survives_a_crash_before_and_after_it() -> None:
    verdicts = list(run_cases(single_cases()))
    failed = [f"{v.case.words()}: {v.violations or v.missed}" for v in verdicts if not v.passed]
    assert failed == [], "run one: python -m tests.sim crashpoints ..."
    assert coverage(verdicts).never() == [], "moments that no run crashed at"


def test_a_crash_whose_moment_never_comes_does_not_pass() -> None:
    verdict = run_case(Case("bounded", 1, (("before:no.such.step", 1, "kill"),)))
    assert not verdict.passed
    assert verdict.missed == (("before:no.such.step", 1, "kill"),)


def test_a_step_comes_before_and_after() -> None:
    points = passed_points("bounded", 1)
    assert points["before:job.submit"] == points["after:job.submit"] == 1
