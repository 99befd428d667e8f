"""Two slices under way on a real Spark: what overlaps, what counts in order, what is undone."""

import pytest

from holdfast.wire.messages import StopTask
from tests.unit.worker.bench import Bench, Play
from tests.unit.worker.plugins import Cellar, Count

pytestmark = pytest.mark.spark

ENV = "env { checkpoint.interval = 60000 }\n"
SLOW = "source { Count { slices = 5, sleep_ms = 150 } }\n"


@pytest.fixture
def overlapping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cellar, "overlaps", True)


async def all_once(bench: Bench) -> None:
    """See that a job of five slices has staged each once, in order, and says so."""
    await bench.until(bench.ends)
    acked = await bench.acked(1)
    assert acked.ended and [p for _, p in acked.positions] == [5]
    names = [one.content["content"] for one in acked.staged]  # type: ignore[index, call-overload]
    assert [value for name in names for value in Cellar.staged[str(name)]] == list(range(50))
    assert acked.counts.read == 50 and len(Cellar.staged) == 5


def test_the_next_slice_is_read_but_not_written_while_one_is(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENV + SLOW.replace("150", "400") + "sink { Cellar {} }")
        await all_once(bench)
        assert all(b >= e for b, e in zip(Cellar.begun_s[1:], Cellar.ended_s[:-1], strict=True))
        # The first slice was read to prepare the sink, the second when the first was staged.
        early = [r < e for r, e in zip(Count.read_s[2:], Cellar.ended_s[1:-1], strict=True)]
        assert sum(early) >= 2, "of three; a busy machine may miss one"

    play(part)


@pytest.mark.usefixtures("overlapping")
def test_a_sink_that_can_writes_the_next_slice_while_one_is_written(play: Play) -> None:
    async def part(bench: Bench) -> None:
        # Each slice takes both cores, so one that begins early still ends later.
        both = SLOW.replace("sleep_ms = 150", "sleep_ms = 400, parts = 2")
        bench.deploy(ENV + both + "sink { Cellar {} }")
        await all_once(bench)
        first, *later = (
            b < e for b, e in zip(Cellar.begun_s[1:], Cellar.ended_s[:-1], strict=True)
        )
        assert not first, "nobody knows yet that there is a second"
        assert sum(later) >= 2, "of three; a busy machine may miss one"

    play(part)


@pytest.mark.usefixtures("overlapping")
def test_a_slice_that_fails_takes_the_one_behind_it_along(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENV + SLOW + "sink { Cellar { fail_on = [3] } }")
        attempt = bench.worker.attempts[bench.key]
        await bench.until(lambda: attempt.over)
        failure = bench.held()[0].failure or ""
        assert failure.startswith("Sink[0]-Cellar (job.conf:")
        assert failure.endswith("): The cellar door sticks.")
        assert not Cellar.staged, "nothing of what was not acknowledged stays"

    play(part)


@pytest.mark.usefixtures("overlapping")
def test_a_slice_that_is_stopped_takes_the_one_behind_it_along(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENV + SLOW.replace("150", "1000") + "sink { Cellar {} }")
        attempt = bench.worker.attempts[bench.key]
        await bench.until(lambda: len(Cellar.writes) == 3)
        bench.worker.hear(StopTask(5, bench.key, 1))
        await bench.until(lambda: attempt.over, 20)
        assert not Cellar.staged and not attempt.tally.watched()

    play(part)


@pytest.mark.parametrize("sink", [False, True])
def test_a_slice_behind_a_malformed_one_is_read_anew_with_care(
    play: Play, monkeypatch: pytest.MonkeyPatch, sink: bool
) -> None:
    monkeypatch.setattr(Cellar, "overlaps", sink)

    async def part(bench: Bench) -> None:
        Count.malformed.update({2, 3})
        bench.deploy(ENV + SLOW + "sink { Cellar {} }")
        await all_once(bench)
        assert bench.held()[0].failure is None

    play(part)
