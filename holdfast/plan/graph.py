"""Find out which stage feeds which.

Stages are joined by names: a source or transform gives its rows one (`plugin_output`), transforms
and sinks name what they read (`plugin_input`).  SeaTunnel has three rules, and so have we:

- *loose*: one source, at most one transform, one sink.  Names may be missing or wrong; each stage
  then reads the last dataset declared before it.
- *chain*: one source, several transforms, one sink.  Names may be missing, not wrong.
- *graph*: all else.  Every name must be there, be right, and be used.

Sources that share a name are read as one: a stage that names it gets the rows of all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import nearest
from holdfast.errors import SourceLocation
from holdfast.model.job import PipelinePlan, Role, Stage, TaskPlan
from holdfast.plan.common import Name

Links = dict[str, tuple[str, ...]]
"""The ids of the stages that feed each stage."""


@dataclass(frozen=True, slots=True)
class Ends:
    """A stage as wiring sees it: what it reads and what it offers."""

    id: str
    role: Role
    about: str
    inputs: tuple[Name, ...]
    output: Name | None
    place: SourceLocation

    def at(self, name: Name | None) -> SourceLocation:
        """Return the place of a name, or of the stage where there is none."""
        return name.place if name else self.place


def wire(stages: Sequence[Ends], report: CheckReport) -> Links:
    """Return what feeds each stage; every mistake is reported.

    A stage missing in the answer has no part in the job: in a loose graph, a transform that the
    sink passes by.
    """
    sources = [s for s in stages if s.role is Role.SOURCE]
    transforms = [s for s in stages if s.role is Role.TRANSFORM]
    sinks = [s for s in stages if s.role is Role.SINK]
    if len(sources) == 1 and len(sinks) == 1:
        if len(transforms) <= 1:
            return _wire_loose(stages, report)
        return _wire_strictly([*sources, *transforms, *sinks], report, chain=True)
    return _wire_strictly([*sources, *transforms, *sinks], report, chain=False)


def _wire_loose(stages: Sequence[Ends], report: CheckReport) -> Links:
    links: Links = {}
    before: list[Ends] = []
    for stage in sorted(stages, key=lambda s: list(Role).index(s.role)):
        known = {s.output.text: s.id for s in before if s.output}
        links[stage.id] = tuple(
            dict.fromkeys(known[n.text] for n in stage.inputs if n.text in known)
        )
        for name in stage.inputs:
            if name.text not in known:
                _warn_of_wrong(stage, name, before, bool(links[stage.id]), report)
        if before and not links[stage.id]:
            links[stage.id] = (before[-1].id,)
        before.append(stage)
    return _leave_out_unread(before, links, report)


def _warn_of_wrong(
    stage: Ends, name: Name, before: Sequence[Ends], others: bool, report: CheckReport
) -> None:
    """Say what to do about a name that no stage offers."""
    if others:
        instead = "It is left out"
    else:
        instead = f"The rows of {before[-1].id} are read instead"
    named = " or ".join(f"'{s.output.text}'" for s in before if s.output)
    advice = f"Give plugin_input = {named}" if named else "Remove plugin_input"
    report.warn(
        name.place,
        f"{stage.about}: no source or transform has the plugin_output '{name.text}'."
        f" {instead}, as SeaTunnel does. {advice}.",
    )


def _leave_out_unread(stages: Sequence[Ends], links: Links, report: CheckReport) -> Links:
    """Drop a transform that the only sink passes by; SeaTunnel runs such jobs without it."""
    read = {feeder for feeders in links.values() for feeder in feeders}
    for stage in stages:
        if stage.role is Role.TRANSFORM and stage.id not in read:
            named = f" under '{stage.output.text}'" if stage.output else ""
            report.warn(
                stage.at(stage.output),
                f"{stage.about}: the sink does not read its rows{named}, so the job runs without"
                " this transform, as in SeaTunnel. Name it as the sink's plugin_input, or"
                " remove it.",
            )
            del links[stage.id]
    return links


def _wire_strictly(stages: Sequence[Ends], report: CheckReport, *, chain: bool) -> Links:
    before = len(report.mistakes)
    known = _known(stages, report)
    links: Links = {}
    for i, stage in enumerate(stages):
        if stage.role is not Role.SOURCE:
            last = stages[i - 1] if chain else None
            links[stage.id] = _feeders(stage, known, last, report)
        else:
            links[stage.id] = ()
        if not chain and stage.role is not Role.SINK and stage.output is None:
            report.error(
                stage.place,
                f"{stage.about}: plugin_output is missing. In a job with several sources or sinks"
                " each source and transform needs a name that others can read it by.",
            )
    if len(report.mistakes) == before:  # else these would only echo a wrong name
        _report_cycles(stages, links, report)
    if len(report.mistakes) == before:
        _report_unread(stages, links, report)
    return links


def _known(stages: Sequence[Ends], report: CheckReport) -> dict[str, list[Ends]]:
    """Return who offers each name; only sources may share one."""
    known: dict[str, list[Ends]] = {}
    for stage in stages:
        if stage.output is None:
            continue
        sharing = known.setdefault(stage.output.text, [])
        sharing.append(stage)
        first = sharing[0]
        if first is not stage and {first.role, stage.role} != {Role.SOURCE}:
            report.error(
                stage.output.place,
                f"{stage.about}: plugin_output '{stage.output.text}' is taken by {first.about}"
                f" on line {first.at(first.output).line}. Choose another name.",
            )
    return known


def _feeders(
    stage: Ends, known: Mapping[str, Sequence[Ends]], last: Ends | None, report: CheckReport
) -> tuple[str, ...]:
    """Return the ids that feed a stage; `last` is read where a chain names nothing."""
    listed = f" Names that can be read: {', '.join(known)}." if known else ""
    if not stage.inputs:
        if last:
            return (last.id,)
        report.error(
            stage.place,
            f"{stage.about}: plugin_input is missing. In a job with several sources or sinks"
            f" each transform and sink must say what it reads.{listed}",
        )
    found: list[str] = []
    for name in stage.inputs:
        if name.text in known:
            found += (one.id for one in known[name.text])
        elif last and "${" in name.text:
            found.append(last.id)
            _warn_of_wrong(stage, name, [last], False, report)
        else:
            report.error(
                name.place,
                f"{stage.about}: plugin_input '{name.text}' is unknown: no source or transform"
                f" has it as plugin_output.{nearest(name.text, list(known))}{listed}",
            )
    return tuple(dict.fromkeys(found))


def _report_unread(stages: Sequence[Ends], links: Links, report: CheckReport) -> None:
    read = {feeder for feeders in links.values() for feeder in feeders}
    for stage in stages:
        if stage.role is not Role.SINK and stage.id not in read:
            named = f"plugin_output '{stage.output.text}'" if stage.output else "output"
            report.error(
                stage.at(stage.output),
                f"{stage.about}: no stage reads its {named}. Name it as plugin_input of a transform"
                f" or sink, or remove this {stage.role}.",
            )


def _report_cycles(stages: Sequence[Ends], links: Links, report: CheckReport) -> None:
    """Report each circle of transforms once, at its first stage in the file."""
    left = {s.id: set(links[s.id]) for s in stages}
    by_id = {s.id: s for s in stages}
    while left:
        free = [s for s, feeders in left.items() if not feeders & left.keys()]
        if not free:
            free = _circle(left)
            _report_circle([by_id[s] for s in free], report)
        for stage_id in free:
            del left[stage_id]


def _circle(left: Mapping[str, set[str]]) -> list[str]:
    """Follow feeders from the first stage until one comes again; return that circle."""
    path: list[str] = []
    current = next(iter(left))
    while current not in path:
        path.append(current)
        current = next(s for s in left if s in left[current])
    circle = path[path.index(current) :]
    first = min(circle, key=list(left).index)
    at = circle.index(first)
    return circle[at:] + circle[:at]


def _report_circle(circle: Sequence[Ends], report: CheckReport) -> None:
    first = circle[0]
    place = first.at(first.inputs[0] if first.inputs else None)
    if len(circle) == 1:
        name = first.output.text if first.output else first.id
        message = f"it reads its own output '{name}'. Let it read another source or transform."
    else:
        names = [f"'{s.output.text}'" if s.output else s.id for s in circle]
        message = (
            f"it waits for itself: {' reads '.join([*names, names[0]])}."
            " Break the circle by letting one of them read a source."
        )
    report.error(place, f"{first.about}: {message}")


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
            slots = max((s.parallelism for s in inside if s.id in group), default=1)
            tasks.append(TaskPlan(f"p{number}-t{i}", ids, together, slots))
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
