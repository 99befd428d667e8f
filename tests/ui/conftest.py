"""A browser for the tests here.  The long ones are marked `ui` and run by `make ui-test`."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ui: a long browser test, run by make ui-test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "ui" in config.option.markexpr:
        return
    long = [i for i in items if i.get_closest_marker("ui")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [i for i in items if i not in long]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium, or a skip that says why there is none.

    Not for the whole run: while Playwright is there, an event loop runs in this thread, and tests
    elsewhere start their own.
    """
    pytest.importorskip("playwright", reason="THE PAGES WERE NOT TESTED: playwright is missing")
    from tests.ui.browser import NoChromium, chromium

    with ExitStack() as stack:
        try:
            started = stack.enter_context(chromium())
        except NoChromium as error:
            pytest.skip(f"THE PAGES WERE NOT TESTED. {error}")
        yield started
