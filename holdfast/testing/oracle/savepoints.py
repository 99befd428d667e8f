"""G. Savepoints: whole, kept, and nothing shows after them."""

from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.checkpoint import Kind
from holdfast.core.job import JobStatus
from holdfast.core.pipeline import Pipeline
from holdfast.testing.oracle.events import Drop
from holdfast.testing.oracle.story import Story, part_of


def parts(story: Story) -> Iterator[str]:
    """I59: a savepoint has a whole part of every pipeline, and its parts are never removed."""
    dropped = {d.name for d in story.of(Drop)}
    for life, jobs in story.jobs.items():
        end = jobs[-1]
        if end.status is not JobStatus.SAVEPOINT_DONE:
            continue
        mine = [p for p in story.completed if p.life == life]
        blobs = {p.number: {c.blob for c in story.completed[p]} for p in mine}
        saved = dict(end.saved)
        if len(saved) != end.pipelines or any(b not in blobs.get(n, ()) for n, b in saved.items()):
            yield f"I59 the savepoint of {life.job} lacks a pipeline"
        if dropped & set(saved.values()):
            yield f"I59 a part of the savepoint of {life.job} was removed"


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


def kept(story: Story) -> Iterator[str]:
    """I62: a savepoint's blob stays while its job lives, and never ends a pipeline."""
    for states in story.pipelines.values():
        for state in states:
            savepoints = {c.number for c in state.checkpoints.kept if c.kind is Kind.SAVEPOINT}
            if state.final in savepoints:
                yield "I62 a savepoint was taken for the final checkpoint"
    for drop, records in story.walk(Drop):
        for state in (r for r in records.items.values() if isinstance(r, Pipeline)):
            saved = {c.blob for c in state.checkpoints.kept if c.kind is Kind.SAVEPOINT}
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


CHECKS = (parts, given_up, last_cut, kept, one_request)
