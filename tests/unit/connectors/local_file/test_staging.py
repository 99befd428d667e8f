"""What a sink stages is out of sight until it is committed, and then as the options say."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Staging
from holdfast.connectors.files.archives import uncompressed
from holdfast.connectors.files.format import Codec
from holdfast.errors import UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type

pytestmark = pytest.mark.spark

Make = Callable[..., Any]


def seen(root: Path) -> dict[str, bytes]:
    """Return the files a reader such as Spark sees, with their content."""
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and not any(n.startswith((".", "_")) for n in p.relative_to(root).parts)
    }


def tables(spark: SparkSession, sql: str = "SELECT 1 AS n, 'x' AS s") -> Tables:
    """Return one table."""
    return Tables([Rows.of("db.orders", spark.sql(sql))])


def staging(number: int, attempt: int = 1) -> Staging:
    """Return which try at which slice this is."""
    return Staging("7", "pipeline-1/task-0", attempt, number)


def test_a_crash_between_write_and_commit_leaves_nothing_visible_and_loses_nothing(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path), "file_format_type": "parquet"}
    first = sink(**options)
    first.prepare([r.table for r in tables(spark)])
    dead = first.write(tables(spark), staging(1))
    assert seen(tmp_path) == {}
    kept = sink(**options).write(tables(spark), staging(1, attempt=2))
    assert [(c.version, c.table, c.rows) for c in kept] == [(1, "db.orders", 1)]
    assert seen(tmp_path) == {}
    for _ in range(2):  # another process, and again
        stored = [Committable(c.version, c.table, c.rows, c.bytes, c.content) for c in kept]
        sink(**options).commit(CommitId("run-1", 1), stored)
    sink(**options).abort(dead)
    sink(**options).abort(dead)
    names = list(seen(tmp_path))
    assert names == ["T_7_pipeline-1_task-0_2_1_0.parquet"]
    assert [tuple(r) for r in spark.read.parquet(str(tmp_path)).collect()] == [(1, "x")]
    left = [p.name for p in (tmp_path / ".holdfast").iterdir()]
    assert left == ["commits"]


def committed(sink: Any, rows: Tables, number: int = 1) -> list[Committable]:
    """Write and commit one slice."""
    sink.prepare([r.table for r in rows])
    made = list(sink.write(rows, staging(number)))
    sink.commit(CommitId("run-1", number), made)
    return made


def test_a_slice_without_rows_leaves_no_file_unless_one_is_asked_for(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    nothing = tables(spark, "SELECT 1 AS n WHERE false")
    for kind in ("parquet", "csv", "text", "excel"):
        options = {"file_format_type": kind, "enable_header_write": True}
        assert committed(sink(path=str(tmp_path / kind), **options), nothing) == []
        assert seen(tmp_path / kind) == {}
        options["create_empty_file_when_no_data"] = True
        made = committed(sink(path=str(tmp_path / kind), **options), nothing)
        assert len(made) == len(seen(tmp_path / kind)) == 1
    assert list(seen(tmp_path / "csv").values()) == [b"n\n"]
    assert list(seen(tmp_path / "text").values()) == [b"n\n"]


@pytest.mark.parametrize("codec", ["none", "lzo", "gzip"])
def test_a_text_header_stands_first_whatever_the_codec(
    spark: SparkSession, sink: Make, tmp_path: Path, codec: str
) -> None:
    options = {"file_format_type": "text", "enable_header_write": True, "field_delimiter": ","}
    committed(sink(path=str(tmp_path), compress_codec=codec, **options), tables(spark))
    (content,) = seen(tmp_path).values()
    if codec == "gzip":
        content = gzip.decompress(content)
    elif codec == "lzo":
        path = next(tmp_path.glob("*.lzo.txt"))
        with path.open("rb") as file:
            content = uncompressed(file, Codec.LZO, str(path)).read()
    assert content == b"n,s\n1,x\n"


def test_names_follow_the_expression_and_never_collide(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    options = {
        "path": str(tmp_path),
        "file_format_type": "json",
        "is_enable_transaction": False,
        "file_name_expression": "orders",
        "single_file_mode": True,
        "filename_extension": "jsonl",
    }
    for number in (1, 2):
        committed(sink(**options), tables(spark), number)
    assert seen(tmp_path) == {
        "orders.jsonl": b'{"n":1,"s":"x"}\n',
        "orders_1.jsonl": b'{"n":1,"s":"x"}\n',
    }


def test_batch_size_limits_the_rows_of_a_file_and_columns_may_be_chosen(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    rows = tables(spark, "SELECT id, id * 2 AS twice FROM range(0, 5, 1, 1)")
    options = {"file_format_type": "csv", "batch_size": 2, "sink_columns": ["TWICE"]}
    committed(sink(path=str(tmp_path), **options), rows)
    assert list(seen(tmp_path).values()) == [b"0\n2\n", b"4\n6\n", b"8\n"]


def test_csv_text_is_quoted_where_it_must_be(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    sql = "SELECT 'a,b' AS a, 'say \"hi\"' AS b, ' c ' AS c, '' AS d, CAST(NULL AS INT) AS e"
    for mode, line in (
        ("MINIMAL", b'"a,b","say ""hi""", c ,,\n'),
        ("NONE", b'a,b,say "hi", c ,,\n'),
    ):
        folder = tmp_path / mode
        options = {"file_format_type": "csv", "csv_string_quote_mode": mode}
        committed(sink(path=str(folder), **options), tables(spark, sql))
        assert list(seen(folder).values()) == [line]


def test_each_table_has_its_own_folder_and_hidden_columns_stay_hidden(
    spark: SparkSession, sink: Make, tmp_path: Path
) -> None:
    changes = spark.sql("SELECT 1 AS n, 'DELETE' AS __kind, 5L AS __seq")
    both = Tables([Rows.of("db.a", changes), Rows.of("db.b", changes)])
    made = committed(sink(path=f"{tmp_path}/${{table_name}}", file_format_type="text"), both)
    assert [c.table for c in made] == ["db.a", "db.b"]
    assert [p.parent.name for p in sorted(tmp_path.glob("*/*.txt"))] == ["a", "b"]
    shared = committed(sink(path=str(tmp_path / "c"), file_format_type="text"), both)
    assert len(shared) == 2
    assert list(seen(tmp_path / "c").values()) == [b"1\n", b"1\n"]


def test_a_column_that_does_not_exist_is_named_before_any_row(sink: Make, tmp_path: Path) -> None:
    table = Table(TablePath("orders"), (Column("n", Type("int")),))
    with pytest.raises(UserError, match=r"column day \(partition_by\).*Columns: n\."):
        sink(path=str(tmp_path), partition_by=["day"]).prepare([table])
