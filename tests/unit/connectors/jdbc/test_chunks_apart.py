"""PostgreSQL: where a slice comes as batches, each chunk is a table of its own."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Leftovers, Staging
from holdfast.connectors.jdbc.database import Loading
from holdfast.connectors.jdbc.staged_rows import chunk_table, content_of
from holdfast.connectors.jdbc.staging import APART_MOST
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.errors import HoldfastError, UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.tree import Plain
from holdfast.model.types import Type
from holdfast.testing.sink_bench import read_numbers
from tests.unit.connectors.jdbc.conftest import Server

pytestmark = pytest.mark.spark

COLUMNS = (Column("id", Type("bigint")), Column("name", Type("string")))


def stage(
    sink: JdbcSink, spark: SparkSession, splits: list[Plain], attempt: int = 1
) -> list[Committable]:
    batches = ArrowRows(spark, COLUMNS, tuple(splits), read_numbers, 0)
    rows = Rows(Table(TablePath("t", "shop"), COLUMNS), batches.frame, batches)
    return list(sink.write(Tables([rows]), Staging("1", "task", attempt, 1, "i")))


def ids(postgres: Server) -> list[int]:
    return sorted(number for (number,) in postgres.run("SELECT id FROM t"))


def test_only_chunks_that_spark_reported_count(postgres: Server, spark: SparkSession) -> None:
    sink = postgres.sink(table="t")
    made = stage(sink, spark, [[0, 3], [3, 5]])
    (one,) = [content_of(c) for c in made]
    assert one.apart and (made[0].rows, len(one.chunks)) == (5, 2)
    # As if a task had run again after its transaction.
    again = chunk_table(one.staged, 999)
    postgres.run(f"CREATE TABLE {again} AS SELECT * FROM {one.tables[0]}")
    sink.commit(CommitId("u", 1), made)
    assert ids(postgres) == [0, 1, 2, 3, 4]
    sink.commit(CommitId("u", 1), made)
    assert ids(postgres) == [0, 1, 2, 3, 4]
    assert postgres.staged() == [], "the chunk that nobody reported goes with the others"


def test_a_chunk_that_is_gone_is_missed(postgres: Server, spark: SparkSession) -> None:
    sink = postgres.sink(table="t")
    made = stage(sink, spark, [[0, 3], [3, 5]])
    postgres.run(f"DROP TABLE {content_of(made[0]).tables[1]}")
    with pytest.raises(UserError, match="no longer has"):
        sink.commit(CommitId("u", 1), made)
    assert ids(postgres) == []


def test_chunks_are_aborted_and_swept_with_their_slice(
    postgres: Server, spark: SparkSession
) -> None:
    sink = postgres.sink(table="t")
    sink.abort(stage(sink, spark, [[0, 3], [3, 5]]))
    assert postgres.staged() == []
    stage(sink, spark, [[0, 3], [3, 5]], attempt=1)
    kept = stage(sink, spark, [[0, 3], [3, 5]], attempt=2)
    sink.sweep(Leftovers("1", "i", "task", before=2))
    assert set(postgres.staged()) == {
        content_of(kept[0]).staged, *content_of(kept[0]).tables
    }  # fmt: skip


def test_a_task_that_still_writes_is_cut_off_and_leaves_no_chunk(
    postgres: Server, spark: SparkSession
) -> None:
    sink = postgres.sink(table="t")
    made = stage(sink, spark, [[0, 3]])
    loading = Loading(content_of(made[0]).staged, ("c0", "c1"), ("bigint", "text"), 1000, True)
    begun, gone = threading.Event(), threading.Event()

    def slow() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"c0": [7], "c1": ["late"]})
        begun.set()
        assert gone.wait(60)
        yield pa.RecordBatch.from_pydict({"c0": [8], "c1": ["later"]})

    failed: list[HoldfastError] = []

    def task() -> None:
        try:
            sink.database.load(loading, slow(), 77)
        except HoldfastError as error:
            failed.append(error)

    writer = threading.Thread(target=task)
    writer.start()
    assert begun.wait(60)
    sink.abort(made)
    gone.set()
    writer.join(60)
    assert failed and postgres.staged() == []
    with pytest.raises(HoldfastError, match="does not exist"):
        sink.database.load(loading, slow(), 78)
    assert postgres.staged() == []


def test_very_many_chunks_share_a_table(postgres: Server, spark: SparkSession) -> None:
    sink = postgres.sink(table="t")
    made = stage(sink, spark, [[n, n + 1] for n in range(APART_MOST + 1)])
    assert not content_of(made[0]).apart
    sink.commit(CommitId("u", 1), made)
    assert ids(postgres) == list(range(APART_MOST + 1))
