"""A job that runs in this process, while it runs: how far it is, what failed, how it ended.

All of it is read from the records; only the errors themselves, with their causes, come straight
from the attempts and the sinks, because a record keeps no more than their words.

Commits are tried as often as the job file says and then given up, because a person waits for them.
A cluster tries a commit for as long as it takes: the rows are owed, and no one waits.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from holdfast.core.gather import StagedCommittable
from holdfast.core.job import TERMINAL, JobStatus
from holdfast.core.pipeline import ACTIVE, FAILED, FAILING, PipelineRecord
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.ports import (
    CommitHookRequest,
    CommitRequest,
    Incarnation,
    TableState,
)
from holdfast.process.committers import SinkTables
from holdfast.process.run_outcome import RunOutcome, RunStatus, RunView
from holdfast.wire.messages import TaskKey
from holdfast.worker.attempt import Attempt
from holdfast.worker.failures import GONE
from holdfast.worker.row_counts import Measured

T = TypeVar("T")
LOOK_S = 0.05


class PatientTables:
    """The sinks of one job.  `error` is what ended the last try."""

    def __init__(self, inner: SinkTables, say: Callable[[str], None]) -> None:
        self.error: HoldfastError | None = None
        self._inner = inner
        self._say = say
        self._times = 0
        self._interval_s = 0.0
        self._failed: Counter[str] = Counter()
        self._hurry = False

    def allow(self, times: int, interval_s: float) -> None:
        """Set how often a failed call is made again, and how long to rest before."""
        self._times, self._interval_s = times, interval_s

    def hurry(self) -> None:
        """Make no more tries: the user has cancelled."""
        self._hurry = True

    def close(self) -> None:
        """Let the threads end."""
        self._inner.close()

    async def admit(self, life: Incarnation, staged: tuple[StagedCommittable, ...]) -> None:
        """Raise UserError for what the sinks have not staged."""
        await self._inner.admit(life, staged)

    async def read(self, order: CommitRequest) -> TableState:
        """Return what the table says of the order's user."""
        return await self._inner.read(order)

    async def publish(self, version: int, order: CommitRequest) -> bool:
        """Make an order visible."""
        return await self._tried(
            f"commit {order.number} to {order.sink}", lambda: self._inner.publish(version, order)
        )

    async def listens(self, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        """Say whether any of these sinks has a hook."""
        return await self._inner.listens(life, sinks)

    async def listen(self, order: CommitHookRequest) -> str:
        """Run the listeners of a commit."""
        return await self._tried(
            f"the listeners of commit {order.number}", lambda: self._inner.listen(order)
        )

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Tell sinks that the input has ended."""
        await self._tried("finish", lambda: self._inner.finish(life, rows))

    async def sweep(self, life: Incarnation) -> None:
        """Remove whatever was staged and never committed."""
        await self._inner.sweep(life)

    async def _tried(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        try:
            done = await call()
        except UserError as error:
            self.error = error
            raise
        except (Unavailable, OutcomeUnknown) as error:
            self.error = error
            self._failed[what] += 1
            if self._failed[what] > self._times or self._hurry:
                raise UserError(str(error), code=error.code) from error
            self._say(
                f"{error} Retry {self._failed[what]} of {self._times} in {self._interval_s:g} s."
            )
            await self._rest()
            raise
        del self._failed[what]
        return done

    async def _rest(self) -> None:
        left_s = self._interval_s
        while left_s > 0 and not self._hurry:
            await asyncio.sleep(min(left_s, LOOK_S))
            left_s -= LOOK_S


class RunProgress:
    """One job's story so far.  `outcome` is None until it has ended."""

    def __init__(self, say: Callable[[str], None], tables: PatientTables) -> None:
        self.name = ""
        self.outcome: RunOutcome | None = None
        self._say = say
        self._tables = tables
        self._committed = 0
        self._retries: dict[int, int] = {}
        self._errors: dict[tuple[int, str, int], HoldfastError] = {}
        self._ended: dict[TaskKey, Attempt] = {}

    def ended(self, attempt: Attempt) -> None:
        """Take in that an attempt was stopped or has failed."""
        key = attempt.key
        self._ended[key] = attempt
        if attempt.error:
            self._errors[key.pipeline, key.task, attempt.number] = attempt.error

    def see(self, keeper: JobKeeper) -> None:
        """Take in how the job's records stand."""
        pipelines = [p.state for p in keeper.pipelines.values()]
        self._committed = sum(map(_visible, pipelines))
        for pipeline in pipelines:
            before = self._retries.get(pipeline.number, 0)
            self._retries[pipeline.number] = pipeline.retries
            if pipeline.retries > before and pipeline.status is ACTIVE:
                self._say_retry(pipeline)
        job = keeper.state
        if job.status in TERMINAL and self.outcome is None:
            error = self._error(pipelines, job.reason) if job.status is JobStatus.FAILED else None
            self.outcome = RunOutcome(RunStatus(job.status.value), error)

    def view(self, running: Iterable[Attempt]) -> RunView:
        """Return how far the job has come.  Any thread may ask."""
        latest = {**self._ended, **{a.key: a for a in running}}
        counts = [a.tally.counts() for a in latest.values()]
        written: dict[tuple[str, str], tuple[int, int]] = {}
        for one in (w for c in counts for w in c.written):
            rows, size = written.get((one.sink, one.table), (0, 0))
            written[one.sink, one.table] = (rows + one.rows, size + one.bytes)
        moving = [a.tally.moving() for a in latest.values()]
        return RunView(
            name=self.name,
            read=sum(c.read for c in counts),
            written=written,
            committed=self._committed,
            rejected=sum(c.rejected for c in counts),
            moving=Measured(
                sum(m.rows_in for m in moving),
                sum(m.bytes_in for m in moving),
                sum(m.rows_out for m in moving),
                sum(m.bytes_out for m in moving),
            ),
        )

    def _say_retry(self, pipeline: PipelineRecord) -> None:
        last = pipeline.failures[-1]
        error = self._errors.get((pipeline.number, last.task, last.attempt))
        if error and error.code == GONE:
            return  # there is no Spark left to try it on
        latest = pipeline.checkpoints.latest
        self._say(
            f"{str(error or last.reason).rstrip('.')}."
            f" Retry {pipeline.retries} of {pipeline.retry_times}"
            f" in {pipeline.policy.retry_interval_s:g} s,"
            f" from {f'checkpoint {latest.number}' if latest else 'the beginning'}."
        )

    def _error(self, pipelines: list[PipelineRecord], reason: str) -> HoldfastError:
        """Return the very error that failed the job, which says more than its record does."""
        failed = [p for p in pipelines if p.status in (FAILING, FAILED) and p.failures]
        last = failed[0].failures[-1] if failed else None
        known: HoldfastError | None = None
        if last and last.task:
            known = self._errors.get((failed[0].number, last.task, last.attempt))
        elif last and self._tables.error and str(self._tables.error) in last.reason:
            known = self._tables.error
        return known or HoldfastError(reason, code="job.failed")


def _visible(pipeline: PipelineRecord) -> int:
    """Return how many rows the commits so far have made visible."""
    through = pipeline.commits.through
    done = [c for c in pipeline.checkpoints.kept if c.number == through]
    return done[0].totals.written if done else 0
