"""Make the records of a new job: what its planned form asks for, in the control plane's words."""

from collections.abc import Iterable

from holdfast.core.completion import Completion
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord, Policy
from holdfast.core.placement import Room, Wanted, place
from holdfast.core.task import TaskRecord, WorkerId
from holdfast.master.worker_registry import WorkerRegistry
from holdfast.model import job as model
from holdfast.model.job import Role


def new_records(
    job_id: str,
    incarnation: str,
    token: str,
    spec: str,
    planned: model.JobPlan,
    life: int = 1,
) -> tuple[JobRecord, tuple[PipelineRecord, ...]]:
    """Return the records that a submit writes.

    A stage's id is the name of the source or sink in the records.
    """
    pipelines = tuple(_pipeline(job_id, incarnation, part, planned) for part in planned.pipelines)
    job = JobRecord(
        job_id, incarnation, token, planned.name, spec, len(pipelines), tags=planned.tag_filter,
        life=life, retained_s=planned.saved_retained_s,
    )  # fmt: skip
    return job, pipelines


def too_large(job: JobRecord, pipelines: Iterable[PipelineRecord], crew: WorkerRegistry) -> str:
    """Say why the workers in contact could not carry a job even if they were empty.

    "" if they could, or if there are none: then it is not known what will come.
    """
    wanted = [
        Wanted(job.id, 0, part.number, task.id, task.attempt, task.slots, job.tags)
        for part in pipelines
        for task in part.tasks
    ]
    hellos = [seen.hello for seen in crew.seen.values()]
    rooms = [Room(WorkerId(h.worker, h.incarnation), h.slots, h.tags) for h in hellos]
    _, waits = place(wanted, rooms)
    return waits[0].why.replace("are free", "are there") if waits and rooms else ""


def _pipeline(
    job_id: str, incarnation: str, part: model.PipelinePlan, planned: model.JobPlan
) -> PipelineRecord:
    tasks = tuple(
        TaskRecord(task.id, _of(planned, task.stages, Role.SOURCE), task.slots)
        for task in part.tasks
    )
    return PipelineRecord(
        job=job_id,
        incarnation=incarnation,
        number=part.id,
        tasks=tasks,
        completion=Completion(tuple(s for t in tasks for s in t.sources)),
        retry_times=planned.retry_times,
        sinks=_of(planned, part.stages, Role.SINK),
        policy=_policy(planned),
    )


def _policy(planned: model.JobPlan) -> Policy:
    interval_ms, timeout_ms = planned.checkpoint_interval_ms, planned.checkpoint_timeout_ms
    return Policy(
        interval_s=None if interval_ms is None else interval_ms / 1000,
        timeout_s=None if timeout_ms is None else timeout_ms / 1000,
        periodic=interval_ms is not None,
        retry_interval_s=float(planned.retry_interval_s),
    )


def _of(planned: model.JobPlan, stages: tuple[str, ...], role: Role) -> tuple[str, ...]:
    return tuple(s for s in stages if planned.stage(s).role is role)
