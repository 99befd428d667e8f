"""Ten thousand answers at once cost no worker and no term; and the window can tell."""

from typing import Any

from holdfast.master.pipeline_keeper import Keeper
from holdfast.master.worker_registry import WorkerRegistry
from tests.sim.mutants.planting import swapped
from tests.sim.scenarios.run import play_window


def test_thousands_of_answers_cost_no_worker_and_no_term() -> None:
    assert [o.told for o in play_window("D23") if not o.passed] == []


def test_a_leader_without_time_that_takes_speakers_for_dead_is_found_out() -> None:
    def deaf(self: WorkerRegistry, *_: Any) -> None:
        """Take no sign of life."""

    with swapped(WorkerRegistry, "spoke", deaf):
        told = [o.told for o in play_window("D23") if not o.passed]
    assert told and all("restarted" in t for t in told), told


def test_a_proof_beside_a_write_of_its_own_is_found_out() -> None:
    async def beside(self: Keeper[Any]) -> bool:
        await self.desk.confirm(self.key, self.revision)
        return True

    with swapped(Keeper, "confirm", beside):
        told = [o.told for o in play_window("D23") if not o.passed]
    assert told and all("takeovers" in t for t in told), told
