"""What the core's property tests draw from: small pipelines and any event that may reach them."""

from collections.abc import Sequence
from itertools import product

from hypothesis import settings
from hypothesis import strategies as st

from holdfast.core.checkpoint import (
    BlobDropped,
    CheckpointDue,
    CheckpointFailed,
    CheckpointKind,
    CheckpointLost,
    CheckpointStored,
    LeaderChanged,
)
from holdfast.core.commit import Committed, HooksFinished
from holdfast.core.completion import Completion, SourceEnded
from holdfast.core.pipeline import (
    OVER,
    PipelineFailed,
    PipelineRecord,
    SavepointDropped,
    SavepointRequested,
    StopRequested,
    step,
)
from holdfast.core.task import (
    TaskFailed,
    TaskMoves,
    TaskPlaced,
    TaskRecord,
    TaskStarted,
    WorkerId,
    WorkerLost,
)

PLACES = (WorkerId("w1", "w1-1"), WorkerId("w2", "w2-1"))
TASKS = {"t1": ("a",), "t2": ("b", "c")}

few = settings(max_examples=40, deadline=None)
"""How many lives each property is tried on."""

ATTEMPTS = (1, 2, 3)
NUMBERS = (1, 2, 3, 4)

REPORTS: tuple[object, ...] = (
    *(
        event
        for task, attempt, place in product(TASKS, ATTEMPTS, PLACES)
        for event in (
            TaskPlaced(task, attempt, place),
            TaskStarted(task, attempt, place),
            TaskFailed(task, attempt, place, "it broke"),
            *(SourceEnded(task, source, attempt, place) for source in "abc"),
            *(TaskMoves(task, attempt, place, to) for to in (*PLACES, None)),
        )
    ),
    *(WorkerLost(place.incarnation) for place in PLACES),
    *(CheckpointDue(kind, 1) for kind in CheckpointKind),
    *(CheckpointStored(number, "blob") for number in NUMBERS),
    *(CheckpointFailed(number, "too slow") for number in NUMBERS),
    *(CheckpointFailed(n, "silent", ((t, a),)) for n, t, a in product(NUMBERS, TASKS, (1, 2))),
    *(CheckpointLost(n, "torn", untouched) for n, untouched in product(NUMBERS, (True, False))),
    *(Committed(number, mark) for number, mark in product(NUMBERS, (None, 3))),
    *(HooksFinished(number, "state") for number in NUMBERS),
    *(BlobDropped(number) for number in NUMBERS),
    LeaderChanged(2),
    StopRequested(),
    SavepointRequested("s"),
    SavepointDropped(),
    PipelineFailed("its checkpoint is lost"),
)
"""Everything that may reach a pipeline, early, late or twice."""


def fresh(retry_times: int = 1) -> PipelineRecord:
    """Return a pipeline as a submit writes it."""
    made = tuple(TaskRecord(name, sources) for name, sources in TASKS.items())
    return PipelineRecord("j", "i", 1, made, Completion(("a", "b", "c")), retry_times=retry_times)


def may_come(pipeline: PipelineRecord, event: object) -> bool:
    """Say whether the shell could hand this over: a pipeline that is over has nothing to read."""
    return not (isinstance(event, PipelineFailed) and pipeline.status in OVER)


def lives() -> st.SearchStrategy[list[tuple[PipelineRecord, object, PipelineRecord]]]:
    """Draw a pipeline's life: every state, the event that came, and the state after it."""
    return st.builds(
        _life, st.integers(0, 3), st.lists(st.integers(0, 9999), min_size=20, max_size=60)
    )


def _life(
    retry_times: int, picks: list[int]
) -> list[tuple[PipelineRecord, object, PipelineRecord]]:
    """Two of three events are what a healthy run sees next, so that lives get somewhere."""
    state = fresh(retry_times)
    steps = []
    for pick in picks:
        useful = [e for e in _likely(state) if step(state, e) != state]
        events = {0: REPORTS, 1: _turns(state)}.get(pick % 6, useful) or REPORTS
        event = events[pick // 6 % len(events)]
        if may_come(state, event):
            new = step(state, event)
            steps.append((state, event, new))
            state = new
    return steps


def _turns(pipeline: PipelineRecord) -> Sequence[object]:
    """Return what would turn a life."""
    failed = [TaskFailed(t.id, t.attempt, t.place, "it broke") for t in pipeline.tasks if t.place]
    lost = [CheckpointLost(c.number, "torn", True) for c in pipeline.commits.waiting]
    moves = [TaskMoves(t.id, t.attempt, t.place, PLACES[1]) for t in pipeline.tasks if t.place]
    turns = [StopRequested(), SavepointRequested("s"), LeaderChanged(2), WorkerLost("w1-1")]
    return [*turns, *failed, *lost, *moves]


def _likely(pipeline: PipelineRecord) -> Sequence[object]:
    """Return what a healthy run would see next."""
    found: list[object] = []
    for number, task in enumerate(pipeline.tasks):
        place = task.place or PLACES[number]
        found += [
            TaskPlaced(task.id, task.attempt, place),
            TaskStarted(task.id, task.attempt, place),
        ]
        found += [SourceEnded(task.id, s, task.attempt, place) for s in task.sources]
    pending, commits = pipeline.checkpoints.pending, pipeline.commits
    if pending:
        found.append(CheckpointStored(pending.number, f"blob {pending.number}"))
    else:
        found += [CheckpointDue(kind, 1) for kind in CheckpointKind]
    if commits.waiting:
        found.append(Committed(commits.waiting[0].number, 7))
    found.append(HooksFinished(commits.through, ""))
    return found
