"""A rotating dozen of the chaos scenarios: as days pass, each has its turn on either store.

One more is of those that are struck with every kind of sink.

The turn is the day's number; the line printed first says how to run the same dozen on any day:
CHAOS_STORE names the store, CHAOS_TURN the turn.  CHAOS_ALL=1 runs all scenarios of the store.
"""

import asyncio
import os
import shutil
from datetime import date
from pathlib import Path

import pytest

from tests.chaos.engine.catalogue import chosen, rotating, with_sinks
from tests.chaos.engine.run import Runner

DOZEN = 12
STORES = ("etcd", "sqlite")


def the_turn() -> tuple[str, int]:
    """Return today's store and turn, unless they are given."""
    day = date.today().toordinal()
    store = os.environ.get("CHAOS_STORE") or STORES[day % len(STORES)]
    return store, int(os.environ.get("CHAOS_TURN") or day // len(STORES))


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_a_rotating_dozen(capsys: pytest.CaptureFixture[str]) -> None:
    store, turn = the_turn()
    everything = os.environ.get("CHAOS_ALL") == "1"
    scenarios = chosen(store, []) if everything else rotating(store, turn, DOZEN)
    scenarios += [] if everything else with_sinks(store, turn, 1)
    again = f"CHAOS_STORE={store} CHAOS_TURN={turn} pytest {Path(__file__).relative_to(Path.cwd())}"
    with capsys.disabled():
        print(f"\n{len(scenarios)} chaos scenarios; the same again: {again}", flush=True)
    folder = Path("build/chaos/test")
    shutil.rmtree(folder, ignore_errors=True)
    results = asyncio.run(Runner(store, folder).run(scenarios))
    bad = [f"{r.line()}: {r.flaws}" for r in results if not r.ok]
    assert not bad, "\n".join([again, *bad])
