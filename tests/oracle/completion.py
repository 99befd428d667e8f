"""E. Bounded completion: the end is durable source by source, and proven before it counts."""

from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.completion import CompletionStatus
from holdfast.core.job import JobStatus
from holdfast.core.pipeline import FINISHED
from tests.oracle.events import Ack, Order
from tests.oracle.story import Part, Story


def confirmed(story: Story) -> Iterator[str]:
    """I38: a source's end is confirmed only once the record holds it."""
    for order, records in story.walk(Order):
        if order.order != "SourceEndAck":
            continue
        state = records.pipeline(Part(order.job, order.incarnation, order.pipeline))
        ready = state.completion.ready if state else ()
        said = (order.source, order.task, order.attempt, order.to)
        if said not in [(r.source, r.task, r.attempt, r.incarnation) for r in ready]:
            yield f"I38 the end of {order.source} was confirmed and is not recorded"


def ready_set(story: Story) -> Iterator[str]:
    """I39: an end lives as long as its attempt, no longer and no shorter."""
    for states in story.pipelines.values():
        for state in states:
            current = {(t.id, t.attempt) for t in state.tasks}
            if any((r.task, r.attempt) not in current for r in state.completion.ready):
                yield "I39 a ready entry outlived its attempt"
        for old, new in pairwise(states):
            current = {(t.id, t.attempt) for t in new.tasks}
            gone = set(old.completion.ready) - set(new.completion.ready)
            if any((r.task, r.attempt) in current for r in gone):
                yield "I39 a ready entry went though its attempt goes on"


def final(story: Story) -> Iterator[str]:
    """I40 I41: a final checkpoint needs every source's end on record, and in every answer."""
    ends = {
        (Part(a.job, a.incarnation, a.pipeline), a.task, a.attempt, a.worker, a.number): a.ended
        for a in story.of(Ack)
    }
    for part, states in story.pipelines.items():
        for old, new in pairwise(states):
            begun, done = new.checkpoints.pending, new.checkpoints.latest
            ended = new.completion.status is CompletionStatus.ENDED
            if begun and begun != old.checkpoints.pending:
                if begun.kind is CheckpointKind.FINAL and not ended:
                    yield "I41 a final checkpoint began before every source had ended"
                if begun.kind is CheckpointKind.PERIODIC and ended:
                    yield "I41 a periodic checkpoint began after every source had ended"
            if done == old.checkpoints.latest or not done or done.kind is not CheckpointKind.FINAL:
                continue
            if not ended:
                yield "I40 a final checkpoint completed before every source had ended"
            for task in old.tasks:
                place = task.place.incarnation if task.place else ""
                if not ends.get((part, task.id, task.attempt, place, done.number), True):
                    yield f"I40 {task.id} was not at its end in the final checkpoint"


def endings(story: Story) -> Iterator[str]:
    """I42: FINISHED needs a final checkpoint of every pipeline, and there is just one."""
    for life, jobs in story.jobs.items():
        parts = [states[-1] for part, states in story.pipelines.items() if part.life == life]
        done = [p.status is FINISHED and p.final is not None for p in parts]
        if jobs[-1].status is JobStatus.FINISHED and not all(done):
            yield f"I42 {life.job} is FINISHED without a final checkpoint of each pipeline"
    for completed in story.completed.values():
        if sum(c.kind is CheckpointKind.FINAL for c in completed) > 1:
            yield "I42 two final checkpoints of one pipeline"


CHECKS = (confirmed, ready_set, final, endings)
