"""Rows that do not fit: what is said of them, and how they are counted."""

import pytest
from pyspark import SparkContext, accumulators
from pyspark.sql import SparkSession

from holdfast.connect.rejects import Misfit, Rejects, RowErrors, row_error_problems, wrong_value


def test_an_error_says_where_what_why_and_what_to_do_in_one_line() -> None:
    rule = wrong_value("n", "a\nb", "an int")
    error = Misfit("file /data/a.csv, line 7", rule, 'x,"a\nb"').error("Source[0]-LocalFile")
    assert str(error) == (
        "Source[0]-LocalFile cannot read file /data/a.csv, line 7: column n = 'a\\nb' is not an"
        ' int. Row: x,"a\\nb". Correct the row, or set row_error_handle_way = SKIP to leave such'
        " rows out and count them."
    )


def test_long_texts_are_cut() -> None:
    said = str(Misfit("file a", wrong_value("n", "v" * 10_000, "an int"), "r" * 10_000).error("S"))
    assert len(said) < 700 and "(10,000 characters)" in said


def test_a_table_for_bad_rows_is_refused_in_words() -> None:
    assert [list(row_error_problems(way)) for way in (RowErrors.FAIL, RowErrors.SKIP)] == [[], []]
    ((option, said),) = row_error_problems(RowErrors.ROUTE_TO_TABLE)
    assert option == "row_error_handle_way" and "not supported" in said and "SKIP" in said


def reject(context: SparkContext, rejects: Rejects, splits: list[int]) -> None:
    counter = rejects.begin(context)
    context.parallelize(splits, 2).foreach(lambda split: counter.add(split, 10 + split))


@pytest.mark.spark
def test_a_split_that_is_read_twice_counts_once(spark: SparkSession) -> None:
    rejects = Rejects()
    assert rejects.value == 0
    reject(spark.sparkContext, rejects, [0, 1, 2, 1, 0])
    assert rejects.value == 33
    rejects.close()
    rejects.close()
    assert rejects.value == 33


@pytest.mark.spark
def test_each_slice_counts_for_itself_though_spark_keeps_few_counters(spark: SparkSession) -> None:
    context = spark.sparkContext
    first = Rejects()
    reject(context, first, [0])
    first.close()
    kept = len(accumulators._accumulatorRegistry)
    for split in (3, 5):
        rejects = Rejects()
        reject(context, rejects, [split])
        assert rejects.value == 10 + split
        rejects.close()
    assert first.value == 10
    assert len(accumulators._accumulatorRegistry) == kept
