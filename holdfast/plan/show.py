"""Show a job: as a tree for a terminal, as a Mermaid diagram, as plain data.

`registry` knows which options are secret and what each sink promises, `tables` what is known of the
rows that leave each stage.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.connect.registry import Registry
from holdfast.model.job import Guarantee, JobPlan, PipelinePlan, Role, Stage, TaskPlan
from holdfast.model.secret import MASK
from holdfast.model.table import Column, Table
from holdfast.model.tree import Plain
from holdfast.plan.common import INPUT_KEYS, OUTPUT_KEYS
from holdfast.plan.masking import masked
from holdfast.plan.promises import MEANINGS, WriteTarget, modes_of, promise_of, writes_of

Known = Mapping[str, Sequence[Table]] | None

WIDTH = 100


def draw_text(job: JobPlan, registry: Registry, tables: Known = None) -> str:
    """Return the job as a tree for a terminal."""
    drawing = _Drawing(job, registry, tables or {})
    lines = [f"{job.name} ({job.file})", *(f"  {line}" for line in _settings(job))]
    for pipeline in job.pipelines:
        lines += ["", f"Pipeline {pipeline.id}: {_count(job, pipeline)}"]
        for task in pipeline.tasks:
            lines += [f"  Task {task.id}", *drawing.task(task)]
    return "\n".join(lines) + "\n"


def draw_mermaid(job: JobPlan, registry: Registry, tables: Known = None) -> str:
    """Return the job as a Mermaid flowchart: each stage once, one box for each pipeline."""
    names = {s.id: f"{s.role}{i}" for i, s in enumerate(job.stages)}
    lines = ["flowchart LR"]
    for pipeline in job.pipelines:
        lines.append(f'  subgraph pipeline{pipeline.id}["Pipeline {pipeline.id}"]')
        for stage in (job.stage(s) for s in pipeline.stages):
            label = _label(stage, registry, (tables or {}).get(stage.id, ()))
            lines.append(f"    {names[stage.id]}{_shape(stage.role, label)}")
        lines.append("  end")
    for stage in job.stages:
        for feeder in stage.inputs:
            named = job.stage(feeder).output
            arrow = f'-->|"{_escaped(named)}"|' if named else "-->"
            lines.append(f"  {names[feeder]} {arrow} {names[stage.id]}")
    return "\n".join(lines) + "\n"


def plan_json(job: JobPlan, registry: Registry, tables: Known = None) -> str:
    """Return the job as JSON text, secrets masked."""
    return json.dumps(plan_data(job, registry, tables), indent=2, ensure_ascii=False) + "\n"


def plan_data(job: JobPlan, registry: Registry, tables: Known = None) -> dict[str, Plain]:
    """Return the job as plain data, secrets masked."""
    return {
        "name": job.name,
        "file": job.file,
        "mode": job.mode.value,
        "parallelism": job.parallelism,
        "checkpoint_interval_ms": job.checkpoint_interval_ms,
        "checkpoint_timeout_ms": job.checkpoint_timeout_ms,
        "retry_times": job.retry_times,
        "retry_interval_s": job.retry_interval_s,
        "rows_per_second": job.rows_per_second,
        "bytes_per_second": job.bytes_per_second,
        "tag_filter": dict(job.tag_filter),
        "stages": [_stage_data(s, registry, tables or {}) for s in job.stages],
        "pipelines": [
            {"id": p.id, "tasks": [{"id": t.id, "stages": list(t.stages)} for t in p.tasks]}
            for p in job.pipelines
        ],
    }


def guarantee_of(stage: Stage, registry: Registry) -> Guarantee | None:
    """Return what a sink promises; None for other stages."""
    promise = promise_of(stage, registry)
    return promise.guarantee if promise else None


def _settings(job: JobPlan) -> Iterator[str]:
    """Yield how the job runs, in words."""
    yield f"{job.mode}, parallelism {job.parallelism}"
    if job.checkpoint_interval_ms:
        yield f"a checkpoint every {_duration(job.checkpoint_interval_ms)}"
    else:
        yield "one checkpoint, at the end"
    if job.retry_times:
        times = "once" if job.retry_times == 1 else f"up to {job.retry_times} times"
        yield f"a failed pipeline starts again {times}, after {job.retry_interval_s} s"
    else:
        yield "a failed pipeline fails the job"
    if job.rows_per_second:
        yield f"each reader takes at most {job.rows_per_second} rows a second"
    if job.bytes_per_second:
        yield f"each reader takes at most {job.bytes_per_second} bytes a second"
    if job.tag_filter:
        yield "on workers tagged " + ", ".join(f"{k} = {v}" for k, v in job.tag_filter)


def _duration(ms: int) -> str:
    return f"{ms // 1000} s" if ms % 1000 == 0 else f"{ms} ms"


def _count(job: JobPlan, pipeline: PipelinePlan) -> str:
    """Return how many stages of each role a pipeline has, and how many tasks."""
    roles = [job.stage(s).role for s in pipeline.stages]
    counts = [(role.value, roles.count(role)) for role in Role if role in roles]
    counts.append(("task", len(pipeline.tasks)))
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for word, n in counts)


@dataclass
class _Drawing:
    """Draws the tasks of one job as trees: each source, and below it what it feeds."""

    job: JobPlan
    registry: Registry
    tables: Mapping[str, Sequence[Table]]

    def task(self, task: TaskPlan) -> list[str]:
        """Return the lines of a task.

        A stage that several others feed is drawn once; where it comes again, it is only named.
        """
        stages = [self.job.stage(s) for s in task.stages]
        drawn: set[str] = set()
        return self._branches([s for s in stages if not s.inputs], stages, "  ", drawn)

    def _branches(
        self, fed: Sequence[Stage], stages: Sequence[Stage], lead: str, drawn: set[str]
    ) -> list[str]:
        lines = []
        for stage in fed:
            last = stage is fed[-1]
            again = stage.id in drawn
            drawn.add(stage.id)
            lines.append(f"{lead}{'└─' if last else '├─'} {self._head(stage, again)}")
            if not again:
                below = f"{lead}{'  ' if last else '│ '} "
                next_fed = [s for s in stages if stage.id in s.inputs]
                bar = "│  " if next_fed else "   "
                lines += [f"{below}{bar}{line}" for line in self._details(stage, len(below) + 3)]
                lines += self._branches(next_fed, stages, below, drawn)
        return lines

    def _head(self, stage: Stage, again: bool) -> str:
        """Return the line that names a stage."""
        if again:
            return f"{stage.id} (drawn above)"
        parts = [stage.id]
        if stage.output:
            parts.append(f"as {stage.output}")
        if stage.parallelism > 1:
            parts.append(f"parallelism {stage.parallelism}")
        promise = promise_of(stage, self.registry)
        if promise:
            parts.append(str(promise))
        return ", ".join(parts)

    def _details(self, stage: Stage, taken: int) -> Iterator[str]:
        """Yield the options of a stage and the tables that leave it."""
        modes, tables = dict(modes_of(stage, self.registry)), self.tables.get(stage.id, ())
        shown = _options_data(stage, self.registry)
        options = [f"{k} = {v}" for k, v in _short(shown) if k not in modes]
        yield from _wrap("", options, taken)
        for table in tables:
            columns = [_column_text(c, table) for c in table.columns]
            yield from _wrap(f"{table.path}: ", columns or ["columns not known yet"], taken)
        for one in writes_of(stage, self.registry, tables):
            if one.destination or one.writing.modes or one.writing.how:
                where = f" to {one.destination}" if one.destination else ""
                yield from _wrap(f"{one.table}{where}: ", [one.how], taken)
        yield from (f"{k} = {v}: {MEANINGS.get(v, v)}" for k, v in modes.items())


def _short(
    shown: Mapping[str, Plain], prefix: str = "", depth: int = 2
) -> Iterator[tuple[str, str]]:
    """Yield the options worth a line: single values, not too deep, without how stages are wired."""
    for key, value in shown.items():
        if key in (*INPUT_KEYS, *OUTPUT_KEYS, "parallelism"):
            continue
        if isinstance(value, dict):
            if depth > 1:
                yield from _short(value, f"{prefix}{key}.", depth - 1)
        elif not isinstance(value, list):
            text = " ".join(str(value).split())
            yield f"{prefix}{key}", text if len(text) <= 60 else f"{text[:57]}..."


def _wrap(head: str, parts: Sequence[str], taken: int) -> Iterator[str]:
    """Yield lines of parts with commas between; a part is never broken."""
    line = head
    for i, part in enumerate(parts):
        piece = part if i == len(parts) - 1 else f"{part}, "
        if line.strip() and taken + len(line) + len(piece.rstrip()) > WIDTH:
            yield line.rstrip()
            line = "  "
        line += piece
    if parts:
        yield line


def _column_text(column: Column, table: Table) -> str:
    """Return a column's name and type; the primary key's columns are marked."""
    key = table.primary_key
    mark = " (key)" if key and column.name in key.columns else ""
    return f"{column.name} {column.type}{mark}"


def _label(stage: Stage, registry: Registry, tables: Sequence[Table]) -> str:
    parts = [stage.id]
    if stage.parallelism > 1:
        parts.append(f"parallelism {stage.parallelism}")
    to = {w.table: w.destination for w in writes_of(stage, registry, tables)}
    parts += [
        f"{t.path} to {to[str(t.path)]}" if to.get(str(t.path)) else str(t.path) for t in tables
    ]
    promise = promise_of(stage, registry)
    if promise:
        parts.append(str(promise))
    return "<br/>".join(_escaped(p) for p in parts)


def _shape(role: Role, label: str) -> str:
    """Return a label in the shape of its role: sources and sinks hold data, transforms do not."""
    return f'["{label}"]' if role is Role.TRANSFORM else f'[("{label}")]'


def _escaped(text: str) -> str:
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;")


def _stage_data(
    stage: Stage, registry: Registry, tables: Mapping[str, Sequence[Table]]
) -> dict[str, Plain]:
    shown: dict[str, Plain] = {
        "id": stage.id,
        "role": stage.role.value,
        "plugin": stage.plugin,
        "inputs": list(stage.inputs),
        "output": stage.output,
        "parallelism": stage.parallelism,
        "line": stage.place.line,
        "options": _options_data(stage, registry),
    }
    promise = promise_of(stage, registry)
    if promise:
        shown["guarantee"] = promise.guarantee.value
        if promise.why:
            shown["guarantee_why"] = promise.why
    if stage.event_time:
        shown["watermark_column"] = stage.event_time.column
    if stage.id in tables:
        shown["tables"] = [_table_data(t) for t in tables[stage.id]]
    if modes := modes_of(stage, registry):
        shown["save_modes"] = dict(modes)
    if written := writes_of(stage, registry, tables.get(stage.id, ())):
        shown["writes"] = [_written_data(one) for one in written]
    return shown


def _written_data(one: WriteTarget) -> dict[str, Plain]:
    return {
        "table": one.table,
        "destination": one.destination,
        "how": one.how,
        "keys": list(one.writing.keys),
        "partitions": list(one.writing.partitions),
    }


def _options_data(stage: Stage, registry: Registry) -> dict[str, Plain]:
    """Return a stage's options, secrets masked; all of them where the plug-in is unknown."""
    kind = registry.find(stage.role, stage.plugin)
    if kind is None:
        return {e.key: MASK for e in stage.options.entries if e.key != "plugin_name"}
    shown = masked(stage.options, kind.options_class)
    assert isinstance(shown, dict)
    shown.pop("plugin_name", None)
    tables = stage.options.get("table_transform")
    if tables:  # these blocks hold the same options
        shown["table_transform"] = masked(tables, kind.options_class)
    return shown


def _table_data(table: Table) -> dict[str, Plain]:
    return {
        "path": str(table.path),
        "columns": [
            {"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in table.columns
        ],
        "primary_key": list(table.primary_key.columns) if table.primary_key else [],
        "partitions": list(table.partitions),
        "changelog": table.changelog,
        "comment": table.comment,
    }
