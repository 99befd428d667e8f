"""Watermarks of tasks on a real Spark: the latest event time, found in the pass that writes."""

import datetime as dt
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast import Rows, Tables, UserError
from holdfast.core.gather import Counts
from holdfast.errors import SourceLocation
from holdfast.model.job import EventTime, Role, Stage
from holdfast.model.tree import Block
from holdfast.worker.row_counts import UNREAD_MAX, EventTimes, RowCounts, Watched, settle
from tests.unit.worker.bench import SOURCE, STREAM, Bench, Play

pytestmark = pytest.mark.spark

HERE = SourceLocation("job.conf", 3, 5)
MOMENT = dt.datetime(2024, 5, 1, 12, 30, 0, 250_000, dt.UTC)
MOMENT_MS = round(MOMENT.timestamp() * 1000)


def stage(name: str = "S", column: str = "at", **more: Any) -> Stage:
    wanted = EventTime(**({"column": column, "delay_ms": 0, "idle_s": 60, "own": True} | more))
    return Stage(name, Role.SOURCE, "Fake", Block((), HERE), (), None, 1, HERE, wanted)


def counting(watermark: str, **count: Any) -> str:
    said = ", ".join(f"{k} = {v}" for k, v in ({"streaming": "true"} | count).items())
    return f"{STREAM}source {{ Count {{ {said}, {watermark} }} }}\nsink {{ Cellar {{}} }}"


def test_an_answer_carries_the_latest_event_time_less_the_delay(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(counting("watermark { column = ID, delay.seconds = 0.005 }"))
        await bench.until(lambda: bench.held()[0].written == 30)
        first = await bench.acked(1)
        assert (first.watermark, first.idle) == (29 - 5, False)
        assert first.counts.latest == ((SOURCE, 29),)

    play(part)


def test_a_new_attempt_begins_at_the_watermark_of_its_checkpoint(play: Play) -> None:
    async def part(bench: Bench) -> None:
        counts = Counts(30, (), ((SOURCE, 29),))
        positions = ((SOURCE, 3),)
        text = counting('"watermark.column" = id', slices=3)
        bench.deploy(text, attempt=2, positions=positions, counts=counts)
        again = await bench.acked(1, attempt=2)
        assert (again.watermark, again.idle) == (29, False), "no row was read, and nothing lost"

    play(part)


def test_a_source_without_rows_and_one_at_its_end_are_idle(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(counting("watermark { column = id, idle.seconds = 0 }"))
        await bench.until(lambda: bench.held()[0].written == 30)
        quiet = await bench.acked(1)
        assert (quiet.watermark, quiet.idle) == (29, True)
        bench.deploy(counting("watermark.column = id", streaming="false"), attempt=2)
        await bench.until(bench.ends)
        ended = await bench.acked(2, attempt=2)
        assert (ended.watermark, ended.idle, ended.ended) == (29, True, True)

    play(part)


def test_a_source_that_env_means_and_that_lacks_the_column_holds_nobody_back(play: Play) -> None:
    async def part(bench: Bench) -> None:
        env = "env { job.mode = STREAMING, checkpoint.interval = 1000, watermark.column = at }\n"
        bench.deploy(env + "source { Count { streaming = true } }\nsink { Cellar {} }")
        await bench.until(lambda: bench.held()[0].written == 30)
        answer = await bench.acked(1)
        assert (answer.watermark, answer.idle) == (None, True)

    play(part)


def test_a_column_that_the_source_names_and_lacks_fails_the_job(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(counting("watermark.column = at"))
        await bench.until(lambda: bench.held() and bench.held()[0].failure)
        held = bench.held()[0]
        assert held.fatal
        assert f"{SOURCE} (job.conf:2:10): no table has a column at" in str(held.failure)
        assert "count: id" in str(held.failure)

    play(part)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("TIMESTAMP", MOMENT_MS),
        ("TIMESTAMP_NTZ", MOMENT_MS),
        ("DATE", round(dt.datetime(2024, 5, 1, tzinfo=dt.UTC).timestamp() * 1000)),
    ],
)
def test_each_type_of_time_is_read_as_milliseconds(
    spark: SparkSession, kind: str, wanted: int
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.sql(
        f"SELECT id, CAST(CAST('{MOMENT:%Y-%m-%d %H:%M:%S.%f}' AS TIMESTAMP) - make_dt_interval(id)"
        f" AS {kind}) AS `a``t` FROM range(3) UNION ALL SELECT 9, NULL"
    )
    tally = RowCounts()
    times = EventTimes([stage(column="a`t")], tally)
    watched: Watched = []
    tables = times.watch(stage(column="a`t"), Tables([Rows.of("t", frame)]), watched)
    for _ in range(2):  # two sinks
        assert len([r for rows in tables for r in rows.frame.collect()]) == 4
    settle(spark)
    times.seen(watched)
    assert tally.counts().latest == (("S", wanted),)


def test_a_table_that_nobody_writes_is_not_waited_for(spark: SparkSession) -> None:
    tally = RowCounts()
    times = EventTimes([stage()], tally)
    one, other = spark.range(5).toDF("at"), spark.range(50).toDF("at")
    watched: Watched = []
    tables = times.watch(stage(), Tables([Rows.of("t", one), Rows.of("u", other)]), watched)
    next(iter(tables)).frame.persist().collect()
    settle(spark)
    times.seen(watched)
    assert tally.counts().latest == (("S", 4),)
    for _ in range(UNREAD_MAX):
        times.watch(stage(), Tables([Rows.of("u", other)]), watched := [])
        times.seen(watched)
    (unread,) = times.watch(stage(), Tables([Rows.of("u", other)]), [])
    assert unread.frame is other, "Spark must not keep more and more of them"


def test_a_column_that_is_no_time_is_refused(spark: SparkSession) -> None:
    text = Tables([Rows.of("t", spark.sql("SELECT 'today' AS at"))])
    with pytest.raises(UserError, match=r"S \(job.conf:3:5\): watermark.column at of t is of type"):
        EventTimes([stage()], RowCounts()).watch(stage(), text, [])


def test_the_least_of_the_sources_counts_and_none_goes_back() -> None:
    now, tally = [0.0], RowCounts()
    times = EventTimes([stage("a", idle_s=10), stage("b", delay_ms=1)], tally, lambda: now[0])
    assert times.mark(()) == (None, False)
    tally.reached("a", 100)
    assert times.mark(()) == (None, False), "of b nothing is known"
    tally.reached("b", 51)
    tally.reached("b", 7)
    assert times.mark(()) == (50, False)
    assert times.mark({"b"}) == (100, False)
    assert times.mark({"a", "b"}) == (100, True)
    now[0] = 11.0
    assert times.mark(()) == (50, False), "a is idle, and ahead anyway"
    assert EventTimes([], tally).mark(()) == (None, True)
