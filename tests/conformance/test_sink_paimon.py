"""Paimon keeps the contract of sinks; Paimon's own library reads what it has written."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pypaimon_rust.datafusion import PaimonCatalog, Table
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Committable
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.model.job import Mode
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.sink_checks import ALL, LONG, OPENINGS, chosen

CONTEXT = PluginContext("check", "check", "Sink[0]-Paimon", Mode.STREAMING)


def open_sink(warehouse: Path, **modes: str) -> PaimonSink:
    options = PaimonSinkOptions(
        warehouse=str(warehouse), database="db", table="rows", **chosen(modes)
    )
    return PaimonSink(options, CONTEXT)


def open_keyed(warehouse: Path, **modes: str) -> PaimonSink:
    options = PaimonSinkOptions(
        warehouse=str(warehouse), database="db", table="rows", primary_keys="id",
        write_props={"bucket": "2", "sequence.field": "name"}, **chosen(modes),
    )  # fmt: skip
    return PaimonSink(options, CONTEXT)


def folder(warehouse: Path) -> Path:
    return warehouse / "db.db" / "rows"


def opened(warehouse: Path) -> Table:
    """Return the table as the library finds it."""
    return PaimonCatalog({"warehouse": str(warehouse)}).get_table("db.rows")


def read(warehouse: Path) -> Iterable[tuple[int, str]]:
    reader = opened(warehouse).new_read_builder()
    for batch in reader.new_read().read(reader.new_scan().plan().splits()):
        yield from zip(batch["id"].to_pylist(), batch["name"].to_pylist(), strict=True)


def lose(warehouse: Path, committables: Sequence[Committable]) -> None:
    """Remove the last file that was staged."""
    content = committables[-1].content
    assert isinstance(content, dict)
    files = content["files"]
    assert isinstance(files, list)
    last = files[-1]
    assert isinstance(last, dict)
    (folder(warehouse) / str(last["staged"])).unlink()


def put(warehouse: Path, rows: Sequence[tuple[int, str]]) -> None:
    """Add rows with the library's own writer."""
    ids, names = zip(*rows, strict=True)
    table = opened(warehouse)
    key = pa.field("id", pa.int64(), nullable=not table.schema().primary_keys())
    schema = pa.schema([key, ("name", pa.string())])
    batch = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(names)], schema=schema)
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(batch)
    builder.new_commit().commit(writer.prepare_commit())


def staged(warehouse: Path) -> int:
    return sum(1 for _ in (folder(warehouse) / "_holdfast").rglob("*.parquet"))


def watermark(warehouse: Path) -> int | None:
    """Return the watermark of the latest snapshot."""
    snapshots = folder(warehouse) / "snapshot"
    latest = json.loads((snapshots / f"snapshot-{(snapshots / 'LATEST').read_text()}").read_text())
    found = latest.get("watermark")
    return None if found is None else int(found)


@pytest.mark.parametrize("check", ALL)
def test_paimon(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    print(run_sink_check(check, world(spark, tmp_path, open_sink)))


@pytest.mark.parametrize("check", LONG)
def test_paimon_with_primary_key(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    print(run_sink_check(check, world(spark, tmp_path, open_keyed)))


@pytest.mark.parametrize("check", OPENINGS)
def test_paimon_makes_tables_anew(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    made = world(spark, tmp_path, open_sink, schema_save_mode="RECREATE_SCHEMA")
    print(run_sink_check(check, made))


def world(
    spark: SparkSession, warehouse: Path, open: Callable[..., PaimonSink], **modes: str
) -> SinkWorld:
    modes = modes or {"data_save_mode": "DROP_DATA"}
    return SinkWorld(
        spark,
        partial(open, warehouse),
        partial(read, warehouse),
        lose=partial(lose, warehouse),
        foreign=partial(put, warehouse),
        staged=partial(staged, warehouse),
        watermark=partial(watermark, warehouse),
        emptying=partial(open, warehouse, **modes),
    )
