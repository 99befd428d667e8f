"""G. Savepoints: whole, kept, and nothing shows after them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from holdfast.core.checkpoint import CheckpointKind, Completed
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import KINDS, Saved
from tests.oracle.commits import before
from tests.oracle.events import Drop, Write
from tests.oracle.story import Life, Story, life_of, part_of

FORCED_S = 6.0
"""What a leader may need to end a job by force, beside the time without one."""


def parts(story: Story) -> Iterator[str]:
    """I59: a savepoint has a whole part of every pipeline, and its parts are never removed."""
    for life, jobs in story.jobs.items():
        end = jobs[-1]
        if end.status is not JobStatus.SAVEPOINT_DONE:
            continue
        mine = [p for p in story.completed if p.life == life]
        blobs = {p.number: {c.blob for c in story.completed[p]} for p in mine}
        saved = dict(end.saved)
        if len(saved) != end.pipelines or any(b not in blobs.get(n, ()) for n, b in saved.items()):
            yield f"I59 the savepoint of {life.job} lacks a pipeline"
    for drop, records in story.walk(Drop):
        for state in records.states.values():
            if drop.name in state.blobs and not state.removed:
                yield f"I59 a part of saved state {state.id} was removed"


def given_up(story: Story) -> Iterator[str]:
    """I60: a savepoint that is given up leaves the reason with the running job."""
    for life, jobs in story.jobs.items():
        for old, new in pairwise(jobs):
            back = (old.status, new.status) == (JobStatus.DOING_SAVEPOINT, JobStatus.RUNNING)
            if back and not new.reason:
                yield f"I60 the savepoint of {life.job} was given up without a reason"


def last_cut(story: Story) -> Iterator[str]:
    """I61: nothing after the savepoint's cut becomes visible."""
    for (table, user), snapshots in story.snapshots.items():
        owner = story.owner(user)
        states = story.pipelines[owner[0]] if owner else []
        jobs = story.jobs.get(owner[0].life) if owner else None
        if not jobs or jobs[-1].status is not JobStatus.SAVEPOINT_DONE:
            continue
        savepoint = states[-1].savepoint
        number = savepoint.number if savepoint else None
        if number is not None and any(s.number > number for s in snapshots):
            yield f"I61 {table} shows more of {owner[0].job} than its savepoint"  # type: ignore[index]


def forced(story: Story) -> Iterator[str]:
    """I82: a cancel by force ends a job at once, and its record names every commit left undone."""
    healed_s, setting = story.healed_s or 0.0, story.setting
    bound_s = 2 * setting.lease_s + FORCED_S
    waits: dict[Life, float] = {}
    for event, records in story.walk(Write):
        job = event.record
        if isinstance(job, JobRecord) and event.key.startswith("job/") and job.forced:
            since_s = waits.setdefault(life_of(job), event.at)
            if job.status not in TERMINAL:
                continue
            del waits[life_of(job)]
            if event.at - max(since_s, healed_s) > bound_s:
                yield f"I82 {job.id} went on after it was ended by force"
            parts = [p for p in story.pipelines if p.life == life_of(job)]
            left = {c.blob for part in parts for c in _undone(records.pipeline(part))}
            named = {c.blob for one in job.abandoned for c in one.all}
            if left != named:
                yield f"I82 {job.id} was ended by force and names {sorted(named)}, not {left}"
    for life, since_s in waits.items():
        if story.events[-1].at - max(since_s, healed_s) > bound_s:
            yield f"I82 {life.job} goes on though it was ended by force"


def _undone(state: PipelineRecord | None) -> Iterator[Completed]:
    """Yield what is complete and not on record as visible and heard of, of former lives too."""
    if state is None:
        return
    yield from state.commits.waiting
    if state.commits.listened < state.commits.through:
        yield from (c for c in state.checkpoints.kept if c.number == state.commits.through)
    for one in state.formers:
        yield from (*((one.unheard,) if one.unheard else ()), *one.waiting)


def kept(story: Story) -> Iterator[str]:
    """I62: a savepoint's blob stays while its job lives, and never ends a pipeline."""
    for states in story.pipelines.values():
        for state in states:
            savepoints = {
                c.number for c in state.checkpoints.kept if c.kind is CheckpointKind.SAVEPOINT
            }
            if state.final in savepoints:
                yield "I62 a savepoint was taken for the final checkpoint"
    for drop, records in story.walk(Drop):
        for state in (r for r in records.items.values() if isinstance(r, PipelineRecord)):
            saved = {c.blob for c in state.checkpoints.kept if c.kind is CheckpointKind.SAVEPOINT}
            if drop.name in saved and part_of(state).life not in records.ends:
                yield f"I62 the savepoint {drop.name} was removed"


def one_request(story: Story) -> Iterator[str]:
    """I63: one savepoint at a time, and a pipeline has it or a final checkpoint, not both."""
    for life, jobs in story.jobs.items():
        for old, new in pairwise(jobs):
            doing = {old.status, new.status} == {JobStatus.DOING_SAVEPOINT}
            if doing and old.request != new.request:
                yield f"I63 a second savepoint of {life.job} replaced the first"
    for states in story.pipelines.values():
        for state in states:
            if state.final is not None and state.savepoint and state.savepoint.number is not None:
                yield "I63 a pipeline has both a savepoint and a final checkpoint"


def left(story: Story) -> Iterator[str]:
    """I80: a life that can be gone on from leaves a saved state with its end, in one transaction.

    It stays as it was left until it is removed.
    """
    at: dict[int, set[str]] = defaultdict(set)
    for write in story.of(Write):
        at[write.revision].add(write.key)
    ended: set[Life] = set()
    states: dict[str, Saved] = {}
    for write in story.of(Write):
        record = write.record
        if isinstance(record, Saved):
            known = states.setdefault(record.id, record)
            if replace(record, removed=False) != known:
                yield f"I80 saved state {record.id} was changed"
        elif (
            isinstance(record, JobRecord)
            and record.status in KINDS
            and life_of(record) not in ended
        ):
            ended.add(life_of(record))
            own = [p for p in story.completed if p.life == life_of(record) and story.completed[p]]
            if own and f"saved/{record.id}/{record.incarnation}" not in at[write.revision]:
                yield f"I80 {record.id} is {record.status} and left nothing to go on from"
        if write.deleted and write.key.startswith("saved/"):
            name = write.key.removeprefix("saved/")
            if not removed_before(story, write, name):
                yield f"I80 saved state {name} is gone, and nobody removed it"


def removed_before(story: Story, gone: Write, name: str) -> bool:
    """Say whether a state was on its way out when it went."""
    return any(
        isinstance(w.record, Saved) and w.record.id == name and w.record.removed
        for w in story.of(Write)
        if w.revision < gone.revision
    )


def line(story: Story) -> Iterator[str]:
    """I81: the lives that go on from one another show every row once between them.

    A life that a user began elsewhere on purpose begins a line of its own.
    """
    seen: dict[tuple[str, Life], Counter[Any]] = defaultdict(Counter)
    for (table, user), snapshots in story.snapshots.items():
        owner = story.owner(user)
        if owner and owner[0].life in story.lines:
            for file in (f for s in snapshots for f in s.files):
                seen[(table, story.lines[owner[0].life])].update(story.rows.get(file, ()))
    for (table, first), counted in seen.items():
        doubled = [r for r, n in counted.items() if n > 1]
        if doubled:
            yield f"I81 {table} shows {len(doubled)} rows of {first.job} twice, in two lives"
        ends = [x for x, root in story.lines.items() if root == first]
        done = [x for x in ends if story.jobs[x][-1].status is JobStatus.FINISHED]
        # A line that a user began on purpose goes on after rows of another one.
        lost = (story.expected.get(first.job) or frozenset()) - set(counted) - before(story, first)
        if done and lost:
            yield f"I81 {table} lacks {len(lost)} rows of {first.job}, which finished"


CHECKS = (parts, given_up, forced, last_cut, kept, one_request, left, line)
