"""Counters that tasks add to: lent out, never piled up."""

import pytest
from pyspark import SparkContext, accumulators
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import Counter

pytestmark = pytest.mark.spark


def count(context: SparkContext, counter: Counter, items: int) -> None:
    added = counter.accumulator
    context.parallelize(range(items), 2).foreach(lambda _: added.add(1))


def test_each_counts_for_itself_though_spark_keeps_few(spark: SparkSession) -> None:
    context = spark.sparkContext
    Counter(context).close()
    kept = len(accumulators._accumulatorRegistry)
    for items in (3, 5, 7):
        counter = Counter(context)
        count(context, counter, items)
        assert counter.value == items
        counter.close()
        counter.close()
        assert counter.value == items
    assert len(accumulators._accumulatorRegistry) == kept


def test_two_at_once_are_two(spark: SparkSession) -> None:
    context = spark.sparkContext
    one, other = Counter(context), Counter(context)
    count(context, one, 4)
    count(context, other, 6)
    assert (one.value, other.value) == (4, 6)
    one.close()
    count(context, other, 6)
    other.close()
    assert (one.value, other.value) == (4, 12)
