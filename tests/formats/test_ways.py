"""Rows that travel as Arrow batches arrive as those that Spark carries, to the bit."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.connect.source import Budget
from tests.formats import outsiders as others
from tests.formats.matrix import KINDS, shown
from tests.formats.test_formats import check, fitting
from tests.unit.connectors.jdbc.conftest import Server

pytestmark = [pytest.mark.spark, pytest.mark.formats]

Make = Callable[..., Any]

TRAVEL = ["s", "b", "i1", "i2", "i4", "i8", "f4", "f8", "n10", "n38", "n0", "d", "ts"]
"""The columns that travel as batches."""

SOURCES = {
    "csv": others.write_csv, "json": others.write_json, "parquet": others.write_parquet,
}  # fmt: skip


def both(
    spark: SparkSession, source: Make, folder: Path, form: str, finite: bool = False
) -> tuple[Rows, Rows]:
    """Return the same rows as batches and as a frame alone."""
    folder.mkdir()
    made = fitting(form if form == "parquet" else "csv", TRAVEL)
    for row in made if finite else ():
        row |= {n: None for n in ("f4", "f8") if not math.isfinite(row[n] or 0)}
        row["f4"] = row["f4"] and min(row["f4"], 1e38)  # MySQL refuses the greatest float
    SOURCES[form](folder / f"a.{form}", made, TRAVEL)
    options: dict[str, Any] = {"path": str(folder), "file_format_type": form}
    if form != "parquet":
        options["schema"] = {"fields": {"id": "bigint", **{n: KINDS[n] for n in TRAVEL}}}
    reading = source(**options)
    planned = reading.plan(None, Budget(None, 0.0))
    (fast,) = reading.read(spark, planned.content)
    assert fast.batches is not None, "these rows travel as batches"
    slow = Rows(fast.table, lambda: fast.frame)
    if form == "parquet":
        assert reading.read_carefully()
        (slow,) = reading.read(spark, planned.content)
    assert slow.batches is None
    return fast, slow


def differing(one: list[Any], other: list[Any]) -> list[str]:
    """Return what differs between rows that begin with their `id`."""
    left, right = ({row[0]: [shown(v) for v in row] for row in rows} for rows in (one, other))
    said = (
        [] if len(one) == len(other) else [f"{len(one)} rows as batches, {len(other)} as a frame"]
    )
    lost = ((row, right.get(key)) for key, row in left.items())
    return said + [f"{row} became {found}" for row, found in lost if row != found]


def put(sink: Any, rows: Rows, number: int = 1) -> None:
    sink.prepare([rows.table])
    staged = sink.write(Tables([rows]), Staging("1", "t", 1, number, "i"))
    sink.commit(CommitId(f"u{number}", 1), staged)


@pytest.mark.parametrize("form", SOURCES)
def test_files_are_the_same_either_way(
    spark: SparkSession, source: Make, sink: Make, tmp_path: Path, form: str
) -> None:
    found = []
    for name, rows in zip(
        ("fast", "slow"), both(spark, source, tmp_path / "in", form), strict=True
    ):
        put(sink(path=str(tmp_path / name), file_format_type="parquet"), rows)
        files = [p for p in (tmp_path / name).rglob("*.parquet") if ".holdfast" not in str(p)]
        tables = [pq.ParquetFile(f).read() for f in files]
        assert all(t.schema.remove_metadata() == tables[0].schema.remove_metadata() for t in tables)
        found.append(([tuple(r.values()) for t in tables for r in t.to_pylist()], tables[0].schema))
    (one, kinds), (other, also) = found
    assert kinds.names == also.names and kinds.types == also.types
    check(differing(one, other))


@pytest.mark.parametrize("form", SOURCES)
def test_tables_are_the_same_either_way(
    server: Server, spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    found = []
    ways = both(spark, source, tmp_path / "in", form, server.kind == "mysql")
    for number, rows in enumerate(ways):
        put(server.sink(table=f"way{number}"), rows, number + 1)
        found.append(server.run(f"SELECT id, {', '.join(TRAVEL)} FROM way{number}"))
    check(differing(*found))
