"""Iceberg keeps the contract of sinks; the library's own reader reads what it has written."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Committable
from holdfast.connectors.iceberg.catalog import open_catalog
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.model.job import Mode
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.sink_checks import ALL, OPENINGS, chosen


def options(warehouse: Path, **modes: str) -> IcebergSinkOptions:
    catalog = {"type": "hadoop", "warehouse": warehouse.as_uri()}
    return IcebergSinkOptions(catalog=catalog, namespace="db", table="rows", **chosen(modes))


def open_sink(warehouse: Path, **modes: str) -> IcebergSink:
    context = PluginContext("check", "check", "Sink[0]-Iceberg", Mode.STREAMING)
    return IcebergSink(options(warehouse, **modes), context)


def opened(warehouse: Path) -> StaticTable:
    """Return the table as the library finds it without a catalog."""
    return StaticTable.from_metadata(str(warehouse / "db" / "rows"))


def read(warehouse: Path) -> Iterable[tuple[int, str]]:
    table = opened(warehouse).scan().to_arrow()
    return zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)


def lose(warehouse: Path, committables: Sequence[Committable]) -> None:
    """Remove the last file that was staged."""
    content = committables[-1].content
    assert isinstance(content, dict)
    files = content["files"]
    assert isinstance(files, list)
    last = files[-1]
    assert isinstance(last, dict)
    (warehouse / "db" / "rows" / str(last["staged"])).unlink()


def put(warehouse: Path, rows: Sequence[tuple[int, str]]) -> None:
    """Add rows with the library's own writer."""
    ids, names = zip(*rows, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})
    open_catalog(options(warehouse)).load_table(("db", "rows")).append(table)


def staged(warehouse: Path) -> int:
    return sum(1 for _ in (warehouse / "db" / "rows" / "_holdfast").rglob("*.parquet"))


def watermark(warehouse: Path) -> int | None:
    """Return the latest watermark that a snapshot tells."""
    table = opened(warehouse)
    found = [
        s.summary.additional_properties["holdfast.watermark"]
        for s in table.snapshots()
        if s.summary and "holdfast.watermark" in s.summary.additional_properties
    ]
    return int(found[-1]) if found else None


@pytest.fixture(autouse=True, scope="module")
def _no_locks_between_tables() -> None:
    """Before Python 3.12 a cached_property has one lock for all objects of its class.  A committer
    that a check holds there would hold up others of this process, as no paused process does."""
    for name, module in list(sys.modules.items()):
        if name.startswith("pyiceberg."):
            for kind in vars(module).values():
                for value in vars(kind).values() if isinstance(kind, type) else ():
                    if isinstance(value, cached_property) and hasattr(value, "lock"):
                        value.lock = nullcontext()


@pytest.mark.parametrize("check", ALL)
def test_iceberg(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    world = _world(spark, tmp_path / "warehouse", data_save_mode="DROP_DATA")
    print(run_sink_check(check, world))


@pytest.mark.parametrize("check", OPENINGS)
def test_iceberg_makes_tables_anew(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    world = _world(spark, tmp_path / "warehouse", schema_save_mode="RECREATE_SCHEMA")
    print(run_sink_check(check, world))


def _world(spark: SparkSession, folder: Path, **modes: str) -> SinkWorld:
    return SinkWorld(
        spark,
        partial(open_sink, folder),
        partial(read, folder),
        lose=partial(lose, folder),
        foreign=partial(put, folder),
        staged=partial(staged, folder),
        watermark=partial(watermark, folder),
        emptying=partial(open_sink, folder, **modes),
    )
