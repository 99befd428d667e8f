"""FakeSource: rows invented inside Spark, for trying things out.

Each of a job's parallel readers has `split.num` splits of the table's rows, as in SeaTunnel, and
is one Spark partition.  A job that makes no checkpoints reads all splits as one slice; any other
reads a round at a time, that is the next split of every reader, so that it can be interrupted.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.connect.literals import literal, row_values, text_literal
from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.source import END, IDLE, Budget, NoSlice, Slice, Source
from holdfast.connectors.fake.options import FakeOptions, FakeRow, FakeTable
from holdfast.connectors.fake.values import PAIRS, PAIRS_SQL, ROW, Values
from holdfast.model.job import Mode
from holdfast.model.table import KIND, SEQUENCE, Table
from holdfast.model.tree import Plain
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG = "FakeSource"

DEFAULT_PATH = "default.default.default"
"""The path SeaTunnel gives a table that neither schema.table nor plugin_output names."""


class FakeSource(Source[FakeOptions]):
    """Make up rows: `row.num` for each parallel reader and table, or the given `rows`.

    A table's path is `schema.table`, else `plugin_output`, else `default.default.default`.
    """

    name = "FakeSource"
    example = """\
row.num = 100
schema { fields { id = bigint, name = string } }
"""
    repeatable = True

    def __init__(self, options: FakeOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._round = -1
        self._round_began_s = 0.0

    @classmethod
    def basis(cls, options: FakeOptions, mode: Mode, parallelism: int) -> Mapping[str, Plain]:
        """Return what rounds depend on: a position counts those of all readers and tables."""
        return {
            "parallelism": parallelism,
            "row.num": [t.row_num for t in options.tables],
            "split.num": [t.split_num for t in options.tables],
            "rows": [len(t.rows or ()) for t in options.tables],
        }

    def tables(self) -> tuple[Table, ...]:
        """Return the tables as the options declare them."""
        return tuple(self._table(t) for t in self.options.tables)

    def plan(self, position: Plain, budget: Budget) -> Slice | NoSlice:
        """Return the next round, or all of them; `position` is [rounds done, rows of the next].

        A round is cut where the budget has not enough rows for it.
        """
        turn, row = position if isinstance(position, list) else (0, 0)
        assert isinstance(turn, int) and isinstance(row, int), f"not a position: {position}"
        rounds = max(t.splits for t in self.options.tables)
        if turn >= rounds:
            return END if self.context.mode is Mode.BATCH else IDLE
        if budget.rows is None and not self._paced:
            return Slice(_content(0, rounds, 0, None), [rounds, 0])
        if self._is_early(turn, budget.now_s):
            return IDLE
        if turn != self._round:
            self._round, self._round_began_s = turn, budget.now_s
        size = max(t.split_rows for t in self.options.tables)
        end = size
        if budget.rows is not None:
            share = budget.rows // (self.context.parallelism * len(self.options.tables))
            end = min(row + max(1, share), size)
        after: Plain = [turn, end] if end < size else [turn + 1, 0]
        return Slice(_content(turn, turn + 1, row, end), after)

    def read(self, spark: "SparkSession", content: Plain) -> Tables:
        """Return the rows of the rounds that the slice names."""
        assert isinstance(content, dict), f"not a slice: {content}"
        return Tables(self._rows(spark, options, content) for options in self.options.tables)

    @property
    def _paced(self) -> bool:
        return self.context.mode is Mode.STREAMING or self.context.checkpointing

    def _is_early(self, turn: int, now_s: float) -> bool:
        """Say whether the readers still rest.  A new process begins at once."""
        if not self._paced or self._round in (-1, turn):
            return False
        rest_ms = min(t.split_read_interval for t in self.options.tables)
        return now_s < self._round_began_s + rest_ms / 1000

    def _table(self, options: FakeTable) -> Table:
        assert options.schema, "checked by problems"
        table = options.schema.table_at(self.context.output or DEFAULT_PATH, CATALOG)
        return replace(table, changelog=options.changelog)

    def _rows(self, spark: "SparkSession", options: FakeTable, content: dict[str, Any]) -> Rows:
        table = self._table(options)
        now = datetime.fromisoformat(content["now"])
        make = self._made_up if options.rows is None else self._given
        return Rows(table, make(spark, options, table, content, now))

    def _made_up(
        self,
        spark: "SparkSession",
        options: FakeTable,
        table: Table,
        content: dict[str, Any],
        now: datetime,
    ) -> "DataFrame":
        readers, size, total = self.context.parallelism, options.split_rows, options.row_num
        first = min(content["first"] * size + min(content["from"], size), total)
        last = min(content["end"] * size, total)
        if content["to"] is not None:
            last = min(content["first"] * size + min(content["to"], size), total)
        count = last - first
        number = "id" if count == total else f"id div {count} * {total} + {first} + id % {count}"
        seed = f"{self.context.job_id}/{self.context.stage}/{table.path}"
        values = Values(options, table, seed, now).columns()
        base = spark.range(0, readers * count, 1, readers)
        base = base.selectExpr(f"{number if count else 'id'} AS {ROW}", f"{PAIRS_SQL} AS {PAIRS}")
        return base.selectExpr(
            *(f"{v} AS {quote(n)}" for v, n in zip(values, table.names, strict=True))
        )

    def _given(
        self,
        spark: "SparkSession",
        options: FakeTable,
        table: Table,
        content: dict[str, Any],
        now: datetime,
    ) -> "DataFrame":
        """Return the given rows, once for each split of each reader."""
        readers, rows = self.context.parallelism, options.rows or []
        splits = min(content["end"], options.splits) - min(content["first"], options.splits)
        if content["from"] or not rows:  # a cut round has emitted them with its first part
            splits = 0
        before = content["first"] * readers * len(rows)
        names = [*table.names, *((KIND, SEQUENCE) if table.changelog else ())]
        columns = [f"given.c{i} AS {quote(n)}" for i, n in enumerate(names)]
        if table.changelog:
            sequence = f"{before}L + id * {len(rows)} + at"
            columns[-1] = f"{sequence} AS {quote(SEQUENCE)}"
        listed = ", ".join(_struct(row, table, now) for row in rows) or _empty(table)
        return (
            spark.range(0, readers * splits, 1, readers)
            .selectExpr("id", f"posexplode(array({listed})) AS (at, given)")
            .selectExpr(*columns)
        )


def _struct(row: FakeRow, table: Table, now: datetime) -> str:
    """Return a row as a struct with fields c0, c1, ... and, last, its kind."""
    values = row_values(row.fields.node, table.names)
    parts = [literal(v, c.type, now) for v, c in zip(values, table.columns, strict=True)]
    parts.append(text_literal(row.kind))
    fields = (f"'c{i}', {part}" for i, part in enumerate(parts))
    return f"named_struct({', '.join(fields)})"


def _empty(table: Table) -> str:
    """Return a row of nulls, for the types of a table without rows."""
    parts = [f"'c{i}', CAST(NULL AS {c.type.ddl})" for i, c in enumerate(table.columns)]
    return f"named_struct({', '.join(parts)})"


def _content(first: int, end: int, start: int, stop: int | None) -> Plain:
    """Return a slice: rounds `first` up to `end`; of a single one, its rows `start` up to `stop`.

    The time is part of it, so that a slice read again next year holds the same dates.
    """
    now = datetime.now().isoformat()
    return {"first": first, "end": end, "from": start, "to": stop, "now": now}
