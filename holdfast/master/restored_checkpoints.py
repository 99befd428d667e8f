"""Make the checkpoints that a new incarnation starts from, out of those of the former one.

The new job file may have other pipelines, tasks and names.  What belongs to a source goes
where that source is now, and what belongs to a sink to where that sink is.  Pure.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.core.commit import Commits
from holdfast.core.former_commits import Former
from holdfast.core.gather import Counts, OpenedTable, WrittenRows
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved, SavedPart
from holdfast.errors import UserError
from holdfast.master.checkpoint_content import VERSION, CheckpointContent
from holdfast.model.job import JobPlan, PipelinePlan, Role, TaskPlan

START = 0
"""The number of the checkpoint that an incarnation starts from; its own begin at 1."""


@dataclass(frozen=True, slots=True)
class Move:
    """From which planned job to which; `moved` are old ids and new ones of stages that continue."""

    before: JobPlan
    after: JobPlan
    moved: Mapping[str, str]

    def feeders(self, part: PipelinePlan) -> list[int]:
        """Return the old pipelines whose sources or sinks a new one has."""
        here = {old for old, new in self.moved.items() if new in part.stages}
        return [old.id for old in self.before.pipelines if here & set(old.stages)]

    def watermark(self, part: PipelinePlan, marks: Mapping[int, int | None]) -> int | None:
        """Return the watermark that a pipeline begins at, given those of the old ones.

        None if any of its sources comes without one: it may bring older rows than all others have.
        """
        if not set(_of(self.after, part.stages, Role.SOURCE)) <= set(self.moved.values()):
            return None
        known = [marks.get(number) for number in self.feeders(part)]
        given = [mark for mark in known if mark is not None]
        return min(given, default=None) if len(given) == len(known) else None


def transplant(
    saved: Sequence[CheckpointContent], move: Move, job: str, incarnation: str
) -> dict[int, CheckpointContent]:
    """Return what each new pipeline starts from, given the last checkpoint of each old one.

    One that has no stage of before begins as any new one does, but for what it knows of tables.
    """
    positions = {
        move.moved[source]: at
        for content in saved
        for source, at in content.positions.items()
        if source in move.moved
    }
    counts = _counts(saved, move)
    marks = {content.pipeline: content.watermark for content in saved}
    return {
        part.id: CheckpointContent(
            version=VERSION,
            job=job,
            incarnation=incarnation,
            pipeline=part.id,
            number=START,
            positions={s: positions[s] for s in part.stages if s in positions},
            staged=(),
            watermark=move.watermark(part, marks),
            counts={t.id: counts[t.id] for t in part.tasks if t.id in counts},
            opened=opened_in(saved, move.moved),
        )
        for part in move.after.pipelines
    }


def opened_in(
    saved: Sequence[CheckpointContent], moved: Mapping[str, str]
) -> tuple[OpenedTable, ...] | None:
    """Return the tables that had their save modes, in all pipelines: their rows are to be kept,
    also by a pipeline that is new and writes there.  A sink that was dropped has no name now."""
    found: dict[OpenedTable, None] = {}
    for content in saved:
        if content.opened is None:
            return None
        named = (replace(o, sink=moved.get(o.sink, "")) for o in content.opened)
        found |= dict.fromkeys(named)
    return tuple(found)


def _counts(saved: Sequence[CheckpointContent], move: Move) -> dict[str, Counts]:
    """Return the counters of each new task.

    Rows read are not counted by source: they go where the first of the old task's sources is.
    What a sink was given goes there too, or to a task that feeds the sink.
    """
    old = {task.id: task for part in move.before.pipelines for task in part.tasks}
    new = [task for part in move.after.pipelines for task in part.tasks]
    found: dict[str, Counts] = {}
    for content in saved:
        for name, counts in content.counts.items():
            for task, share in _shares(counts, old[name], new, move):
                found[task.id] = add(found.get(task.id, Counts()), share)
    return found


def _shares(
    counts: Counts, old: TaskPlan, new: Sequence[TaskPlan], move: Move
) -> Iterator[tuple[TaskPlan, Counts]]:
    """Yield which of an old task's counters goes to which new task."""
    sources = [move.moved[s] for s in _of(move.before, old.stages, Role.SOURCE) if s in move.moved]
    homes = [task for source in sources for task in new if source in task.stages]
    if homes:
        yield homes[0], replace(counts, written=(), latest=())
    for source, latest in counts.latest:
        for task in new:
            if move.moved.get(source) in task.stages:
                yield task, Counts(latest=((move.moved[source], latest),))
    for written in counts.written:
        sink = move.moved.get(written.sink)
        feeding = [task for task in (*homes, *new) if sink in task.stages]
        if feeding:
            yield feeding[0], Counts(written=(replace(written, sink=str(sink)),))


def add(one: Counts, other: Counts) -> Counts:
    """Return the sum of two tasks' counters."""
    written: dict[tuple[str, str], WrittenRows] = {}
    for w in (*one.written, *other.written):
        before = written.get((w.sink, w.table), replace(w, rows=0, bytes=0))
        summed = replace(w, rows=before.rows + w.rows, bytes=before.bytes + w.bytes)
        written[w.sink, w.table] = summed
    latest = dict(one.latest)
    for source, at in other.latest:
        latest[source] = max(at, latest.get(source, at))
    return Counts(
        read=one.read + other.read,
        written=tuple(written.values()),
        latest=tuple(sorted(latest.items())),
        rejected=one.rejected + other.rejected,
    )


def _of(job: JobPlan, stages: Sequence[str], role: Role) -> list[str]:
    return [stage for stage in stages if job.stage(stage).role is role]


def resumed(
    saved: Saved, moved: Mapping[str, str], pipelines: tuple[PipelineRecord, ...]
) -> tuple[PipelineRecord, ...]:
    """Return the new pipelines with what continues; `moved`: old stages and what they are now."""
    for part in saved.parts:
        dropped = [sink for sink in part.sinks if sink not in moved]
        if part.unfinished and dropped:
            numbers = ", ".join(str(c.number) for c in part.waiting) or "its last one"
            raise UserError(
                f"Sink {', '.join(dropped)} of job {saved.job} is not in the job file any more, and"
                f" a commit to it is complete and not visible ({numbers}). Restart the job with its"
                " former file first; then it can be stopped with a savepoint and changed.",
                code="saved.unfinished",
            )
    homes = {
        (part.pipeline, sink): _home(part, sink, moved, pipelines)
        for part in saved.parts
        for sink in part.sinks
    }
    return tuple(_resumed(saved, moved, pipeline, homes) for pipeline in pipelines)


def _home(
    part: SavedPart, sink: str, moved: Mapping[str, str], pipelines: tuple[PipelineRecord, ...]
) -> int:
    """Return the new pipeline that a sink of an old one is in; 0 if it is in none."""
    sources = {moved[s] for s in part.sources if s in moved}
    having = [p for p in pipelines if moved.get(sink) in p.sinks]
    same = [p for p in having if sources & _sources(p)]
    return next((p.number for p in (*same, *having)), 0)


def _sources(pipeline: PipelineRecord) -> set[str]:
    return {s for t in pipeline.tasks for s in t.sources}


def _resumed(
    saved: Saved,
    moved: Mapping[str, str],
    pipeline: PipelineRecord,
    homes: Mapping[tuple[int, str], int],
) -> PipelineRecord:
    names = {
        part.pipeline: tuple(
            (old, moved[old]) for old in part.sinks if homes[part.pipeline, old] == pipeline.number
        )
        for part in saved.parts
    }
    feeders = [
        part
        for part in saved.parts
        if names[part.pipeline] or _sources(pipeline) & {moved.get(s) for s in part.sources}
    ]
    new = _sources(pipeline) - set(moved.values())  # it may bring older rows than all others have
    marks = [None if new else part.watermark for part in feeders]
    known = [mark for mark in marks if mark is not None]
    begun = Commits(
        watermark=min(known) if known and len(known) == len(marks) else None,
        listeners=_listeners(feeders, names),
    )
    formers = tuple(
        Former(
            saved.job, saved.incarnation, part.pipeline, names[part.pipeline], part.waiting,
            part.unheard,
        )
        for part in feeders
        if part.unfinished and names[part.pipeline]
    )  # fmt: skip
    return replace(pipeline, commits=begun, formers=formers)


def _listeners(feeders: list[SavedPart], names: Mapping[int, tuple[tuple[str, str], ...]]) -> str:
    """Return what listeners remember, under the names that their sinks have now."""
    one = feeders[0] if len(feeders) == 1 else None
    if one and names[one.pipeline] == tuple((s, s) for s in one.sinks):
        return one.listeners
    found: dict[str, object] = {}
    for part in feeders:
        remembered = json.loads(part.listeners or "{}")
        found |= {new: remembered[old] for old, new in names[part.pipeline] if old in remembered}
    return json.dumps(dict(sorted(found.items())), separators=(",", ":")) if found else ""
