"""Calls of ours into the JVM: what tasks say arrives whole and in order, and so do figures."""

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.connect.inside import figures, run_tasks
from holdfast.worker.row_counts import measure, settle

pytestmark = pytest.mark.spark


def test_lines_come_back_in_the_order_of_the_tasks(spark: SparkSession) -> None:
    def twice(number: int, lines: Iterator[str]) -> Iterator[bytes]:
        for line in lines:
            yield f"{number} {line}".encode()
            yield line.upper().encode()

    lines = ["a", "ä \u2028 €", "c", "", "e", ""]
    said = run_tasks(spark.sparkContext, twice, lines)
    assert said == [word for i, one in enumerate(lines) for word in (f"{i} {one}", one.upper())]


def test_tasks_may_say_nothing_and_there_may_be_none(spark: SparkSession) -> None:
    assert run_tasks(spark.sparkContext, lambda _, lines: iter(()), ["a", "b"]) == []
    assert run_tasks(spark.sparkContext, lambda _, lines: map(str.encode, lines), []) == []


def test_what_a_task_raises_is_told(spark: SparkSession) -> None:
    def broken(_number: int, lines: Iterator[str]) -> Iterator[bytes]:
        raise ValueError(f"cannot read {next(lines)}")

    with pytest.raises(PySparkException, match="cannot read a"):
        run_tasks(spark.sparkContext, broken, ["a"])


def test_figures_are_those_of_a_group(spark: SparkSession, tmp_path: object) -> None:
    context = spark.sparkContext
    context.setJobGroup("figures", "a test", True)
    try:
        spark.range(0, 1000, 1, 4).write.parquet(f"{tmp_path}/rows")
        run_tasks(context, lambda _, lines: iter(()), ["a", "b", "c"])
    finally:
        context.setJobGroup("others", "", False)
    settle(spark)
    measured = measure(spark, "figures")
    assert (measured.rows_in, measured.rows_out) == (1000, 1000)
    assert measured.bytes_out > 0
    # Two stages, their seven tasks, and the rows.
    assert measured.pulse == 2 + 7 + 2000
    assert figures(context).active("figures") == 0
    assert measure(spark, "nobody's").pulse == 0
