"""A worker: what it does with a leader's orders, and what it says, with tasks on a real Spark."""

import asyncio
import time

import pytest
from pyspark.sql import SparkSession

from holdfast.core.gather import Counts, WrittenRows
from holdfast.errors import Unavailable
from holdfast.wire.messages import HeartbeatAck, SourceEndAck, StopTask
from tests.unit.worker.bench import ENDLESS, SLEEPS, SOURCE, Bench, Play
from tests.unit.worker.plugins import Cellar, Count

pytestmark = pytest.mark.spark


def test_a_barrier_is_answered_once_and_the_same_answer_is_given_again(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS)
        await bench.until(lambda: bench.held()[0].written == 30)
        first = await bench.acked(1)
        assert (first.positions, first.ended) == (((SOURCE, 3),), False)
        assert [s.created for s in first.staged] == [1, 1, 1]
        assert first.counts == Counts(30, (WrittenRows("Sink[0]-Cellar", "count", 30, 0),))
        bench.barrier(1)
        await bench.until(lambda: len(bench.acks()) == 2)
        assert bench.acks()[1] == first
        third = await bench.acked(3)
        assert third.staged == first.staged, "what no complete checkpoint holds is said again"
        count = len(bench.acks())
        bench.barrier(2)
        await asyncio.sleep(0.1)
        assert len(bench.acks()) == count, "a lower number is late"
        assert Count.released == []
        assert (await bench.acked(4, complete=3)).staged == (), "it is held, though not visible"
        assert Count.released == []
        await bench.acked(5, through=3)
        await bench.until(lambda: Count.released == [3])

    play(part)


def test_an_order_said_again_does_not_begin_a_task_a_second_time(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS)
        await bench.until(lambda: bench.held()[0].written == 30)
        first = await bench.acked(1)
        attempt = bench.worker.attempts[bench.key]
        with caplog.at_level("INFO", "holdfast"):
            bench.deploy(ENDLESS)
            bench.term += 1  # as a new leader does that has not heard yet
            bench.deploy(ENDLESS)
        assert bench.worker.attempts[bench.key] is attempt and not attempt.stopping.is_set()
        said = [m for m in caplog.messages if "is here already" in m]
        assert len(said) == 2 and f"{bench.key.incarnation}/p1-t1/1" in said[0]
        again = await bench.acked(2)
        assert (again.positions, again.counts) == (first.positions, first.counts)
        assert bench.notes.count("start") == 1 and "end" not in bench.notes
        assert [(h.attempt, h.failure) for h in bench.held()] == [(1, None)]

    play(part)


def test_an_end_is_reported_until_it_is_confirmed_and_again_to_a_new_leader(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy("source { Count {} }\nsink { Cellar {} }")
        await bench.until(lambda: len(bench.ends()) >= 3)
        assert {(e.source, e.attempt, e.incarnation) for e in bench.ends()} == {(SOURCE, 1, "w#1")}
        bench.worker.hear(SourceEndAck(5, bench.key, 1, SOURCE))
        count = len(bench.ends())
        await asyncio.sleep(0.3)
        assert len(bench.ends()) == count
        bench.term = 6
        bench.worker.hear(HeartbeatAck(6))
        await bench.until(lambda: bench.ends()[-1].term == 6)
        assert (await bench.acked(1)).ended
        bench.term = 5
        bench.barrier(2)
        await asyncio.sleep(0.1)
        assert bench.acks()[-1].number == 1, "a former leader is not obeyed"

    play(part)


def test_a_failure_is_held_until_it_was_heard(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy("source { Count {} }\nsink { Cellar { fail_on = [2] } }")
        await bench.until(lambda: bench.held() and bench.held()[0].failure)
        held = bench.held()[0]
        assert (held.failure, held.fatal) == (
            "Sink[0]-Cellar (job.conf:2:8): The cellar door sticks.", False,
        )  # fmt: skip
        assert Cellar.staged == {}, "what no checkpoint holds is removed"
        bench.worker.hear(StopTask(5, bench.key, 1))
        await bench.until(lambda: bench.held() == ())
        bench.deploy("source { Count {} }\nsink { Cellar {} }")
        await bench.until(lambda: bench.held())
        assert bench.held()[0].failure == "it was stopped here before"
        bench.deploy("source { Count {} }\nsink { Cellar {} }", attempt=2)
        await bench.until(lambda: bench.ends())
        assert [h.attempt for h in bench.held()] == [2]

    play(part)


def test_a_mistake_of_the_job_is_fatal(play: Play) -> None:
    async def part(bench: Bench) -> None:
        copy = "transform { FieldMapper { field_mapper { absent = other } } }\n"
        bench.deploy(f"source {{ Count {{}} }}\n{copy}sink {{ Cellar {{}} }}")
        await bench.until(lambda: bench.held() and bench.held()[0].failure)
        assert bench.held()[0].fatal
        assert "absent" in str(bench.held()[0].failure)

    play(part)


def test_a_task_whose_spark_does_not_start_fails_with_its_reason(play: Play) -> None:
    def session() -> SparkSession:
        raise Unavailable("Spark is on strike.")

    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS)
        await bench.until(lambda: bench.held() and bench.held()[0].failure)
        assert bench.held()[0].failure == "Spark is on strike."

    play(part, session)


def test_a_stop_ends_a_running_spark_job_and_the_task_is_held_until_then(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(SLEEPS)
        await bench.until(lambda: Cellar.writes)
        await asyncio.sleep(0.5)
        began = time.monotonic()
        bench.worker.hear(StopTask(5, bench.key, 1))
        bench.worker.beat()
        assert len(bench.held()) == 1, "it may still stage something"
        await bench.until(lambda: bench.held() == ())
        assert time.monotonic() - began < 5
        assert not bench.acks() and not Cellar.staged

    play(part)


def test_what_a_life_that_is_gone_has_staged_is_removed(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS)
        await bench.until(lambda: len(Cellar.writes) == 3)
        assert len((await bench.acked(1)).staged) == 3
        bench.worker.hear(StopTask(5, bench.key, 1))
        await bench.until(lambda: bench.held() == ())
        assert len(Cellar.staged) == 3, "a checkpoint may hold it"
        bench.deploy(ENDLESS, attempt=2)
        await bench.until(lambda: len(Cellar.staged) == 6)
        bench.worker.hear(StopTask(5, bench.key, 2, gone=True))
        await bench.until(lambda: bench.held() == ())
        assert Cellar.staged == {}

    play(part)


def test_leftovers_of_earlier_attempts_go_once_what_counts_of_them_is_visible(play: Play) -> None:
    counts = Counts(10, (WrittenRows("Sink[0]-Cellar", "count", 10, 77),))

    async def part(bench: Bench) -> None:
        life = f"7.{bench.key.incarnation}"
        former, neighbour, other = f"{life}-p1-t1-a1-s9", f"{life}-p1-t2-a1-s9", "7.y-p1-t1-a1-s9"
        Cellar.staged |= {former: [1], neighbour: [1], other: [1]}
        restored = {"positions": ((SOURCE, 1),), "restored": 4, "counts": counts, "opened": None}
        bench.deploy(ENDLESS, attempt=2, **restored)
        await bench.until(lambda: len(Cellar.writes) == 2)
        fifth = await bench.acked(5, through=3, attempt=2)
        assert Cellar.swept == []
        counted = Counts(30, (WrittenRows("Sink[0]-Cellar", "count", 30, 77),))
        assert fifth.counts == counted, "counters go on from the checkpoint"
        await bench.acked(6, through=4, attempt=2)
        await bench.until(lambda: Cellar.swept)
        assert former not in Cellar.staged
        assert {neighbour, other} <= set(Cellar.staged)
        assert Cellar.prepared == ["known count(id)"], "of a state that cannot say, all are known"

    play(part)


def test_without_a_leader_tasks_are_given_up_but_still_held(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS)
        await bench.until(lambda: bench.held() and bench.held()[0].failure)
        assert bench.held()[0].failure == "no leader was in contact for too long"
        assert bench.notes.count("end") == 1
        bench.barrier(1)
        await asyncio.sleep(0.1)
        assert not bench.acks()

    play(part, orphan_s=0.6)


def test_rows_show_while_a_slice_runs_and_progress_grows(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(ENDLESS)
        await bench.until(lambda: bench.held() and bench.held()[0].written == 30)
        before = bench.held()[0].progress
        assert before is not None
        await bench.until(lambda: (bench.held()[0].progress or 0) > before)

    play(part)
