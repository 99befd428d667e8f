"""Sinks for lake tables keep the contract of sinks; each format's own library reads the tables."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import StaticTable
from pypaimon_rust.datafusion import PaimonCatalog
from pypaimon_rust.datafusion import Table as ReadTable
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Committable, Sink
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.connectors.iceberg.catalog import open_catalog
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.model.job import Mode
from holdfast.testing.check_sink import SinkCheck, SinkWorld, run_sink_check
from tests.conformance.sink_checks import ALL, LONG, OPENINGS, chosen


class Lake(ABC):
    """A table of one format below a folder, as its own library reads and writes it."""

    name: ClassVar[str]

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where the table is."""

    @abstractmethod
    def sink(self, **modes: str) -> Sink[Any]:
        """Open the sink that is checked."""

    @abstractmethod
    def read(self) -> Iterable[tuple[int, str]]:
        """Return the rows that the library finds."""

    @abstractmethod
    def put(self, rows: Sequence[tuple[int, str]]) -> None:
        """Add rows with the library's own writer."""

    @abstractmethod
    def watermark(self) -> int | None:
        """Return the latest watermark in the table."""

    @property
    def context(self) -> PluginContext:
        """What the sink is opened with."""
        return PluginContext("check", "check", f"Sink[0]-{self.name}", Mode.STREAMING)

    def lose(self, committables: Sequence[Committable]) -> None:
        """Remove the last file that was staged."""
        content: Any = committables[-1].content
        (self.folder / content["files"][-1]["staged"]).unlink()

    def staged(self) -> int:
        """Return how many files are staged."""
        return sum(1 for _ in (self.folder / "_holdfast").rglob("*.parquet"))

    def world(self, spark: SparkSession, **modes: str) -> SinkWorld:
        """Return what a check needs; `modes` are save modes that empty the table."""
        return SinkWorld(
            spark,
            self.sink,
            self.read,
            lose=self.lose,
            foreign=self.put,
            staged=self.staged,
            watermark=self.watermark,
            emptying=partial(self.sink, **modes),
        )


class Delta(Lake):
    """Delta, with the library in Rust."""

    name = "Delta"

    @property
    def folder(self) -> Path:
        return self.root / "out"

    def sink(self, **modes: str) -> DeltaSink:
        options = DeltaSinkOptions(path=str(self.folder), **chosen(modes))
        return DeltaSink(options, self.context)

    def read(self) -> Iterable[tuple[int, str]]:
        return pairs(DeltaTable(self.folder).to_pyarrow_table())

    def put(self, rows: Sequence[tuple[int, str]]) -> None:
        write_deltalake(self.folder, pa.table(columns(rows)), mode="append")

    def watermark(self) -> int | None:
        history = DeltaTable(self.folder).history()
        found = [h["holdfast.watermark"] for h in history if "holdfast.watermark" in h]
        return int(found[0]) if found else None


class Iceberg(Lake):
    """Iceberg in a catalog of folders, with the library in Python."""

    name = "Iceberg"

    @property
    def folder(self) -> Path:
        return self.root / "warehouse" / "db" / "rows"

    def options(self, **modes: str) -> IcebergSinkOptions:
        """Return the options of the sink."""
        catalog = {"type": "hadoop", "warehouse": (self.root / "warehouse").as_uri()}
        return IcebergSinkOptions(catalog=catalog, namespace="db", table="rows", **chosen(modes))

    def sink(self, **modes: str) -> IcebergSink:
        return IcebergSink(self.options(**modes), self.context)

    def opened(self) -> StaticTable:
        """Return the table as the library finds it without a catalog."""
        return StaticTable.from_metadata(str(self.folder))

    def read(self) -> Iterable[tuple[int, str]]:
        return pairs(self.opened().scan().to_arrow())

    def put(self, rows: Sequence[tuple[int, str]]) -> None:
        table = open_catalog(self.options()).load_table(("db", "rows"))
        table.append(pa.table(columns(rows)))

    def watermark(self) -> int | None:
        found = [
            s.summary.additional_properties["holdfast.watermark"]
            for s in self.opened().snapshots()
            if s.summary and "holdfast.watermark" in s.summary.additional_properties
        ]
        return int(found[-1]) if found else None


class Paimon(Lake):
    """Paimon without a primary key, with the library in Rust."""

    name = "Paimon"
    more: ClassVar[dict[str, Any]] = {}

    @property
    def folder(self) -> Path:
        return self.root / "db.db" / "rows"

    def sink(self, **modes: str) -> PaimonSink:
        where = {"warehouse": str(self.root), "database": "db", "table": "rows"}
        options = PaimonSinkOptions(**where, **self.more, **chosen(modes))
        return PaimonSink(options, self.context)

    def opened(self) -> ReadTable:
        """Return the table as the library finds it."""
        return PaimonCatalog({"warehouse": str(self.root)}).get_table("db.rows")

    def read(self) -> Iterable[tuple[int, str]]:
        reader = self.opened().new_read_builder()
        for batch in reader.new_read().read(reader.new_scan().plan().splits()):
            yield from pairs(batch)

    def put(self, rows: Sequence[tuple[int, str]]) -> None:
        table = self.opened()
        key = pa.field("id", pa.int64(), nullable=not table.schema().primary_keys())
        schema = pa.schema([key, ("name", pa.string())])
        batch = pa.RecordBatch.from_arrays([*columns(rows).values()], schema=schema)
        builder = table.new_batch_write_builder()
        writer = builder.new_write()
        writer.write_arrow(batch)
        builder.new_commit().commit(writer.prepare_commit())

    def watermark(self) -> int | None:
        snapshots = self.folder / "snapshot"
        latest = snapshots / f"snapshot-{(snapshots / 'LATEST').read_text()}"
        found = json.loads(latest.read_text()).get("watermark")
        return None if found is None else int(found)


class KeyedPaimon(Paimon):
    """Paimon with a primary key."""

    more: ClassVar[dict[str, Any]] = {
        "primary_keys": "id",
        "write_props": {"bucket": "2", "sequence.field": "name"},
    }


def columns(rows: Sequence[tuple[int, str]]) -> dict[str, "pa.Array[Any]"]:
    """Return rows as Arrow has them."""
    ids, names = zip(*rows, strict=True)
    return {"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())}


def pairs(table: pa.Table | pa.RecordBatch) -> Iterable[tuple[int, str]]:
    """Return rows of Arrow."""
    return zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True)


LAKES = pytest.mark.parametrize("lake", [Delta, Iceberg, Paimon])


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


@LAKES
@pytest.mark.parametrize("check", ALL)
def test_sink(check: SinkCheck, lake: type[Lake], spark: SparkSession, tmp_path: Path) -> None:
    print(run_sink_check(check, lake(tmp_path).world(spark, data_save_mode="DROP_DATA")))


@LAKES
@pytest.mark.parametrize("check", OPENINGS)
def test_sink_recreates_tables(
    check: SinkCheck, lake: type[Lake], spark: SparkSession, tmp_path: Path
) -> None:
    print(run_sink_check(check, lake(tmp_path).world(spark, schema_save_mode="RECREATE_SCHEMA")))


@pytest.mark.parametrize("check", LONG)
def test_paimon_with_primary_key(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
    print(run_sink_check(check, KeyedPaimon(tmp_path).world(spark, data_save_mode="DROP_DATA")))
