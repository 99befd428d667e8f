"""A master asks a worker to look: which one, how long, and what it says where that goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.service import Api
from holdfast.errors import Unavailable, UserError
from holdfast.master import looks as module
from holdfast.master.leader import Leader
from holdfast.master.looks import Look, LookRequests
from holdfast.model.secret import Secret
from holdfast.process.links import WorkerLinks
from holdfast.wire.messages import Heartbeat, LookAtJob, Looked, ToWorker
from tests.unit.api.test_service import leading


class Wires(WorkerLinks):
    """Links to workers that only note what they are sent."""

    def __init__(self, *connected: str) -> None:
        super().__init__(Secret("t"), lambda *_, **__: None)
        self.connected = list(connected)
        self.sent: list[tuple[str, LookAtJob]] = []

    def linked(self, incarnation: str) -> bool:
        return incarnation in self.connected

    def send(self, incarnation: str, message: ToWorker) -> None:
        assert isinstance(message, LookAtJob)
        self.sent.append((incarnation, message))

    def answers(self, look: Look, **facts: Any) -> None:
        _, order = self.sent[-1]
        self.looked(Looked(order.term, look.worker, look.incarnation, order.request, **facts))


async def hello(
    api: Api, name: str, *, looks: bool = True, leaving: bool = False, **tags: str
) -> None:
    assert api.master.leader
    said = Heartbeat(
        name, f"{name}-1", 1, 0, 2, tuple(tags.items()), (), None, leaving=leaving, looks=looks
    )
    await api.master.leader.hear(said.incarnation, said)


def asking(
    tmp_path: Path,
    connected: Sequence[str],
    test: Callable[[Api, Leader, Wires, LookRequests], Awaitable[None]],
) -> None:
    async def run(api: Api) -> None:
        wires = Wires(*(f"{name}-1" for name in connected))
        leader = await api.leader()
        await test(api, leader, wires, LookRequests(wires))

    leading(tmp_path, run)


def test_one_that_could_run_the_job_looks_and_its_answer_comes_once(tmp_path: Path) -> None:
    async def test(api: Api, leader: Leader, wires: Wires, looks: LookRequests) -> None:
        await hello(api, "W1", zone="a")
        await hello(api, "W2", zone="b")
        await hello(api, "W3", zone="b", looks=False)
        look = looks.begin(leader, "r", "spec", {"zone": "b"}, 60)
        assert looks.begin(leader, "r", "spec", {"zone": "b"}, 60) is look, "said twice at once"
        ((worker, order),) = wires.sent
        assert (worker, order.term, order.spec, order.within_s) == (
            "W2-1", leader.desk.term, "spec", 60,
        )  # fmt: skip
        assert not (await looks.wait("r", 0.01)).answer.done()
        # Another worker's answer, and one to another question, are none.
        wires.looked(Looked(order.term, "W1", "W1-1", "r"))
        wires.looked(Looked(order.term, "W2", "W2-1", "x"))
        assert not look.answer.done()
        wires.answers(look, mistakes=(("f", 1, 2, "wrong"),))
        wires.answers(look, failure="late")
        assert (await looks.wait("r", 1)).answer.result().mistakes == (("f", 1, 2, "wrong"),)
        assert look.answer.result().failure == ""

    asking(tmp_path, ["W1", "W2", "W3"], test)


def test_looks_are_spread_over_the_workers(tmp_path: Path) -> None:
    async def test(api: Api, leader: Leader, wires: Wires, looks: LookRequests) -> None:
        for name in ("W1", "W2"):
            await hello(api, name)
        for number in range(4):
            looks.begin(leader, str(number), "", {}, 60)
        assert [worker for worker, _ in wires.sent] == ["W1-1", "W2-1", "W1-1", "W2-1"]

    asking(tmp_path, ["W1", "W2"], test)


def test_a_worker_that_is_lost_or_silent_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_S", -0.9)  # a second is the least that is given

    async def test(api: Api, leader: Leader, wires: Wires, looks: LookRequests) -> None:
        await hello(api, "W1")
        lost = looks.begin(leader, "lost", "", {}, 60)
        wires.gone("W2-1")
        assert not lost.answer.done()
        wires.gone("W1-1")
        assert "it was lost in the middle" in (await looks.wait("lost", 5)).answer.result().failure
        looks.begin(leader, "silent", "", {}, 1)
        silent = (await looks.wait("silent", 10)).answer.result()
        assert silent.failure == "it did not answer within 1 s"

    asking(tmp_path, ["W1"], test)


def test_an_answer_is_kept_for_a_while_and_then_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_S", 0.05)

    async def test(api: Api, leader: Leader, wires: Wires, looks: LookRequests) -> None:
        await hello(api, "W1")
        look = looks.begin(leader, "r", "", {}, 60)
        wires.answers(look)
        assert looks.knows("r"), "the client's connection may have broken"
        while looks.knows("r"):
            await asyncio.sleep(0.01)

    asking(tmp_path, ["W1"], test)


def test_where_nobody_can_look_it_is_said_why(tmp_path: Path) -> None:
    async def test(api: Api, leader: Leader, wires: Wires, looks: LookRequests) -> None:
        with pytest.raises(Unavailable, match="just begun to lead"):
            looks.begin(leader, "r", "", {}, 60)
        leader.crew.since_s -= module.SETTLED_S
        with pytest.raises(UserError, match="no worker is connected"):
            looks.begin(leader, "r", "", {}, 60)
        await hello(api, "old", looks=False)
        await hello(api, "ending", leaving=True)
        with pytest.raises(
            UserError, match="the workers ending, old, each is draining or of an older"
        ):
            looks.begin(leader, "r", "", {}, 60)
        await hello(api, "W1", zone="a")
        with pytest.raises(UserError, match=r"tag_filter asks for zone = b.*W1"):
            looks.begin(leader, "r", "", {"zone": "b"}, 60)
        assert not wires.sent
        assert not looks.knows("r")

    asking(tmp_path, ["old", "ending", "W1"], test)


def test_too_many_looks_at_once_wait(tmp_path: Path) -> None:
    async def test(api: Api, leader: Leader, wires: Wires, looks: LookRequests) -> None:
        await hello(api, "W1")
        for number in range(module.GOING_MAX):
            last = looks.begin(leader, str(number), "", {}, 60)
        with pytest.raises(Unavailable, match="other checks"):
            looks.begin(leader, "more", "", {}, 60)
        wires.answers(last)
        looks.begin(leader, "more", "", {}, 60)

    asking(tmp_path, ["W1"], test)
