"""Foresee what a job will do to its tables, without Spark.

What `holdfast plan` finds out with Spark is found out here as far as names and declared types say
it: every stage is asked, and every mistake is reported, not the first one alone.  Where only Spark
can tell, nothing is guessed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.connect.source import Budget, Source
from holdfast.errors import HoldfastError, UserError
from holdfast.model.job import JobPlan, Role, Stage, TaskPlan
from holdfast.model.table import Table
from holdfast.model.types import UNKNOWN
from holdfast.plan.plugins import TransformSelection, build_plugin, choose_transform, context_for

T = TypeVar("T")
Known = Mapping[str, Sequence[Table]]


@dataclass
class Foreseen:
    """The tables of each stage; None where only Spark, or only the run, can tell them."""

    tables: dict[str, tuple[Table, ...] | None] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    """Stages of which a mistake was reported."""

    def unknown(self, job: JobPlan) -> list[str]:
        """Return the stages at which knowledge ends, and whose own fault that is."""
        return [
            stage.id
            for stage in job.stages
            if stage.role is not Role.SINK
            and stage.id not in self.wrong
            and self.tables.get(stage.id) is None
            and all(self.tables.get(i) is not None for i in stage.inputs)
        ]


def foresee(
    job: JobPlan, registry: Registry, report: CheckReport, *, allow_python: bool = False,
    broken: Collection[str] = (),
) -> Foreseen:  # fmt: skip
    """Ask every stage for its tables; report what `plan`, and a run that begins, would refuse.

    `broken`: stages whose options could not be read.  What comes behind one is not known.
    """
    seen = Foreseen(wrong=set(broken))
    for task in (task for pipeline in job.pipelines for task in pipeline.tasks):
        _Task(job, task, registry, report, allow_python, broken, seen).look()
    return seen


@dataclass
class _Task:
    job: JobPlan
    task: TaskPlan
    registry: Registry
    report: CheckReport
    allow_python: bool
    broken: Collection[str]
    seen: Foreseen

    def look(self) -> None:
        """Ask the stages of the task, each after those that feed it."""
        for stage in (self.job.stage(s) for s in self.task.stages):
            match stage.role:
                case _ if stage.id in self.broken:
                    self.seen.tables[stage.id] = None
                case Role.SOURCE:
                    self.seen.tables[stage.id] = self._try(stage, partial(self._source, stage))
                case Role.TRANSFORM:
                    self.seen.tables[stage.id] = self._try(stage, partial(self._made, stage))
                case Role.SINK:
                    self._sink(stage)

    def _source(self, stage: Stage) -> tuple[Table, ...] | None:
        plugin = self._plugin(stage)
        assert isinstance(plugin, Source)
        plugin.check_libraries()
        try:
            plugin.plan(None, Budget(None, 0.0))  # it looks at its files
            found: tuple[Table, ...] | None = plugin.tables()
        except UserError:
            raise
        except HoldfastError:
            return None  # something outside does not answer; that is no mistake of the file
        return found if found and all(t.columns for t in found) else None

    def _made(self, stage: Stage) -> tuple[Table, ...] | None:
        context = context_for(self.job, self.task, stage, "check", self.allow_python)
        choice = choose_transform(stage, self.registry, context)
        inputs = self._inputs(stage)
        if choice.joins:
            if inputs is None:
                return None
            named: dict[str, list[Table]] = {}
            for i, tables in inputs.items():
                named.setdefault(self.job.stage(i).output or i, []).extend(tables)
            united = {name: unite(stage, each) for name, each in named.items()}
            made = choice.default.foresee_join(united) if choice.default else None
            return (made,) if made else None
        arrived = self._united(stage, inputs)
        return None if arrived is None else self._changed(stage, choice, arrived)

    def _changed(
        self, stage: Stage, choice: TransformSelection, arrived: Sequence[Table]
    ) -> tuple[Table, ...] | None:
        changed: list[Table] = []
        for table in arrived:
            transform = choice.of(str(table.path))
            made = transform.foresee(table) if transform else table
            if made is None:
                return None
            changed.append(made)
        return unite(stage, changed)

    def _sink(self, stage: Stage) -> None:
        arrived = self._try(stage, lambda: self._united(stage, self._inputs(stage)))
        sink = self._try(stage, lambda: self._plugin(stage))
        self.seen.tables[stage.id] = arrived
        assert sink is None or isinstance(sink, Sink)
        if sink is not None:
            self._try(stage, sink.check_libraries)
        for table in arrived or ():
            if sink is not None:
                self._try(stage, partial(sink.refuse, table))

    def _inputs(self, stage: Stage) -> dict[str, tuple[Table, ...]] | None:
        """Return what arrives from each stage before; None if one of them is unknown."""
        found = {i: self.seen.tables.get(i) for i in stage.inputs if i in self.task.stages}
        return None if None in found.values() else {i: t for i, t in found.items() if t is not None}

    def _united(self, stage: Stage, inputs: Known | None) -> tuple[Table, ...] | None:
        if inputs is None:
            return None
        return unite(stage, [table for tables in inputs.values() for table in tables])

    def _plugin(self, stage: Stage) -> Any:
        context = context_for(self.job, self.task, stage, "check", self.allow_python)
        return build_plugin(stage, self.registry, context)

    def _try(self, stage: Stage, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except UserError as error:
            self.seen.wrong.add(stage.id)
            for sentence in error.sentences:
                said = " ".join(sentence.split())
                self.report.error(stage.place, f"{about(stage, said)}{said}")
            return None


def about(stage: Stage, said: str) -> str:
    """Return what goes before a sentence that does not say which stage it is about."""
    named = said.startswith((stage.id, stage.plugin, f"{stage.role.capitalize()} {stage.plugin}"))
    return "" if named else f"{stage.id}: "


def unite(stage: Stage, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables that arrive at a stage; those with one path must look alike."""
    united: dict[str, Table] = {}
    for table in tables:
        path = str(table.path)
        if path in united:
            check_alike(stage, united[path], table)
            table = replace(united[path], changelog=united[path].changelog or table.changelog)
        united[path] = table
    return tuple(united.values())


def check_alike(stage: Stage, one: Table, other: Table) -> None:
    """Raise UserError if two tables with one path do not have the same columns."""
    ours = {c.name: c.type for c in one.columns}
    theirs = {c.name: c.type for c in other.columns}
    differing = [
        name
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name) and UNKNOWN not in (ours.get(name), theirs.get(name))
    ]
    if not differing and ours.keys() == theirs.keys():
        return
    differing = differing or sorted(ours.keys() ^ theirs.keys())
    listed = "; ".join(
        f"{n}: {ours.get(n, 'absent')} against {theirs.get(n, 'absent')}" for n in differing
    )
    raise UserError(
        f"{stage.id} ({stage.place}) gets two inputs for table {one.path} that do not"
        f" look alike: {listed}. Make them alike with a transform, or give them two tables.",
        code="schema.mismatch",
    )
