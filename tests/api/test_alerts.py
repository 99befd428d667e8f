"""Each alert rule fires when its trouble comes about, and none does while all is well.

The trouble is made on a real master, and Prometheus's own engine reads what that master answers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.api.observe import ObservedStore
from holdfast.core.checkpoint import CheckpointDue, CheckpointFailed, CheckpointKind
from holdfast.core.pipeline import PipelineFailed
from holdfast.core.task import TaskFailed
from holdfast.errors import Unavailable
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.ports import MasterSettings
from holdfast.process.clock import SystemClock
from holdfast.store.contract import Put
from holdfast.store.open import open_store
from tests.api.prometheus import checked, firing, promtool
from tests.api.served import STREAM, Served, served, with_master
from tools.debian import NoPackage

RULES = Path(__file__).parents[2] / "deploy" / "alerts.yaml"
PATIENT = MasterSettings(lease_s=100_000.0, tombstone_s=60.0, worker_lost_s=100_000.0)
STEADY = STREAM.replace("parallelism = 1", "parallelism = 1, job.retry.times = 20")

Trouble = Callable[[Served, "Clock"], Awaitable[None]]


class Clock:
    """The master's measuring clock, which a test may put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        monkeypatch.setattr(SystemClock, "now", lambda _: time.monotonic() + self.ahead_s)


@pytest.fixture(scope="module", autouse=True)
def tool() -> None:
    try:
        promtool()
    except NoPackage as error:
        pytest.skip(f"there is no promtool here: {error}")


def only(master: Served) -> PipelineKeeper:
    (keeper,) = master.keepers()
    return keeper


async def no_checkpoint_for_long(master: Served, clock: Clock) -> None:
    clock.ahead_s += 500.0


async def no_checkpoint_for_a_while(master: Served, clock: Clock) -> None:
    clock.ahead_s += 95.0


async def checkpoints_fail(master: Served, clock: Clock) -> None:
    keeper = only(master)
    for _ in range(3):
        await keeper.handle(CheckpointDue(CheckpointKind.PERIODIC, keeper.desk.term))
        pending = keeper.state.checkpoints.pending
        assert pending
        await keeper.handle(CheckpointFailed(pending.number, "nobody answers"))


async def restarts(master: Served, clock: Clock) -> None:
    for attempt in range(1, 7):
        keeper = only(master)
        task = keeper.state.tasks[0]
        assert task.place and task.attempt == attempt
        await keeper.handle(TaskFailed(task.id, attempt, task.place, "it broke"))
        await master.runs("17")


async def fails(master: Served, clock: Clock) -> None:
    await only(master).handle(PipelineFailed("the table refuses"))
    while (await master.get("/api/jobs/17"))["status"] != "FAILED":
        await master.beat()
        await asyncio.sleep(0.01)


async def the_store_is_slow(master: Served, clock: Clock) -> None:
    store = master.api.master.store
    assert isinstance(store, ObservedStore)
    slow = store._inner.commit

    async def commit(*given: Any) -> int | None:
        await asyncio.sleep(0.6)
        return await slow(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._inner, "commit", commit)
        await master.checkpoint("17", 300)


async def listeners_do_not_hear(master: Served, clock: Clock) -> None:
    async def silent(*_: Any) -> bool:
        raise Unavailable("The web server answers 503.")

    tables = master.api.master.ports.tables
    tables.listens = silent  # type: ignore[method-assign]
    await master.checkpoint("17", 200)
    clock.ahead_s += 70.0


async def a_spark_is_silent(master: Served, clock: Clock) -> None:
    await master.beat("W2", silent_s=7.0, trouble="Spark's Java process has not answered for 7 s.")


TROUBLES: dict[str, Trouble] = {
    "HoldfastCommitOverdue": listeners_do_not_hear,
    "HoldfastJobStalled": no_checkpoint_for_long,
    "HoldfastJobLate": no_checkpoint_for_a_while,
    "HoldfastCheckpointsFail": checkpoints_fail,
    "HoldfastJobRestarts": restarts,
    "HoldfastJobFailed": fails,
    "HoldfastSparkSilent": a_spark_is_silent,
    "HoldfastStoreSlow": the_store_is_slow,
}
OF_THE_CLUSTER = {"HoldfastNobodyLeads", "HoldfastNoWorkers", "HoldfastJobsSetAside"}


def test_every_rule_can_be_read_and_has_its_trouble_here() -> None:
    checked(RULES)
    rules = yaml.safe_load(RULES.read_text())
    named = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    assert named == TROUBLES.keys() | OF_THE_CLUSTER, "say here how a new alert comes about"


@pytest.mark.parametrize("alert", TROUBLES)
def test_an_alert_fires_of_its_trouble_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alert: str
) -> None:
    clock = Clock(monkeypatch)

    async def test(master: Served) -> None:
        await master.submit("17", STEADY)
        await master.runs("17")
        await master.checkpoint("17", 100)
        was = (await master.http.get("/metrics")).text
        assert firing(RULES, tmp_path, was, was) == "", "nothing fires while all is well"
        await TROUBLES[alert](master, clock)
        now = (await master.http.get("/metrics")).text
        assert firing(RULES, tmp_path, was, now, alert) == ""
        assert firing(RULES, tmp_path, was, now) != "", "the tool can tell"

    served(tmp_path, test, settings=PATIENT)


def test_alerts_of_the_cluster(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        without = (await master.http.get("/metrics")).text
        await master.beat()
        was = (await master.http.get("/metrics")).text
        assert firing(RULES, tmp_path, was, without, "HoldfastNoWorkers") == ""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(master.api, "leading", lambda: None)
            stands_by = (await master.http.get("/metrics")).text
        assert firing(RULES, tmp_path, was, stands_by, "HoldfastNobodyLeads") == ""
        assert firing(RULES, tmp_path, was, "", "HoldfastNobodyLeads") == ""

    served(tmp_path, test)


def test_damaged_records_raise_an_alert(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(master: Served) -> None:
        await master.beat()
        seen.append((await master.http.get("/metrics")).text)

    async def run() -> None:
        await with_master(await open_store("memory:"), tmp_path, look)
        store = await open_store("memory:")
        await store.commit([], [Put("job/bad", b"{}")])
        await with_master(store, tmp_path, look)

    asyncio.run(run())
    was, now = seen
    assert firing(RULES, tmp_path, was, now, "HoldfastJobsSetAside") == ""
