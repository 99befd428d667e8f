"""B. Job lifecycle: statuses move along the tables, ends are final, starts know where to start."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.checkpoint import CHECKPOINT
from holdfast.core.commit import COMMIT
from holdfast.core.completion import COMPLETION
from holdfast.core.job import JOB, TERMINAL, JobRecord, JobStatus
from holdfast.core.machine import TransitionTable
from holdfast.core.pipeline import PIPELINE, PipelineRecord
from holdfast.core.task import TASK, TaskStatus
from tests.oracle.events import Client, Order, Proof, Publish, Snapshot, Start, Write
from tests.oracle.story import Life, Part, Records, Story, life_of, part_of

DECIDED_S = 3.0
"""How long before it is stored a placement may have been decided, knowing less than we do."""


def submits(story: Story) -> Iterator[str]:
    """I9: a submit that was answered yes is durable, and one token makes one life."""
    begun: set[Life] = set()
    tokens: dict[tuple[str, str], Life] = {}
    for event, records in story.walk(Write, Client):
        if isinstance(event, Client):
            life = Life(event.job, event.incarnation)
            if event.did == "submitted" and life not in begun:
                yield f"I9 {life.job} was accepted and is not stored"
        elif isinstance(event.record, JobRecord) and event.key.startswith("job/"):
            life = life_of(event.record)
            if life in begun and records.job(life) is None:
                yield f"I9 {life.job} was begun a second time"
            if tokens.setdefault((life.job, event.record.token), life) != life:
                yield f"I9 one submit of {life.job} made two lives"
            begun.add(life)


def edges(story: Story) -> Iterator[str]:
    """I10: every status of job, pipeline, task, checkpoint and commit moves along its table."""
    for life, jobs in story.jobs.items():
        if jobs[0].status is not JobStatus.PENDING:
            yield f"I10 {life.job} began as {jobs[0].status}"
        for old, new in pairwise(jobs):
            yield from _moved(JOB, old.status, new.status)
    for states in story.pipelines.values():
        for was, now in pairwise(states):
            yield from _moved(PIPELINE, was.status, now.status)
            yield from _moved(CHECKPOINT, was.checkpoints.status, now.checkpoints.status)
            yield from _moved(COMPLETION, was.completion.status, now.completion.status)
            yield from _moved(COMMIT, was.commits.status, now.commits.status)
            for one, other in zip(was.tasks, now.tasks, strict=True):
                yield from _moved(TASK, one.status, other.status)


def _moved(machine: TransitionTable, old: object, new: object) -> Iterator[str]:
    if old is not new and not any(r[0] is old and r[2] is new for r in machine.rows):
        yield f"I10 a {machine.name} went from {old} to {new}"


def ends(story: Story) -> Iterator[str]:
    """I11 I12: after a terminal status nothing is written, ordered or committed for that life."""
    leader = ""
    for event, records in story.walk(Write, Order, Publish):
        match event:
            case Write(key="leader"):
                leader = "" if event.deleted else event.process
            case Write(record=JobRecord() | PipelineRecord() as record) if not _stays(event):
                if life_of(record) in records.ends:
                    yield f"I11 {event.key} changed after the job's end"
            case Order(order="DeployTask" | "Barrier"):
                end = records.ends.get(Life(event.job, event.incarnation))
                if end:
                    number = "I12" if event.term != end[1] else "I11"
                    yield f"{number} {event.order} of {event.job}, which is {end[0]}"
            case Publish() if event.process == leader:
                owner = story.owner(event.user)
                over = owner and owner[0].life in records.ends
                if owner and over and not _finishes(records, owner[0]):
                    yield f"I11 a commit of {owner[0].job} began after its end"


def _stays(write: Write) -> bool:
    """Say whether a write only keeps what a life that is over was at its end."""
    return write.key.startswith(("history/", "grave/"))


def _finishes(records: Records, part: Part) -> bool:
    """Say whether a life that goes on is finishing the commits of a pipeline that is over."""
    going = [p for p in records.items.values() if isinstance(p, PipelineRecord) and p.owes_former]
    formers = [Part(f.job, f.incarnation, f.pipeline) for p in going for f in p.formers]
    return part in formers


def visible(story: Story) -> Iterator[str]:
    """I13: FINISHED shows every commit of a final checkpoint; no life shows more than is complete.

    Whatever a table shows was complete before, so a job that was cancelled or failed shows nothing
    beyond its last complete checkpoint.
    """
    shown: set[tuple[str, str, int]] = set()
    for event, records in story.walk(Write, Snapshot):
        if isinstance(event, Snapshot):
            shown.add((event.table, event.user, event.number))
            owner = story.owner(event.user)
            if owner and not _complete(records, owner[0], event.number):
                yield f"I13 {event.table} shows {event.number} of {owner[0].job}, not complete"
        elif isinstance(event.record, JobRecord) and event.key.startswith("job/"):
            life = life_of(event.record)
            if event.record.status is not JobStatus.FINISHED:
                continue
            for part in [p for p in story.pipelines if p.life == life]:
                yield from _finished(story, part, records, shown)


def _complete(records: Records, part: Part, number: int) -> bool:
    state = records.pipeline(part)
    # A record that is gone was complete before; a commit on its way may land after it.
    done = state.checkpoints.latest if state else None
    return state is None or bool(done and number <= done.number)


def _finished(
    story: Story, part: Part, records: Records, shown: set[tuple[str, str, int]]
) -> Iterator[str]:
    state = records.pipeline(part)
    if state is None or state.final is None:
        yield f"I13 {part.job} is FINISHED without a final checkpoint of each pipeline"
        return
    for completed in story.completed[part]:
        for sink in story.files(completed) or ():
            user = f"{part.job}.{part.incarnation}.{part.number}.{sink}"
            if (sink, user, completed.number) not in shown:
                yield f"I13 {part.job} is FINISHED and {sink} lacks {completed.number}"


def one_end(story: Story) -> Iterator[str]:
    """I14: a life has one end, in its record and in its history."""
    found: dict[Life, set[JobStatus]] = defaultdict(set)
    for write in story.of(Write):
        if isinstance(write.record, JobRecord) and write.record.status in TERMINAL:
            found[life_of(write.record)].add(write.record.status)
        elif isinstance(write.record, JobRecord) and found.get(life_of(write.record)):
            yield f"I14 {write.record.id} is {write.record.status} after its end"
    for life, statuses in found.items():
        if len(statuses) > 1:
            yield f"I14 {life.job} ended as {', '.join(sorted(statuses))}"


def cancels(story: Story) -> Iterator[str]:
    """I15: once a cancel is durable, no further checkpoint of the job completes."""
    canceling: set[Life] = set()
    for write, records in story.walk(Write):
        record = write.record
        if isinstance(record, JobRecord) and record.status is JobStatus.CANCELING:
            canceling.add(life_of(record))
        elif isinstance(record, PipelineRecord) and life_of(record) in canceling:
            old = records.pipeline(part_of(record))
            if old and record.checkpoints.latest != old.checkpoints.latest:
                yield f"I15 a checkpoint of {record.job} completed after its cancel"


def restores(story: Story) -> Iterator[str]:
    """I16: an attempt starts at the latest complete checkpoint of its life, if there is one."""
    for start, records in story.walk(Start):
        part = Part(start.job, start.incarnation, start.pipeline)
        state = records.pipeline(part)
        task = next((t for t in state.tasks if t.id == start.task), None) if state else None
        if state is None or task is None or not task.place:
            continue
        if (task.attempt, task.place.incarnation) != (start.attempt, start.worker):
            continue  # a late order; nothing of that attempt will count
        latest = state.checkpoints.latest
        name = latest.blob if latest else state.restore
        content = story.contents.get(name) if name else None
        known = content.positions if content else {}
        wanted = {s: at for s, at in known.items() if s in task.sources}
        if (name is None or content) and dict(start.positions or ()) != wanted:
            yield f"I16 {start.task} of {start.job} started at {start.positions}, not {wanted}"


def queue(story: Story) -> Iterator[str]:
    """I17: waiting jobs start in the order of their submits, each first attempt placed once."""
    begun: list[Life] = []
    known: dict[Life, float] = {}  # since when a leader knows that they wait, in order of submits
    placed: set[tuple[Part, str]] = set()
    for event, records in story.walk(Write, Proof):
        record = event.record if isinstance(event, Write) else None
        if isinstance(event, Proof) or event.key == "leader":
            news = [x for x in begun if isinstance(event, Write) or f"job/{x.job}" in event.guards]
            known.update((life, event.at) for life in news if known.get(life) == float("inf"))
            begun = [life for life in begun if life not in news]
        elif isinstance(record, JobRecord) and event.key.startswith("job/"):
            life = life_of(record)
            if records.job(life) is None:
                begun.append(life)
                known[life] = float("inf")
            elif record.status is not JobStatus.PENDING:
                known.pop(life, None)
        elif isinstance(record, PipelineRecord):
            life = life_of(record)
            for task in _placed_first(records.pipeline(part_of(record)), record):
                if (part_of(record), task) in placed:
                    yield f"I17 {task} of {life.job} was placed twice"
                placed.add((part_of(record), task))
                earlier = list(known)[: list(known).index(life)] if life in known else []
                # One that has a former life's commits to finish waits for those, not for a place.
                earlier = [x for x in earlier if not _owes(records, x)]
                if any(event.at - known[other] > DECIDED_S for other in earlier):
                    yield f"I17 {life.job} started before a job that was submitted earlier"
                known.pop(life, None)


def _owes(records: Records, life: Life) -> bool:
    parts = [
        p for p in records.items.values() if isinstance(p, PipelineRecord) and life_of(p) == life
    ]
    return any(p.formers for p in parts)


def _placed_first(old: PipelineRecord | None, new: PipelineRecord) -> list[str]:
    """Return the tasks whose first attempt a write has placed."""
    waited = {t.id for t in old.tasks if t.status is TaskStatus.WAITING} if old else set()
    now = [t for t in new.tasks if t.status is TaskStatus.PLACED and t.attempt == 1]
    return [t.id for t in now if t.id in waited]


CHECKS = (submits, edges, ends, visible, one_end, cancels, restores, queue)
