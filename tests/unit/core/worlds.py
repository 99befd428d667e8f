"""What the core's property tests draw from: small pipelines and any event that may reach them."""

from hypothesis import strategies as st

from holdfast.core.checkpoint import (
    CheckpointDue,
    CheckpointFailed,
    CheckpointStored,
    Kind,
    TookOver,
)
from holdfast.core.commit import Committed, Listened
from holdfast.core.completion import Completion, SourceEnded
from holdfast.core.pipeline import (
    OVER,
    BlobDropped,
    Pipeline,
    PipelineDoomed,
    SavepointAsked,
    SavepointDropped,
    StopAsked,
    step,
)
from holdfast.core.task import Place, Task, TaskFailed, TaskPlaced, TaskStarted, WorkerLost

PLACES = (Place("w1", "w1-1"), Place("w2", "w2-1"))
TASKS = {"t1": ("a",), "t2": ("b", "c")}

tasks = st.sampled_from(sorted(TASKS))
attempts = st.integers(1, 4)
places = st.sampled_from(PLACES)
numbers = st.integers(1, 5)
marks = st.none() | st.integers(0, 50)

reports = st.one_of(
    st.builds(TaskPlaced, tasks, attempts, places),
    st.builds(TaskStarted, tasks, attempts, places),
    st.builds(TaskFailed, tasks, attempts, places, st.just("it broke")),
    st.builds(WorkerLost, st.sampled_from([p.incarnation for p in PLACES])),
    st.builds(SourceEnded, tasks, st.sampled_from("abc"), attempts, places),
    st.builds(CheckpointDue, st.sampled_from(Kind), st.just(1)),
    st.builds(CheckpointStored, numbers, st.just("blob")),
    st.builds(CheckpointFailed, numbers, st.just("too slow")),
    st.builds(TookOver, st.just(2)),
    st.builds(Committed, numbers, marks),
    st.builds(Listened, numbers, st.just("state")),
    st.just(StopAsked()),
    st.just(SavepointAsked("s")),
    st.just(SavepointDropped()),
    st.builds(BlobDropped, numbers),
    st.just(PipelineDoomed("its checkpoint is lost")),
)


def fresh(retry_times: int = 1) -> Pipeline:
    """Return a pipeline as a submit writes it."""
    made = tuple(Task(name, sources) for name, sources in TASKS.items())
    return Pipeline("j", "i", 1, made, Completion(("a", "b", "c")), retry_times=retry_times)


def may_come(pipeline: Pipeline, event: object) -> bool:
    """Say whether the shell could hand this over: a pipeline that is over has nothing to read."""
    return not (isinstance(event, PipelineDoomed) and pipeline.status in OVER)


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[Pipeline, object, Pipeline]]:
    """Return a pipeline's life: every state, the event that came, and the state after it.

    Half of the events are what a healthy run would see next, so that lives get somewhere.
    """
    state = fresh(draw(st.integers(0, 3)))
    steps = []
    for _ in range(draw(st.integers(0, 40))):
        event = draw(st.sampled_from(_likely(state)) | reports)
        if may_come(state, event):
            new = step(state, event)
            steps.append((state, event, new))
            state = new
    return steps


def _likely(pipeline: Pipeline) -> list[object]:
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
        found += [CheckpointDue(kind, 1) for kind in Kind]
    if commits.waiting:
        found.append(Committed(commits.waiting[0].number, 7))
    found.append(Listened(commits.through, ""))
    return found
