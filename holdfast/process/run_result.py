"""The result of a job: how it ended, its counts, and where its rows are."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError, UserError
from holdfast.model.job import JobPlan
from holdfast.plan.promises import destination_of
from holdfast.process.run_outcome import RunOutcome, RunStatus, RunView

if TYPE_CHECKING:  # a run in one process needs none of the API's shapes
    from holdfast.api.views import JobDetail, TableCount

GOOD = ("FINISHED", "SAVEPOINT_DONE", "RUNNING", "PENDING", "SCHEDULED")
"""The statuses in which a reason is no problem."""


@dataclass(frozen=True, slots=True)
class TableResult:
    """What one sink has taken of one table, and where it put it ("" if the sink does not say).

    Where the job did not finish, not all of these rows need be visible.
    """

    sink: str
    table: str
    rows: int
    bytes: int
    destination: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.  `written` counts the rows that are visible; `rejected` ones were left out.

    `problems` has a sentence for each thing that went wrong; it is empty if the job finished.
    `seconds` is how long the job took, `log` where a run in this process logged.
    """

    job_id: str
    name: str
    status: str
    read: int
    written: int
    rejected: int
    tables: tuple[TableResult, ...]
    problems: tuple[str, ...]
    error: HoldfastError | None
    log: Path | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the job ended as it should: it finished, or was stopped with a savepoint."""
        return self.status in (RunStatus.FINISHED, "SAVEPOINT_DONE")

    def check(self) -> "RunResult":
        """Return this result, or raise what failed the job."""
        if self.ok:
            return self
        raise self.error or HoldfastError(f"Job {self.job_id} is {self.status}.")


def result_of(
    job: JobPlan,
    registry: Registry,
    job_id: str,
    outcome: RunOutcome,
    view: RunView,
    log: Path,
    seconds: float,
) -> RunResult:
    """Return the result of a run that has ended."""
    problems = (str(outcome.error),) if outcome.error else ()
    tables = tuple(_tables(job, registry, view))
    return RunResult(
        job_id, job.name, outcome.status.value, view.read, view.committed, view.rejected, tables,
        problems, outcome.error, log, seconds,
    )  # fmt: skip


def result_on_cluster(job: "JobDetail", counts: Iterable["TableCount"]) -> RunResult:
    """Return the result of a job of a cluster, as its leader reports it."""
    wrong = bool(job.reason) and job.status not in GOOD
    tables = (TableResult(c.sink, c.table, c.rows, c.bytes, c.destination) for c in counts)
    until_s = job.ended_s or time.time()
    return RunResult(
        job.job_id, job.name, job.status, job.read, job.written, job.rejected,
        tuple(sorted(tables, key=lambda t: (t.sink, t.table))),
        (job.reason,) if wrong else (),
        UserError(f"Job {job.job_id} is {job.status}. {job.reason}") if wrong else None,
        seconds=max(0.0, until_s - job.since_s),
    )  # fmt: skip


def _tables(job: JobPlan, registry: Registry, view: RunView) -> Iterator[TableResult]:
    for (sink, table), (rows, size) in sorted(view.written.items()):
        where = destination_of(job.stage(sink), registry, table)
        yield TableResult(sink, table, rows, size, where)
