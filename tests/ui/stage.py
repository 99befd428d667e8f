"""A real master on a real port for browser tests, with workers that are played.

The keepers, the store, the API and the pages are the real ones; only the workers' side of the wire
is played, so that a test needs no Spark.  It runs in a thread of its own; a test talks to it from
outside, through the browser and through `Stage.do`.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from holdfast.api.route import AccessRole
from holdfast.core.gather import Counts, TaskAck, WrittenRows
from holdfast.core.task import WorkerId
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.process.master_process import open_port, server_for
from holdfast.wire.messages import BarrierAck, Heartbeat, MachineLoad, TaskReport
from tests.api.served import TOKEN, Served, served

BEAT_S = 0.2
START_S = 300.0
T = TypeVar("T")


def job_text(name: str, interval_ms: int = 60_000, sink: str = "") -> str:
    """Return a stream with one task.  Nothing is ever written: its workers are played."""
    sink = sink or 'LocalFile { plugin_input = g, path = "/tmp/nowhere", file_format_type = json }'
    return f"""
env {{ job.name = "{name}", job.mode = STREAMING, parallelism = 1
  checkpoint.interval = {interval_ms} }}
source {{ FakeSource {{ plugin_output = f
  schema {{ table = "shop.orders", fields {{ id = int }} }} }} }}
transform {{ Sql {{ plugin_input = f, plugin_output = g, query = "select id from f" }} }}
sink {{ {sink} }}
"""


@dataclass
class Player:
    """Workers that run whatever is placed on them.

    Tasks of jobs in `blocked` run but never answer a barrier; those in `failing` fail, each with
    the given words.  `speed` is how many rows a task reads in a second.  `silent`: for how long
    Spark has not answered on which worker.
    """

    stage: Served
    names: tuple[str, ...] = ("W1", "W2")
    slots: int = 8
    speed: int = 1_200
    blocked: set[str] = field(default_factory=set)
    failing: dict[str, str] = field(default_factory=dict)
    silent: dict[str, float] = field(default_factory=dict)
    beats: int = 0
    rows: dict[str, int] = field(default_factory=dict)

    async def play(self) -> None:
        """Beat and answer barriers until cancelled."""
        while True:
            leader = self.stage.api.master.leader
            if leader and leader.loaded:
                self.beats += 1
                for name in self.names:
                    await self._beat(name)
                for keeper in list(self.stage.keepers()):
                    await self._answer(keeper)
            await asyncio.sleep(BEAT_S)

    async def _beat(self, name: str) -> None:
        leader = self.stage.api.master.leader
        assert leader
        here = WorkerId(name, f"{name}-1")
        held = []
        for keeper in self.stage.keepers():
            job = keeper.state.job
            for task in keeper.state.tasks:
                if not (task.live and task.place == here):
                    continue
                rows = self.rows[job] = self.rows.get(job, 0) + int(self.speed * BEAT_S)
                held.append(
                    TaskReport(
                        keeper.task_key(task.id), task.attempt, self.failing.get(job), self.beats,
                        read=rows, written=rows * 9 // 10,
                    )
                )  # fmt: skip
        silent_s = self.silent.get(name, 0.0)
        hello = Heartbeat(
            name,
            here.incarnation,
            self.beats,
            0,
            self.slots,
            (("zone", "a"),),
            tuple(held),
            MachineLoad(1.25, 4, 3 * 10**9, 16 * 10**9),
            silent_s=silent_s,
            trouble=f"Spark has not answered for {silent_s:.0f} s." if silent_s else "",
        )
        await leader.hear(here.incarnation, hello)

    async def _answer(self, keeper: PipelineKeeper) -> None:
        leader, gathering, job = self.stage.api.master.leader, keeper.gathering, keeper.state.job
        if not leader or not gathering or job in self.blocked or job in self.failing:
            return
        for task in keeper.state.tasks:
            if task.id not in gathering.waiting or not task.place:
                continue
            rows = self.rows.get(job, 0) * 9 // 10
            written = (WrittenRows(keeper.state.sinks[0], "shop.orders", rows, 80 * rows),)
            acked = TaskAck(
                gathering.number, task.id, task.attempt, task.place, (), (), False,
                counts=Counts(rows, written),
            )  # fmt: skip
            ack = BarrierAck(leader.desk.term, keeper.task_key(task.id), acked)
            await leader.hear(task.place.incarnation, ack)


class Stage:
    """A master with its pages, in a thread."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.url = ""
        self.token = TOKEN.reveal()
        self._ready, self._failure = threading.Event(), ""
        self._more = more
        self._thread = threading.Thread(target=self._run, args=(folder,), daemon=True)

    def __enter__(self) -> "Stage":
        self._thread.start()
        assert self._ready.wait(START_S), "the master did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_S)

    def do(self, what: Callable[[Served], Awaitable[T]]) -> T:
        """Do something on the master's side, and return what came of it."""

        async def run() -> T:
            return await what(self.served)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(START_S)

    def submit(self, job_id: str, text: str) -> None:
        self.do(lambda s: s.submit(job_id, text))

    def until_buried(self, job_id: str) -> None:
        """Wait until a job's id is free again."""

        async def gone(master: Served) -> None:
            while any(k.state.job == job_id for k in master.keepers()):
                await asyncio.sleep(0.02)

        self.do(gone)

    def token_of(self, role: AccessRole) -> str:
        """Return a token of a role."""

        async def give(master: Served) -> str:
            return (await master.as_role(role))["Authorization"].removeprefix("Bearer ")

        return self.do(give)

    def _run(self, folder: Path) -> None:
        served(folder, self._hold, **self._more)

    async def _hold(self, master: Served) -> None:
        self.served, self.player = master, Player(master)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        port = open_port("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{port.getsockname()[1]}"
        server = server_for(master.app)
        serving = asyncio.ensure_future(server.serve(sockets=[port]))
        playing = asyncio.ensure_future(self.player.play())
        while not server.started:
            await asyncio.sleep(0.01)
        self._ready.set()
        await self._stop.wait()
        server.should_exit = True
        playing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await playing
        await serving
