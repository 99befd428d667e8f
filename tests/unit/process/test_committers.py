"""The leader's side of sinks: built from the record, one call at a time, nothing swallowed."""

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from holdfast import CommitId, Committable, Sink, Unavailable, UserError, options
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.connect.sink import CommitEvent, Leftovers
from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.gather import StagedCommittable
from holdfast.errors import OutcomeUnknown
from holdfast.master.ports import CommitHookRequest, CommitRequest, Incarnation, TableState
from holdfast.model.tree import Plain
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec
from holdfast.process import committers
from holdfast.process.committers import SinkTables


@options
class LedgerOptions:
    mood: str = "good"  #: What its calls do.


class Ledger(Sink[LedgerOptions]):
    """Writes down what is asked of it."""

    name = "Ledger"
    calls: ClassVar[list[object]] = []
    gate: ClassVar[threading.Event] = threading.Event()
    entered: ClassVar[threading.Event] = threading.Event()
    built: ClassVar[set[int]] = set()

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        Ledger.built.add(id(self))
        match self.options.mood:
            case "wrong":
                raise UserError("no such table")
            case "away":
                raise Unavailable("the table is away")
            case "buggy":
                raise KeyError("surprise")
            case "slow":
                Ledger.calls.append(("begin", identifier.number))
                Ledger.entered.set()
                assert Ledger.gate.wait(10)
        Ledger.calls.append((identifier, [c.content for c in committables]))

    @property
    def listens(self) -> bool:
        return self.options.mood in ("hears", "deaf")

    def listen(self, commit: CommitEvent, state: Plain) -> Plain:
        if self.options.mood == "deaf":
            raise Unavailable("nobody answers")
        Ledger.calls.append((self.context.stage, commit, state))
        return commit.identifier.number if commit.committables else state

    def finish(self, rows: Mapping[str, int]) -> None:
        Ledger.calls.append(("finish", self.context.stage, dict(rows)))

    def sweep(self, leftovers: Leftovers) -> None:
        Ledger.calls.append(("sweep", self.context.stage, leftovers))


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    yield
    Ledger.gate.set()
    for kept in (Ledger.calls, Ledger.built, Ledger.gate, Ledger.entered):
        kept.clear()


def registry() -> Registry:
    found = Registry.load()
    found.add(sys.modules[__name__])
    return found


def life(mood: str = "good", sinks: int = 1) -> Incarnation:
    written = f"Ledger {{ plugin_input = a, mood = {mood} }}\n" * sinks
    fake = "FakeSource { plugin_output = a, row.num = 1, schema.fields.n = int }"
    text = f"source {{ {fake} }}\nsink {{ {written} }}"
    tree = parse_job(text, "job.conf", {}, None, CheckReport())
    assert tree
    return Incarnation("7", "aa", encode_spec(JobSource("job.conf", tree)))


def order(of: Incarnation, number: int = 1) -> CommitRequest:
    content = {"version": 1, "table": "t", "rows": 2, "bytes": 3, "content": f"file-{number}"}
    sink = "Sink[0]-Ledger"
    return CommitRequest(
        of, f"7.aa.1.{sink}", number, sink, (StagedCommittable(number, sink, content),), None
    )


def test_a_commit_reaches_the_sink_of_the_record() -> None:
    async def run() -> None:
        real, one = SinkTables(registry()), order(life())
        assert await real.read(one) == TableState(0, 0)
        assert await real.publish(0, one)
        assert await real.publish(0, replace(one, number=2))

    asyncio.run(run())
    user = "7.aa.1.Sink[0]-Ledger"
    assert Ledger.calls == [
        (CommitId(user, 1), ["file-1"]),
        (CommitId(user, 2), ["file-1"]),
    ]
    assert len(Ledger.built) == 1, "it was built for each call"


@pytest.mark.parametrize(
    ("mood", "kind", "said"),
    [
        ("wrong", UserError, "no such table"),
        ("away", Unavailable, "the table is away"),
        ("buggy", OutcomeUnknown, "commit 1 to .*Ledger ended with KeyError: 'surprise'"),
    ],
)
def test_errors_keep_their_class_and_are_said(
    mood: str, kind: type[Exception], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        real = SinkTables(registry())
        for _ in range(3):
            with pytest.raises(kind, match=said):
                await real.publish(0, order(life(mood)))

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len([r for r in caplog.records if r.name == "holdfast"]) == 1, "said once, not thrice"


def test_one_call_at_a_time_even_if_its_caller_is_gone() -> None:
    async def run() -> None:
        real, slow = SinkTables(registry()), life("slow")
        first = asyncio.ensure_future(real.publish(0, order(slow, 1)))
        await asyncio.to_thread(Ledger.entered.wait)
        waiting = asyncio.ensure_future(real.publish(0, order(slow, 2)))
        await asyncio.sleep(0)
        first.cancel()
        waiting.cancel()
        third = asyncio.ensure_future(real.publish(0, order(slow, 3)))
        await asyncio.sleep(0.1)
        assert Ledger.calls == [("begin", 1)]
        Ledger.gate.set()
        assert await third

    asyncio.run(run())
    numbers = [c[0] if c[0] == "begin" else c[0].number for c in Ledger.calls]  # type: ignore[index]
    assert numbers == ["begin", 1, "begin", 3], "a call that had not begun was taken back"


def test_finish_reaches_the_named_sinks_and_sweep_all() -> None:
    async def run() -> None:
        real, two = SinkTables(registry()), life(sinks=2)
        await real.finish(two, {"Sink[1]-Ledger": {"t": 5}})
        await real.sweep(two)
        assert not real._built and not real._lines

    asyncio.run(run())
    assert Ledger.calls[0] == ("finish", "Sink[1]-Ledger", {"t": 5})
    swept = Leftovers("7", "aa")
    assert Ledger.calls[1:] == [
        ("sweep", "Sink[0]-Ledger", swept), ("sweep", "Sink[1]-Ledger", swept),
    ]  # fmt: skip


def test_a_job_that_cannot_be_planned_any_more_says_so() -> None:
    async def run() -> None:
        real = SinkTables(Registry.load())
        with pytest.raises(UserError, match="Ledger"):
            await real.publish(0, order(life()))
        with pytest.raises(UserError, match="Ledger"):
            await real.sweep(life())

    asyncio.run(run())


def test_the_sinks_of_many_jobs_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committers, "LIVES_KEPT", 2)

    async def run() -> None:
        real, one = SinkTables(registry()), life()
        for job in "abc":
            await real.finish(replace(one, job=job), {})
            await real.publish(0, order(replace(one, job=job)))
        assert len(real._built) == 2

    asyncio.run(run())


def heard(
    mood: str, kind: CheckpointKind = CheckpointKind.PERIODIC, state: str = "", **about: object
) -> CommitHookRequest:
    sinks = ("Sink[0]-Ledger", "Sink[1]-Ledger")
    content: Plain = {"version": 1, "table": "t", "rows": 2, "bytes": 3, "content": "c"}
    staged = (StagedCommittable(4, sinks[1], content),)
    order = CommitHookRequest(life(mood, sinks=2), "7.i1.1.", 5, kind, sinks, 99, state, staged)
    return replace(order, **about)  # type: ignore[arg-type]


def test_listeners_hear_of_their_own_commits_and_remember() -> None:
    async def part() -> None:
        port = SinkTables(registry())
        order = heard("hears", CheckpointKind.SAVEPOINT)
        assert await port.listens(order.life, order.sinks)
        state = await port.listen(order)
        assert state == '{"Sink[1]-Ledger":5}', "the first has nothing to say"
        again = heard("hears", CheckpointKind.FINAL, state, number=6, staged=())
        assert await port.listen(again) == state
        port.close()

    asyncio.run(part())
    committable = Committable(1, "t", 2, 3, "c")
    users = [CommitId(f"7.i1.1.Sink[{n}]-Ledger", 5, 99) for n in (0, 1)]
    assert Ledger.calls == [
        ("Sink[0]-Ledger", CommitEvent(users[0], (), savepoint=True), None),
        ("Sink[1]-Ledger", CommitEvent(users[1], (committable,), savepoint=True), None),
        ("Sink[0]-Ledger", CommitEvent(replace(users[0], number=6), (), final=True), None),
        ("Sink[1]-Ledger", CommitEvent(replace(users[1], number=6), (), final=True), 5),
    ]


def test_where_nobody_listens_nothing_is_asked_and_what_was_known_stays() -> None:
    async def part() -> None:
        port = SinkTables(registry())
        order = heard("good", state="{}", staged=None)
        assert not await port.listens(order.life, order.sinks)
        assert await port.listen(order) == "{}"
        port.close()

    asyncio.run(part())
    assert Ledger.calls == []


def test_a_listener_that_fails_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def part() -> None:
        port = SinkTables(registry())
        with pytest.raises(Unavailable, match="nobody answers"):
            await port.listen(heard("deaf"))
        port.close()

    asyncio.run(part())
    assert "what follows commit 5 (its listeners) failed: nobody answers" in caplog.text
