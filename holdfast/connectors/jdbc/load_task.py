"""What a Spark task does: load its rows into a staging table, under its own chunk number.

Each task of a job imports this again, so it imports little.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from holdfast.connectors.jdbc.database import STAGE, Database, Loading
from holdfast.connectors.jdbc.exact import Exact
from holdfast.connectors.jdbc.staged_rows import CHUNK, ORDER
from holdfast.errors import UserError
from holdfast.model.tree import Plain

RESULT = "chunk bigint, rows bigint, bytes bigint"
PARTITION_ROWS = 1 << 40
"""More rows than one Spark partition has."""


VALUES = ("22", "23")
"""SQLSTATE classes of values that do not fit."""

VALUE_NUMBERS = (1048, 1062, 1264, 1265, 1292, 1366, 1406, 1411, 3140, 4025)
"""Errors of MySQL that say the same."""

_STAGED = re.compile(rf"(?:COPY )?{STAGE}\w+(?:, line \d+,?)?")
_STAGED_COLUMN = re.compile(r"(column |[\"'`.])c(\d+)(?=[\"'`:,\s]|$)")
"""How a server names the columns of a staging table."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one task has loaded."""

    number: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LoadTask:
    """Loads the rows of one task.  Plain data, sent to Spark's workers."""

    database: Database
    loading: Loading
    ordered_here: bool
    """Whether the order of rows is the one they come in, for want of a better."""

    names: tuple[str, ...] = ()
    """What the columns are called in the stream."""

    exact: tuple[Exact, ...] = ()
    """The columns that the database might change a value of."""

    target: str = ""
    """The table that the rows are for, as messages name it."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Load rows; yield one row that counts them."""
        loaded = [cast(list[int], one) for one in self.load(batches)]
        values = [pa.array([one[i] for one in loaded], pa.int64()) for i in range(3)]
        yield pa.RecordBatch.from_arrays(values, names=["chunk", "rows", "bytes"])

    def load(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Plain]:
        """Load rows, if there are any; yield chunk, rows and bytes."""
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        chunk, first = task.taskAttemptId(), task.partitionId() * PARTITION_ROWS
        full = (b for b in batches if b.num_rows)
        head = next(full, None)
        if head is None:
            return
        try:
            found = self._load(head, full, chunk, first)
        except UserError as error:
            raise self._explained(error) from error
        yield [*found]

    def _explained(self, error: UserError) -> UserError:
        """Return what the server said of a staging table, about the table and its columns."""
        if error.code != "sink.refused":
            return error

        def named(found: re.Match[str]) -> str:
            number = int(found[2])
            return f"{found[1]}{self.names[number] if number < len(self.names) else found[0]}"

        said = _STAGED.sub(self.target, _STAGED_COLUMN.sub(named, str(error)))
        state, number = str(error.about.get("sqlstate", "")), error.about.get("number")
        remedy = ""
        if state.startswith(VALUES) or number in VALUE_NUMBERS:
            remedy = " Correct the value, convert it before (Sql), or change the column."
        message = f"Jdbc cannot write to {self.target}: {said}.{remedy}"
        return UserError(message, code=error.code, **error.about)

    def _load(
        self, head: pa.RecordBatch, rest: Iterator[pa.RecordBatch], chunk: int, first: int
    ) -> tuple[int, int, int]:
        rows = 0

        def whole() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in _chain(head, rest):
                made = self._whole(batch, chunk, first + rows)
                rows += batch.num_rows
                yield made

        size = self.database.load(self.loading, whole(), chunk)
        return chunk, rows, size

    def _whole(self, batch: pa.RecordBatch, chunk: int, first: int) -> pa.RecordBatch:
        """Add what only the task knows, and turn instants to UTC."""
        arrays: list[Any] = [_in_utc(column) for column in batch.columns]
        for one in self.exact:
            arrays[one.at] = one.sent(arrays[one.at], batch, self.names)
        names = list(batch.schema.names)
        count = batch.num_rows
        if self.ordered_here:
            names.append(ORDER)
            arrays.append(pa.array(np.arange(first, first + count), pa.int64()))
        if not self.loading.apart:
            names.append(CHUNK)
            arrays.append(pa.repeat(pa.scalar(chunk, pa.int64()), count))
        return pa.RecordBatch.from_arrays(arrays, names=names)


def _chain(head: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield head
    yield from rest


def _in_utc(values: Any) -> Any:
    if pa.types.is_timestamp(values.type) and values.type.tz:
        return values.cast(pa.timestamp("us", "UTC"))
    return values
