"""Rows on their way: an ordered mapping from table path to DataFrame.

One source may hand over many tables.  A transform takes such a mapping and returns one, a sink
writes one.  Everything is lazy: Spark sees one plan from read to write.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.connect.arrow_rows import ArrowCounts, ArrowRows
from holdfast.connect.rejects import Counting
from holdfast.model.table import HIDDEN, KIND, Column, Table, TablePath
from holdfast.model.types import from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Rows:
    """The rows of one table: what is known about it, and the DataFrame that yields them.

    A changelog's DataFrame has the hidden column `__kind`; a table that only grows has none, and
    pays nothing for it.  Rows that Spark's tasks can carry as Arrow have `batches`, too; their
    frame is created on first use, because Spark's look at a plan takes its time.
    `rejects` counts the rows that the stage they come from leaves out, `moved` those that only
    Python workers see.
    """

    def __init__(
        self,
        table: Table,
        frame: "DataFrame | Callable[[], DataFrame]",
        batches: ArrowRows | None = None,
        rejects: Counting | None = None,
        moved: Sequence[ArrowCounts] = (),
    ) -> None:
        self.table = table
        self.batches = batches
        self.rejects = rejects
        self.moved = (batches.moved,) if batches else tuple(moved)
        self._frame = frame

    @property
    def frame(self) -> "DataFrame":
        """The rows, lazily."""
        if callable(self._frame):
            self._frame = self._frame()
        return self._frame

    @classmethod
    def of(cls, table: Table | TablePath | str, frame: "DataFrame") -> "Rows":
        """Wrap a DataFrame; its columns become the table's, declared details of them are kept."""
        if isinstance(table, str):
            table = TablePath.parse(table)
        if isinstance(table, TablePath):
            table = Table(table)
        found = tuple(
            Column(f.name, from_spark(f.dataType.jsonValue()), f.nullable)
            for f in frame.schema.fields
            if f.name not in HIDDEN
        )
        table = table.with_columns(found)
        return cls(replace(table, changelog=KIND in frame.columns), frame)

    def with_frame(self, frame: "DataFrame", rejects: Counting | None = None) -> "Rows":
        """Return the same table with other rows and, perhaps, other columns."""
        made = Rows.of(self.table, frame)
        made.rejects = rejects
        return made

    def renamed(self, path: TablePath) -> "Rows":
        """Return the same rows under another table path."""
        return Rows(replace(self.table, path=path), self._frame, self.batches)

    def projected(self, expressions: Mapping[str, str]) -> "Rows":
        """Return these visible columns alone: a Spark SQL expression for each name, in order."""
        own = {quote(n): n for n in self.table.names}
        if self.batches is None or not own.keys() >= set(expressions.values()):
            return self.with_frame(projected(self.visible, expressions))
        names = {name: own[sql] for name, sql in expressions.items()}
        batches = self.batches.named(names)
        table = self.table.with_columns(batches.columns)
        return Rows(table, lambda: projected(self.frame, expressions), batches)

    @property
    def visible(self) -> "DataFrame":
        """The frame without hidden columns, for sinks that write plain rows."""
        return self.frame.drop(*HIDDEN) if self.hidden else self.frame

    @property
    def kind_sql(self) -> str:
        """A Spark SQL expression for the row kind, also where there is no changelog."""
        return quote(KIND) if self.table.changelog else "'INSERT'"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The hidden columns this frame has, which a transform must carry along."""
        if self.batches is not None:
            return ()
        return tuple(c for c in self.frame.columns if c in HIDDEN)


def projected(frame: "DataFrame", expressions: Mapping[str, str]) -> "DataFrame":
    """Return a frame with these columns alone: a Spark SQL expression for each name, in order.

    A frame that has just these columns is returned as it is: to have Spark look at them once more
    takes as long as copying thousands of rows, for every slice.
    """
    own = {name: quote(name) for name in frame.columns}
    if list(expressions.items()) == list(own.items()):
        return frame
    return frame.selectExpr(*aliased(expressions))


def aliased(expressions: Mapping[str, str]) -> list[str]:
    """Return Spark SQL for columns: an expression for each name."""
    return [f"{sql} AS {quote(name)}" for name, sql in expressions.items()]


class Tables:
    """An ordered mapping from table path to rows.  Paths are unique; order is the source's."""

    def __init__(self, rows: Iterable[Rows]) -> None:
        self._rows = {str(r.table.path): r for r in rows}

    def __iter__(self) -> Iterator[Rows]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, path: str) -> Rows:
        return self._rows[path]

    def get(self, path: str) -> Rows | None:
        """Return the rows of the table at this path, or None."""
        return self._rows.get(path)

    @property
    def paths(self) -> tuple[str, ...]:
        """The table paths, in order."""
        return tuple(self._rows)
