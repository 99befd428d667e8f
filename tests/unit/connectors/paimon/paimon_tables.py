"""What the tests of the Paimon sink share: a sink, and Paimon's own library to look with."""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext, Table
from pyspark.sql import DataFrame

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Staging
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.model.job import Mode

PLACE = "shop.orders"
CONTEXT = PluginContext("7", "job", "Sink[0]-Paimon", Mode.BATCH)
FAR_FUTURE = dt.timedelta(hours=2)


def sink(warehouse: Path, **options: Any) -> PaimonSink:
    made = PaimonSinkOptions(
        warehouse=str(warehouse), database="${database_name}", table="${table_name}", **options
    )
    return PaimonSink(made, CONTEXT)


def folder(warehouse: Path) -> Path:
    return warehouse / "shop.db" / "orders"


def staged(one: PaimonSink, frame: DataFrame, number: int = 1) -> Sequence[Committable]:
    return one.write(Tables([Rows.of(PLACE, frame)]), Staging("7", "t", 1, number))


def put(one: PaimonSink, frame: DataFrame, number: int = 1, user: str = "u") -> int:
    """Write and commit rows; return how many were said to be written."""
    made = staged(one, frame, number)
    one.commit(CommitId(user, number), made)
    return sum(c.rows for c in made)


def opened(warehouse: Path) -> Table:
    return PaimonCatalog({"warehouse": str(warehouse)}).get_table(PLACE)


def read(warehouse: Path) -> list[dict[str, Any]]:
    """Return the rows that Paimon's own library finds, in the order of their first column."""
    builder = opened(warehouse).new_read_builder()
    batches = builder.new_read().read(builder.new_scan().plan().splits())
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: str(next(iter(row.values()))))


def ids(warehouse: Path) -> list[int]:
    return sorted(row["id"] for row in read(warehouse))


def sql(warehouse: Path, text: str) -> None:
    """Run a statement of Paimon's own library."""
    context = SQLContext()
    context.register_catalog("p", {"warehouse": str(warehouse)}, "")
    context.set_current_catalog("p")
    context.sql(text)


def stranger(warehouse: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    """Add rows with the library's own writer."""
    builder = opened(warehouse).new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.RecordBatch.from_pylist(rows, schema=schema))
    builder.new_commit().commit(writer.prepare_commit())


def snapshots(warehouse: Path) -> list[dict[str, Any]]:
    """Return all snapshots, the oldest first."""
    found = (folder(warehouse) / "snapshot").glob("snapshot-*")
    return sorted((json.loads(path.read_text()) for path in found), key=lambda s: int(s["id"]))


def avro(warehouse: Path, name: str) -> list[dict[str, Any]]:
    with (folder(warehouse) / "manifest" / name).open("rb") as file:
        return [dict(record) for record in fastavro.reader(file) if isinstance(record, dict)]


def entries(warehouse: Path) -> list[dict[str, Any]]:
    """Return the files that the latest snapshot has added."""
    last = snapshots(warehouse)[-1]
    listed = avro(warehouse, last["deltaManifestList"])
    return [entry for one in listed for entry in avro(warehouse, one["_FILE_NAME"])]
