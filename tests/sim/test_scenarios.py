"""Every fault window that is simulated, hit and held; each test is named after its window."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.testing.sim.scenarios.catalogue import scenarios_of, simulated
from holdfast.testing.sim.scenarios.page import page
from holdfast.testing.sim.scenarios.run import play_window
from holdfast.testing.sim.scenarios.windows import NOT_YET, WINDOWS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def _test_of(window: str) -> Callable[[], None]:
    def test() -> None:
        failed = [o for o in play_window(window) if not o.passed]
        told = "\n".join(f"{o.scenario}, seed {o.seed}: {o.told}" for o in failed)
        again = f"python -m holdfast.testing.sim.scenarios {window} --story"
        assert not failed, f"{told}\nPlay it again: {again}"

    return test


for _window in simulated():
    globals()[f"test_{_window}_{scenarios_of(_window)[0].script.__name__}"] = _test_of(_window)


def test_all_windows_are_known() -> None:
    assert len(WINDOWS) == len({w.id for w in WINDOWS}) == 181
    assert len([w for w in WINDOWS if w.seed]) == 52


def test_every_window_is_simulated_or_says_why_not() -> None:
    assert set(simulated()) | set(NOT_YET) == {w.id for w in WINDOWS}
    assert not set(simulated()) & set(NOT_YET)
    assert not {w.id for w in WINDOWS if w.seed} & set(NOT_YET)


def test_the_page_is_fresh() -> None:
    if PAGE.read_text() != page():
        pytest.fail("Stale: python -m holdfast.testing.sim.scenarios --write docs/reliability.md")
