"""Drive one pipeline: run its tasks slice by slice, commit at each checkpoint, retry on failure.

This first form keeps its checkpoints in memory: a pipeline that fails goes on from the last commit,
but only as long as this process lives.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait

from holdfast.connect.sink import Committable, Identifier, Sink
from holdfast.connect.source import Budget
from holdfast.errors import Cancelled, HoldfastError, Unavailable, UserError
from holdfast.model.job import Pipeline
from holdfast.model.table import Table
from holdfast.model.tree import Plain
from holdfast.worker.failures import explained
from holdfast.worker.pace import Pace
from holdfast.worker.task import Running, Staged, TaskRun

IDLE_WAIT_S = 0.2

Notice = Callable[[str], None]


class PipelineRun:
    """One pipeline of a running job, with what it has committed so far."""

    def __init__(self, running: Running, pipeline: Pipeline, stop: threading.Event, say: Notice):
        self.running = running
        self.pipeline = pipeline
        self.stop = stop
        self.say = say
        self.checkpoint = 0
        self.positions: dict[str, Plain] = {}
        self.rows: dict[str, Counter[str]] = {}
        self.pending: list[tuple[TaskRun, Staged]] = []

    def run(self) -> None:
        """Run to the end of the input, or until stopped.  Raises what ended it otherwise."""
        attempt = 1
        while True:
            try:
                self._attempt(attempt)
                return
            except (UserError, Cancelled):
                self._abort()
                raise
            except Exception as error:  # whatever a plug-in raises ends one attempt
                self._abort()
                failure = self._failure(error)
                if self.stop.is_set():
                    raise Cancelled(f"Pipeline {self.pipeline.id} was cancelled.") from error
                if attempt > self.running.job.retry_times:
                    raise failure from error
                self._wait_before_retry(attempt, failure)
            attempt += 1

    def _failure(self, error: Exception) -> HoldfastError:
        if isinstance(error, HoldfastError):
            return error
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Unavailable(f"Pipeline {self.pipeline.id} failed: {said}.", code="pipeline.failed")

    def _attempt(self, attempt: int) -> None:
        tasks = [
            TaskRun(self.running, task, attempt, self.positions) for task in self.pipeline.tasks
        ]
        if attempt == 1:
            self._prepare(tasks)
        self._loop(tasks)

    def _loop(self, tasks: list[TaskRun]) -> None:
        """Give every task a slice at a time; commit when the interval has passed, or at the end."""
        pace = Pace.of(self.running.job)
        committed_s = time.monotonic()
        with ThreadPoolExecutor(len(tasks), thread_name_prefix="task") as pool:
            while True:
                if self.stop.is_set():
                    raise Cancelled(f"Pipeline {self.pipeline.id} was cancelled.")
                started_s = time.monotonic()
                moved = self._round(pool, tasks, Budget(pace.rows, started_s))
                ended = all(task.ended for task in tasks)
                if ended:
                    self._finish(tasks)
                if ended or time.monotonic() - committed_s >= pace.interval_s:
                    self._commit(tasks)
                    committed_s = time.monotonic()
                if ended:
                    return
                rows = sum(_rows(staged) for _, staged in moved)
                rest_s = pace.after(rows, time.monotonic() - started_s, idle=not moved)
                self.stop.wait(max(rest_s, 0 if moved else IDLE_WAIT_S))

    def _round(
        self, pool: ThreadPoolExecutor, tasks: list[TaskRun], budget: Budget
    ) -> list[tuple[TaskRun, Staged]]:
        """Let every task run one slice.  What some staged is kept even if another fails, so that
        it can be removed."""
        turns = [pool.submit(self._turn, task, budget) for task in tasks]
        wait(turns)
        moved = [turn.result() for turn in turns if not turn.exception()]
        self.pending += [staged for staged in moved if staged]
        for turn in turns:
            turn.result()
        return [staged for staged in moved if staged]

    def _turn(self, task: TaskRun, budget: Budget) -> tuple[TaskRun, Staged] | None:
        slices = task.plan(budget)
        return (task, task.run(slices)) if slices else None

    def _commit(self, tasks: list[TaskRun]) -> None:
        """Make everything staged visible, under the next checkpoint's number."""
        if not self.pending:
            return
        self.checkpoint += 1
        together: dict[str, list[Committable]] = {}
        for _, staged in self.pending:
            for sink, committables in staged.committables.items():
                together.setdefault(sink, []).extend(committables)
        sinks = _sinks(tasks)
        for sink, committables in together.items():
            user = f"{self.running.job_id}-{sink}"
            sinks[sink].commit(Identifier(user, self.checkpoint), committables)
            for c in committables:
                self.rows.setdefault(sink, Counter())[c.table] += c.rows
            self.running.totals.add_committed(sum(c.rows for c in committables))
        for task, staged in self.pending:
            self.positions.update(staged.positions)
            for stage, source in task.sources.items():
                if stage in staged.positions:
                    source.committed(staged.positions[stage])
        self.pending = []

    def _prepare(self, tasks: list[TaskRun]) -> None:
        """Check the whole plan and let sinks do what happens once, before the first row moves."""
        budget = Budget(Pace.of(self.running.job).rows, time.monotonic())
        expected: dict[str, dict[str, Table]] = {}
        for task in tasks:
            for stage, tables in task.expected(budget).items():
                expected.setdefault(stage, {}).update({str(t.path): t for t in tables})
        for stage, sink in _sinks(tasks).items():
            with explained(self.running.job.stage(stage)):
                sink.prepare(list(expected.get(stage, {}).values()))

    def _finish(self, tasks: list[TaskRun]) -> None:
        """Tell sinks that the input has ended, before the last commit: a refusal still counts."""
        rows = {sink: Counter(counts) for sink, counts in self.rows.items()}
        for _, staged in self.pending:
            for name, committables in staged.committables.items():
                for c in committables:
                    rows.setdefault(name, Counter())[c.table] += c.rows
        for stage, sink in _sinks(tasks).items():
            sink.finish(rows.get(stage, {}))

    def _abort(self) -> None:
        """Drop what was staged since the last commit; it will be read again, or never be wanted."""
        for task, staged in self.pending:
            task.abort(staged)
        self.pending = []

    def _wait_before_retry(self, attempt: int, error: HoldfastError) -> None:
        job = self.running.job
        self.say(
            f"{error} Retry {attempt} of {job.retry_times}"
            f" in {job.retry_interval_s} s, from checkpoint {self.checkpoint}."
        )
        if self.stop.wait(job.retry_interval_s):
            raise Cancelled(f"Pipeline {self.pipeline.id} was cancelled.")


def _sinks(tasks: list[TaskRun]) -> Mapping[str, Sink[object]]:
    """Return one instance of each sink; tasks that share a sink share its commits."""
    return {stage: sink for task in reversed(tasks) for stage, sink in task.sinks.items()}


def _rows(staged: Staged) -> int:
    return sum(c.rows for made in staged.committables.values() for c in made)
