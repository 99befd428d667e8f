"""A worker looks at what a job names: one answer for each order, in time, whatever goes wrong."""

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import options
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.core.task import WorkerId
from holdfast.errors import Unavailable, UserError
from holdfast.model.table import Table
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec
from holdfast.wire.messages import LookAtJob, Looked
from holdfast.worker.attempt import WorkerRuntime
from holdfast.worker.looks import LOOKS_MAX, LookRunner

WAIT_S = 120.0


@options
class Told:
    """What the sink of these tests does when it is looked at."""

    then: str = "ends"  #: What it does.


class ToldSink(Sink[Told]):
    """A sink that a test holds up."""

    name = "Told"
    held: threading.Event
    at: threading.Semaphore

    def look(self, tables: Sequence[Table], spark: SparkSession) -> Iterator[str]:
        """Yield a problem, and then do as told."""
        yield f"Told: {', '.join(str(t.path) for t in tables)} with password=hush"
        if self.options.then == "hangs":
            self.at.release()
            assert self.held.wait(WAIT_S)
        if self.options.then == "breaks":
            raise ZeroDivisionError("a bug")
        if self.options.then == "is away":
            raise Unavailable("Told is away.")


@pytest.fixture
def registry() -> Registry:
    ToldSink.held, ToldSink.at = threading.Event(), threading.Semaphore(0)
    found = Registry.load()
    found.add(sys.modules[__name__])
    return found


def order(request: str, sink: str, within_s: float = WAIT_S, source: str = "") -> LookAtJob:
    source = source or "FakeSource { schema { table = t, fields { id = int } } }"
    text = f"env {{ job.mode = BATCH }}\nsource {{ {source} }}\nsink {{ {sink} }}\n"
    tree = parse_job(text, "job.conf", {}, None, CheckReport())
    assert tree
    return LookAtJob(7, request, encode_spec(JobSource("job.conf", tree)), within_s)


class Worker:
    """The looks of a worker, and what it has said."""

    def __init__(self, registry: Registry, session: Callable[[], Any]) -> None:
        self.said: queue.Queue[Looked] = queue.Queue()
        runner = WorkerRuntime(registry, session)
        self.looks = LookRunner(WorkerId("W1", "i1"), runner)

    def ask(self, *orders: LookAtJob) -> None:
        for one in orders:
            self.looks.begin(one, self.said.put)

    def answer(self) -> Looked:
        return self.said.get(timeout=WAIT_S)


def test_what_is_wrong_is_told_with_its_place(registry: Registry, spark: SparkSession) -> None:
    worker = Worker(registry, lambda: spark)
    worker.ask(
        order("r", "Told {}", source="LocalFile { path = nowhere, file_format_type = text }")
    )
    said = worker.answer()
    assert (said.term, said.worker, said.incarnation, said.request) == (7, "W1", "i1", "r")
    assert [(file, line) for file, line, _, _ in said.mistakes] == [
        ("job.conf", 2),
        ("job.conf", 3),
    ]
    assert "no such file or folder" in said.mistakes[0][3]
    assert "hush" not in said.mistakes[1][3], "no secret leaves a worker"
    assert said.failure == ""


def test_a_job_that_this_worker_does_not_know_is_a_mistake(
    registry: Registry, spark: SparkSession
) -> None:
    worker = Worker(Registry.load(), lambda: spark)
    worker.ask(order("r", "Told {}"))
    assert "Told" in worker.answer().mistakes[0][3]


def test_what_ends_a_look_is_told_with_what_was_found(
    registry: Registry, spark: SparkSession
) -> None:
    worker = Worker(registry, lambda: spark)
    worker.ask(order("bug", "Told { then = breaks }"))
    said = worker.answer()
    assert "a bug ended it: ZeroDivisionError('a bug')" in said.failure and len(said.mistakes) == 1
    worker.ask(order("away", "Told { then = is away }"))
    said = worker.answer()
    assert said.failure == "" and [m[3] for m in said.mistakes][-1] == "Told is away."


def test_spark_that_does_not_start_is_told(registry: Registry) -> None:
    def session() -> Any:
        raise UserError("There is no Java.")

    worker = Worker(registry, session)
    worker.ask(order("r", "Told {}"))
    assert "Spark does not start: There is no Java." in worker.answer().mistakes[-1][3]


def test_a_look_that_hangs_is_answered_in_time_once_and_counts_until_it_ends(
    registry: Registry, spark: SparkSession
) -> None:
    worker = Worker(registry, lambda: spark)
    hanging = [order(str(n), "Told { then = hangs }", within_s=2.0) for n in range(LOOKS_MAX)]
    worker.ask(*hanging, *hanging)
    said = [worker.answer() for _ in hanging]
    assert {s.request for s in said} == {o.request for o in hanging}
    assert all("did not end within 2 s" in s.failure for s in said)
    for _ in hanging:
        assert ToldSink.at.acquire(timeout=WAIT_S)
    worker.ask(order("more", "Told {}"))
    assert "busy with 4 other checks" in worker.answer().failure
    ToldSink.held.set()
    for thread in threads():
        thread.join(WAIT_S)
    assert worker.said.empty(), "each was answered once"
    worker.ask(order("again", "Told {}"))
    assert worker.answer().failure == ""


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("look-")]
