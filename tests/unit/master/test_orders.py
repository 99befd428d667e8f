"""What the leader answers when an order meets something that happens at the same moment."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.connect.registry import Registry
from holdfast.core.job import JobRecord, JobStatus
from holdfast.master.leader_store import LEADER
from holdfast.master.master import Master
from holdfast.master.ports import Incarnation, MasterSettings, Ports
from holdfast.master.records import encode, job_key
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import SinkTables
from holdfast.process.failpoints import NoPoints
from holdfast.store.contract import Delete, Guard, Put
from holdfast.store.memory import Memory, MemoryStore
from holdfast.wire.messages import ToWorker

SETTINGS = MasterSettings(lease_s=30.0, campaign_s=0.01, tombstone_s=0.0, retry_s=0.01)
OVER = replace(JobRecord("17", "a", "token", "shop", "", 0), status=JobStatus.FINISHED)


class SlowBurial(MemoryStore):
    """A store whose answer to the burial of a job comes late."""

    def __init__(self, data: Memory) -> None:
        super().__init__(data)
        self.buried, self.answer = asyncio.Event(), asyncio.Event()

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        revision = await super().commit(guards, changes)
        if any(isinstance(c, Delete) and c.key == job_key("17") for c in changes):
            self.buried.set()
            await self.answer.wait()
        return revision


class NoSinks(SinkTables):
    async def sweep(self, life: Incarnation) -> None:
        """There is nothing to sweep."""


class Nobody:
    def send(self, incarnation: str, message: ToWorker) -> None:
        raise AssertionError("there is nobody to send to")


def test_to_cancel_a_job_while_it_is_buried_is_answered_yes(tmp_path: Path) -> None:
    async def run() -> None:
        store = SlowBurial(Memory())
        await store.commit([], [Put(job_key("17"), encode(OVER))])
        ports = Ports(
            SystemClock(), open_blobs(str(tmp_path)), NoSinks(Registry()), Nobody(), NoPoints(),
            SETTINGS,
        )  # fmt: skip
        master = Master("m", "i", store, ports)
        serving = asyncio.ensure_future(master.run())
        await asyncio.wait_for(store.buried.wait(), 30)
        assert master.leader
        cancelling = asyncio.ensure_future(master.leader.cancel("17"))
        await asyncio.sleep(0.05)
        store.answer.set()
        await asyncio.wait_for(cancelling, 30)
        assert await store.get(LEADER), "the leader still leads"
        master.stop()
        await serving

    asyncio.run(run())
