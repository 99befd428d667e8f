"""What the tests of lake tables share: a sink of each kind, and ways to look at what it left."""

import json
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Sink, Staging
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.errors import SourceLocation as FilePlace
from holdfast.model.job import Mode, Role, Stage
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.tree import Block
from holdfast.model.types import parse_type
from holdfast.worker.failures import explained

PLACE = "shop.orders"
SINKS = ("delta", "iceberg", "paimon")


def context(name: str) -> PluginContext:
    return PluginContext("7", "job", f"Sink[0]-{name}", Mode.BATCH)


def delta(path: Path, **options: Any) -> DeltaSink:
    return DeltaSink(DeltaSinkOptions(path=str(path / "delta"), **options), context("Delta"))


def iceberg(path: Path, **options: Any) -> IcebergSink:
    catalog = {"type": "hadoop", "warehouse": str(path)}
    made = IcebergSinkOptions(catalog=catalog, namespace="${database_name}", **options)
    return IcebergSink(made, context("Iceberg"))


def paimon(path: Path, **options: Any) -> PaimonSink:
    named = {"warehouse": str(path), "database": "${database_name}", "table": "${table_name}"}
    return PaimonSink(PaimonSinkOptions(**named, **options), context("Paimon"))


def partitioned(kind: str, path: Path, by: str) -> Sink[Any]:
    """Return a sink of one kind that partitions its table."""
    if kind == "delta":
        return delta(path, partition_keys=[by])
    return (
        iceberg(path, partition_keys=by) if kind == "iceberg" else paimon(path, partition_keys=by)
    )


def put(one: Sink[Any], rows: DataFrame | Rows, number: int = 1) -> int:
    """Write and commit rows, as a worker does."""
    given = rows if isinstance(rows, Rows) else Rows.of(PLACE, rows)
    here = FilePlace("job.conf", 1, 1)
    stage = Stage("sink", Role.SINK, one.name, Block((), here), (), None, 1, here)
    with explained(stage):
        made = one.write(Tables([given]), Staging("7", "t", 1, number))
    one.commit(CommitId("u", number), made)
    return sum(c.rows for c in made)


def adds(path: Path) -> list[dict[str, Any]]:
    """Return what the log of a Delta table says of its files."""
    lines = [
        json.loads(line)
        for version in sorted((path / "delta" / "_delta_log").glob("*.json"))
        for line in version.read_text().splitlines()
    ]
    return [line["add"] for line in lines if "add" in line]


def opened(path: Path) -> StaticTable:
    return StaticTable.from_metadata(str(path / "shop" / "orders"))


def table(**columns: str) -> Table:
    made = tuple(Column(name, parse_type(kind)) for name, kind in columns.items())
    return Table(TablePath.parse(PLACE), made)
