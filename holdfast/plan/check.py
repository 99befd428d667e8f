"""Check a parsed job file and make a `JobPlan` of it.

Every mistake is reported in one go: in the top level, in `env`, in the options of each plug-in and
in how they are wired.  Only a file without any becomes a job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError
from typing import Any

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import nearest
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.connect.transform import Transform
from holdfast.errors import SourceLocation
from holdfast.model.job import EventTime, JobPlan, Mode, Role, Stage
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.common import INPUT_KEYS, OUTPUT_KEYS, Inputs, Name, find_entry
from holdfast.plan.env import DEFAULT_NAME, Env, EnvOptions, is_env_option, read_env
from holdfast.plan.graph import Ends, Links, sort_stages, split, wire
from holdfast.plan.plugins import StageOptions, read_stage, stage_joins

TOP = ("env", "source", "transform", "sink")


@dataclass(frozen=True)
class _Found:
    """A plug-in in the file: as much of it as could be read."""

    ends: Ends
    block: Block
    plugin: str
    kind: type[Plugin[Any]] | None
    options: StageOptions | None
    sound: bool


@dataclass(frozen=True)
class JobDraft:
    """As much of a job as a file says; `job` is None where it says too little.

    `broken` are stages of which a mistake was reported: what they do is not known.
    """

    job: JobPlan | None
    broken: frozenset[str] = frozenset()


def check_job(
    tree: Block,
    file: str,
    registry: Registry,
    report: CheckReport,
    *,
    name: str | None = None,
    allow_python: bool = False,
) -> JobPlan | None:
    """Return the job that a tree describes, or report every mistake and return None.

    `name` wins over `job.name`.  `allow_python` says that the operator lets job files bring code.
    """
    before = len(report.mistakes)
    draft = draft_job(tree, file, registry, report, name=name, allow_python=allow_python)
    return None if len(report.mistakes) > before else draft.job


def draft_job(
    tree: Block, file: str, registry: Registry, report: CheckReport, *, name: str | None = None,
    allow_python: bool = False,
) -> JobDraft:  # fmt: skip
    """Return as much of a job as its file says, although it has mistakes; they are reported."""
    _check_top(tree, report)
    env = read_env(_env_block(tree, report), report)
    found = [
        _read_plugin(role, i, block, registry, report, allow_python)
        for role in Role
        for i, block in enumerate(_blocks(tree, role, report))
    ]
    if env is not None:
        _report_lacks(found, env, report)
    else:  # what the others do hardly depends on it
        env = read_env(Block((), tree.place), CheckReport())
    links = _wire(found, report)
    _report_same_uids(found, report)
    if links is None:
        return JobDraft(None)
    assert env is not None, "an empty env has no mistakes"
    used = [f for f in found if f.ends.id in links]
    joining = {f.ends.id for f in used if _joins(f, links)}
    whole = {f.ends.id for f in used if f.kind and f.options and _is_whole(f.kind, f.options)}
    if env.options.job_mode is Mode.STREAMING:
        _refuse_whole([f for f in used if f.ends.id in joining | whole], report)
    broken = frozenset(f.ends.id for f in used if not f.sound)
    try:
        return JobDraft(_make_job(file, env, used, links, name, split_by=(joining, whole)), broken)
    except CycleError:  # it was reported
        return JobDraft(None)


def _report_lacks(found: Sequence[_Found], env: Env, report: CheckReport) -> None:
    for one in found:
        if one.kind and one.options and one.options.own is not None:
            for sentence in one.kind.lacks(one.options.own, dict(env.spark)):
                report.error(one.ends.place, f"{one.ends.about}: {sentence}")


def _report_same_uids(found: Sequence[_Found], report: CheckReport) -> None:
    """Report stages of one uid: a restore could not tell whose position is whose."""
    known: dict[str, _Found] = {}
    for one in found:
        uid = getattr(one.options.common, "uid", None) if one.options else None
        first = known.setdefault(uid, one) if uid else one
        if first is not one:
            report.error(
                one.ends.place,
                f"{one.ends.about}: uid '{uid}' is taken by {first.ends.about} on line"
                f" {first.ends.place.line}. Give each stage a uid of its own.",
            )


def _joins(found: _Found, links: Links) -> bool:
    if not (found.kind and found.options):
        return False
    return stage_joins(found.kind, found.options, links[found.ends.id])


def _is_whole(kind: type[Plugin[Any]], read: StageOptions) -> bool:
    """Say whether a transform must see all rows of its input at once."""
    if not issubclass(kind, Transform):
        return False
    return any(kind.whole(own) for own in (read.own, *read.tables.values()) if own is not None)


def _refuse_whole(found: Sequence[_Found], report: CheckReport) -> None:
    for one in found:
        report.error(
            one.ends.place,
            f"{one.ends.about}: it joins, sums or sorts, and so needs all rows at once; a STREAMING"
            " job never has them all. Set job.mode = BATCH, or look at one row at a time.",
        )


def _check_top(tree: Block, report: CheckReport) -> None:
    before = len(report.mistakes)
    for entry in tree.entries:
        if entry.key not in TOP:
            _report_stray(entry, report)
    misspelt = "".join(m.message for m in report.mistakes[before:])
    for role in (Role.SOURCE, Role.SINK):
        if _is_empty(tree.get(role)) and f"Did you mean '{role}'" not in misspelt:
            report.error(
                tree.place,
                f"The job has no {role}. Name at least one plug-in in {role} {{ ... }}.",
            )


def _report_stray(entry: Entry, report: CheckReport) -> None:
    """Say what to do about a key that is no part of a job file."""
    about = f"'{entry.key}' is not a part of a job file"
    hint = nearest(entry.key, list(TOP))
    if is_env_option(entry.key):
        report.unknown(entry.place, f"{about}. Did you mean to put it into env {{ ... }}?")
    elif isinstance(entry.node, Scalar) and not hint:
        report.warn(entry.place, f"{about}. It is used only as ${{{entry.key}}}.")
    else:
        report.unknown(entry.place, f"{about}: {', '.join(TOP)} are.{hint}")


def _is_empty(node: Node | None) -> bool:
    match node:
        case Items(items=items):
            return not items
        case Block(entries=entries):
            return not entries
        case _:
            return node is None


def _env_block(tree: Block, report: CheckReport) -> Block:
    node = tree.get("env")
    if isinstance(node, Block):
        return node
    if node is not None and not _is_empty(node):
        report.error(node.place, "env is not a block { ... }. Give its options inside braces.")
    return Block((), tree.place)


def _blocks(tree: Block, role: Role, report: CheckReport) -> Iterator[Block]:
    """Yield the plug-ins of a role."""
    node = tree.get(role)
    if node is None or _is_empty(node):
        return
    for item in node.items if isinstance(node, Items) else (node,):
        if isinstance(item, Block) and isinstance(item.get("plugin_name"), Scalar):
            yield item
        else:
            report.error(
                item.place,
                f"{role}: a plug-in is its name and a block of options, such as"
                f" {'Console' if role is Role.SINK else 'FakeSource'} {{ ... }};"
                ' in JSON and YAML, a block with "plugin_name".',
            )


def _read_plugin(
    role: Role, i: int, block: Block, registry: Registry, report: CheckReport, allow_python: bool
) -> _Found:
    node = block.get("plugin_name")
    assert isinstance(node, Scalar)
    kind = registry.find(role, node.text)
    plugin = kind.name if kind else node.text
    about = f"{role} {plugin}"
    before, options = len(report.mistakes), None
    if kind is None:
        _report_unknown(role, node, registry, report)
    elif kind.refused:
        report.error(node.place, f"{about}: {kind.refused}")
    else:
        if kind.needs_python and not allow_python:
            report.error(
                node.place,
                f"{about}: this job brings Python code, which runs with all the rights of the"
                " worker. If you trust it, allow it with --allow-python or"
                " HOLDFAST_ALLOW_PYTHON=1.",
            )
        options = read_stage(kind, role, block, about, report)
    ends = _ends(f"{role.capitalize()}[{i}]-{plugin}", role, about, block, node.place, report)
    return _Found(ends, block, plugin, kind, options, len(report.mistakes) == before)


def _report_unknown(role: Role, name: Scalar, registry: Registry, report: CheckReport) -> None:
    known = [n for n in registry.names(role) if not _refused(role, n, registry)]
    elsewhere = [p.role for p in registry.named(name.text)]
    if elsewhere:
        roles = " and ".join(f"a {r}" for r in elsewhere)
        hint = f" It is {roles}."
    else:
        hint = nearest(name.text, known)
    hint += stand_in(role, name.text, registry)
    report.error(
        name.place,
        f"{role} {name.text}: there is no {role} of this name.{hint}"
        f" Known {role}s: {', '.join(known) or 'none'}.",
    )


def stand_in(role: Role, name: str, registry: Registry) -> str:
    """Say which connector does the work of one that is not here."""
    name = name.lower()
    for kind in (registry.find(role, known) for known in registry.names(role)):
        if kind and name in kind.stands_in:
            how = f"{kind.name} {{ {kind.stands_in[name]} }}"
            return f" {how} can do it; what Spark needs for that belongs in env {{ jars }}."
    return ""


def _refused(role: Role, name: str, registry: Registry) -> bool:
    kind = registry.find(role, name)
    return bool(kind and kind.refused)


def _ends(
    id: str, role: Role, about: str, block: Block, place: SourceLocation, report: CheckReport
) -> Ends:
    """Return what a stage reads and offers, also where its other options are wrong."""
    given, offered = find_entry(block, INPUT_KEYS), find_entry(block, OUTPUT_KEYS)
    if given and role is Role.SOURCE:
        report.warn(given.place, f"{about}: {given.key} has no effect: a source reads no dataset.")
        given = None
    if offered and role is Role.SINK:
        report.warn(offered.place, f"{about}: {offered.key} has no effect: nothing follows a sink.")
        offered = None
    inputs: tuple[Name, ...] = ()
    output = None
    if given and _is_names(given.node):
        inputs = Inputs.from_node(given.node, about, report).names
    if offered and isinstance(offered.node, Scalar) and offered.node.text:
        output = Name(offered.node.text, offered.node.place)
    return Ends(id, role, about, inputs, output, place)


def _is_names(node: Node) -> bool:
    parts = node.items if isinstance(node, Items) else (node,)
    return all(isinstance(part, Scalar) and part.value is not None for part in parts)


def _wire(found: Sequence[_Found], report: CheckReport) -> Links | None:
    """Return what feeds each stage; None where names that cannot be read leave no way to tell."""
    for one in found:
        given, offered = find_entry(one.block, INPUT_KEYS), find_entry(one.block, OUTPUT_KEYS)
        if given and not _is_names(given.node):
            return None
        if offered and not isinstance(offered.node, Scalar):
            return None
    roles = {one.ends.role for one in found}
    if not {Role.SOURCE, Role.SINK} <= roles:
        return None
    return wire([one.ends for one in found], report)


def _make_job(
    file: str,
    env: Env,
    found: Sequence[_Found],
    links: Links,
    name: str | None,
    *,
    split_by: tuple[set[str], set[str]],
) -> JobPlan:
    options = env.options
    stages = _stages(found, links, options)
    return JobPlan(
        name=name or options.job_name or DEFAULT_NAME,
        mode=options.job_mode,
        stages=stages,
        pipelines=split(stages, *split_by),
        parallelism=options.parallelism,
        checkpoint_interval_ms=options.interval_ms,
        checkpoint_timeout_ms=options.checkpoint_timeout,
        retry_times=options.job_retry_times,
        retry_interval_s=options.job_retry_interval_seconds,
        saved_retained_s=float(options.savepoint_retained),
        rows_per_second=options.rows_per_second,
        bytes_per_second=options.bytes_per_second,
        tag_filter=tuple(options.tag_filter.items()),
        spark=env.spark,
        file=file,
    )


def _stages(found: Sequence[_Found], links: Links, env: EnvOptions) -> tuple[Stage, ...]:
    """Return the stages in the order of the file; each takes its parallelism from what feeds it."""
    own = {f.ends.id: f.options.common.parallelism if f.options else None for f in found}
    stages = tuple(
        Stage(
            id=f.ends.id,
            role=f.ends.role,
            plugin=f.plugin,
            options=f.block,
            inputs=links[f.ends.id],
            output=f.ends.output.text if f.ends.output else None,
            parallelism=own[f.ends.id] or 0,
            place=f.ends.place,
            event_time=_event_time(f, env),
        )
        for f in found
    )
    by_id = {s.id: s for s in stages}
    for stage_id in sort_stages(stages):
        stage = by_id[stage_id]
        inherited = by_id[stage.inputs[0]].parallelism if stage.inputs else env.parallelism
        by_id[stage_id] = replace(stage, parallelism=stage.parallelism or inherited)
    return tuple(by_id.values())


def _event_time(found: _Found, env: EnvOptions) -> EventTime | None:
    """Return which column of a source says when a row happened; what it does not say, env does."""
    if found.ends.role is not Role.SOURCE or not found.options:
        return None
    own = found.options.common
    column = own.watermark_column or env.watermark_column
    delay_s = env.watermark_delay if own.watermark_delay is None else own.watermark_delay
    idle_s = env.watermark_idle if own.watermark_idle is None else own.watermark_idle
    if column is None:
        return None
    return EventTime(column, round(delay_s * 1000), idle_s, own.watermark_column is not None)
