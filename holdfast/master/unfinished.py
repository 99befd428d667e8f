"""Show what an incarnation has not finished: commit by commit, sink by sink, and what to do.  Pure.

The job's record knows which commits; what is staged for them is in their checkpoints, as long as
the saved state keeps these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.core.checkpoint import Completed
from holdfast.core.former_commits import Former
from holdfast.core.gather import StagedCommittable
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.core.unfinished import Abandoned
from holdfast.master.checkpoint_content import CheckpointContent
from holdfast.master.commit_loop import by_sink, commit_user
from holdfast.model.tree import Plain

SHOWN_MAX = 10
"""So many commits are shown one by one, and so many names of what one has staged."""

WAITS = "complete and not visible"
BEGUN = "complete, and perhaps under way when the job ended: it may be visible, or become so"
UNHEARD = "visible, but its listeners may not have run"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One commit to one sink that was not finished.

    `commit` is the identifier under which the sink knows it, with `number`.  `staged` names files
    and tables that were written for it out of sight, as many as `more` not counted; none if its
    checkpoint cannot be read now.
    """

    pipeline: int
    number: int
    sink: str
    commit: str
    state: str
    rows: int | None = None
    tables: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    more: int = 0


def blobs_of(job: JobRecord) -> tuple[str, ...]:
    """Return the checkpoints that say what is staged for the commits that are shown."""
    return tuple(done.blob for one in job.abandoned for done, _ in _commits(one))[:SHOWN_MAX]


def unfinished(job: JobRecord, contents: Mapping[str, CheckpointContent]) -> tuple[Unfinished, ...]:
    """Return what is not finished, given what can be read of its checkpoints."""
    found: list[Unfinished] = []
    for one in job.abandoned:
        for done, state in _commits(one)[:SHOWN_MAX]:
            content = contents.get(done.blob)
            staged = by_sink(content.to_commit(done.previous)) if content else {}
            for sink in sorted(staged) or one.sinks:
                life = one.life or f"{job.id}/{job.incarnation}"
                name, _, incarnation = life.partition("/")
                user = commit_user(name, incarnation, one.pipeline, sink)
                parts = staged.get(sink)
                shown = _shown(parts, f"{name}.{incarnation}-") if parts else ()
                found.append(Unfinished(one.pipeline, done.number, sink, user, state, *shown))
    return tuple(found)


def ways(job: JobRecord, kept: Saved | None, passed: str = "") -> tuple[str, ...]:
    """Return how to finish what is not, or to remove it.  `kept` is the saved state it is in."""
    if passed:
        return (f"{passed[0].upper()}{passed[1:]}. That incarnation finishes these commits.",)
    if kept is None:
        return ("Its saved state is removed, and with it what was staged: nothing can finish it.",)
    count = sum(len(_commits(one)) for one in job.abandoned)
    more = f" All {count} are meant, also those not listed." if count > SHOWN_MAX else ""
    return (
        f"To finish: holdfast restart {kept.job}. It makes these commits first, under the same"
        f" identifiers, so that what is visible by then is found and not written twice.{more}",
        f"To give them up: holdfast savepoints rm {kept.job} {kept.life}. It removes what is"
        " staged. To do so by hand, look in each sink for the identifier first: a commit that was"
        " under way may be visible by now.",
    )


def lines(left: tuple[Unfinished, ...], finish: tuple[str, ...]) -> Iterator[str]:
    """Yield it for people to read."""
    if left:
        yield "Not finished:"
    for one in left:
        yield f"- pipeline {one.pipeline}, commit {one.number} to {one.sink}: {one.state}"
        yield f"    identifier: {one.commit}, {one.number}"
        if one.rows is not None:
            rows = f"{one.rows:,} rows" if one.rows >= 0 else "rows"
            yield f"    staged: {rows} of {', '.join(one.tables)}"
        for name in one.staged:
            yield f"      {name}"
        if one.more:
            yield f"      and {one.more} more"
    yield from finish


def left_before(pipeline: PipelineRecord, left: Former, trouble: str | None) -> tuple[str, str]:
    """Say which commit of the former incarnation comes first, and which sink has to take it."""
    sinks = ", ".join(new for _, new in left.names)
    number = (left.unheard or left.waiting[0]).number
    what = f"Pipeline {pipeline.number}: the former incarnation has left "
    what += f"the listeners of commit {number}" if left.unheard else f"commit {number}"
    what += " to finish; no task starts before."
    what += f" What it waits for is: {trouble}" if trouble else ""
    return what, f"the listeners of sink {sinks}" if left.unheard else f"sink {sinks}"


def _commits(one: Abandoned) -> list[tuple[Completed, str]]:
    unheard = [(one.unheard, UNHEARD)] if one.unheard else []
    waiting = [(c, BEGUN if one.begun and not n else WAITS) for n, c in enumerate(one.waiting)]
    return [*unheard, *waiting]


def _shown(
    parts: tuple[StagedCommittable, ...], life: str
) -> tuple[int, tuple[str, ...], tuple[str, ...], int]:
    """Return rows, tables, names of what is staged, and how many more there are."""
    rows, tables, names = 0, dict[str, None](), dict[str, None]()
    for part in parts:
        content = part.content if isinstance(part.content, dict) else {}
        counted = content.get("rows", -1)
        known = rows >= 0 and isinstance(counted, int) and counted >= 0
        rows = rows + int(str(counted)) if known else -1
        tables[str(content.get("table", ""))] = None
        inside = content.get("content")
        named = inside.get("staged") if isinstance(inside, dict) else None
        names |= dict.fromkeys(n for n in _texts(inside) if life in n or n == named)
    return rows, tuple(tables), tuple(names)[:SHOWN_MAX], max(0, len(names) - SHOWN_MAX)


def _texts(plain: Plain) -> Iterator[str]:
    """Yield all texts in a committable: what a sink stages carries the name of its incarnation."""
    match plain:
        case str():
            yield plain
        case dict():
            for value in plain.values():
                yield from _texts(value)
        case list() | tuple():
            for value in plain:
                yield from _texts(value)
