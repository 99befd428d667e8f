"""Slices on a real Spark: barriers between them, their pace, and how they are watched and ended."""

import asyncio
import time

import msgspec
import pytest
from pyspark.sql import SparkSession

from holdfast.wire.messages import HeartbeatAck, StopTask
from holdfast.worker import spark_monitor
from holdfast.worker.row_counts import measure, settle
from holdfast.worker.slice_pipeline import SliceSizer
from tests.unit.worker.bench import ENDLESS, SLEEPS, STREAM, Bench, Play
from tests.unit.worker.plugins import Cellar, Count

pytestmark = pytest.mark.spark

TWO_TASKS = (
    STREAM
    + """source {
  Count { plugin_output = a, sleep_ms = 60000 }
  Count { plugin_output = b, sleep_ms = 2000, slices = 1, streaming = true }
}
sink { Cellar { plugin_input = [a, b] } }"""
)


def limited(rows: int, sinks: str = "Cellar {}") -> str:
    env = f"env {{ read_limit.rows_per_second = {rows} }}\n"
    return f"{env}source {{ Count {{ plugin_output = a }} }}\nsink {{ {sinks} }}"


def test_a_barrier_waits_for_the_slice_and_the_slice_for_nobody(play: Play) -> None:
    async def part(bench: Bench) -> None:
        count = "Count { streaming = true, slices = 5, sleep_ms = 400 }"
        bench.deploy(f"{STREAM}source {{ {count} }}\nsink {{ Cellar {{}} }}")
        await bench.until(lambda: len(Cellar.writes) == 1)
        bench.barrier(1)
        assert not bench.acks(), "the slice is under way"
        await bench.until(bench.acks)
        acked = bench.acks()[0]
        assert [p for _, p in acked.positions] == [len(acked.staged)], "whole slices only"
        # Not a word from the leader from here on.
        await bench.until(lambda: len(Cellar.staged) == 5)

    play(part)


def test_tasks_have_pools_of_their_own_and_one_is_stopped_alone(play: Play) -> None:
    async def part(bench: Bench) -> None:
        first, second = bench.key, msgspec.structs.replace(bench.key, task="p1-t2")
        bench.deploy(TWO_TASKS)
        await bench.until(lambda: len(Cellar.writes) == 1)
        bench.key = second
        bench.deploy(TWO_TASKS)
        await bench.until(lambda: len(Cellar.pools) == 2)
        assert Cellar.pools == {"p1-t1": "7/p1-t1", "p1-t2": "7/p1-t2"}
        bench.worker.hear(StopTask(5, first, 1))
        await bench.until(lambda: [h.key for h in bench.held()] == [second])
        acked = await bench.acked(1)
        assert acked.task == "p1-t2" and len(acked.staged) == 1
        assert bench.held()[0].failure is None
        assert list(Cellar.staged.values()) == [list(range(10))]

    play(part)


def test_without_a_leader_a_spark_job_that_runs_is_cancelled(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(SLEEPS)
        attempt = bench.worker.attempts[bench.key]
        while not Cellar.writes:
            bench.worker.hear(HeartbeatAck(5))
            await asyncio.sleep(0.05)
        assert not attempt.over
        await bench.until(lambda: attempt.over, 20)
        assert bench.held()[0].failure == "no leader was in contact for too long"
        assert not Cellar.staged

    play(part, orphan_s=1.0)


def test_a_slice_that_stands_still_shows_no_progress(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_monitor, "LOOK_S", 0.1)

    async def part(bench: Bench) -> None:
        bench.deploy(SLEEPS)
        await bench.until(lambda: Cellar.writes)
        await asyncio.sleep(2)  # until Spark has told all there is to tell
        before = bench.held()[0].progress
        await asyncio.sleep(1)
        assert bench.held()[0].progress == before

    play(part)


def test_a_long_slice_that_gets_on_shows_progress(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_monitor, "LOOK_S", 0.1)

    async def part(bench: Bench) -> None:
        bench.deploy(
            "source { Count { slices = 1, sleep_ms = 300, parts = 10 } }\nsink { Cellar {} }"
        )
        await bench.until(lambda: Cellar.writes)
        seen = set()
        while not Cellar.staged:
            seen.add(bench.held()[0].progress)
            await asyncio.sleep(0.02)
        assert len(seen) >= 3, "the leader must not take it for one that hangs"

    play(part)


def test_a_read_limit_counts_rows_once_however_many_sinks_there_are(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    paced: list[int] = []
    after = SliceSizer.after

    def noted(self: SliceSizer, rows: int, size: int, took_s: float, allowed: int | None) -> float:
        paced.append(rows)
        return after(self, rows, size, took_s, allowed)

    monkeypatch.setattr(SliceSizer, "after", noted)

    async def part(bench: Bench) -> None:
        sinks = "Cellar { plugin_input = a }  Cellar { plugin_input = a }"
        bench.deploy(limited(10, sinks))
        await bench.until(lambda: len(Cellar.staged) == 6)
        assert max(paced) == 10, "not 20, once for each sink"
        assert set(Count.budgets) == {10}

    play(part)


def test_a_task_that_rests_answers_and_counts_as_alive(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(limited(1))
        await bench.until(lambda: Cellar.staged)
        began_s = time.monotonic()
        acked = await bench.acked(1)
        assert len(acked.staged) == 1
        before = bench.held()[0].progress or 0
        await bench.until(lambda: (bench.held()[0].progress or 0) >= before + 2)
        assert len(Cellar.writes) == 1 and time.monotonic() - began_s < 9, "it rests for ten"

    play(part)


def test_a_batch_job_without_checkpoints_is_read_in_one_go(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy("source { Count {} }\nsink { Cellar {} }")
        await bench.until(bench.ends)
        assert set(Count.budgets) == {None}

    play(part)


def test_slices_shrink_where_they_take_too_long_for_the_interval(play: Play) -> None:
    async def part(bench: Bench) -> None:
        env = "env { checkpoint.interval = 40 }\n"  # so short that each slice shrinks by the most
        bench.deploy(env + "source { Count { sleep_ms = 200 } }\nsink { Cellar {} }")
        await bench.until(bench.ends)
        # The first may be slow to start; one that was made ready while another ran has that one's
        # budget.
        assert list(dict.fromkeys(Count.budgets[1:]))[:2] == [250_000, 62_500]

    play(part)


def test_a_stream_that_trickles_is_not_allowed_everything_at_once(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS.replace("streaming", "slices = 12, streaming"))
        await bench.until(lambda: len(Cellar.staged) == 12)
        assert max(b or 0 for b in Count.budgets) <= 1_000_000

    play(part)


def test_counts_are_exact_right_after_a_job(spark: SparkSession) -> None:
    for number in range(80):
        group = f"exact-{number}"
        spark.sparkContext.setJobGroup(group, group)
        spark.range(0, 10, 1, 1).collect()
        settle(spark)
        assert measure(spark, group).rows_in == 10
