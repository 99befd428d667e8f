"""A job that runs in this process, as the command line sees it.  Light: it is imported first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.errors import HoldfastError, UserError
from holdfast.model.job import JobPlan
from holdfast.worker.row_counts import Measured


class RunStatus(StrEnum):
    """How a job ended, in SeaTunnel's words."""

    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


@dataclass(frozen=True)
class RunOutcome:
    """How a job ended, and the error that ended it if it failed."""

    status: RunStatus
    error: HoldfastError | None = None


@dataclass(frozen=True)
class RunView:
    """How far a job has come: rows of whole slices, rows that are visible, what moves just now.

    `written` has rows and bytes for each sink and table.  `rejected` rows were read and left out.
    """

    name: str = ""
    read: int = 0
    written: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    committed: int = 0
    rejected: int = 0
    moving: Measured = field(default_factory=Measured)

    @property
    def rows_written(self) -> int:
        """The rows that were written, to whatever sink and table."""
        return sum(rows for rows, _ in self.written.values())


def admit(job: JobPlan, slots: int | None, tags: Mapping[str, str]) -> None:
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
    needed = sum(task.slots for pipeline in job.pipelines for task in pipeline.tasks)
    if needed > slots:
        raise UserError(
            f"Job {job.name} needs {needed} slots, there are {slots}. Raise --slots, or lower the"
            " job's parallelism.",
            code="job.no_slots",
        )
