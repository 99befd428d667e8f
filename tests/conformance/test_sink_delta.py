"""Delta keeps the contract of sinks; the library's own reader reads what it has written."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Committable
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.model.job import Mode
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.sink_checks import ALL, OPENINGS, chosen


def open_sink(folder: Path, **modes: str) -> DeltaSink:
    options = DeltaSinkOptions(path=str(folder), **chosen(modes))
    return DeltaSink(options, PluginContext("check", "check", "Sink[0]-Delta", Mode.STREAMING))


def read(folder: Path) -> Iterable[tuple[int, str]]:
    table = DeltaTable(folder).to_pyarrow_table()
    return zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)


def lose(folder: Path, committables: Sequence[Committable]) -> None:
    """Remove the last file that was staged."""
    content = committables[-1].content
    assert isinstance(content, dict)
    files = content["files"]
    assert isinstance(files, list)
    last = files[-1]
    assert isinstance(last, dict)
    (folder / str(last["staged"])).unlink()


def put(folder: Path, rows: Sequence[tuple[int, str]]) -> None:
    ids, names = zip(*rows, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})
    write_deltalake(folder, table, mode="append")


def staged(folder: Path) -> int:
    return sum(1 for _ in (folder / "_holdfast").rglob("*.parquet"))


def watermark(folder: Path) -> int | None:
    """Return the latest watermark that the log tells."""
    found = [
        h["holdfast.watermark"] for h in DeltaTable(folder).history() if "holdfast.watermark" in h
    ]
    return int(found[0]) if found else None


@pytest.mark.parametrize("check", ALL)
def test_delta(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    print(run_sink_check(check, _world(spark, tmp_path / "out", data_save_mode="DROP_DATA")))


@pytest.mark.parametrize("check", OPENINGS)
def test_delta_makes_tables_anew(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    world = _world(spark, tmp_path / "out", schema_save_mode="RECREATE_SCHEMA")
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
