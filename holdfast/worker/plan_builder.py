"""Put a task's stages together: tables from its sources, through transforms, to each sink.

Nothing runs here.  Spark sees one plan from read to write for each sink; only rows that feed more
than one consumer are kept, so that every consumer sees the same ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.connect.registry import Registry
from holdfast.connect.rejects import Counting
from holdfast.connect.rows import Rows, Tables
from holdfast.model.job import JobPlan, Role, Stage, TaskPlan
from holdfast.model.table import KIND, Table
from holdfast.plan.foresee import check_alike
from holdfast.plan.plugins import TransformSelection, choose_transform, context_for
from holdfast.worker.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class Composed:
    """What each sink is to write, every stage's tables, and the frames kept for several readers.

    `rejects` count the rows that transforms leave out.
    """

    sinks: dict[str, Tables] = field(default_factory=dict)
    tables: dict[str, tuple[Table, ...]] = field(default_factory=dict)
    kept: list["DataFrame"] = field(default_factory=list)
    rejects: list[Counting] = field(default_factory=list)

    def release(self) -> None:
        """Let Spark forget the kept frames."""
        for frame in self.kept:
            frame.unpersist()


class PlanBuilder:
    """Composes slices of one task.  Transforms are built once and used for every slice."""

    def __init__(
        self, job: JobPlan, task: TaskPlan, registry: Registry, job_id: str, python: bool
    ) -> None:
        self.stages = [job.stage(s) for s in task.stages]
        self.inside = {s.id for s in self.stages}
        self.repeatable = {
            s.id
            for s in self.stages
            if getattr(registry.find(s.role, s.plugin), "repeatable", False)
        }
        self.choices: dict[str, TransformSelection] = {
            s.id: choose_transform(s, registry, context_for(job, task, s, job_id, python))
            for s in self.stages
            if s.role is Role.TRANSFORM
        }

    def compose(self, read: Mapping[str, Tables]) -> Composed:
        """Return what the sinks are to write, given what each source read."""
        composed = Composed()
        try:
            self._fill(composed, read)
        except BaseException:
            composed.release()
            raise
        return composed

    def _fill(self, composed: Composed, read: Mapping[str, Tables]) -> None:
        done: dict[str, Tables] = dict(read)
        for stage in self.stages:
            inputs = {i: done[i] for i in stage.inputs if i in self.inside}
            if stage.role is Role.TRANSFORM:
                with explained(stage):
                    done[stage.id] = self._transform(stage, inputs, composed)
            elif stage.role is Role.SINK:
                composed.sinks[stage.id] = unite(stage, inputs.values())
            if self._must_keep(stage):
                done[stage.id] = _keep(done[stage.id], composed)
            arrived = composed.sinks.get(stage.id) or done[stage.id]
            composed.tables[stage.id] = tuple(rows.table for rows in arrived)

    def _must_keep(self, stage: Stage) -> bool:
        if stage.role is Role.SINK or stage.id in self.repeatable:
            return False
        return sum(s.inputs.count(stage.id) for s in self.stages) > 1

    def _transform(self, stage: Stage, inputs: Mapping[str, Tables], composed: Composed) -> Tables:
        choice = self.choices[stage.id]
        if choice.joins:
            names = {s.id: s.output or s.id for s in self.stages}
            sharing: dict[str, list[Tables]] = {}
            for i, tables in inputs.items():
                sharing.setdefault(names[i], []).append(tables)
            return choice.join({name: unite(stage, each) for name, each in sharing.items()})
        arrived = unite(stage, inputs.values())
        changed = []
        for rows in arrived:
            transform = choice.of(str(rows.table.path))
            made = transform.apply(rows) if transform else rows
            if made is not rows and made.rejects:
                composed.rejects.append(made.rejects)
            changed.append(made)
        return unite(stage, [Tables([rows]) for rows in changed])


def unite(stage: Stage, arriving: Iterable[Tables]) -> Tables:
    """Return the tables that arrive at a stage; those with one path must look alike to be one."""
    united: dict[str, Rows] = {}
    for rows in (rows for tables in arriving for rows in tables):
        path = str(rows.table.path)
        united[path] = _union(stage, united[path], rows) if path in united else rows
    return Tables(united.values())


def _union(stage: Stage, one: Rows, other: Rows) -> Rows:
    check_alike(stage, one.table, other.table)
    if one.table.changelog == other.table.changelog:
        return one.with_frame(one.frame.unionByName(other.frame, allowMissingColumns=True))
    return one.with_frame(_with_kind(one).unionByName(_with_kind(other), allowMissingColumns=True))


def _with_kind(rows: Rows) -> "DataFrame":
    from pyspark.sql.functions import expr

    return rows.frame.withColumn(KIND, expr(rows.kind_sql))


def _keep(tables: Tables, composed: Composed) -> Tables:
    """Keep rows that several consumers read, so that a source is read once and all see the same."""
    kept = [Rows(r.table, r.frame.persist()) for r in tables]
    composed.kept += [r.frame for r in kept]
    return Tables(kept)
