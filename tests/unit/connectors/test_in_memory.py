"""InMemory: the faults it injects."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.connectors.in_memory import InMemory
from holdfast.errors import Cancelled, Unavailable, UserError
from holdfast.model.table import Table, TablePath

Make = Callable[..., InMemory]

NOTHING = Tables([])


@pytest.mark.spark
def test_rows_of_every_table_are_counted(make: Make, spark: SparkSession, staging: Staging) -> None:
    tables = Tables([Rows.of("a", spark.range(3)), Rows.of("b", spark.range(4))])
    found = make(InMemory, {}).write(tables, staging)
    assert [(c.table, c.rows) for c in found] == [("a", 3), ("b", 4)]


def test_a_write_fails_on_request(make: Make, staging: Staging) -> None:
    with pytest.raises(Unavailable, match="write failed"):
        make(InMemory, {"throw_exception": True}).write(NOTHING, staging)
    with pytest.raises(MemoryError):
        make(InMemory, {"throw_out_of_memory": True}).write(NOTHING, staging)


def test_each_attempt_fails_with_its_own_message(make: Make) -> None:
    sink = make(InMemory, {"throw_runtime_exception_list": ["one", "two"]})
    for attempt, message in ((1, "one"), (2, "two"), (3, "two")):
        with pytest.raises(Unavailable, match=message):
            sink.write(NOTHING, Staging("1", "t", attempt, 1))


def test_a_commit_fails_on_request(make: Make) -> None:
    make(InMemory, {}).commit(CommitId("1", 1), [])
    with pytest.raises(Unavailable, match="commit failed"):
        make(InMemory, {"throw_exception_of_committer": True}).commit(CommitId("1", 1), [])


def test_placeholders_are_compared_at_the_start(make: Make) -> None:
    tables = [Table(TablePath("orders"))]
    good = {"assert_options_key": "${table_name}", "assert_options_value": "orders"}
    make(InMemory, good).prepare(tables)
    with pytest.raises(UserError, match="is 'orders' for table orders, not 'items'"):
        make(InMemory, {**good, "assert_options_value": "items"}).prepare(tables)


def test_a_cancel_ends_the_wait(make: Make, staging: Staging) -> None:
    sink = make(InMemory, {"checkpoint_sleep": True})
    sink.cancelled = lambda: True
    with pytest.raises(Cancelled):
        sink.write(NOTHING, staging)
