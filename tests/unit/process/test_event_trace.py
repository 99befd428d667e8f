"""The event log of a real process: lines that the oracle reads, flushed one by one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.gather import StagedCommittable, TaskAck
from holdfast.core.task import WorkerId
from holdfast.master.ports import MasterSettings, Ports
from holdfast.process.event_trace import FOLDER, Tracer, tracer_from_env
from holdfast.store.contract import Guard, Put
from holdfast.store.memory import Memory, MemoryStore
from holdfast.wire.describe import describe_ack
from holdfast.wire.messages import Barrier, BarrierAck, SourceEndReport, StopTask, TaskKey, ToWorker
from tests.oracle.events import (
    Ack,
    Boot,
    Event,
    Heard,
    Lease,
    Order,
    Proof,
    Refused,
    Try,
    read_events,
)

KEY = TaskKey("j", "i1", 1, "p1-t1")
BARRIER = Barrier(5, KEY, 2, 1, 1, 1)


@contextmanager
def tracing(folder: Path) -> Iterator[Tracer]:
    made = tracer_from_env({FOLDER: str(folder)}, "M1#7")
    assert made
    yield made
    made.close()


def read(folder: Path) -> list[Event]:
    return read_events(sorted(folder.glob("*.jsonl")))


def test_off_without_a_folder() -> None:
    assert tracer_from_env({}, "M1#1") is None


def test_answers_and_reports(tmp_path: Path) -> None:
    staged = (
        StagedCommittable(2, "Sink[0]", {"table": "t", "rows": 3}),
        StagedCommittable(2, "Sink[1]", "f"),
    )
    acked = TaskAck(2, "p1-t1", 1, WorkerId("W1", "W1#1"), (("s", {"next": 4}),), staged, False)
    with tracing(tmp_path) as tracer:
        tracer.note("ack", **describe_ack(BarrierAck(5, KEY, acked), BARRIER))
        tracer.received(SourceEndReport(5, KEY, 1, "s", "W1", "W1#1"))
    boot, ack, heard = read(tmp_path)
    assert isinstance(boot, Boot) and boot.known_as == "7"
    assert isinstance(ack, Ack) and isinstance(heard, Heard)
    assert ack.process == "M1#7" and ack.at <= heard.at
    assert ack.positions == (("s", {"next": 4}),)
    assert ack.staged == ((2, "Sink[0]", '{"rows":3,"table":"t"}'), (2, "Sink[1]", "f"))
    assert (heard.source, heard.worker) == ("s", "W1#1")


class Workers:
    def __init__(self) -> None:
        self.sent: list[ToWorker] = []

    def send(self, incarnation: str, message: ToWorker) -> None:
        self.sent.append(message)


def test_orders_pass_and_are_noted(tmp_path: Path) -> None:
    workers = Workers()
    nothing = object()
    ports = Ports(nothing, nothing, nothing, workers, nothing, MasterSettings())  # type: ignore[arg-type]
    order = StopTask(5, KEY, 2)
    with tracing(tmp_path) as tracer:
        tracer.ports(ports).workers.send("W1#1", order)
    assert workers.sent == [order]
    noted = read(tmp_path)[-1]
    assert isinstance(noted, Order)
    assert (noted.order, noted.term, noted.to, noted.attempt) == ("StopTask", 5, "W1#1", 2)


def test_tries_and_answers_of_the_store(tmp_path: Path) -> None:
    revision = asyncio.run(_elect(tmp_path))
    events = read(tmp_path)
    assert [type(e) for e in events] == [Boot, Lease, Try, Proof, Try, Refused, Proof]
    assert isinstance(events[3], Proof) and events[3].revision == revision
    assert isinstance(events[6], Proof) and events[6].guards == {"leader": revision}


async def _elect(folder: Path) -> int:
    with tracing(folder) as tracer:
        store = tracer.store(MemoryStore(Memory()))
        lease = await store.grant_lease(5)
        revision = await store.commit([Guard("leader", 0)], [Put("leader", b"M1", lease)])
        assert revision
        assert await store.commit([Guard("leader", 0)], [Put("leader", b"M2")]) is None
        await store.get("leader")
        await store.close()
    return revision
