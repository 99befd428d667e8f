"""What a task names in its answers: only what no complete checkpoint holds, and not without end."""

import logging

import pytest

from holdfast.connect.sink import Committable
from holdfast.core.gather import TaskAck
from holdfast.errors import UserError
from holdfast.wire.codec import encode
from holdfast.wire.messages import BarrierAck
from holdfast.worker import attempt
from holdfast.worker import attempt as unheld
from holdfast.worker.attempt import Unheld
from holdfast.worker.task_runner import StagedSlice
from tests.unit.worker.bench import STREAM, Bench, Play
from tests.unit.worker.plugins import Cellar, Count

WAITING_MAX = 60
ENDLESS = STREAM + "source { Count { slices = 1000, streaming = true } }\n"


@pytest.mark.spark
def test_an_answer_while_sixty_commits_wait_is_as_long_as_while_one_does(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "IDLE_WAIT_S", 0.01)

    async def part(bench: Bench) -> None:
        Count.arrived.append(0)
        bench.deploy(ENDLESS + "sink { Cellar { pieces = 200, blind = true } }")
        sizes: dict[int, int] = {}
        for number in range(1, WAITING_MAX + 2):
            Count.arrived.append(number)
            await bench.until(lambda number=number: len(Cellar.ended_s) == number)
            bench.worker.beat()
            await bench.until(lambda number=number: bench.held()[0].written == 10 * number)
            # Every checkpoint completes; none is committed.
            acked = await bench.acked(number, through=0, complete=number - 1)
            assert {s.created for s in acked.staged} == {number}
            sizes[number] = size(bench, acked)
        one, sixty = sizes[2], sizes[WAITING_MAX + 1]
        assert sixty <= 1.2 * one, f"{sixty:,} bytes while 60 commits wait, {one:,} while one does"
        assert Count.released == []

    play(part)


@pytest.mark.spark
def test_a_task_reads_no_further_while_no_checkpoint_holds_much_of_what_it_staged(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unheld, "NAMES_BYTES_PAUSE", 20_000)
    monkeypatch.setattr(attempt, "IDLE_WAIT_S", 0.01)

    async def part(bench: Bench) -> None:
        with caplog.at_level(logging.WARNING, "holdfast"):
            bench.deploy(ENDLESS + "sink { Cellar { pieces = 100, blind = true } }")
            await bench.until(lambda: any("reads no further" in m for m in caplog.messages))
        await bench.acked(1)  # perhaps before what was under way has landed; the next is after it
        whole = await bench.acked(2)
        written, progress = len(Cellar.writes), bench.held()[0].progress or 0
        assert len(whole.staged) == 100 * written, "1 has not completed"
        # The bound was passed by what was under way, and by no more.
        assert 20_000 <= size(bench, whole) < 20_000 + 3 * size(bench, whole) / written
        await bench.until(lambda: (bench.held()[0].progress or 0) > progress + 5)
        assert len(Cellar.writes) == written, "to wait is to get on, and stages nothing"
        await bench.acked(3, complete=2)
        await bench.until(lambda: len(Cellar.writes) > written)

    play(part)


def made(pieces: int) -> StagedSlice:
    return StagedSlice(
        {}, {"Sink[0]": [Committable(1, "t", 1, 1, f"piece-{n}") for n in range(pieces)]}
    )


def test_what_one_message_cannot_name_fails_the_task_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unheld, "NAMES_BYTES_PAUSE", 10_000)
    monkeypatch.setattr(unheld, "NAMES_BYTES_MAX", 20_000)
    batch = Unheld(periodic=False)
    batch.add(made(200))
    assert not batch.waits("t"), "nothing would free it before its end"
    assert len(batch.answer("t", 1, 0, [])) == 200
    batch.add(made(200))
    with pytest.raises(UserError, match=r"Task t has staged 400 pieces .*checkpoint\.interval"):
        batch.answer("t", 2, 0, [])
    assert len(batch.fresh) == 1, "it is dropped when the task ends"


def size(bench: Bench, acked: TaskAck) -> int:
    """Return how long an answer is on the wire."""
    return len(encode(BarrierAck(bench.term, bench.key, acked)))
