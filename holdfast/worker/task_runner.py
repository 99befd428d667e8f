"""Run one task: plan a slice, read, transform, stage; over and over until its sources end.

A task never commits.  It hands over committables and positions; the owner of the pipeline decides
when they count.  After a failure the task is thrown away and a new attempt starts at the last
position that was kept.
"""

import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from holdfast.connect.arrow_rows import ArrowCounts
from holdfast.connect.inside import wait_stopped
from holdfast.connect.registry import Registry
from holdfast.connect.rejects import Counting
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import Committable, Opening, Sink, Staging, life_of
from holdfast.connect.source import END, Budget, NoSlice, Slice, Source
from holdfast.core.gather import OpenedTable, StagedCommittable, TaskAck
from holdfast.core.task import WorkerId
from holdfast.errors import Cancelled
from holdfast.model.job import JobPlan, Role, Stage, TaskPlan
from holdfast.model.table import Table
from holdfast.model.tree import Plain
from holdfast.plan.plugins import build_plugin, context_for
from holdfast.worker.failures import explained
from holdfast.worker.plan_builder import Composed, PlanBuilder
from holdfast.worker.row_counts import (
    EventTimes,
    Measured,
    RowCounts,
    Watched,
    jobs_s,
    measure,
    settle,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = logging.getLogger("holdfast")


class Openings:
    """The tables of one attempt.  Threads that stage slices may find new ones."""

    def __init__(
        self, job_id: str, incarnation: str, opened: Sequence[OpenedTable] | None = ()
    ) -> None:
        self._life = life_of(job_id, incarnation)
        self._incarnation = incarnation
        self._opened = None if opened is None else tuple(opened)
        self._looked_at: set[tuple[str, str]] = set()
        self._due: list[tuple[str, Committable]] = []
        self._lock = threading.Lock()

    def open(self, stage: str, sink: Sink[object], tables: Iterable[Table]) -> None:
        """Have a sink look at those tables that this attempt has not opened for it."""
        with self._lock:
            new = [t for t in tables if (stage, str(t.path)) not in self._looked_at]
            if not new:
                return
            targets = {str(t.path): sink.target(t) for t in new}
            opening = self._opening(stage, targets)
            made = sink.prepare(new, opening)
            # A sink that gives the save modes of a known table would have them applied again.
            self._due += [(stage, c) for c in made if c.table not in opening.known]
            if self._opened is not None:
                self._opened += tuple(
                    OpenedTable(stage, path, target, self._incarnation)
                    for path, target in targets.items()
                    if path not in opening.known
                )
            self._looked_at |= {(stage, path) for path in targets}

    def take(self, number: int) -> tuple[list[StagedCommittable], tuple[OpenedTable, ...] | None]:
        """Return what is due and was not taken, for this checkpoint; and what is open by then."""
        with self._lock:
            due, self._due = self._due, []
            return [StagedCommittable(number, stage, asdict(c)) for stage, c in due], self._opened

    def _opening(self, stage: str, targets: dict[str, str]) -> Opening:
        if self._opened is None:
            return Opening(self._life, frozenset(targets), frozenset(targets))
        found = {
            path: [o for o in self._opened if o.target == at or (o.sink, o.table) == (stage, path)]
            for path, at in targets.items()
        }
        known = frozenset(path for path, before in found.items() if before)
        earlier = frozenset(
            path for path in known if any(o.incarnation != self._incarnation for o in found[path])
        )
        return Opening(self._life, known, earlier)


def _pass(_name: str) -> None:
    """Pass a named moment that no test waits for."""


@dataclass(frozen=True)
class TaskContext:
    """What a task runs as part of: its job, one incarnation of it, and the Spark it has."""

    job: JobPlan
    job_id: str
    registry: Registry
    spark: "SparkSession"
    tally: RowCounts
    cancelled: Callable[[], bool]
    allow_python: bool = False
    incarnation: str = ""
    pass_now: Callable[[str], None] = _pass

    @property
    def life(self) -> str:
        """A name that no other incarnation of this or any other job has."""
        return life_of(self.job_id, self.incarnation)


@dataclass
class StagedSlice:
    """What slices have staged for each sink, and where their sources read next if it is kept.

    `rows` and `bytes` are what was read, as far as is known, and `rejected` the rows of them
    that sources and transforms left out.  `groups` are those of the Spark jobs.
    """

    after: dict[str, Plain]
    committables: dict[str, list[Committable]] = field(default_factory=dict)
    rows: int = 0
    bytes: int = 0
    rejected: int = 0
    groups: list[str] = field(default_factory=list)
    watched: Watched = field(default_factory=list)


@dataclass
class PlannedSlices:
    """What the next Spark jobs read: a slice of each source that has one, and who has no more."""

    slices: dict[str, Slice]
    at_end: frozenset[str]


@dataclass
class ComposedSlice:
    """Slices with the stages on top; Spark has checked the plan, and nothing has run."""

    slices: dict[str, Slice]
    composed: Composed
    watched: Watched
    moved: list[ArrowCounts]
    rejects: list[Counting]


class TaskRun:
    """One attempt of one task."""

    def __init__(
        self, running: TaskContext, task: TaskPlan, attempt: int, positions: Mapping[str, Plain],
        opened: Sequence[OpenedTable] | None = (),
    ) -> None:  # fmt: skip
        job, registry = running.job, running.registry
        self.running = running
        self.task = task
        self.attempt = attempt
        self.positions = dict(positions)
        self.openings = Openings(running.job_id, running.incarnation, opened)
        self._numbers = itertools.count()
        self._busy_until_s = 0.0
        self.at_end: frozenset[str] = frozenset()
        self._first: ComposedSlice | None = None
        python = running.allow_python
        self.composer = PlanBuilder(job, task, registry, running.job_id, python)
        self.stages = self.composer.stages
        self._times = EventTimes(self.stages, running.tally)
        self.sources: dict[str, Source[object]] = {}
        self.sinks: dict[str, Sink[object]] = {}
        for stage in self.stages:
            if stage.role is Role.TRANSFORM:
                continue
            context = context_for(job, task, stage, running.job_id, python)
            plugin = build_plugin(stage, registry, context)
            plugin.cancelled = running.cancelled
            if isinstance(plugin, Source):
                self.sources[stage.id] = plugin
            elif isinstance(plugin, Sink):
                self.sinks[stage.id] = plugin

    @property
    def group(self) -> str:
        """The Spark job group of this attempt: what a cancel names."""
        return f"{self.running.life}/{self.task.id}/{self.attempt}"

    @property
    def ended(self) -> bool:
        """Whether every source has been read to its end."""
        return len(self.at_end) == len(self.sources)

    def answer(self, number: int, place: WorkerId) -> tuple[list[StagedCommittable], TaskAck]:
        """Return the save modes that are due, and the answer to a barrier, still without them."""
        due, opened = self.openings.take(number)
        mark, idle = self._times.mark(self.at_end)
        ack = TaskAck(
            number=number,
            task=self.task.id,
            attempt=self.attempt,
            place=place,
            positions=tuple(sorted(self.positions.items())),
            staged=(),
            ended=self.ended,
            watermark=mark,
            idle=idle,
            counts=self.running.tally.counts(),
            opened=opened,
        )
        return due, ack

    @property
    def overlaps(self) -> bool:
        """Whether every sink can write a slice while it still writes the one before."""
        return all(sink.overlaps for sink in self.sinks.values())

    def use_pool(self) -> None:
        """Have what this thread runs share Spark's cores fairly with others."""
        pool = f"{self.running.job_id}/{self.task.id}"
        self.running.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)

    def open(self, stage: str, tables: Sequence[Table]) -> None:
        """Have a sink look at tables that it has not looked at, before rows come for them."""
        with explained(self._stage(stage)):
            self.openings.open(stage, self.sinks[stage], tables)

    def plan(self, positions: Mapping[str, Plain], budget: Budget) -> PlannedSlices:
        """Return what comes after these positions."""
        if self.task.whole:
            budget = Budget(None, budget.now_s)
        answers: dict[str, Slice | NoSlice] = {}
        for stage, source in self.sources.items():
            with explained(self._stage(stage)):
                answers[stage] = source.plan(positions.get(stage), budget)
        return PlannedSlices(
            {stage: a for stage, a in answers.items() if isinstance(a, Slice)},
            frozenset(stage for stage, answer in answers.items() if answer is END),
        )

    def close(self) -> None:
        """Have Spark forget rows that were to be kept for slices which were never staged."""
        first, self._first = self._first, None
        try:
            if first:
                first.composed.release()
        except Exception as error:  # noqa: BLE001  people must see why the task ends, not this
            log.warning("%s: Spark keeps rows that are no longer needed: %s", self.group, error)

    def keep(self, made: StagedSlice) -> None:
        """Continue behind slices that are staged, and count them."""
        tally = self.running.tally
        for sink, committables in made.committables.items():
            for one in committables:
                tally.add_written(sink, one.table, one.rows, one.bytes)
        tally.add_read(made.rows, made.rejected)
        self._times.seen(made.watched)
        self.positions = {**self.positions, **made.after}

    def read_carefully(self, slices: Iterable[str]) -> bool:
        """Ask these sources to read with care; return whether any of them now reads differently."""
        answers = [self.sources[stage].read_carefully() for stage in slices]
        return any(answers)

    def stage(self, ready: ComposedSlice) -> StagedSlice:
        """Stage slices for every sink; nothing of them stays if that fails."""
        composed = ready.composed
        staged = StagedSlice(
            {s: one.after for s, one in ready.slices.items()}, watched=ready.watched
        )
        rows_in: Counter[str] = Counter()
        bytes_in: Counter[str] = Counter()
        try:
            for sink, rows in ((s, r) for s, tables in composed.sinks.items() for r in tables):
                if self.running.cancelled():
                    raise Cancelled(f"Task {self.task.id} was cancelled.")
                self.open(sink, [rows.table])
                measured = self._write(sink, rows, staged, ready.moved)
                rows_in[sink] += measured.rows_in
                bytes_in[sink] += measured.bytes_in
        except BaseException:
            self.drop(staged)
            raise
        finally:
            composed.release()
            for moved in ready.moved:
                moved.close()
            for rejects in (*ready.rejects, *composed.rejects):
                rejects.close()
        unread = sum(r.value for r in ready.rejects)
        left_out = sum(r.value for r in composed.rejects)
        staged.rejected = unread + left_out
        # Every sink reads the same rows; what passed through the hungriest one was read.
        count, size = max(rows_in.values(), default=0), max(bytes_in.values(), default=0)
        count += sum(m.read - m.splits for m in ready.moved)
        staged.rows = (count or _most(staged, "rows") + left_out) + unread
        staged.bytes = size + sum(m.bytes for m in ready.moved) or _most(staged, "bytes")
        return staged

    def expected(self, budget: Budget) -> Mapping[str, tuple[Table, ...]]:
        """Return every stage's tables, as far as is known before the first row moves."""
        planned = self.plan(self.positions, budget)
        if planned.slices:
            self._first = self.compose(planned.slices)
            return self._first.composed.tables
        declared = {stage: source.tables() for stage, source in self.sources.items()}
        empty = {
            stage: Tables(Rows.of(t, self.running.spark.createDataFrame([], t.ddl)) for t in tables)
            for stage, tables in declared.items()
            if tables and all(t.columns for t in tables)
        }
        return self.composer.compose(empty).tables if len(empty) == len(self.sources) else {}

    def compose(self, slices: Mapping[str, Slice]) -> ComposedSlice:
        """Read slices lazily and put the stages on top; Spark checks the plan, nothing runs.

        The first ones were composed to prepare the sinks, and are not composed again.
        """
        first, self._first = self._first, None
        if first and first.slices == slices:
            return first
        read: dict[str, Tables] = {}
        watched: Watched = []
        moved: list[ArrowCounts] = []
        rejects: list[Counting] = []
        self.running.spark.sparkContext.setJobGroup(self.group, f"{self.task.id} reads", True)
        for stage_id, piece in slices.items():
            stage = self._stage(stage_id)
            with explained(stage):
                tables = self.sources[stage_id].read(self.running.spark, piece.content)
                moved += [counts for rows in tables for counts in rows.moved]
                rejects += [rows.rejects for rows in tables if rows.rejects]
                read[stage_id] = self._times.watch(stage, tables, watched)
        return ComposedSlice(dict(slices), self.composer.compose(read), watched, moved, rejects)

    def spark_s(self, made: StagedSlice) -> float:
        """Return for how long Spark's jobs ran in a slice, while those of earlier ones did not."""
        total_s = 0.0
        for group in made.groups:
            for begun_s, ended_s in jobs_s(self.running.spark, group):
                total_s += max(0.0, ended_s - max(begun_s, self._busy_until_s))
                self._busy_until_s = max(ended_s, self._busy_until_s)
        return total_s

    def abort(self, staged: StagedSlice) -> None:
        """Remove what was staged and will not be committed."""
        for sink, committables in staged.committables.items():
            self.sinks[sink].abort(committables)

    def drop(self, staged: StagedSlice) -> None:
        """Remove what was staged after something else failed, which is what people must see.

        What cannot be removed now is swept up later.
        """
        try:
            self.abort(staged)
        except Exception as error:  # noqa: BLE001  what failed first is raised by the caller
            log.warning("%s: staged rows could not be removed: %s", self.group, error)

    def _write(
        self, sink: str, rows: Rows, staged: StagedSlice, moved: Sequence[ArrowCounts]
    ) -> Measured:
        """Stage one table for one sink; return what its Spark jobs have moved.

        One table at a time, so that Spark's counters speak of that table.
        """
        running, spark = self.running, self.running.spark
        staging = Staging(
            running.job_id, self.task.id, self.attempt, next(self._numbers), running.incarnation
        )
        group = f"{self.group}/{staging.number}"
        spark.sparkContext.setJobGroup(group, f"{running.job.name} {sink}", True)
        staged.groups.append(group)
        running.tally.watch(group, moved)
        try:
            running.pass_now("before:worker.stage")
            with explained(self._stage(sink), self._feeding(sink)):
                made = list(self.sinks[sink].write(Tables([rows]), staging))
                measured = self._measured(rows, group)
            running.pass_now("after:worker.stage")
        except BaseException:
            wait_stopped(spark.sparkContext, group)
            raise
        finally:
            running.tally.unwatch(group)
        made = [_counted(c, measured) for c in made]
        staged.committables.setdefault(sink, []).extend(made)
        return measured

    def _measured(self, rows: Rows, group: str) -> Measured:
        """Return what the JVM has counted; a copy that went around it has counted for itself."""
        if rows.batches and rows.batches.moved.written:
            return Measured()
        settle(self.running.spark)
        return measure(self.running.spark, group)

    def _feeding(self, stage_id: str) -> list[Stage]:
        """Return the sources whose rows come to a stage."""
        stage = self._stage(stage_id)
        if stage.role is Role.SOURCE:
            return [stage]
        inside = [i for i in stage.inputs if any(s.id == i for s in self.stages)]
        found = {s.id: s for i in inside for s in self._feeding(i)}
        return list(found.values())

    def _stage(self, stage_id: str) -> Stage:
        return next(s for s in self.stages if s.id == stage_id)


def _counted(committable: Committable, measured: Measured) -> Committable:
    """Fill in the rows a sink could not know, from Spark's count."""
    return committable if committable.rows >= 0 else replace(committable, rows=measured.rows_out)


def _most(staged: StagedSlice, what: Literal["rows", "bytes"]) -> int:
    """Return what was staged, counted once though several sinks may have written it."""
    sums = [sum(getattr(c, what) for c in made) for made in staged.committables.values()]
    return max(sums, default=0)
