"""Make the records of a new life go on from a saved state.  Pure.

What belonged to a sink goes where that sink is now: what its listeners remember, and the commits
that are complete and not visible.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from holdfast.core.commit import Commits
from holdfast.core.former_commits import Former
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved, SavedPart
from holdfast.errors import UserError


def resumed(
    saved: Saved, moved: Mapping[str, str], pipelines: tuple[PipelineRecord, ...]
) -> tuple[PipelineRecord, ...]:
    """Return the new pipelines with what goes on; `moved` are old stages and what they are now."""
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
