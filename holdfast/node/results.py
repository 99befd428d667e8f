"""What became of a job that ran here: how it ended, its counts, and where its rows are."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError
from holdfast.model.job import Job
from holdfast.model.table import Table, TablePath
from holdfast.node.outcome import Outcome, Status, View
from holdfast.plan.promises import destination_of


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
    log: Path

    @property
    def ok(self) -> bool:
        """Whether the job finished."""
        return self.status == Status.FINISHED

    def check(self) -> "RunResult":
        """Return this result, or raise what failed the job."""
        if self.ok:
            return self
        raise self.error or HoldfastError(f"Job {self.job_id} ended as {self.status}.")


def result_of(
    job: Job, registry: Registry, job_id: str, outcome: Outcome, view: View, log: Path
) -> RunResult:
    """Return the result of a run that has ended."""
    problems = (str(outcome.error),) if outcome.error else ()
    tables = tuple(_tables(job, registry, view))
    return RunResult(
        job_id, job.name, outcome.status.value, view.read, view.committed, view.rejected, tables,
        problems, outcome.error, log,
    )  # fmt: skip


def _tables(job: Job, registry: Registry, view: View) -> Iterator[TableResult]:
    for (sink, table), (rows, size) in sorted(view.written.items()):
        known = Table(TablePath.parse(table), ())
        where = destination_of(job.stage(sink), registry, known)
        yield TableResult(sink, table, rows, size, where)
