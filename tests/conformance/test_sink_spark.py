"""The save modes of Spark's sink into local files; pyarrow reads what it has written."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connectors.spark import SparkSink, SparkSinkOptions
from holdfast.model.job import Mode
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.sink_checks import OPENINGS


def open_sink(folder: Path, mode: Literal["append", "overwrite"]) -> SparkSink:
    options = SparkSinkOptions(format="parquet", path=str(folder), mode=mode)
    return SparkSink(options, PluginContext("check", "check", "Sink[0]-Spark", Mode.STREAMING))


def read(folder: Path) -> Iterable[tuple[int, str]]:
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        yield from zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)


@pytest.mark.parametrize("check", OPENINGS)
def test_spark(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    world = SinkWorld(
        spark,
        partial(open_sink, folder, "append"),
        partial(read, folder),
        emptying=partial(open_sink, folder, "overwrite"),
    )
    print(run_sink_check(check, world))
