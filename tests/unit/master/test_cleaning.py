"""Jobs that are over are cleaned up a few at a time, however many of them are due at once."""

import asyncio
from dataclasses import replace
from pathlib import Path

from holdfast.connect.registry import Registry
from holdfast.core.job import JobRecord, JobStatus
from holdfast.errors import Unavailable
from holdfast.master.leader_store import CLEANING_MAX
from holdfast.master.master import Master
from holdfast.master.ports import Incarnation, MasterSettings, Ports
from holdfast.master.records import encode, job_key
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import SinkTables
from holdfast.process.failpoints import NoPoints
from holdfast.store.contract import Put
from holdfast.store.memory import Memory, MemoryStore
from holdfast.wire.messages import Heartbeat, HeartbeatAck, TaskKey, TaskReport, ToWorker

SETTINGS = MasterSettings(lease_s=30.0, campaign_s=0.01, tombstone_s=0.0, retry_s=0.01)
OVER = replace(JobRecord("0", "a", "token", "shop", "", 0), status=JobStatus.FINISHED)
JOBS = 10 * CLEANING_MAX
STUBBORN = {f"{number}" for number in range(2 * CLEANING_MAX)}


class Sweeps(SinkTables):
    """Counts who sweeps at the same time.  The stubborn cannot be swept before all others are."""

    def __init__(self) -> None:
        super().__init__(Registry())
        self.most = self.now = 0
        self.swept: set[str] = set()

    async def sweep(self, life: Incarnation) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        if life.job in STUBBORN and len(self.swept) < JOBS - len(STUBBORN):
            raise Unavailable("The sink does not answer.")
        self.swept.add(life.job)


class Nobody:
    def send(self, incarnation: str, message: ToWorker) -> None:
        raise AssertionError("there is nobody to send to")


def test_few_are_cleaned_up_at_a_time_and_none_waits_for_one_that_cannot_be(tmp_path: Path) -> None:
    async def run() -> Sweeps:
        store, tables = MemoryStore(Memory()), Sweeps()
        jobs = [replace(OVER, id=f"{number}") for number in range(JOBS)]
        await store.commit([], [Put(job_key(job.id), encode(job)) for job in jobs])
        ports = Ports(
            SystemClock(), open_blobs(str(tmp_path)), tables, Nobody(), NoPoints(), SETTINGS
        )
        master = Master("m", "i", store, ports)
        serving = asyncio.ensure_future(master.run())
        async with asyncio.timeout(30):
            while (await store.range("job/"))[0]:
                await asyncio.sleep(0.01)
        master.stop()
        await serving
        return tables

    tables = asyncio.run(run())
    assert len(tables.swept) == JOBS
    assert tables.most == CLEANING_MAX


class Hears:
    """A way to a worker that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[ToWorker] = []

    def send(self, incarnation: str, message: ToWorker) -> None:
        self.told.append(message)


def test_nothing_of_a_job_is_removed_while_a_worker_holds_a_task_of_it(tmp_path: Path) -> None:
    """What still runs could stage something behind the sweep, and nobody would ever remove it."""

    async def run() -> None:
        store, tables, workers = MemoryStore(Memory()), Sweeps(), Hears()
        for name in ("free", "held"):
            await store.commit([], [Put(job_key(name), encode(replace(OVER, id=name)))])
        settings = replace(SETTINGS, tombstone_s=0.2)
        ports = Ports(
            SystemClock(), open_blobs(str(tmp_path)), tables, workers, NoPoints(), settings
        )
        master = Master("m", "i", store, ports)
        serving = asyncio.ensure_future(master.run())
        async with asyncio.timeout(30):
            while not (master.leader and master.leader.loaded):
                await asyncio.sleep(0.001)
            leader = master.leader
            key = TaskKey("held", "a", 1, "p1-t1")
            holds = (TaskReport(key, 1, progress=1),)
            for beat in range(1, 30):
                await leader.hear("w-1", Heartbeat("w", "w-1", beat, 0, 4, (), holds))
                await asyncio.sleep(0.02)
            while "free" not in tables.swept:
                await asyncio.sleep(0.01)
            assert "held" not in tables.swept and await store.get(job_key("held"))
            stops = [m for m in workers.told if not isinstance(m, HeartbeatAck)]
            assert {type(m).__name__ for m in stops} == {"StopTask"}
            await leader.hear("w-1", Heartbeat("w", "w-1", 30, 0, 4, (), ()))
            while await store.get(job_key("held")):
                await asyncio.sleep(0.01)
        assert "held" in tables.swept
        master.stop()
        await serving

    asyncio.run(run())
