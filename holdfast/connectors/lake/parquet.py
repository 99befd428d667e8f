"""Write Arrow batches as Parquet files, inside Spark's Python workers.

The files are those that Spark would write, as far as readers can tell: the same types, stored the
same way.  Each task writes under names that nobody else has, so that one that runs twice leaves two
files, and only those that Spark reports are committed.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.connect.batches import Batches
from holdfast.connectors.lake.place import Place
from holdfast.model.tree import Plain

GROUP_BYTES = 64 << 20
"""How much a row group has before it is encoded and compressed."""

CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}
"""What Arrow calls the codecs that Spark has other names for."""

ARROWS_FIELD_ID = b"PARQUET:field_id"

WITH_NAN = "holdfast.columns-with-nan"
"""What a footer calls the columns with a NaN: Arrow leaves NaN out of the bounds of a column."""


@dataclass(frozen=True, slots=True)
class ParquetWriter:
    """Writes the rows of one split, in files of at most `rows_max` rows (0: in one file)."""

    folder: Place
    codec: str
    rows_max: int
    field_ids: tuple[tuple[str, int], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Plain]:
        """Write all rows; yield path and rows of each file."""
        for number, some in enumerate(_limited(batches, self.rows_max)):
            yield self._write(some, number)

    def _write(self, batches: Iterator[pa.RecordBatch], number: int) -> Plain:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        # Spark's own numbers begin anew with each Spark, and a table keeps a file's name for ever.
        name = f"part-{task.partitionId():05d}-{uuid.uuid4()}-{number:05d}.parquet"
        rows, writer = 0, None
        with_nan: dict[str, None] = {}
        try:
            for group in _grouped(batches):
                if writer is None:
                    writer = self._open(name, group.schema)
                writer.write_table(group, row_group_size=group.num_rows)
                rows += group.num_rows
                with_nan |= dict.fromkeys(_with_nan(group))
            if writer and with_nan:
                writer.add_key_value_metadata({WITH_NAN: json.dumps(list(with_nan))})
        finally:
            if writer:
                writer.close()
        return [name, rows]

    def _open(self, name: str, schema: pa.Schema) -> pq.ParquetWriter:
        codec: Any = CODECS.get(self.codec, self.codec)
        ids = dict(self.field_ids)
        fields = [
            field.with_metadata({ARROWS_FIELD_ID: str(ids[field.name])}) if ids else field
            for field in schema
        ]
        return pq.ParquetWriter(
            f"{self.folder.path}/{name}", pa.schema(fields), filesystem=self.folder.files,
            compression=codec, store_decimal_as_integer=True, store_schema=False,
        )  # fmt: skip


def write_batches(
    batches: Batches,
    folder: Place,
    *,
    codec: str,
    rows_max: int = 0,
    field_ids: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Have Spark's tasks write rows into a new folder; return the rows of each file in it."""
    # Here and not in the tasks: one that goes on after it was cancelled must not bring back a
    # folder that was swept.
    folder.files.create_dir(folder.path, recursive=True)
    writer = ParquetWriter(folder, codec, rows_max, tuple((field_ids or {}).items()))
    made: dict[str, int] = {}
    for said in batches.run(writer):
        assert isinstance(said, list)
        name, rows = said
        assert isinstance(name, str) and isinstance(rows, int)
        made[name] = rows
    return made


def _with_nan(group: pa.Table) -> Iterator[str]:
    """Yield the columns that have a NaN."""
    for name, column in zip(group.column_names, group.columns, strict=True):
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            yield name


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Gather batches until they make a row group."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _limited(
    batches: Iterator[pa.RecordBatch], rows_max: int
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Cut batches into runs of so many rows; each run must be used up before the next is asked."""
    full = (b for b in batches if b.num_rows)
    rest: list[pa.RecordBatch] = []

    def run() -> Iterator[pa.RecordBatch]:
        room = rows_max
        while batch := rest.pop() if rest else next(full, None):
            taken = batch.slice(0, room) if rows_max else batch
            room -= taken.num_rows
            if taken.num_rows < batch.num_rows:
                rest.append(batch.slice(taken.num_rows))
            yield taken
            if rows_max and not room:
                return

    while rest or (head := next(full, None)):
        if not rest:
            assert head is not None
            rest.append(head)
        yield run()
