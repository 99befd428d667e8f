"""Spark source and sink: formats pass through, files appear at commit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Opening, Staging
from holdfast.connectors.spark import SparkSink, SparkSource, local_folder
from holdfast.errors import UserError
from holdfast.model.job import Guarantee
from holdfast.model.table import Table, TablePath

Make = Callable[..., Any]

ONE = CommitId("1", 1)


def visible(folder: Path) -> list[str]:
    return sorted(
        str(p.relative_to(folder).parent)
        for p in folder.rglob("*")
        if p.is_file() and not any(part.startswith(".") for part in p.relative_to(folder).parts)
    )


@pytest.mark.spark
def test_files_appear_at_commit_and_a_repeated_commit_changes_nothing(
    make: Make, spark: SparkSession, staging: Staging, tmp_path: Path
) -> None:
    folder = tmp_path / "orders"
    given = {"format": "json", "path": f"{tmp_path}/${{table_name}}", "partition_by": ["p"]}
    sink = make(SparkSink, given)
    assert sink.guarantee is Guarantee.EXACTLY_ONCE
    frame = spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS p")
    committables = sink.write(Tables([Rows.of("shop.orders", frame)]), staging)
    assert visible(folder) == []
    assert spark.read.json(str(folder), schema="id bigint").count() == 0
    for _ in range(2):
        sink.commit(ONE, committables)
        assert visible(folder) == ["p=0", "p=1"]
    source = make(SparkSource, {"format": "json", "path": str(folder)}, output="x")
    (rows,) = source.read(spark, None)
    assert str(rows.table.path) == "x"
    assert sorted(tuple(r) for r in rows.frame.collect()) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    for path in folder.rglob("*.json"):
        path.unlink()
    sink.commit(ONE, committables)
    assert not list(folder.rglob("*.json")), "what was taken away later does not come back"
    again = sink.write(Tables([Rows.of("shop.orders", frame)]), staging)
    sink.abort(again)
    with pytest.raises(UserError, match="neither it nor the staged"):
        sink.commit(CommitId("1.x", 2), again)


@pytest.mark.spark
def test_what_is_aborted_never_appears(
    make: Make, spark: SparkSession, staging: Staging, tmp_path: Path
) -> None:
    sink = make(SparkSink, {"format": "parquet", "path": str(tmp_path)})
    committables = sink.write(Tables([Rows.of("t", spark.range(3))]), staging)
    assert len(list(tmp_path.iterdir())) == 1
    for _ in range(2):
        sink.abort(committables)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_a_table_and_a_query_of_spark_are_read(make: Make, spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("numbers")
    (rows,) = make(SparkSource, {"table": "numbers"}).read(spark, None)
    assert (str(rows.table.path), rows.frame.count()) == ("numbers", 3)
    query = {"query": "WITH n AS (SELECT * FROM numbers) SELECT id FROM n WHERE id > 0;"}
    (rows,) = make(SparkSource, query).read(spark, None)
    assert (str(rows.table.path), rows.frame.count()) == ("fake", 2)


@pytest.mark.spark
def test_a_format_without_a_path_is_written_at_once(
    make: Make, spark: SparkSession, staging: Staging
) -> None:
    sink = make(SparkSink, {"format": "noop", "mode": "overwrite"})
    assert sink.guarantee is Guarantee.AT_LEAST_ONCE
    rows = Rows.of("t", spark.range(3))
    sink.prepare([rows.table])
    for _ in range(2):
        assert sink.write(Tables([rows]), staging) == [Committable(1, "t", -1, 0, None)]


def test_what_is_there_is_treated_as_mode_says(make: Make, tmp_path: Path) -> None:
    table = Table(TablePath("t"))
    old = tmp_path / "old.parquet"
    old.touch()
    given = {"format": "parquet", "path": str(tmp_path)}
    make(SparkSink, {**given, "mode": "append"}).prepare([table])
    with pytest.raises(UserError, match="it holds data already"):
        make(SparkSink, {**given, "mode": "errorifexists"}).prepare([table])
    assert old.exists()
    overwrite = make(SparkSink, {**given, "mode": "overwrite"})
    due = overwrite.prepare([table], Opening("1.x"))
    assert old.exists(), "nothing goes before the first commit"
    overwrite.commit(CommitId("1.x.1.s", 1), due)
    assert not old.exists()


@pytest.mark.spark
def test_ignore_leaves_data_alone_even_after_a_restart(
    make: Make, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "old.parquet").touch()
    given = {"format": "parquet", "path": str(tmp_path), "mode": "ignore"}
    rows = Rows.of("t", spark.range(3))
    due = make(SparkSink, given).prepare([rows.table], Opening("1.x"))
    for number in (1, 2):
        staging = Staging("1", "task", number, 1, "x")
        made = make(SparkSink, given).write(Tables([rows]), staging)
        make(SparkSink, given).commit(CommitId("1.x.1.s", number), [*due, *made])
        assert visible(tmp_path) == ["."], "nothing but what was there"
    (tmp_path / "old.parquet").unlink()
    due = make(SparkSink, given).prepare([rows.table], Opening("1.y"))
    made = make(SparkSink, given).write(Tables([rows]), Staging("1", "task", 1, 1, "y"))
    make(SparkSink, given).commit(CommitId("1.y.1.s", 1), [*due, *made])
    assert spark.read.parquet(str(tmp_path)).count() == 3


def test_credentials_are_not_shown(make: Make) -> None:
    options = {"url": "jdbc:x", "dbtable": "${table_name}", "password": "hush", "fs.s3a.key": "k"}
    source = make(SparkSource, {"format": "jdbc", "options": options})
    assert "hush" not in repr(source.options)
    sink = make(SparkSink, {"format": "jdbc", "options": options})
    assert "hush" not in repr(sink.options)
    assert sink.options.options.for_spark(Table(TablePath("t"))) == {
        "url": "jdbc:x", "dbtable": "t", "password": "hush", "fs.s3a.key": "k"
    }  # fmt: skip


def test_only_local_paths_are_staged() -> None:
    assert local_folder("/data/a b") == Path("/data/a b")
    assert local_folder("file:///data/a%20b") == Path("/data/a b")
    assert local_folder("s3a://bucket/a") is None


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (SparkSource, {}, "required option 'format' is missing. Give it, or 'table' or 'query'."),
        (SparkSource, {"table": "t", "query": "q"}, "give either 'table' or 'query', not both."),
        (SparkSource, {"table": "t", "path": "p"}, "'path' needs a 'format'."),
        (SparkSink, {}, "required option 'format'"),
        (
            SparkSink,
            {"format": "csv", "path": "p", "table": "t"},
            "give either 'path' or 'table', not both.",
        ),
        (SparkSink, {"format": "csv", "options": [1]}, "the options of a format are a block"),
    ],
)
def test_mistakes_are_named(
    kind: Any, given: dict[str, Any], message: str, mistakes: Callable[..., list[str]]
) -> None:
    (found,) = mistakes(kind, given)
    assert message in found
