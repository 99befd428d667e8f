"""A real master in this process, its whole port included, for the tests of its API.

Workers are played: they say what a test wants them to say, over the leader's own ears.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from holdfast.api.app import App
from holdfast.api.audit import Audit
from holdfast.api.observe import ObservedBlobs, ObservedStore
from holdfast.api.route import AccessRole
from holdfast.api.sealing import SPEC
from holdfast.api.service import Api
from holdfast.api.status_board import StatusBoard
from holdfast.connect.registry import Registry
from holdfast.core.checkpoint import CheckpointDue, CheckpointKind
from holdfast.core.gather import Counts, StagedCommittable, TaskAck, WrittenRows
from holdfast.core.task import WorkerId
from holdfast.master.master import Master
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.ports import MasterSettings, Ports
from holdfast.model.secret import Secret
from holdfast.model.tree import Plain
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import SinkTables
from holdfast.process.failpoints import points_from_env
from holdfast.process.links import WorkerLinks
from holdfast.process.master_process import build_app
from holdfast.security.seal import Seal
from holdfast.store.contract import Store
from holdfast.store.open import open_store
from holdfast.wire.messages import BarrierAck, Heartbeat, MachineLoad, TaskReport

LOAD = MachineLoad(cpu=1.25, cores=4, memory=2**30, memory_total=2**32)
TOKEN = Secret("the admin's token, for tests only")
BATCH = """
env { job.name = small, job.mode = BATCH }
source { FakeSource { plugin_output = f, parallelism = 2, schema { fields { id = int } } } }
sink { Console { plugin_input = f } }
"""
STREAM = """
env { job.name = stream, job.mode = STREAMING, checkpoint.interval = 60000, parallelism = 1 }
source { FakeSource { plugin_output = f, schema { table = "shop.orders", fields { id = int } } } }
transform { Sql { plugin_input = f, plugin_output = g, query = "select id from f" } }
sink { LocalFile { plugin_input = g, path = "/tmp/nowhere", file_format_type = json } }
"""


@dataclass
class Served:
    """A master that leads, and ways to ask it."""

    api: Api
    app: App
    http: httpx2.AsyncClient
    folder: Path
    tokens: dict[AccessRole, str] = field(default_factory=dict)
    beats: int = 0

    async def get(self, path: str, **more: Any) -> Any:
        """Ask as an admin and return what is answered, which must be 200."""
        answer = await self.http.get(path, **more)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json()

    async def submit(self, job_id: str, text: str = STREAM, **more: Any) -> None:
        body = {"text": text, "job_id": job_id, **more}
        answer = await self.http.post("/api/submit", json=body)
        assert answer.status_code == 200, answer.text

    async def as_role(self, role: AccessRole | None) -> dict[str, str]:
        """Return the header of somebody of a role; none for nobody."""
        if role is None:
            return {"Authorization": ""}
        if role not in self.tokens:
            made = await self.app.access.give(f"a-{role}", role, 0.0)
            self.tokens[role] = made.token
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    async def beat(
        self, name: str = "W1", slots: int = 8, read: int = 10, written: int = 7,
        silent_s: float = 0.0, trouble: str = "",
    ) -> None:  # fmt: skip
        """Be a worker that runs whatever is placed on it."""
        leader = self.api.master.leader
        assert leader
        self.beats += 1
        here = WorkerId(name, f"{name}-1")
        held = tuple(
            TaskReport(k.task_key(t.id), t.attempt, progress=self.beats, read=read, written=written)
            for k in self.keepers()
            for t in k.state.tasks
            if t.live and t.place == here
        )
        await leader.hear(
            here.incarnation,
            Heartbeat(
                name,
                here.incarnation,
                self.beats,
                0,
                slots,
                (("zone", "a"),),
                held,
                LOAD,
                silent_s=silent_s,
                trouble=trouble,
            ),
        )

    async def runs(self, job_id: str) -> None:
        """Have a job placed and running."""
        while (await self.get(f"/api/jobs/{job_id}"))["status"] != "RUNNING" or any(
            t.status.value != "running"
            for k in self.keepers()
            if k.state.job == job_id
            for t in k.state.tasks
        ):
            await self.beat()
            await asyncio.sleep(0.01)

    async def checkpoint(self, job_id: str, rows: int = 100, staged: Plain = None) -> int:
        """Have a job complete one checkpoint, with something staged or not; return its number."""
        leader = self.api.master.leader
        assert leader
        number = 0
        for keeper in [k for k in self.keepers() if k.state.job == job_id]:
            await keeper.handle(CheckpointDue(CheckpointKind.PERIODIC, leader.desk.term))
            number = await self._answer(keeper, rows, staged)
        return number

    async def save(self, job_id: str, rows: int = 100) -> None:
        """Stop a job with a savepoint."""
        answer = await self.http.post(f"/api/jobs/{job_id}/savepoint")
        assert answer.status_code == 200, answer.text
        for keeper in [k for k in self.keepers() if k.state.job == job_id]:
            while keeper.state.checkpoints.pending is None:
                await asyncio.sleep(0.005)
            await self._answer(keeper, rows)
        while (await self.get(f"/api/jobs/{job_id}"))["status"] != "SAVEPOINT_DONE":
            await self.beat()
            await asyncio.sleep(0.01)

    async def _answer(self, keeper: PipelineKeeper, rows: int, staged: Plain = None) -> int:
        """Answer a pipeline's barriers as its tasks do; return the number of the checkpoint."""
        leader = self.api.master.leader
        pending = keeper.state.checkpoints.pending
        assert leader and pending
        number = pending.number
        while keeper.gathering is None or keeper.gathering.number != number:
            await asyncio.sleep(0.005)
        for task in keeper.state.tasks:
            assert task.place
            sink = keeper.state.sinks[0]
            made = (StagedCommittable(number, sink, staged),) if staged is not None else ()
            acked = TaskAck(
                number, task.id, task.attempt, task.place, (), made, False,
                counts=Counts(rows, (WrittenRows(sink, "shop.orders", rows, 8 * rows),)),
            )  # fmt: skip
            ack = BarrierAck(leader.desk.term, keeper.task_key(task.id), acked)
            await leader.hear(task.place.incarnation, ack)
        while keeper.state.commits.through != number:
            await asyncio.sleep(0.005)
        return number

    def keepers(self) -> Iterable[PipelineKeeper]:
        leader = self.api.master.leader
        assert leader
        return [p for j in leader.jobs.values() for p in j.pipelines.values()]


Test = Callable[[Served], Awaitable[None]]


def served(folder: Path, test: Test, *, store: str = "memory:", **more: Any) -> None:
    """Run a test against a master that leads."""

    async def run() -> None:
        await with_master(await open_store(store), folder, test, **more)

    asyncio.run(run())


async def with_master(store: Store, folder: Path, test: Test, **more: Any) -> None:
    """Be a master for one test."""
    registry, clock = Registry.load(), SystemClock()
    seal, context = Seal([TOKEN]), more.pop("context_path", "")
    name, url = more.pop("name", "M1"), more.pop("url", "http://m1")
    unseal = lambda text: seal.open(text, SPEC)  # noqa: E731
    settings = more.pop(
        "settings", MasterSettings(lease_s=30.0, tombstone_s=60.0, worker_lost_s=60.0)
    )
    blobs = ObservedBlobs(open_blobs(str(folder / "blobs")))
    tables = SinkTables(registry, unseal)
    board = StatusBoard(clock)
    links = WorkerLinks(TOKEN, lambda *_, **__: None, unseal, board.failed)
    ports = Ports(clock, blobs, tables, links, points_from_env({}, print), settings, board.wrote)
    observed = ObservedStore(store)
    master = Master(name, secrets.token_hex(4), observed, ports, url)
    api = Api(master, registry, TOKEN, board=board, seal=seal, **more)
    app = build_app(api, links, master, None, Audit(folder / "audit.log"), context)
    beside = [
        asyncio.ensure_future(w) for w in (master.run(), board.run(master), api.catalog.run())
    ]
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    headers = {"Authorization": f"Bearer {TOKEN.reveal()}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://m1", headers=headers
    ) as http:
        stands_by = name != "M1"
        while not stands_by and not (master.leader and master.leader.loaded):
            assert not beside[0].done()
            await asyncio.sleep(0.005)
        try:
            await test(Served(api, app, http, folder))
        finally:
            master.stop()
            await beside[0]
            for task in beside[1:]:
                task.cancel()
            await asyncio.gather(*beside[1:], return_exceptions=True)
            tables.close()
