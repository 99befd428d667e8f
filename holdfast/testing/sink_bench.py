"""What a check of a sink works with: slices of known rows, fresh sinks, and an independent reader.

Rows are numbered, and no number is used twice in a check: what a reader sees tells which slices
are in, and how often.  Everything a slice leaves for its commit passes through JSON, as it does in
a checkpoint, and every call may be made by a sink of its own: between any two a process has died.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Committable, Leftovers, Sink, Staging
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.tree import Plain
from holdfast.model.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB, LIFE, TASK = "check", "i1", "task-1"
RETRY_S = 0.05
WRITERS = 3

Row = tuple[int, str]


@dataclass(frozen=True)
class SinkWorld:
    """A table that nobody else uses, and how to reach it.

    `open` returns a new sink for the table each time; it is also called in other processes, so it
    must be picklable: a function of a module, or a `functools.partial` of one.  `read` returns
    the (id, name) pairs that a reader which is not the sink's own code finds, in any order.
    """

    spark: "SparkSession"
    open: Callable[[], Sink[Any]]
    read: Callable[[], Iterable[Row]]
    path: str = "db.rows"

    lose: Callable[[Sequence[Committable]], None] | None = None
    """Take something away of what was staged, as a careless person would."""

    foreign: Callable[[Sequence[Row]], None] | None = None
    """Put rows in as another program does; without it, another job of ours does."""

    staged: Callable[[], int] | None = None
    """Count what is staged now, whoever staged it."""

    watermark: Callable[[], int | None] | None = None
    """Return the watermark that the table itself tells its readers."""

    emptying: Callable[[], Sink[Any]] | None = None
    """Open a sink for the table whose save mode removes what is there."""

    patience_s: float = 60.0
    """How long a commit may be in the way of another one's before that is being stuck."""

    @property
    def table(self) -> Table:
        """The table as a plan knows it."""
        columns = (Column("id", Type("bigint")), Column("name", Type("string")))
        return Table(TablePath.parse(self.path), columns)


@dataclass(frozen=True)
class Slice:
    """A slice that was staged: its rows, and what their commit needs."""

    first: int
    end: int
    committables: tuple[Committable, ...]

    @property
    def ids(self) -> range:
        """The numbers of its rows."""
        return range(self.first, self.end)


@dataclass
class SinkBench:
    """The surroundings of one check."""

    world: SinkWorld
    next_id: int = 0
    next_slice: int = 0
    next_user: int = 0
    foreign_ids: list[int] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """What was measured, for whoever wants to print it."""

    def prepare(self) -> None:
        """Make the table, as a job does that starts."""
        self.world.open().prepare([self.world.table])

    def user(self) -> str:
        """Return a commit user that nobody else is."""
        self.next_user += 1
        return f"{JOB}.{LIFE}-1-Sink[{self.next_user}]"

    def write(
        self, rows: int = 2, *, pieces: int = 1, task: str = TASK, attempt: int = 1,
        life: str = LIFE, sink: Sink[Any] | None = None,
    ) -> Slice:  # fmt: skip
        """Stage a slice of new rows, with a sink of its own unless one is given."""
        staging = Staging(JOB, task, attempt, 0, life)
        return self._stage(self._reserve(rows), pieces, staging, sink)

    def write_many(self, count: int, rows: int = 2) -> list[Slice]:
        """Stage several slices, some at the same time."""
        reserved = [self._reserve(rows) for _ in range(count)]
        staging = Staging(JOB, TASK, 1, 0, LIFE)
        with ThreadPoolExecutor(WRITERS) as pool:
            return list(pool.map(lambda r: self._stage(r, 1, staging), reserved))

    def commit(
        self, user: str, number: int, committables: Sequence[Committable] | Slice,
        sink: Sink[Any] | None = None, watermark: int | None = None,
    ) -> None:  # fmt: skip
        """Commit as a leader does: until it is said to be done, with a sink of its own each try."""
        made = committables.committables if isinstance(committables, Slice) else committables
        identifier = CommitId(user, number, watermark)
        commit_until_done(sink, self.world.open, identifier, made, self.world.patience_s)

    def abort(self, one: Slice) -> None:
        """Remove a slice that will not be committed."""
        self.world.open().abort(one.committables)

    def sweep(self, life: str = LIFE, task: str | None = None, before: int | None = None) -> None:
        """Remove leftovers."""
        self.world.open().sweep(Leftovers(JOB, life, task, before))

    def foreign(self) -> None:
        """Let somebody else put two rows into the table."""
        first = self._reserve(2)[0]
        self.foreign_ids += [first, first + 1]
        if self.world.foreign:
            self.world.foreign([row_of(first), row_of(first + 1)])
        else:
            other = self._stage((first, first + 2, self.next_slice), 1, _foreign_staging())
            self.commit(f"other-{first}", 1, other)

    def shows(self, promise: str, *slices: Slice) -> None:
        """Fail unless a reader finds exactly these slices and what foreigners put in."""
        wanted = Counter(row_of(n) for one in slices for n in one.ids)
        wanted += Counter(row_of(n) for n in self.foreign_ids)
        seen = Counter((int(number), str(name)) for number, name in self.world.read())
        if seen != wanted:
            raise AssertionError(
                f"broken promise: {promise}; missing: {_some(wanted - seen)};"
                f" too many: {_some(seen - wanted)}"
            )

    def _reserve(self, rows: int) -> tuple[int, int, int]:
        first, number = self.next_id, self.next_slice
        self.next_id += rows
        self.next_slice += 1
        return first, first + rows, number

    def _stage(
        self, reserved: tuple[int, int, int], pieces: int, staging: Staging,
        sink: Sink[Any] | None = None,
    ) -> Slice:  # fmt: skip
        first, end, number = reserved
        frame = self.world.spark.range(first, end, 1, pieces)
        frame = frame.selectExpr("id", "concat('row ', id) AS name")
        this = Staging(staging.job_id, staging.task, staging.attempt, number, staging.incarnation)
        # Every other slice can be written without Spark's engine, as a plain copy is.
        batches = self._batches(first, end, pieces) if number % 2 else None
        rows = Rows(Rows.of(self.world.table, frame).table, frame, batches)
        made = (sink or self.world.open()).write(Tables([rows]), this)
        return Slice(first, end, tuple(as_stored(c) for c in made))

    def _batches(self, first: int, end: int, pieces: int) -> ArrowRows:
        cuts = [first + (end - first) * n // pieces for n in range(pieces + 1)]
        splits: tuple[Plain, ...] = tuple([low, high] for low, high in pairwise(cuts))
        return ArrowRows(self.world.spark, self.world.table.columns, splits, read_numbers, 0)


def read_numbers(split: Plain) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these numbers; called inside Spark's Python workers."""
    first, end = cast(list[int], split)
    rows = [row_of(number) for number in range(first, end)]
    yield pa.RecordBatch.from_pydict(
        {
            "id": pa.array([number for number, _ in rows], pa.int64()),
            "name": pa.array([name for _, name in rows], pa.string()),
        }
    )


def commit_until_done(
    sink: Sink[Any] | None,
    open: Callable[[], Sink[Any]],
    identifier: CommitId,
    committables: Sequence[Committable],
    patience_s: float,
) -> None:
    """Commit and, where that may work later or its outcome is unknown, commit again."""
    until = time.monotonic() + patience_s
    while True:
        try:
            (sink or open()).commit(identifier, committables)
            return
        except (Unavailable, OutcomeUnknown, OSError) as error:
            if time.monotonic() > until:
                raise AssertionError(
                    f"broken promise: a commit is not stuck; commit {identifier.number} of"
                    f" {identifier.user} was not done after {patience_s} s: {error}"
                ) from error
            time.sleep(RETRY_S)


def as_stored(committable: Committable) -> Committable:
    """Return a committable as a checkpoint gives it back."""
    return Committable(**json.loads(json.dumps(asdict(committable))))


def row_of(number: int) -> Row:
    """Return the row of this number."""
    return number, f"row {number}"


def _foreign_staging() -> Staging:
    return Staging("other", TASK, 1, 0, "i9")


def _some(rows: "Counter[Row]") -> str:
    listed = sorted(rows.elements())
    return (
        f"{len(listed)} rows {listed[:6]}{'...' if len(listed) > 6 else ''}" if listed else "none"
    )
