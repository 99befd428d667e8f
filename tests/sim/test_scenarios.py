"""Every fault window that is simulated, hit and held; each test is named after its window."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.scenarios.catalogue import scenarios_of, simulated
from tests.sim.scenarios.page import page
from tests.sim.scenarios.run import play_window
from tests.sim.scenarios.windows import GROUPS, NOT_YET, WINDOWS

WINDOWS_MIN = 190
SEED_WINDOWS_MIN = 54
"""None of those that were once known may go; more may come."""

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def _test_of(window: str) -> Callable[[], None]:
    def test() -> None:
        failed = [o for o in play_window(window) if not o.passed]
        told = "\n".join(f"{o.scenario}, seed {o.seed}: {o.told}" for o in failed)
        again = f"python -m tests.sim.scenarios {window} --story"
        assert not failed, f"{told}\nPlay it again: {again}"

    return test


for _window in simulated():
    globals()[f"test_{_window}_{scenarios_of(_window)[0].script.__name__}"] = _test_of(_window)


def test_no_window_is_lost() -> None:
    for group in GROUPS:
        known = [w.id for w in WINDOWS if w.group == group]
        assert known == [f"{group}{n + 1:02}" for n in range(len(known))]
    assert {w.group for w in WINDOWS} == set(GROUPS)
    assert len(WINDOWS) >= WINDOWS_MIN
    assert len([w for w in WINDOWS if w.seed]) >= SEED_WINDOWS_MIN


def test_the_page_has_a_line_for_each_window_and_counts_them() -> None:
    lines = PAGE.read_text().splitlines()
    shown = [
        found[1] for line in lines if (found := re.match(r"\| ([A-Z]\d\d)(?: \\\*)? \|", line))
    ]
    assert shown[: len(WINDOWS)] == [w.id for w in WINDOWS]
    counted = next(line for line in lines if line.startswith("| all |"))
    assert counted.split(" | ")[1] == str(len(WINDOWS))


def test_every_window_is_simulated_or_says_why_not() -> None:
    assert set(simulated()) | set(NOT_YET) == {w.id for w in WINDOWS}
    assert not set(simulated()) & set(NOT_YET)
    assert not {w.id for w in WINDOWS if w.seed} & set(NOT_YET)


def test_the_page_is_fresh() -> None:
    if PAGE.read_text() != page():
        pytest.fail("Stale: python -m tests.sim.scenarios --write docs/reliability.md")
