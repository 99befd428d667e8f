"""Where no sink has a listener, a commit and its listeners' step are one write; nothing else is."""

import pytest

from holdfast.master.ports import Incarnation
from tests.sim.engine.lake import SimTables
from tests.sim.engine.run import run_seed

SEEDS = range(40)


def test_commits_that_nobody_listens_to_keep_every_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nobody(self: SimTables, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        facts = {"job": life.job, "incarnation": life.incarnation, "sinks": sinks}
        self.world.note("deaf", **facts)
        return False

    monkeypatch.setattr(SimTables, "listens", nobody)
    commits = 0
    for seed in SEEDS:
        result = run_seed(seed)
        assert result.violations == [], f"seed {seed}"
        assert "before:pipeline.HooksFinished" not in result.world.hits
        commits += result.world.hits.get("after:pipeline.Committed", 0)
    assert commits > len(SEEDS), "the runs have made commits"
