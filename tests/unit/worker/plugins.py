"""Plug-ins that fail on order, for tests of the runner."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast import (
    END,
    IDLE,
    Budget,
    CommitId,
    Committable,
    Rows,
    Sink,
    Slice,
    Source,
    Staging,
    Table,
    Tables,
    Unavailable,
    UserError,
    options,
)
from holdfast.connect.sink import ANYBODY, Leftovers, Opening
from holdfast.connect.source import NoSlice
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@options
class CountOptions:
    slices: int = 3  #: How many slices of ten rows.
    table: str = "count"  #: The table's path.
    column: str = "id"  #: The column's name.
    streaming: bool = False  #: Idle at the end instead of ending.
    sleep_ms: int = 0  #: How long Spark sleeps over each part of a slice.
    parts: int = 1  #: Into how many parts Spark cuts a slice.


class Count(Source[CountOptions]):
    """Ten rows a slice: 0-9, 10-19 and so on."""

    name = "Count"
    released: ClassVar[list[Plain]] = []
    budgets: ClassVar[list[int | None]] = []
    planned_s: ClassVar[list[float]] = []
    read_s: ClassVar[list[float]] = []
    malformed: ClassVar[set[int]] = set()
    arrived: ClassVar[list[int]] = []
    careful = False

    def plan(self, position: Plain, budget: Budget) -> Slice | NoSlice:
        done = position if isinstance(position, int) else 0
        Count.budgets.append(budget.rows)
        Count.planned_s.append(budget.now_s)
        if Count.arrived and done >= Count.arrived[-1]:
            return IDLE
        if done >= self.options.slices:
            return IDLE if self.options.streaming else END
        return Slice(done, done + 1)

    def committed(self, position: Plain) -> None:
        Count.released.append(position)

    def read_carefully(self) -> bool:
        again, self.careful = not self.careful, True
        return again

    def read(self, spark: "SparkSession", content: Plain) -> Tables:
        assert isinstance(content, int)
        Count.read_s.append(time.monotonic())
        if content in Count.malformed and not self.careful:
            frame = spark.createDataFrame([("x",)], "v string").selectExpr(
                "from_csv(v, 'id bigint', map('mode', 'FAILFAST')).id"
            )
            return Tables([Rows.of(self.options.table, frame)])
        parts = self.options.parts
        frame = spark.range(content * 10, content * 10 + 10, 1, parts)
        if self.options.sleep_ms:
            slept = f"java_method('java.lang.Thread', 'sleep', {self.options.sleep_ms}L)"
            frame = frame.filter(f"id % {10 // parts} <> 0 OR {slept} IS NOT NULL")
        return Tables([Rows.of(self.options.table, frame.toDF(self.options.column))])


@options
class CellarOptions:
    fail_on: list[int] = []  #: Numbers of the writes that fail.
    fail_once_visible: bool = False  #: Fail one write after the first commit.
    refuse: bool = False  #: Refuse the end of the input.
    break_on_commit: bool = False  #: Fail the first commit.
    empties: bool = False  #: Remove what is there.
    pieces: int = 1  #: In how many pieces a slice is staged.
    blind: bool = False  #: Take ten rows for granted, and have Spark read none.


class Cellar(Sink[CellarOptions]):
    """Keeps what it gets in memory, for a test to look at."""

    name = "Cellar"
    staged: ClassVar[dict[str, list[int]]] = {}
    visible: ClassVar[list[int]] = []
    commits: ClassVar[list[CommitId]] = []
    prepared: ClassVar[list[str]] = []
    writes: ClassVar[list[str]] = []
    swept: ClassVar[list[Leftovers]] = []
    pools: ClassVar[dict[str, str | None]] = {}
    begun_s: ClassVar[list[float]] = []
    ended_s: ClassVar[list[float]] = []
    broken: ClassVar[bool] = False

    @classmethod
    def empty(cls) -> None:
        for kept in (
            cls.staged, cls.visible, cls.commits, cls.prepared, cls.writes, cls.swept, cls.pools,
            cls.begun_s, Count.released, Count.budgets, Count.planned_s,
            cls.ended_s, Count.read_s, Count.malformed, Count.arrived,
        ):  # fmt: skip
            kept.clear()
        cls.broken = False

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> list[Committable]:
        for table in tables:
            known = "" if opening.new(table) else "known "
            Cellar.prepared.append(f"{known}{table.path}({','.join(table.names)})")
        if not self.options.empties:
            return []
        new = filter(opening.new, tables)
        return [Committable(1, str(t.path), 0, 0, opening.life, opening=True) for t in new]

    def write(self, tables: Tables, staging: Staging) -> list[Committable]:
        Cellar.writes.append(staging.name)
        Cellar.begun_s.append(time.monotonic())
        if self.options.fail_once_visible and Cellar.visible and not Cellar.broken:
            Cellar.broken = True
            raise Unavailable("The cellar door sticks.")
        if len(Cellar.writes) in self.options.fail_on:
            raise Unavailable("The cellar door sticks.")
        made = []
        for rows in tables:
            context = rows.frame.sparkSession.sparkContext
            Cellar.pools[staging.task] = context.getLocalProperty("spark.scheduler.pool")
            blind = self.options.blind
            values = list(range(10)) if blind else [row[0] for row in rows.frame.collect()]
            Cellar.staged[staging.name] = values
            made.append(Committable(1, str(rows.table.path), len(values), 0, staging.name))
            more = [f"{staging.name}-{n}" for n in range(1, self.options.pieces)]
            made += [Committable(1, str(rows.table.path), 0, 0, name) for name in more]
        Cellar.ended_s.append(time.monotonic())
        return made

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        if self.options.break_on_commit and not Cellar.broken:
            Cellar.broken = True
            raise RuntimeError("the stairs gave way")
        Cellar.commits.append(identifier)
        if any(c.opening for c in committables):
            Cellar.visible.clear()
        for c in (c for c in committables if not c.opening):
            Cellar.visible += Cellar.staged.pop(str(c.content))

    def abort(self, committables: Sequence[Committable]) -> None:
        for c in committables:
            Cellar.staged.pop(str(c.content), None)

    def sweep(self, leftovers: Leftovers) -> None:
        Cellar.swept.append(leftovers)
        for name in [n for n in Cellar.staged if leftovers.include(n)]:
            del Cellar.staged[name]

    def finish(self, rows: Mapping[str, int]) -> None:
        if self.options.refuse:
            raise UserError(f"Refused: {dict(rows)}.")
