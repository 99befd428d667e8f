"""What is shown stays, on real processes, whichever worker wakes late: run by `make mutants`."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.engine.catalogue import chosen
from tests.chaos.engine.run import Runner

pytestmark = [pytest.mark.spark, pytest.mark.chaos]


@pytest.mark.parametrize("window", ["P01-files", "P02-files"])
def test_what_is_shown_stays_whoever_wakes(window: str, tmp_path: Path) -> None:
    results = asyncio.run(Runner("sqlite", tmp_path).run(chosen("sqlite", [window])))
    bad = [f"{r.line()}: {r.flaws}" for r in results if not r.ok]
    assert not bad, "\n".join(bad)
