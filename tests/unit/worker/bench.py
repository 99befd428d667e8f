"""A worker on a bench, with tasks on a real Spark: the test is its leader."""

import asyncio
import itertools
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.gather import TaskAck
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    DeployTask,
    Heartbeat,
    SourceEndReport,
    TaskKey,
    TaskReport,
    ToLeader,
)
from holdfast.worker.agent import Worker, WorkerSettings
from holdfast.worker.attempt import WorkerRuntime
from tests.unit.worker import plugins

LIVES = itertools.count()
"""Spark remembers jobs by their group, so no two tests share a life."""
SOURCE = "Source[0]-Count"
STREAM = "env { job.mode = STREAMING, checkpoint.interval = 1000 }\n"
ENDLESS = STREAM + "source { Count { streaming = true } }\nsink { Cellar {} }"
SLEEPS = "source { Count { sleep_ms = 60000 } }\nsink { Cellar {} }"


class Bench:
    """A worker on a bench: what it says is kept, and the test is its leader."""

    def __init__(self, session: Callable[[], SparkSession], **settings: float) -> None:
        registry = Registry.load()
        registry.add(plugins)
        self.told: list[ToLeader] = []
        self.notes: list[str] = []
        self.worker = Worker(
            "w", "w#1", 2, {"zone": "north"}, WorkerRuntime(registry, session), self.told.append,
            WorkerSettings(**{"beat_s": 0.05, **settings}),
            note=lambda kind, **facts: self.notes.append(kind),
        )  # fmt: skip
        self.term = 5
        self.key = TaskKey("7", f"life{next(LIVES)}", 1, "p1-t1")

    def deploy(self, text: str, attempt: int = 1, **order: object) -> None:
        report = CheckReport()
        tree = parse_job(text, "job.conf", {}, None, report)
        report.raise_if_any()
        assert tree
        spec = encode_spec(JobSource("job.conf", tree))
        given = {"positions": None, **order}
        self.worker.hear(DeployTask(self.term, self.key, attempt, spec, **given))  # type: ignore[arg-type]

    def barrier(
        self, number: int, through: int = 0, attempt: int = 1, complete: int | None = None
    ) -> None:
        whole = through if complete is None else complete
        self.worker.hear(Barrier(self.term, self.key, attempt, number, through, whole))

    def acks(self) -> list[TaskAck]:
        return [m.acked for m in self.told if isinstance(m, BarrierAck)]

    def ends(self) -> list[SourceEndReport]:
        return [m for m in self.told if isinstance(m, SourceEndReport)]

    def held(self) -> tuple[TaskReport, ...]:
        return [m for m in self.told if isinstance(m, Heartbeat)][-1].held

    async def until(self, true: Callable[[], object], timeout_s: float = 150) -> None:
        deadline = time.monotonic() + timeout_s
        while not true():
            assert time.monotonic() < deadline, (self.held(), self.acks())
            await asyncio.sleep(0.01)

    async def acked(
        self, number: int, through: int = 0, attempt: int = 1, complete: int | None = None
    ) -> TaskAck:
        """Send a barrier as a leader does, and return the answer."""
        self.barrier(number, through, attempt, complete)
        await self.until(lambda: self.acks() and self.acks()[-1].number == number)
        return self.acks()[-1]


Play = Callable[..., None]
