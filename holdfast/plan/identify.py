"""What the sources and sinks of a planned job are known by.

Read again from the job file whenever it is needed, for the old job and the new one alike: so both
are seen with the same eyes, also after an upgrade of Holdfast, and no record holds a copy.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.connect.options import describe, identity_of
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.connect.source import Source
from holdfast.model.identity import Facts, StageIdentity
from holdfast.model.job import JobPlan, Role, Stage
from holdfast.model.tree import Plain
from holdfast.plan.common import common_class, separate
from holdfast.plan.masking import masked, masked_text
from holdfast.plan.plugins import stage_options


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
