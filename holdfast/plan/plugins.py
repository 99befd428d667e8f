"""Build plug-ins from a checked job: what a worker calls before rows flow.

Checking reads options through the same `read_stage`, so what passed the check builds here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import describe, identity_of, read_options
from holdfast.connect.plugin import Plugin, PluginContext
from holdfast.connect.registry import Registry
from holdfast.connect.rows import Tables
from holdfast.connect.source import Source
from holdfast.connect.transform import Transform
from holdfast.model.identity import Facts, StageIdentity
from holdfast.model.job import JobPlan, Mode, Role, Stage, TaskPlan
from holdfast.model.tree import Block, Items, Plain, Scalar
from holdfast.plan.common import TablePattern, common_class, find_entry, separate
from holdfast.plan.masking import masked, masked_text

BATCHES = "spark.holdfast.batches"
"""A job's setting: `false` has Spark itself carry all rows."""

ROW_SETTINGS = (
    "spark.hadoop.", "spark.sql.parquet.", "spark.sql.csv.", "spark.sql.files.",
    "spark.sql.legacy.", "spark.sql.sources.", "spark.sql.session.", "spark.sql.ansi.",
)  # fmt: skip
"""A job that sets one of these wants Spark's own readers and writers to do something."""


@dataclass(frozen=True)
class StageOptions:
    """What a job file says about one plug-in: what all of its role take, and its own.

    `own` is None where a transform has options for named tables only (`tables`).
    """

    common: Any
    own: Any
    tables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TransformSelection:
    """Which transform applies to which table."""

    default: Transform[Any] | None
    pattern: TablePattern | None
    tables: Mapping[str, Transform[Any]]
    joins: bool

    def of(self, path: str) -> Transform[Any] | None:
        """Return the transform for the table at this path; None: it passes through."""
        if path in self.tables:
            return self.tables[path]
        if self.pattern and not self.pattern.matches(path):
            return None
        return self.default

    def join(self, inputs: Mapping[str, Tables]) -> Tables:
        """Return the tables joined from several inputs; only where `joins` is true."""
        assert self.default is not None, "only a transform with options of its own can join"
        return self.default.join(inputs)


def context_for(
    job: JobPlan, task: TaskPlan, stage: Stage, job_id: str, allow_python: bool, life: str = ""
) -> PluginContext:
    """Return where a stage's plug-in runs as part of a task."""
    periodic = job.mode is Mode.STREAMING or job.checkpoint_interval_ms is not None
    return PluginContext(
        job_id=job_id,
        job_name=job.name,
        stage=stage.id,
        mode=job.mode,
        parallelism=stage.parallelism,
        checkpointing=periodic and not task.whole,
        allow_python=allow_python,
        output=stage.output,
        batches=not _wants_frames(dict(job.spark)),
        life=life,
    )


def _wants_frames(settings: Mapping[str, str]) -> bool:
    """Say whether a job's settings leave no row to Arrow alone."""
    return settings.get(BATCHES) == "false" or any(k.startswith(ROW_SETTINGS) for k in settings)


def build_plugin(stage: Stage, registry: Registry, context: PluginContext) -> Plugin[Any]:
    """Return the plug-in of a stage, with its options."""
    kind = _kind(stage, registry)
    return kind(stage_options(stage, kind).own, context)


def choose_transform(
    stage: Stage, registry: Registry, context: PluginContext
) -> TransformSelection:
    """Return the transforms of a stage: one for all its tables, and those for named ones."""
    kind = _kind(stage, registry)
    assert issubclass(kind, Transform), f"{stage.id} is no transform"
    read = stage_options(stage, kind)
    return TransformSelection(
        default=None if read.own is None else kind(read.own, context),
        pattern=getattr(read.common, "table_match_regex", None),
        tables={path: kind(own, context) for path, own in read.tables.items()},
        joins=stage_joins(kind, read, stage.inputs),
    )


def stage_joins(kind: type[Plugin[Any]], read: StageOptions, inputs: tuple[str, ...]) -> bool:
    """Say whether a transform must see all its inputs together."""
    if read.own is None or not issubclass(kind, Transform):
        return False
    named = read.common.plugin_input
    names = tuple(dict.fromkeys(n.text for n in named.names)) if named else ()
    # Fewer names than inputs: sources share one.  More: some are wrong, and were warned of.
    return kind.joins(read.own, names if 0 < len(names) <= len(inputs) else inputs)


def read_stage(
    kind: type[Plugin[Any]], role: Role, block: Block, about: str, report: CheckReport
) -> StageOptions | None:
    """Read all options of a plug-in, or report every mistake and return None."""
    before = len(report.mistakes)
    cls = common_class(role, kind)
    shared, own_block = separate(block, cls)
    common = read_options(cls, shared, about, report)
    tables = _table_options(kind, shared, about, report)
    only_tables = bool(tables) and not own_block.entries and not shared.get("table_match_regex")
    own = None if only_tables else read_options(kind.options_class, own_block, about, report)
    if len(report.mistakes) > before:
        return None
    return StageOptions(common, own, tables)


def _table_options(
    kind: type[Plugin[Any]], shared: Block, about: str, report: CheckReport
) -> dict[str, Any]:
    """Read the blocks of `table_transform`, each against the transform's own options."""
    listed = shared.get("table_transform")
    parts = listed.items if isinstance(listed, Items) else (listed,)
    found: dict[str, Any] = {}
    for i, block in enumerate(part for part in parts if isinstance(part, Block)):
        where = f"{about}: table_transform[{i}]"
        entry = find_entry(block, ("table_path",))
        path = entry.node.text if entry and isinstance(entry.node, Scalar) else ""
        if not path:
            report.error(
                entry.node.place if entry else block.place,
                f"{where}: required option 'table_path' is missing."
                " Name the table that these options are for.",
            )
        if path in found and entry:
            report.error(entry.node.place, f"{where}: table '{path}' occurs twice. Keep one.")
        rest = Block(tuple(e for e in block.entries if e is not entry), block.place)
        found[path] = read_options(kind.options_class, rest, where, report)
    return found


def _kind(stage: Stage, registry: Registry) -> type[Plugin[Any]]:
    kind = registry.find(stage.role, stage.plugin)
    assert kind, f"{stage.id} was checked, but no plug-in {stage.plugin} is registered here"
    return kind


def stage_options(stage: Stage, kind: type[Plugin[Any]]) -> StageOptions:
    """Return the options of a stage that was checked."""
    # The check has already said what to do about unknown options; here they are just left out.
    report = CheckReport(settled=True)
    read = read_stage(kind, stage.role, stage.options, f"{stage.role} {stage.plugin}", report)
    report.raise_if_any()
    assert read
    return read


def identities(job: JobPlan, registry: Registry) -> tuple[StageIdentity, ...]:
    """Return the identity of each source and sink, in the order of the file."""
    named = {stage.id: stage.output or "" for stage in job.stages}
    return tuple(
        _identity(job, stage, named, registry)
        for stage in job.stages
        if stage.role is not Role.TRANSFORM
    )


def _identity(
    job: JobPlan, stage: Stage, named: Mapping[str, str], registry: Registry
) -> StageIdentity:
    kind = registry.find(stage.role, stage.plugin)
    assert kind, f"{stage.id} was checked, but no plug-in {stage.plugin} is registered here"
    read = stage_options(stage, kind)
    basis: Mapping[str, Plain] = {}
    if issubclass(kind, Source):
        basis = kind.basis(read.own, job.mode, stage.parallelism)
    names = (stage.output or "",) if stage.role is Role.SOURCE else (named[i] for i in stage.inputs)
    return StageIdentity(
        stage.id,
        stage.role,
        stage.plugin,
        read.common.uid or "",
        _facts(_said(kind, read.own, stage)),
        tuple(sorted(name for name in names if name)),
        _facts(basis),
    )


def _said(kind: type[Plugin[Any]], own: Any, stage: Stage) -> Mapping[str, Plain]:
    """Return the options that a stage is known by: all of them where none is declared so."""
    if kind.placeless or any(info.identity for info in describe(kind.options_class)):
        return identity_of(own)
    _, block = separate(stage.options, common_class(stage.role, kind))
    found = masked(block, kind.options_class)
    assert isinstance(found, dict)
    return found


def _facts(said: Mapping[str, Plain]) -> Facts:
    """Return options by their full names, with passwords in them masked."""
    return tuple(sorted((key, masked_text(text)) for key, text in _leaves(said)))


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, one in value.items():
                yield from _leaves(one, f"{key}.{name}" if key else name)
        case list() if any(isinstance(one, (dict, list)) for one in value):
            for number, one in enumerate(value):
                yield from _leaves(one, f"{key}[{number}]")
        case list() if len(value) == 1:
            yield from _leaves(value[0], key)
        case str():
            yield key, value
        case _:
            yield key, json.dumps(value)
