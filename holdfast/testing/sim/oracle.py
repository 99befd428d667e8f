"""What must hold, checked over what happened.

Each check is a function over a `Story`, which is read from a history: the simulator's, or the event
logs of real processes.  It is named after the invariants it speaks for (`FAULTS.md` numbers).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from holdfast.core.checkpoint import Kind
from holdfast.core.job import TERMINAL, Job, JobStatus
from holdfast.core.pipeline import FINISHED, Pipeline

if TYPE_CHECKING:
    from holdfast.testing.sim.world import World

Life = tuple[str, str]


@dataclass
class Story:
    """A history, sorted for the checks."""

    events: list[dict[str, Any]]
    files: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    expected: dict[str, set[Any]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    def writes(self, prefix: str) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield the applied writes of records below a prefix, in order."""
        for event in self.events:
            if event["kind"] == "write" and event["key"].startswith(prefix):
                yield event, event.get("record")

    def jobs(self) -> dict[Life, list[Job]]:
        """Return every state each life of each job was in."""
        lives: dict[Life, list[Job]] = defaultdict(list)
        for _, record in self.writes("job/"):
            if record:
                lives[(record.id, record.incarnation)].append(record)
        return lives

    def pipelines(self) -> dict[tuple[str, str, int], list[Pipeline]]:
        """Return every state each pipeline was in."""
        found: dict[tuple[str, str, int], list[Pipeline]] = defaultdict(list)
        for _, record in self.writes("pipeline/"):
            if record:
                found[(record.job, record.incarnation, record.number)].append(record)
        return found

    def snapshots(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the snapshots of each (table, user), in order."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for event in self.events:
            if event["kind"] == "snapshot":
                found[(event["table"], event["user"])].append(event)
        return found


def check(world: "World", stuck: list[str]) -> list[str]:
    """Return every violation of a run, sorted."""
    expected = {
        spec.id: {(s, n) for p in spec.pipelines for t in p for s in t for n in range(spec.rows)}
        for spec in world.specs.values()
    }
    held = {f for t in world.tables.tables.values() for s in t.snapshots for f in s.files}
    left = [f"staged file {f}" for f in world.tables.files if f not in held]
    left += [f"key {k}" for k in world.store.items if k.startswith(("job/", "pipeline/"))]
    saved = {n for k, i in world.store.items.items() if k.startswith("history/") for n in _saved(i)}
    left += [f"blob {b}" for b in world.blobs.objects if b not in saved]
    errors = [f"E {e}" for e in (*sorted(set(world.loop.errors)), *world.loop.bugs())]
    story = Story(
        world.history.events, world.tables.files, expected, [] if stuck else left, stuck + errors
    )
    return check_story(story)


def check_story(story: Story) -> list[str]:
    """Run every check over a story."""
    found = set(story.stuck)
    for one in CHECKS:
        found.update(one(story))
    return sorted(found)


def terms(story: Story) -> Iterator[str]:
    """I1 I2: terms only grow, and every applied write was made by the leader of its term."""
    leader, last = 0, 0
    holder = ""
    for event in story.events:
        if event["kind"] != "write":
            continue
        if event["key"] == "leader":
            if event.get("deleted"):
                leader = 0
                continue
            if event["revision"] <= last:
                yield "I1 a term did not grow"
            leader = last = event["revision"]
            holder = event["process"]
        elif event["term"] != leader or event["process"] != holder:
            yield "I2 a write of a deposed master was applied"


def lives(story: Story) -> Iterator[str]:
    """I10 I11 I12 I64: a status changes along the table, and a terminal one never."""
    for life, states in story.jobs().items():
        for old, _ in pairwise(states):
            if old.status in TERMINAL:
                yield f"I11 {life[0]} changed after {old.status}"
    over: set[Life] = set()
    for event in story.events:
        if event["kind"] != "write":
            continue
        record = event.get("record")
        if isinstance(record, Job) and record.status in TERMINAL:
            over.add((record.id, record.incarnation))
        if isinstance(record, Pipeline) and (record.job, record.incarnation) in over:
            yield f"I11 a pipeline of {record.job} changed after the job's end"


def numbers(story: Story) -> Iterator[str]:
    """I26 I31: checkpoint numbers are never used twice and the latest never goes back."""
    for states in story.pipelines().values():
        for old, new in pairwise(states):
            if new.checkpoints.next < old.checkpoints.next:
                yield "I26 a checkpoint number was used twice"
            before = old.checkpoints.latest.number if old.checkpoints.latest else 0
            after = new.checkpoints.latest.number if new.checkpoints.latest else 0
            if after < before:
                yield "I31 the latest checkpoint went back"
            if new.commits.through > after:
                yield "I29 a commit was recorded before its checkpoint was complete"


def commits(story: Story) -> Iterator[str]:
    """I45 I48 I50 I51: numbers grow, a file shows once, watermarks never go back."""
    shown: Counter[str] = Counter()
    for (table, user), snapshots in story.snapshots().items():
        ids = [s["number"] for s in snapshots]
        if ids != sorted(set(ids)):
            yield f"I45 commits of {user} to {table} are not in order or not unique: {ids}"
        for snapshot in snapshots:
            shown.update(snapshot["files"])
    for file, times in shown.items():
        if times > 1:
            yield f"I48 {file} was added {times} times"


def rows(story: Story) -> Iterator[str]:
    """I13 I43 I44: a finished job shows every row once; any other shows none twice."""
    ends = {life: states[-1].status for life, states in story.jobs().items()}
    seen: dict[tuple[str, Life], Counter[Any]] = defaultdict(Counter)
    for (table, user), snapshots in story.snapshots().items():
        if user.count(".") < 3:
            continue  # another user of the table
        job, incarnation, _ = user.split(".", 2)
        for snapshot in snapshots:
            for file in snapshot["files"]:
                seen[(table, (job, incarnation))].update(story.files.get(file, ()))
    for (table, life), counted in seen.items():
        doubled = [r for r, n in counted.items() if n > 1]
        if doubled:
            yield f"I44 {table} shows {len(doubled)} rows of {life[0]} twice"
    for life, status in ends.items():
        if status is not JobStatus.FINISHED:
            continue
        wanted = story.expected.get(life[0], set())
        for table in {t for t, owner in seen if owner[0] == life[0]} or {"any"}:
            lost = wanted - set(seen[(table, life)])
            if lost:
                yield f"I43 {table} lacks {len(lost)} rows of {life[0]}, which is FINISHED"


def endings(story: Story) -> Iterator[str]:
    """I40 I42: FINISHED needs a final checkpoint of every pipeline, and there is just one."""
    last = {key: states[-1] for key, states in story.pipelines().items()}
    for life, states in story.jobs().items():
        if states[-1].status is JobStatus.FINISHED:
            parts = [p for key, p in last.items() if key[:2] == life]
            if any(p.status is not FINISHED or p.final is None for p in parts):
                yield f"I42 {life[0]} is FINISHED without a final checkpoint of each pipeline"
    for history in story.pipelines().values():
        finals = {
            s.checkpoints.latest.number
            for s in history
            if s.checkpoints.latest and s.checkpoints.latest.kind is Kind.FINAL
        }
        if len(finals) > 1:
            yield "I42 two final checkpoints of one pipeline"


def attempts(story: Story) -> Iterator[str]:
    """I18 I39: attempts only grow; ready entries belong to the present attempt."""
    for states in story.pipelines().values():
        for old, new in pairwise(states):
            for before, after in zip(old.tasks, new.tasks, strict=True):
                if after.attempt < before.attempt:
                    yield "I18 an attempt number went back"
        for state in states:
            current = {(t.id, t.attempt) for t in state.tasks}
            if any((r.task, r.attempt) not in current for r in state.completion.ready):
                yield "I39 a ready entry outlived its attempt"
    started = Counter(
        (e["job"], e["incarnation"], e["task"], e["attempt"], e["worker"])
        for e in story.events
        if e["kind"] == "start"
    )
    if any(n > 1 for n in started.values()):
        yield "I18 one attempt was started twice on one worker"


def cleanup(story: Story) -> Iterator[str]:
    """I65 I66 I67 L5 L11: everything of an ended job goes, and nothing of a later one."""
    for thing in story.left:
        yield f"I67 left behind: {thing.split('/')[0].split(' ')[0]} {thing.split(' ', 1)[1]}"


def savepoints(story: Story) -> Iterator[str]:
    """I59 I61: a savepoint has a part of every pipeline, and nothing shows after it."""
    for life, states in story.jobs().items():
        end = states[-1]
        if end.status is JobStatus.SAVEPOINT_DONE and len(end.saved) != end.pipelines:
            yield f"I59 the savepoint of {life[0]} lacks a pipeline"


def restores(story: Story) -> Iterator[str]:
    """I33: the blobs that a record needs are kept by it."""
    for states in story.pipelines().values():
        for state in states:
            kept = {c.number for c in state.checkpoints.kept}
            latest = state.checkpoints.latest
            if latest and latest.number not in kept:
                yield "I33 the latest checkpoint is not kept"
            if any(c.number not in kept for c in state.commits.waiting):
                yield "I33 an uncommitted checkpoint is not kept"


def _saved(item: Any) -> list[str]:
    return [name for _, name in json.loads(item.value)["record"]["saved"]]


CHECKS: tuple[Callable[[Story], Iterator[str]], ...] = (
    terms, lives, numbers, commits, rows, endings, attempts, cleanup, savepoints, restores,
)  # fmt: skip
