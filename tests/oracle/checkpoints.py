"""D. Checkpoints: numbered for ever, whole, built from the acknowledgements that count."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.pipeline import PipelineRecord
from holdfast.wire.describe import file_name
from tests.oracle.events import Ack, Blob, Drop, Order, Publish, Write
from tests.oracle.story import Part, Story, latest, part_of

KEPT_SLACK = 4
"""How many blobs may wait for their removal at once."""

AckKey = tuple[Part, str, int, str, int]


def numbers(story: Story) -> Iterator[str]:
    """I26 I31: checkpoint numbers are never used twice and the latest never goes back.

    Only from one that is lost, to the one before it (I30).
    """
    for states in story.pipelines.values():
        used: dict[int, object] = {}
        for old, new in pairwise(states):
            pending = new.checkpoints.pending
            if new.checkpoints.next < old.checkpoints.next or (
                pending and used.setdefault(pending.number, pending) != pending
            ):
                yield "I26 a checkpoint number was used twice"
            if latest(new) < latest(old) and latest(old) not in new.checkpoints.lost:
                yield "I31 the latest checkpoint went back"
    terms: dict[tuple[Part, int], int] = {}
    for order in story.of(Order):
        if order.order == "Barrier":
            number = (Part(order.job, order.incarnation, order.pipeline), order.number)
            if terms.setdefault(number, order.term) != order.term:
                yield f"I26 barriers of {order.number} were sent in two terms"


def acknowledged(story: Story) -> Iterator[str]:
    """I27 I28 I50: a complete checkpoint is one answer of every task's present attempt, no more.

    Its watermark is the least of the writers that are not idle.
    """
    acks: dict[AckKey, Ack] = {}
    for event, records in story.walk(Write, Ack):
        if isinstance(event, Ack):
            part = Part(event.job, event.incarnation, event.pipeline)
            acks[(part, event.task, event.attempt, event.worker, event.number)] = event
        elif isinstance(event.record, PipelineRecord):
            old = records.pipeline(part_of(event.record))
            if old and latest(event.record) > latest(old):
                yield from _built(story, old, event.record, acks)


def _built(
    story: Story, old: PipelineRecord, new: PipelineRecord, acks: dict[AckKey, Ack]
) -> Iterator[str]:
    """Compare the blob of a checkpoint with the answers of the tasks, as the record has them."""
    done = new.checkpoints.latest
    assert done
    content = story.contents.get(done.blob)
    if content is None:
        return  # `whole` speaks of it
    positions: dict[str, object] = {}
    staged: Counter[tuple[int, str, str]] = Counter()
    marks: list[tuple[int | None, bool]] = []
    for task in old.tasks:
        place = task.place.incarnation if task.place else ""
        ack = acks.get((part_of(old), task.id, task.attempt, place, done.number))
        if ack is None:
            yield f"I27 checkpoint {done.number} lacks an answer of {task.id}"
            return
        positions.update(ack.positions)
        staged.update(ack.staged)
        marks.append((ack.watermark, ack.idle))
    held = Counter((s.created, s.sink, file_name(s.content)) for s in content.staged)
    if content.positions != positions or held != staged:
        yield f"I28 checkpoint {done.number} is not what its tasks answered"
    wanted = _watermark(marks)
    if content.watermark != wanted:
        yield f"I50 checkpoint {done.number} has watermark {content.watermark}, not {wanted}"


def _watermark(marks: list[tuple[int | None, bool]]) -> int | None:
    """The least of the writers that are not idle, if all have one; the greatest if all are idle."""
    active = [mark for mark, idle in marks if not idle]
    if active and None in active:
        return None
    known = [m for m in active or (mark for mark, _ in marks) if m is not None]
    return (min(known) if active else max(known)) if known else None


def stored_first(story: Story) -> Iterator[str]:
    """I29: a commit begins, and is recorded, only after its checkpoint is complete."""
    for states in story.pipelines.values():
        if any(s.commits.through > latest(s) for s in states):
            yield "I29 a commit was recorded before its checkpoint was complete"
    for publish, records in story.walk(Publish):
        owner = story.owner(publish.user)
        state = records.pipeline(owner[0]) if owner else None
        if state and publish.number > latest(state):
            yield f"I29 a commit of {publish.number} began before it was complete"


def whole(story: Story) -> Iterator[str]:
    """I30: whatever a record points at was stored whole before."""
    there: set[str] = set()
    for event, _ in story.walk(Write, Blob):
        if isinstance(event, Blob):
            there.add(event.name)
        elif isinstance(event.record, PipelineRecord) and event.record.checkpoints.latest:
            name = event.record.checkpoints.latest.blob
            if name not in there or name not in story.contents:
                yield f"I30 a record points at {name}, which was not stored whole"


def given_up(story: Story) -> Iterator[str]:
    """I30: a checkpoint that was given up as lost is never committed, readable again or not."""
    for publish, records in story.walk(Publish):
        owner = story.owner(publish.user)
        state = records.pipeline(owner[0]) if owner else None
        if state and publish.number in state.checkpoints.lost:
            yield f"I30 a commit of {publish.number} began though it is lost"


def retention(story: Story) -> Iterator[str]:
    """I33: what is needed is kept, and what is kept does not pile up."""
    for states in story.pipelines.values():
        for state in states:
            kept = {c.number for c in state.checkpoints.kept}
            if latest(state) and latest(state) not in kept:
                yield "I33 the latest checkpoint is not kept"
            if any(c.number not in kept for c in state.commits.waiting):
                yield "I33 an uncommitted checkpoint is not kept"
            commits = state.commits
            if commits.listened < commits.through and commits.through not in kept:
                yield "I33 a checkpoint is not kept whose listeners have not run"
            plain = [c for c in state.checkpoints.kept if c.kind is not CheckpointKind.SAVEPOINT]
            if len(plain) > state.retained + len(state.commits.waiting) + KEPT_SLACK:
                yield f"I33 {len(plain)} checkpoints are kept, {state.retained} are wanted"
    for drop, records in story.walk(Drop):
        for state in (r for r in records.items.values() if isinstance(r, PipelineRecord)):
            needed = {c.blob for c in state.commits.waiting}
            if state.checkpoints.latest:
                needed.add(state.checkpoints.latest.blob)
            if drop.name in needed and part_of(state).life not in records.ends:
                yield f"I33 {drop.name} was removed while it was needed"


def barriers(story: Story) -> Iterator[str]:
    """I34: a task answers barriers in growing order."""
    answered: dict[tuple[object, ...], int] = {}
    for ack in story.of(Ack):
        task = (ack.job, ack.incarnation, ack.task, ack.attempt, ack.worker)
        if ack.number <= answered.get(task, 0):
            yield f"I34 {ack.task} answered barrier {ack.number} after {answered[task]}"
        answered[task] = max(ack.number, answered.get(task, 0))


def carried(story: Story) -> Iterator[str]:
    """I35: files of a checkpoint that did not complete go into the next answer, others do not.

    What a complete one holds is not said again: answers must not grow while nobody commits.
    """
    held: dict[tuple[object, ...], Ack] = {}
    for ack in story.of(Ack):
        task = (ack.job, ack.incarnation, ack.task, ack.attempt, ack.worker)
        before = held.get(task)
        open_yet = {s for s in before.staged if s[0] > ack.complete} if before else set()
        if open_yet - set(ack.staged):
            yield f"I35 {ack.task} no longer carries what no complete checkpoint holds"
        if any(s[0] <= ack.complete for s in ack.staged):
            yield f"I35 {ack.task} says again what checkpoint {ack.complete} holds"
        held[task] = ack


def cut(story: Story) -> Iterator[str]:
    """I32: through each commit a table shows the rows below that checkpoint's positions."""
    for (table, user), snapshots in story.snapshots.items():
        owner = story.owner(user)
        if owner is None:
            continue
        positions = {c.number: story.contents.get(c.blob) for c in story.completed[owner[0]]}
        next_row: dict[str, int] = defaultdict(int, story.restored(owner[0]))
        for snapshot in snapshots:
            found: dict[str, list[int]] = defaultdict(list)
            for file in snapshot.files:
                for source, row in story.rows.get(file, ()):
                    found[source].append(row)
            content = positions.get(snapshot.number)
            for source, rows in found.items():
                end = content.positions.get(source) if content else None
                if end is not None and sorted(rows) != list(range(next_row[source], int(str(end)))):
                    yield f"I32 {table} at {snapshot.number} is not a cut of {source}"
                next_row[source] = max(rows) + 1


CHECKS = (
    numbers, acknowledged, stored_first, whole, given_up, retention, barriers, carried, cut,
)  # fmt: skip
