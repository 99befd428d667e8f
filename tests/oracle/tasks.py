"""C. Deploy, tasks, workers: one instance of an attempt, and only present attempts count."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskRecord, TaskStatus
from tests.oracle.events import Boot, End, Fault, Start, Took, Write
from tests.oracle.story import Life, Part, Story, part_of

BEATS_S = 2.0
"""How late a worker may notice that no leader speaks to it."""


def attempts(story: Story) -> Iterator[str]:
    """I18: an attempt runs once, on one worker, and numbers only grow."""
    for states in story.pipelines.values():
        for old, new in pairwise(states):
            for before, after in zip(old.tasks, new.tasks, strict=True):
                if after.attempt < before.attempt:
                    yield f"I18 the attempt number of {after.id} went back"
    started: Counter[tuple[object, ...]] = Counter()
    highest: dict[tuple[object, ...], int] = {}
    for start in story.of(Start):
        part = Part(start.job, start.incarnation, start.pipeline)
        started[(part, start.task, start.attempt)] += 1
        here = (part, start.task, start.worker)
        if start.attempt < highest.get(here, 0):
            yield f"I18 {start.worker} began an attempt of {start.task} older than one it had"
        highest[here] = max(start.attempt, highest.get(here, 0))
    for (_, task, attempt), times in started.items():
        if times > 1:
            yield f"I18 attempt {attempt} of {task} was started {times} times"


def contributions(story: Story) -> Iterator[str]:
    """I19: what counts was said by the attempt and the worker that the record names."""
    for states in story.pipelines.values():
        for state in states:
            places = {t.id: (t.attempt, t.place.incarnation) for t in state.tasks if t.place}
            for ready in state.completion.ready:
                if places.get(ready.task, (ready.attempt, ready.incarnation)) != (
                    ready.attempt,
                    ready.incarnation,
                ):
                    yield f"I19 {ready.source} counts as ended by another worker's word"


def survival(story: Story) -> Iterator[str]:
    """I20: losing masters, and nothing else, never restarts a task."""
    failed = any(e.why != "stopped" for e in story.of(End))
    if story.setting.lossy or failed or not all(_masters_only(f) for f in story.of(Fault)):
        return
    for part, states in story.pipelines.items():
        if any(t.restarts for t in states[-1].tasks):
            yield f"I20 a task of {part.job} was restarted though only masters were lost"


def _masters_only(fault: Fault) -> bool:
    known = fault.fault in ("heal", "kill leader", "kill any")
    return known or fault.of.startswith("M") or fault.process.startswith("M")


def orphans(story: Story) -> Iterator[str]:
    """I21: a worker that hears no leader for too long gives up its tasks."""
    if any("pause" in f.fault for f in story.of(Fault)):
        return  # a process that stands still can give nothing up
    running: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    heard: dict[str, float] = {}
    for event in story.events:
        if isinstance(event, Start):
            running[event.worker].add((event.job, event.incarnation, event.task, event.attempt))
        elif isinstance(event, End):
            attempt = (event.job, event.incarnation, event.task, event.attempt)
            running[event.worker].discard(attempt)
        elif isinstance(event, Took):
            silent_s = event.at - heard.get(event.process, event.at)
            if silent_s > story.setting.orphan_s + BEATS_S and running[event.process]:
                yield f"I21 {event.process} ran tasks {silent_s:.0f} s without a leader"
            heard[event.process] = event.at


def slots(story: Story) -> Iterator[str]:
    """I22: no worker is given more than its slots hold."""
    size = {b.known_as: b.slots for b in story.of(Boot) if b.slots}
    for write, records in story.walk(Write):
        if not isinstance(write.record, PipelineRecord):
            continue
        old = records.pipeline(part_of(write.record))
        known = {(t.id, t.attempt) for t in old.tasks if t.live} if old else set()
        gained = [t for t in write.record.tasks if t.live and (t.id, t.attempt) not in known]
        others = [
            r for r in records.items.values() if isinstance(r, PipelineRecord) and r is not old
        ]
        for task in gained:
            assert task.place
            here = task.place.incarnation
            used = sum(_slots_on(r, here) for r in (write.record, *others))
            if here in size and used > size[here]:
                yield f"I22 {here} has {size[here]} slots and was given {used}"


def _slots_on(pipeline: PipelineRecord, worker: str) -> int:
    on = [t for t in pipeline.tasks if t.live and t.place and t.place.incarnation == worker]
    return sum(t.slots for t in on)


def reports(story: Story) -> Iterator[str]:
    """I23: a failure that a worker met reaches the record, whoever leads by then."""
    last = {
        (part.life, task.id): task
        for part, states in story.pipelines.items()
        for task in states[-1].tasks
    }
    alive = set({b.name: b.known_as for b in story.of(Boot)}.values())
    for end in story.of(End):
        task: TaskRecord | None = last.get((Life(end.job, end.incarnation), end.task))
        if end.why == "stopped" or task is None or end.worker not in alive:
            continue
        here = task.place and task.place.incarnation == end.worker
        if task.status is TaskStatus.RUNNING and task.attempt == end.attempt and here:
            yield f"I23 nobody learned that {end.task} of {end.job} {end.why}"


CHECKS = (attempts, contributions, survival, orphans, slots, reports)
