"""Write tables with our sinks, and compare what others find in them with the rows that went in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Sink, Staging
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.model.job import Mode
from tests.interop.cases import VALUES, predicates, read_sql
from tests.interop.engine import Engine
from tests.interop.reference import plain

KINDS = ("delta", "iceberg", "paimon")
FILES = 5
"""Into so many files rows are written, sorted, so that bounds tell which to skip."""

Found = list[list[Any]]


@dataclass(eq=False)
class World:
    """Our Spark, the reference engines, and the folder of all tables."""

    spark: SparkSession
    engine: Engine
    folder: Path
    numbers: dict[str, int] = field(default_factory=dict)

    def sink(
        self, kind: str, name: str, by: Sequence[str] = (), keys: str = "", **options: str
    ) -> Sink[Any]:
        """Return a sink for one table; `options` are those of a new table."""
        context = PluginContext("7", "job", f"Sink[0]-{kind}", Mode.BATCH)
        if kind == "delta":
            path = str(self.folder / "delta" / name)
            given = DeltaSinkOptions(path=path, partition_keys=list(by), table_properties=options)
            return DeltaSink(given, context)
        if kind == "iceberg":
            catalog = {"type": "hadoop", "warehouse": str(self.folder / "warehouse")}
            made = IcebergSinkOptions(
                catalog=catalog, namespace="db", table=name, partition_keys=",".join(by),
                create_props=options,
            )  # fmt: skip
            return IcebergSink(made, context)
        return PaimonSink(
            PaimonSinkOptions(
                warehouse=self.paimon, database="db", table=name, partition_keys=",".join(by),
                primary_keys=keys, write_props=options,
            ),
            context,
        )  # fmt: skip

    @property
    def paimon(self) -> str:
        """The warehouse of Paimon's tables."""
        return str(self.folder / "paimon")

    def put(self, one: Sink[Any], rows: DataFrame | Rows) -> None:
        """Write and commit rows, as a worker and a leader would."""
        number = self.numbers["commits"] = self.numbers.get("commits", 0) + 1
        given = rows if isinstance(rows, Rows) else Rows.of("db.rows", rows)
        made = one.write(Tables([given]), Staging("7", "t", 1, number))
        one.commit(CommitId("u", number), made)

    def named(self, kind: str, name: str) -> str:
        """Return a table as the reference Spark calls it."""
        return f"delta.`{self.path(kind, name)}`" if kind == "delta" else f"ice.db.{name}"

    def path(self, kind: str, name: str) -> str:
        """Return the folder of a table."""
        return str(self.folder / ("delta" if kind == "delta" else "warehouse/db") / name)

    def read(self, reader: str, kind: str, name: str, columns: Sequence[str]) -> Found:
        """Have a reader read a whole table; return its rows by their ids."""
        path = self.path(kind, name)
        if reader == "spark":
            chosen = read_sql([*columns, "id"])
            rows = self.engine.sql(f"SELECT {chosen} FROM {self.named(kind, name)}")
        elif reader == "java":
            rows = self.engine.ask("paimon_read", warehouse=self.paimon, table=f"db.{name}")
        elif reader in ("polars", "daft"):
            rows = self.engine.ask(reader, path=path, kind=kind)
        else:
            rows = self.engine.ask(reader, path=path)
        return by_id(rows, columns)

    def expected(self, sql: str, columns: Sequence[str]) -> Found:
        """Return the rows of a query of ours in the plain form."""
        chosen = read_sql([*columns, "id"])
        rows = self.spark.sql(f"SELECT {chosen} FROM ({sql})").collect()
        return by_id([plain(row) for row in rows], columns)

    def expected_rows(self, sql: str) -> Found:
        """Return the rows of a query of ours in the plain form, in their order."""
        return [plain(row) for row in self.spark.sql(sql).collect()]

    def found_by(self, kind: str, name: str, asked: Sequence[str]) -> list[list[int]]:
        """Return the ids that the reference Spark finds with each predicate."""
        found: list[list[int]] = self.engine.ask(
            "ids", table=self.named(kind, name), predicates=list(asked)
        )
        return found

    def expected_by(self, sql: str, asked: Sequence[str]) -> list[list[int]]:
        """Return the ids of rows of a query of ours for which each predicate is true."""
        truths = ", ".join(f"({one}) AS p{n}" for n, one in enumerate(asked))
        rows = self.spark.sql(f"SELECT id, {truths} FROM ({sql})").collect()
        return [sorted(r["id"] for r in rows if r[f"p{n}"]) for n in range(len(asked))]

    def spread(self, sql: str) -> DataFrame:
        """Return the rows of a query in several files, sorted by their ids."""
        return self.spark.sql(sql).repartitionByRange(FILES, "id").sortWithinPartitions("id")

    def as_batches(self, sql: str) -> Rows:
        """Return the rows of a query as tasks carry them in Arrow, a file for each two rows."""
        whole: Any = self.spark.sql(sql).orderBy("id").toArrow().combine_chunks()
        (batch,) = whole.to_batches()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue().to_pybytes()

        def read(split: Any) -> Iterator[pa.RecordBatch]:
            (again,) = pa.ipc.open_stream(data)
            yield again.slice(split, 2)

        rows = Rows.of("db.rows", self.spark.sql(sql))
        splits = tuple(range(0, batch.num_rows, 2))
        batches = ArrowRows(self.spark, rows.table.columns, splits, read, 100)
        return Rows(rows.table, batches.frame, batches)


def by_id(rows: Found, columns: Sequence[str]) -> Found:
    """Return rows in the order of their ids, which stand where their name does."""
    at = sorted([*columns, "id"]).index("id")
    return sorted(rows, key=lambda row: int(row[at]))


def differences(
    world: World, kind: str, name: str, sql: str, columns: Sequence[str],
    asked_of: Sequence[str] | None = None,
) -> list[str]:  # fmt: skip
    """Say how what the reference Spark finds in a table differs from the rows that went in.

    Predicates are asked of some columns, or of all.
    """
    found = world.read("spark", kind, name, columns)
    wanted = world.expected(sql, columns)
    wrong = [f"{row} is {other}" for row, other in zip(wanted, found, strict=False) if row != other]
    if len(found) != len(wanted):
        wrong.append(f"{len(wanted)} rows went in, {len(found)} came back")
    chosen = [c for c in asked_of or columns if c in VALUES]
    asked = list(predicates(None if chosen == list(VALUES) else chosen))
    told, there = world.expected_by(sql, asked), world.found_by(kind, name, asked)
    pairs = zip(asked, told, there, strict=True)
    wrong += [f"{one}: {want}, not {other}" for one, want, other in pairs if want != other]
    return wrong
