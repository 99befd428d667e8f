"""Mutants of the bounded end: the ready set, the final checkpoint, attempts."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast.core import completion, gather, job, pipeline, task
from holdfast.core.completion import Completion, CompletionStatus, TasksChanged
from holdfast.core.gather import CheckpointRound, TaskAck
from holdfast.core.job import JobStatus
from holdfast.core.pipeline import FINISHED, PipelineRecord
from holdfast.core.task import TaskRecord, WorkerLost
from holdfast.master import pipeline_keeper
from holdfast.master.ports import MasterSettings
from holdfast.master.records import encode
from tests.sim.engine.faults import Faults
from tests.sim.engine.plan import Plan
from tests.sim.engine.stages import bounded, until
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import crash, mutant, scene, seeds, swapped


def _lose_worker_with_ready_entries() -> Plan:
    """A worker dies after one of its sources has ended."""
    spec = JobSpec("j", ((("a",), ("b",)),), rows=6, lengths=(("b", 14),))
    return Plan(jobs=(spec,), script=_kill_first_ready)


async def _kill_first_ready(world: World) -> None:
    for worker in world.workers.values():
        worker.slots = 1  # a task on each
    await until(world, lambda w: w.hits.get("after:pipeline.SourceEnded"))
    for name, worker in world.workers.items():
        if any(key.task == "p1t1" for key in worker.tasks):
            world.kill(name)
            return


def _read_all_again() -> Plan:
    """A worker dies after one source has ended, long after the last checkpoint."""
    spec = JobSpec("j", ((("a",), ("b",)),), rows=12, lengths=(("b", 20),))
    return Plan(jobs=(spec,), script=_kill_first_ready, settings=MasterSettings(interval_s=30.0))


def _failing_tasks() -> Plan:
    """Tasks fail now and then."""
    return replace(bounded(), faults=Faults(task_failure=0.04))


def _without_ready(record: Any, keep: bool) -> bytes:
    if isinstance(record, PipelineRecord) and not keep:
        record = replace(record, completion=replace(record.completion, ready=()))
    return encode(record)


@mutant(
    "#10836: which sources have ended is known only to the leader's memory",
    "I38 I39 L3",
    crash("after:pipeline.SourceEnded"),
)
def ready_set_only_in_memory() -> Iterator[None]:
    with swapped(pipeline_keeper, "encode", lambda record: _without_ready(record, keep=False)):
        yield


@mutant(
    "#10836, first fix: the ready set is written only when it is full",
    "I38 I39 L3",
    crash("after:pipeline.SourceEnded"),
)
def ready_set_saved_when_full() -> Iterator[None]:
    def save(record: Any) -> bytes:
        ended = CompletionStatus.ENDED
        full = isinstance(record, PipelineRecord) and record.completion.status is ended
        return _without_ready(record, keep=full)

    with swapped(pipeline_keeper, "encode", save):
        yield


@mutant(
    "#10836: a task that starts anew keeps its entries in the ready set",
    "I39 I43",
    scene(_lose_worker_with_ready_entries),
    seeds(200),
)
def ready_set_outlives_the_attempt() -> Iterator[None]:
    step = completion.step

    def forgetful(old: Completion, event: object, tasks: tuple[TaskRecord, ...]) -> Completion:
        return old if isinstance(event, TasksChanged) else step(old, event, tasks)

    with swapped(completion, "step", forgetful):
        yield


@mutant(
    "a lost worker does not void the ends its tasks have reported",
    "I39 I43",
    scene(_lose_worker_with_ready_entries),
    seeds(200),
)
def worker_loss_keeps_ready_entries() -> Iterator[None]:
    change = pipeline._task_event

    def keep(old: PipelineRecord, event: object) -> PipelineRecord:
        new = change(old, event)
        lost = isinstance(event, WorkerLost)
        return replace(new, completion=old.completion) if lost else new

    with swapped(pipeline, "_task_event", keep):
        yield


@mutant(
    "#10836: the final checkpoint does not ask for a proof of the end, and a task that is deployed"
    " again keeps its attempt",
    "I40 I43",
    scene(_read_all_again),
)
def final_without_proof() -> Iterator[None]:
    take = gather.take

    def trust(
        old: CheckpointRound, ack: TaskAck, tasks: tuple[TaskRecord, ...]
    ) -> CheckpointRound | str:
        return take(old, replace(ack, ended=True), tasks)

    with swapped(gather, "take", trust), _same_attempt():
        yield


@mutant(
    "a task that lost its worker runs again under the same attempt",
    "I18 I19 I27 I28 I34 I39 I40",
    scene(_lose_worker_with_ready_entries),
    seeds(100),
)
def attempt_number_used_again() -> Iterator[None]:
    with _same_attempt():
        yield


def _same_attempt() -> Any:
    """Deploy again under the same attempt number."""

    def same(old: TaskRecord) -> TaskRecord:
        return replace(old, status=task.WAITING, place=None)

    return swapped(task, "_next_attempt", same)


@mutant(
    "the final checkpoint begins when the first source has ended, and needs no proof",
    "I40 I41 I43",
    seeds(50),
)
def final_at_the_first_end() -> Iterator[None]:
    def status(self: Completion) -> CompletionStatus:
        return completion.ENDED if self.ready else completion.READING

    def trust(
        old: CheckpointRound, ack: TaskAck, tasks: tuple[TaskRecord, ...]
    ) -> CheckpointRound | str:
        return take(old, replace(ack, ended=True), tasks)

    take = gather.take
    with swapped(Completion, "status", property(status)), swapped(gather, "take", trust):
        yield


@mutant(
    "a job is FINISHED when one of its pipelines is",
    "I13 I42 I43",
    scene(bounded),
    seeds(100),
)
def finished_with_the_first_pipeline() -> Iterator[None]:
    seen = job._seen

    def hasty(old: Any, pipelines: tuple[PipelineRecord, ...]) -> Any:
        if any(p.status is FINISHED for p in pipelines) and old.status is JobStatus.RUNNING:
            return replace(old, status=JobStatus.FINISHED)
        return seen(old, pipelines)

    with swapped(job, "_seen", hasty):
        yield


@mutant(
    "answers of former attempts count, and a lost task does not end the checkpoint on its way",
    "I19 I27 I28 I44 I49",
    scene(_failing_tasks, 60),
    seeds(300),
)
def answers_of_former_attempts_count() -> Iterator[None]:
    def take(
        old: CheckpointRound, ack: TaskAck, _: tuple[TaskRecord, ...]
    ) -> CheckpointRound | str:
        if ack.number != old.number or ack.task not in old.waiting:
            return old
        waiting = tuple(t for t in old.waiting if t != ack.task)
        return replace(old, waiting=waiting, acks=(*old.acks, ack))

    def go_on(old: PipelineRecord, reason: str) -> PipelineRecord:
        return old

    with swapped(gather, "take", take), swapped(pipeline, "_fail_pending", go_on):
        yield
