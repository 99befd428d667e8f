"""Cut a job's graph into pipelines and tasks.

A pipeline is a connected part of the graph.  Within it, sources whose rows Spark must plan together
(they meet in a transform that joins) share a task.  Sources that only meet in a sink, or in a
transform that takes tables one by one, are tasks of their own; each has a copy of what they share.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

from holdfast.model.job import PipelinePlan, Role, Stage, TaskPlan


def split(
    stages: Sequence[Stage], joining: Collection[str], whole: Collection[str] = ()
) -> tuple[PipelinePlan, ...]:
    """Return the pipelines of a checked graph.

    `joining` holds the ids of stages where rows of several inputs meet, `whole` of those that need
    all rows at once; for both, Spark must plan all their sources together.

    The same stages always give the same pipelines, tasks and ids.
    """
    order = sort_stages(stages)
    pipelines = []
    for number, part in enumerate(_parts(stages, _edges(stages)), start=1):
        inside = [s for s in stages if s.id in part]
        upstream = _upstream_sources(inside)
        groups = _source_groups(inside, upstream, {*joining, *whole})
        tasks = []
        for i, group in enumerate(groups, start=1):
            ids = tuple(s for s in order if s in part and upstream[s] & group)
            together = bool({*joining, *whole} & set(ids))
            tasks.append(TaskPlan(f"p{number}-t{i}", ids, together))
        pipelines.append(PipelinePlan(number, tuple(tasks)))
    return tuple(pipelines)


def sort_stages(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return stage ids: sources, then transforms each after what feeds it, then sinks."""
    rank = {s.id: i for i, s in enumerate(stages)}
    role = {Role.SOURCE: 0, Role.TRANSFORM: 1, Role.SINK: 2}
    roles = {s.id: role[s.role] for s in stages}
    sorter = TopologicalSorter({s.id: s.inputs for s in stages})
    sorter.prepare()
    ready: list[str] = []
    done: list[str] = []
    while sorter.is_active():
        ready += sorter.get_ready()
        ready.sort(key=lambda s: (roles[s], rank[s]))
        first = ready.pop(0)
        done.append(first)
        sorter.done(first)
    return tuple(sorted(done, key=lambda s: roles[s]))  # a stable sort keeps feeding order


def _edges(stages: Iterable[Stage]) -> list[tuple[str, str]]:
    return [(source, s.id) for s in stages for source in s.inputs]


def _parts(stages: Sequence[Stage], edges: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the connected parts of the graph, in the order of their first stages."""
    merged = _merge((s.id for s in stages), edges)
    return list({id(part): part for part in merged.values()}.values())


def _source_groups(
    stages: Sequence[Stage], upstream: Mapping[str, set[str]], joining: Collection[str]
) -> list[set[str]]:
    """Return the sources that belong to one task each, in the order of the file."""
    pairs = [
        (first, other)
        for s in stages
        if s.id in joining
        for first in sorted(upstream[s.id])[:1]
        for other in upstream[s.id]
    ]
    merged = _merge((s.id for s in stages if s.role is Role.SOURCE), pairs)
    return list({id(group): group for group in merged.values()}.values())


def _upstream_sources(stages: Sequence[Stage]) -> Mapping[str, set[str]]:
    """Map each stage to the sources whose rows reach it."""
    by_id = {s.id: s for s in stages}
    found: dict[str, set[str]] = {}
    for stage_id in sort_stages(stages):
        stage = by_id[stage_id]
        own = {stage_id} if stage.role is Role.SOURCE else set()
        found[stage_id] = own.union(*(found[i] for i in stage.inputs))
    return found


def _merge(ids: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Map each id to the set of ids it is tied to, directly or through others."""
    sets = {i: {i} for i in ids}
    for one, other in pairs:
        if sets[one] is not sets[other]:
            joined = sets[one] | sets[other]
            for member in joined:
                sets[member] = joined
    return sets
