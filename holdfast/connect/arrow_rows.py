"""Rows that Spark's tasks carry as Arrow batches, without the JVM seeing a row.

A plain copy needs nothing of Spark but its scheduler: no expression is evaluated, nothing is
sorted.  A source whose slice can be read so hands over `ArrowRows` with the frame
(`Rows.batches`); a sink that can write so has `ArrowRows.run` call its writer inside Spark's
Python workers, once for each split.  What a transform returns has a frame alone, and so does
whatever a sink cannot write
itself: the frame is always there, and always gives the same rows.

Arrow reads on trust.  Where it might read a value differently from Spark, the reader raises
NotArrowReadable, and the slice is read again through the frame (`Source.read_carefully`).
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from holdfast.connect.inside import run_tasks
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import DataFrame, SparkSession


_spare: "WeakKeyDictionary[SparkContext, list[Accumulator[int]]]" = WeakKeyDictionary()
_lock = threading.Lock()


class Counter:
    """What tasks have added up so far: those of them that have ended.  Any thread may look."""

    def __init__(self, context: "SparkContext") -> None:
        self._context = context
        self._total: int | None = None
        with _lock:
            found = _spare.setdefault(context, [])
            self.accumulator = found.pop() if found else context.accumulator(0)
        self._began_at = self.accumulator.value

    @property
    def value(self) -> int:
        """The sum."""
        if self._total is not None:
            return self._total
        return self.accumulator.value - self._began_at

    def close(self) -> None:
        """Count no further; the sum stays.  May be repeated."""
        with _lock:
            if self._total is None:
                self._total = self.accumulator.value - self._began_at
                _spare[self._context].append(self.accumulator)


MALFORMED = "spark.malformed_record"
"""The code of an error about rows that must be read again with more care."""

Read = Callable[[Plain], Iterator["pa.RecordBatch"]]
Write = Callable[[Iterator["pa.RecordBatch"]], Iterable[Plain]]


class NotArrowReadable(Exception):
    """Arrow might read this differently from Spark; raised inside Spark's Python workers."""


_RAISED: dict[str, type[HoldfastError]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (UserError, Unavailable)
}


def _said_by(*names: str) -> "re.Pattern[str]":
    """Return what finds the last line of a stack trace of an exception with one of these names."""
    return re.compile(rf"^({'|'.join(map(re.escape, names))}): (.*)$", re.MULTILINE)


# Python writes a class with its module in front, so its name is asked for: it may change.
_OURS = _said_by(*_RAISED)
_NOT_READABLE = _said_by(f"{NotArrowReadable.__module__}.{NotArrowReadable.__qualname__}")


class ArrowCounts:
    """How many rows the tasks that have ended have moved.  Any thread may look."""

    def __init__(self) -> None:
        self._rows: Counter | None = None
        self._splits: Counter | None = None
        self.bytes = 0
        """About how much is read in all."""

    @property
    def read(self) -> int:
        """Rows read so far."""
        return self._rows.value if self._rows else 0

    @property
    def written(self) -> int:
        """Rows written so far by the tasks that read them."""
        return 0 if self._splits else self.read

    @property
    def splits(self) -> int:
        """Splits of a frame read so far: Spark takes each for a row that it has read."""
        return self._splits.value if self._splits else 0

    def begin(
        self, context: "SparkContext", size: int, frame: bool = False
    ) -> "list[Accumulator[int]]":
        """Return what tasks add to: their rows and, for a frame, the splits they read."""
        self.close()
        self.bytes = size
        self._rows = Counter(context)
        self._splits = Counter(context) if frame else None
        return [c.accumulator for c in (self._rows, self._splits) if c]

    def close(self) -> None:
        """Count no further: the slice is staged, or given up."""
        for counter in (self._rows, self._splits):
            if counter:
                counter.close()


@dataclass(frozen=True)
class ArrowRows:
    """What each of several Spark tasks reads, and how.

    `read` goes to Spark's workers: a plain function, or a small frozen object.  `splits` are what
    it takes, one for each task; `bytes` is about how much all of them read.
    """

    spark: "SparkSession"
    columns: tuple[Column, ...]
    splits: tuple[Plain, ...]
    read: Read
    bytes: int
    moved: ArrowCounts = field(default_factory=ArrowCounts, compare=False)

    def named(self, names: Mapping[str, str]) -> "ArrowRows":
        """Return some of the columns under other names: the new name, and the one it has here."""
        own = {c.name: c for c in self.columns}
        columns = tuple(replace(own[there], name=name) for name, there in names.items())
        return replace(self, columns=columns, read=_Named(self.read, dict(names)))

    def joined(self) -> "ArrowRows":
        """Return the same rows for one task alone."""
        return replace(self, splits=(list(self.splits),), read=_Joined(self.read))

    def run(self, write: Write) -> list[Plain]:
        """Have `write` called for each split; return what it yielded, in the order of splits.

        Raises what `write` has raised, if that was a UserError or Unavailable, and UserError with
        the code MALFORMED if rows must be read with more care.
        """
        texts = [json.dumps(split) for split in self.splits]
        context = self.spark.sparkContext
        work = _Copy(self.read, write, *self.moved.begin(context, self.bytes))
        with raised_by_tasks():
            return [json.loads(said) for said in run_tasks(context, work, texts)]

    def frame(self) -> "DataFrame":
        """Return the same rows as a frame, for stages that Spark must run."""
        ddl = ", ".join(f"`{c.name.replace('`', '``')}` {c.type.ddl}" for c in self.columns)
        count = len(self.splits)
        counters = self.moved.begin(self.spark.sparkContext, self.bytes, frame=True)
        work = _Rows(self.read, self.splits, *counters)
        return self.spark.range(0, count, 1, count).mapInArrow(work, ddl)


def not_plain(text: str) -> UserError | None:
    """Return the error that asks for more care, if tasks have failed because of that."""
    found = _NOT_READABLE.findall(text)
    said = found[-1][1] if found else ""
    return UserError(f"Spark must read this itself: {said}", code=MALFORMED) if found else None


def raised_in_task(text: str) -> HoldfastError | None:
    """Return the error of ours that a Python worker has raised, from what Spark says of it."""
    if again := not_plain(text):
        return again
    found = _OURS.findall(text)
    if not found:
        return None
    kind, message = found[-1]
    return _RAISED[kind](message, code="spark.task")


@contextmanager
def raised_by_tasks() -> Iterator[None]:
    """Raise what code of ours has raised inside Spark's Python workers, and Spark has wrapped."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        if raised := raised_in_task(str(error)):
            raise raised from error
        raise


@dataclass(frozen=True, slots=True)
class _Named:
    """Reads some columns under other names."""

    read: Read
    names: Mapping[str, str]

    def __call__(self, split: Plain) -> Iterator["pa.RecordBatch"]:
        for batch in self.read(split):
            yield batch.select(list(self.names.values())).rename_columns(list(self.names))


@dataclass(frozen=True, slots=True)
class _Joined:
    """Reads one split after another."""

    read: Read

    def __call__(self, split: Plain) -> Iterator["pa.RecordBatch"]:
        assert isinstance(split, list)
        for one in split:
            yield from self.read(one)


@dataclass(frozen=True, slots=True)
class _Copy:
    """What a worker does with the splits it is given: read, write, and say what was written."""

    read: Read
    write: Write
    rows: "Accumulator[int]"

    def __call__(self, _number: int, splits: Iterable[str]) -> Iterator[bytes]:
        for split in splits:
            for said in self.write(_counted(self.read(json.loads(split)), self.rows)):
                yield json.dumps(said).encode()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Reads the splits whose numbers a worker is given."""

    read: Read
    splits: tuple[Plain, ...]
    rows: "Accumulator[int]"
    begun: "Accumulator[int]"

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                assert isinstance(number, int)
                self.begun.add(1)
                yield from _counted(self.read(self.splits[number]), self.rows)


def _counted(
    batches: Iterator["pa.RecordBatch"], rows: "Accumulator[int]"
) -> Iterator["pa.RecordBatch"]:
    for batch in batches:
        rows.add(batch.num_rows)
        yield batch
