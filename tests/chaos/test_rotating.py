"""A rotating dozen of the chaos scenarios: as days pass, each has its turn.

CHAOS_ALL=1 runs all of them, CHAOS_STORE names the store (sqlite and etcd by turns otherwise).
"""

import asyncio
import os
import shutil
from datetime import date
from pathlib import Path

import pytest

from holdfast.testing.chaos.catalogue import chosen, rotating
from holdfast.testing.chaos.run import Runner

DOZEN = 12
STORES = ("etcd", "sqlite")


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_a_rotating_dozen() -> None:
    day = date.today().toordinal()
    store = os.environ.get("CHAOS_STORE") or STORES[day % len(STORES)]
    everything = os.environ.get("CHAOS_ALL") == "1"
    scenarios = chosen(store, []) if everything else rotating(store, day, DOZEN)
    folder = Path("build/chaos/test")
    shutil.rmtree(folder, ignore_errors=True)
    results = asyncio.run(Runner(store, folder).run(scenarios))
    bad = [f"{r.line()}: {r.flaws}" for r in results if not r.ok]
    assert not bad, "\n".join(bad)
