"""Run a whole job in this process: every pipeline in a thread, on one Spark session."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import Cancelled, HoldfastError, UserError
from holdfast.model.job import Job, Role
from holdfast.worker.meter import Measured, measure
from holdfast.worker.pipeline import Notice, PipelineRun
from holdfast.worker.task import Running


class Status(StrEnum):
    """How a job stands, in SeaTunnel's words."""

    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


@dataclass(frozen=True)
class Outcome:
    """How a job ended, and the error that ended it if it failed."""

    status: Status
    error: HoldfastError | None = None


def admit(job: Job, slots: int | None, tags: Mapping[str, str]) -> None:
    """Refuse a job this process has no room for, or whose tags it does not carry.

    A task takes as many slots as it has parallel readers, and all tasks run at once.
    """
    for key, value in job.tag_filter:
        if tags.get(key) != value:
            carried = ", ".join(f"{k}={v}" for k, v in tags.items()) or "none"
            raise UserError(
                f"Job {job.name} asks for a worker with the tag {key}={value}; this one carries"
                f" {carried}. Give it with --tag {key}={value}, or drop tag_filter from the job.",
                code="job.no_worker",
            )
    if slots is None:
        return
    sources = {s.id: s.parallelism for s in job.of(Role.SOURCE)}
    needed = sum(
        max(sources[s] for s in task.stages if s in sources)
        for pipeline in job.pipelines
        for task in pipeline.tasks
    )
    if needed > slots:
        raise UserError(
            f"Job {job.name} needs {needed} slots, there are {slots}. Raise --slots, or lower the"
            " job's parallelism.",
            code="job.no_slots",
        )


class EmbeddedRun:
    """A job on its way.  `start` it, `wait` for it, `cancel` it from any thread."""

    def __init__(self, make: Callable[[threading.Event], Running], say: Notice) -> None:
        self.stop = threading.Event()
        self.running = make(self.stop)
        self.errors: list[HoldfastError] = []
        self.threads = [
            threading.Thread(
                target=self._drive,
                args=(PipelineRun(self.running, pipeline, self.stop, say),),
                name=f"pipeline-{pipeline.id}",
                daemon=True,
            )
            for pipeline in self.running.job.pipelines
        ]

    def start(self) -> None:
        """Set every pipeline going."""
        for thread in self.threads:
            thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; say whether the job has ended."""
        for thread in self.threads:
            thread.join(timeout_s / len(self.threads))
        return not any(thread.is_alive() for thread in self.threads)

    def cancel(self) -> None:
        """Ask every pipeline to stop and end the Spark jobs that are running for it."""
        self.stop.set()
        for group in self.running.totals.running():
            self.running.spark.sparkContext.cancelJobGroup(group)

    def outcome(self) -> Outcome:
        """Return how the job ended: the first real failure counts, then a cancel."""
        failed = [e for e in self.errors if not isinstance(e, Cancelled)]
        if failed:
            return Outcome(Status.FAILED, failed[0])
        if self.errors:
            return Outcome(Status.CANCELED, self.errors[0])
        return Outcome(Status.FINISHED)

    def measured(self) -> Measured:
        """Return what the Spark jobs running right now have moved so far."""
        found = [measure(self.running.spark, g) for g in self.running.totals.running()]
        return Measured(
            sum(m.rows_in for m in found),
            sum(m.bytes_in for m in found),
            sum(m.rows_out for m in found),
            sum(m.bytes_out for m in found),
        )

    def _drive(self, pipeline: PipelineRun) -> None:
        try:
            pipeline.run()
        except HoldfastError as error:
            self.errors.append(error)
            self.cancel()
