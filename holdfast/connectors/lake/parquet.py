"""Write Arrow batches as Parquet files, inside Spark's Python workers.

The files are those that Spark would write, as far as readers can tell: the same types, stored the
same way.  Each task writes under names that no other has, so that one that runs twice leaves two
files, and only those that Spark reports are committed.
"""

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connectors.lake.location import Location
from holdfast.model.tree import Plain

GROUP_BYTES = 64 << 20
"""How much a row group has before it is encoded and compressed."""

CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}
"""What Arrow calls the codecs that Spark has other names for."""

ARROWS_FIELD_ID = b"PARQUET:field_id"

FLOATS = "holdfast.float-columns"
"""What a footer calls what is known of float columns: nulls, and bounds where there is no NaN.

Arrow leaves NaN out of a column's statistics, and Spark, to which NaN is greater than all numbers,
would skip rows by them.  So these columns have none.
"""


@dataclass(slots=True)
class Floats:
    """What is known of a float column of a file: `low` is None as long as it has no number."""

    nulls: int = 0
    low: float | None = None
    high: float | None = None
    bounded: bool = True

    def add(self, column: "pa.ChunkedArray[Any]") -> None:
        """Look at the column in another group of rows."""
        self.nulls += column.null_count
        if pc.all(pc.is_finite(column)).as_py() is False:
            self.bounded = False  # neither NaN nor an infinity bounds anything
        pair: Any = pc.min_max(column).as_py()
        if self.bounded and pair["min"] is not None:
            self.low = pair["min"] if self.low is None else min(self.low, pair["min"])
            self.high = pair["max"] if self.high is None else max(self.high, pair["max"])

    def said(self) -> list[Any]:
        """Return nulls and bounds, which are not close by where they are zeros of any sign."""
        if not self.bounded or self.low is None or self.high is None:
            return [self.nulls, None, None]
        return [self.nulls, self.low or -0.0, self.high or 0.0]


@dataclass(frozen=True, slots=True)
class ParquetWriter:
    """Writes the rows of one split, in files of at most `rows_max` rows (0: in one file)."""

    folder: Location
    codec: str
    rows_max: int
    field_ids: tuple[tuple[str, int], ...]
    plain: frozenset[str] = frozenset()
    """Columns that get no dictionary."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Plain]:
        """Write all rows; yield path and rows of each file."""
        for number, some in enumerate(_limited(batches, self.rows_max)):
            yield self._write(some, number)

    def _write(self, batches: Iterator[pa.RecordBatch], number: int) -> Plain:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        # Spark's own numbers begin again with each Spark, and a table keeps a file's name.
        name = f"part-{task.partitionId():05d}-{uuid.uuid4()}-{number:05d}.parquet"
        rows, writer = 0, None
        floats: dict[str, Floats] = {}
        try:
            for group in _grouped(batches):
                if writer is None:
                    writer = self._open(name, group.schema)
                writer.write_table(group, row_group_size=group.num_rows)
                rows += group.num_rows
                for field in group.schema:
                    if pa.types.is_floating(field.type):
                        floats.setdefault(field.name, Floats()).add(group[field.name])
            if writer and floats:
                said = {name: known.said() for name, known in floats.items()}
                writer.add_key_value_metadata({FLOATS: json.dumps(said)})
        finally:
            if writer:
                writer.close()
        return [name, rows]

    def _open(self, name: str, schema: pa.Schema) -> pq.ParquetWriter:
        codec: Any = CODECS.get(self.codec, self.codec)
        with_dictionary: Any = [f.name for f in schema if f.name not in self.plain]
        ids = dict(self.field_ids)
        fields = [
            field.with_metadata({ARROWS_FIELD_ID: str(ids[field.name])}) if ids else field
            for field in schema
        ]
        return pq.ParquetWriter(
            f"{self.folder.path}/{name}", pa.schema(fields), filesystem=self.folder.files,
            compression=codec, store_decimal_as_integer=True, store_schema=False,
            use_dictionary=with_dictionary,
            write_statistics=[f.name for f in schema if not pa.types.is_floating(f.type)],
        )  # fmt: skip


def write_batches(
    batches: ArrowRows,
    folder: Location,
    *,
    codec: str,
    rows_max: int = 0,
    field_ids: Mapping[str, int] | None = None,
    plain: Collection[str] = (),
) -> dict[str, int]:
    """Have Spark's tasks write rows into a new folder; return the rows of each file in it."""
    # Here and not in the tasks: one that continues after it was cancelled must not bring back a
    # folder that was swept.
    folder.files.create_dir(folder.path, recursive=True)
    ids = tuple((field_ids or {}).items())
    writer = ParquetWriter(folder, codec, rows_max, ids, frozenset(plain))
    made: dict[str, int] = {}
    for said in batches.run(writer):
        assert isinstance(said, list)
        name, rows = said
        assert isinstance(name, str) and isinstance(rows, int)
        made[name] = rows
    return made


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
