"""LocalFile keeps the contract of sinks; pyarrow reads what it has written."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Committable
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.writer import LocalFileSink
from holdfast.connectors.save_modes import DataSaveMode
from holdfast.model.job import Mode
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.sink_checks import ALL


def open_sink(folder: Path, mode: DataSaveMode = DataSaveMode.APPEND_DATA) -> LocalFileSink:
    options = LocalFileSinkOptions(
        path=str(folder), file_format_type=FileFormat.PARQUET, data_save_mode=mode
    )
    return LocalFileSink(
        options, PluginContext("check", "check", "Sink[0]-LocalFile", Mode.STREAMING)
    )


def visible(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*.parquet") if ".holdfast" not in p.parts]


def read(folder: Path) -> Iterable[tuple[int, str]]:
    for path in visible(folder):
        table = pq.read_table(path)
        yield from zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)


def lose(folder: Path, committables: Sequence[Committable]) -> None:
    """Remove the last file that was staged."""
    content = committables[-1].content
    assert isinstance(content, dict)
    files = content["files"]
    assert isinstance(files, list)
    last = files[-1]
    assert isinstance(last, list)
    (folder / str(last[0])).unlink()


def put(folder: Path, rows: Sequence[tuple[int, str]]) -> None:
    ids, names = zip(*rows, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": list(names)})
    pq.write_table(table, folder / f"theirs-{ids[0]}.parquet")


def staged(folder: Path) -> int:
    hidden = folder / ".holdfast"
    return sum(1 for p in hidden.rglob("*.parquet")) if hidden.is_dir() else 0


@pytest.mark.parametrize("check", ALL)
def test_local_file(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    world = SinkWorld(
        spark,
        partial(open_sink, folder),
        partial(read, folder),
        lose=partial(lose, folder),
        foreign=partial(put, folder),
        staged=partial(staged, folder),
        emptying=partial(open_sink, folder, DataSaveMode.DROP_DATA),
    )
    print(run_sink_check(check, world))
