"""Run a job in this process, from its file to its exit code: progress, Ctrl-C and SIGTERM."""

import importlib
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from rich.live import Live
from rich.table import Table as Grid

from holdfast.cli.closing import show_closing, steps_after_run
from holdfast.cli.job_file import checked, read_tree, spark_settings
from holdfast.cli.logs import event, log, logging_to
from holdfast.cli.terminal import human_bytes, screen, show_warnings
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError
from holdfast.files import state_dir
from holdfast.plan.record import JobSource
from holdfast.process.run_outcome import RunOutcome, RunStatus, RunView, admit
from holdfast.process.run_result import RunResult, result_of
from holdfast.spark import session, startup_cache
from holdfast.worker.attempt import WorkerRuntime
from holdfast.worker.row_counts import first_job_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.process.local_run import LocalCluster


PLAIN_EVERY_S = 10.0
LIVE_EVERY_S = 0.5


@dataclass(frozen=True)
class Launch:
    """What is asked of a run.  `box`: it closes with the statistics of SeaTunnel."""

    file: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    job_id: str | None = None
    cores: int | None = None
    slots: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    plugins: Sequence[str] = ()
    lenient: bool = False
    allow_unset: bool = False
    allow_python: bool = False
    quiet: bool = False
    json_log: bool = False
    box: bool = False
    log_file: Path | None = None


class Signals:
    """While entered, a signal asks for the end of the job; until `cancel` is set there is none.

    Till then a signal is only noted, and `check` ends the command: to raise in the middle of
    anything would lose a process just started, or leave Python's own locks held.  Asked twice,
    the command ends at once, with `SystemExit`.
    """

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        self.asked = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Signals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """End the command if a signal has come meanwhile."""
        if self.asked:
            sys.exit(self.code())

    def code(self) -> int:
        """Return the exit code of a job that was cancelled."""
        return 128 + (self.asked or signal.SIGINT)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        asked, self.asked = self.asked, number
        if self.cancel is None:
            return
        if asked:
            sys.exit(128 + number)
        screen.print("Cancelling; what is not committed is dropped. Press again to leave at once.")
        self.cancel()


def launch(asked: Launch) -> int:
    """Run the job to its end and return the exit code.  A failed job raises its error."""
    with Signals() as signals:
        result = run_here(asked, signals)
    steps = () if asked.quiet or asked.json_log else steps_after_run(asked)
    show_closing(result, steps, box=asked.box)
    return _close(result, signals)


def run_here(asked: Launch, signals: Signals) -> RunResult:
    """Run the job to its end and return what became of it."""
    report = CheckReport(lenient=asked.lenient, allow_unset=asked.allow_unset)
    tree = read_tree(asked.file, asked.variables, report)
    number = asked.job_id or _new_id()
    logged = asked.log_file or state_dir.logs() / f"job-{number}.log"
    with ExitStack() as cleanup:
        cleanup.enter_context(logging_to(logged, terminal_json=asked.json_log))
        # The JVM boots while the file is checked, Python imports Spark, and a leader is elected.
        starting = session.begin(
            spark_settings(tree), asked.cores, logged.with_suffix(".spark.log")
        )
        cleanup.callback(session.stop, starting)
        signals.check()
        registry = Registry.load(asked.plugins)
        python = asked.allow_python
        job = checked(tree, asked.file, registry, report, name=asked.name, allow_python=python)
        admit(job, asked.slots, asked.tags)
        show_warnings(report.warnings)
        signals.check()
        embedded = _embedded(WorkerRuntime(registry, starting.session, starting.loss), asked.tags)
        embedded.start()
        cleanup.callback(embedded.close)
        signals.check()
        spec = JobSource(str(asked.file), tree, asked.name, asked.lenient, python)
        embedded.submit(spec, job, number)
        signals.cancel = embedded.cancel
        if signals.asked:
            embedded.cancel()
        try:
            spark, started_s = starting.session(), time.monotonic()
            event("job started", job_id=number, job=job.name, file=str(asked.file))
            outcome = follow(embedded, spark, quiet=asked.quiet or asked.json_log)
        except SystemExit:
            # Asked twice: with Spark gone, nothing that is left can take long.
            session.stop(starting)
            raise
        if outcome.error:
            log.error("job failed", exc_info=outcome.error)
    startup_cache.train_in_background_if_missing()
    seconds = time.monotonic() - started_s
    return result_of(job, registry, number, outcome, embedded.view(), logged, seconds)


def follow(embedded: "LocalCluster", spark: "SparkSession", *, quiet: bool) -> RunOutcome:
    """Wait for a job's end, showing progress, and log how it went."""
    with Progress(embedded, quiet=quiet) as progress:
        progress.wait()
    outcome, view = embedded.outcome(), embedded.view()
    first = first_job_s(spark) if outcome.status is RunStatus.FINISHED else None
    facts = {
        "read": view.read, "written": view.committed, "rejected": view.rejected,
        "first_spark_job": first,
    }  # fmt: skip
    event("job ended", status=outcome.status, **facts)
    return outcome


def _embedded(runner: WorkerRuntime, tags: Mapping[str, str]) -> "LocalCluster":
    """Return the control plane.  Its many modules are imported only now that Spark is starting."""
    module = importlib.import_module("holdfast.process.local_run")
    embedded: LocalCluster = module.LocalCluster(runner, _say, tags)
    return embedded


def _close(result: RunResult, signals: Signals) -> int:
    """Say what happened where it is not plain success; return the exit code."""
    if result.ok:
        return 0
    if result.status == RunStatus.CANCELED:
        screen.print(f"Job {result.job_id} was cancelled.", markup=False)
        return signals.code()
    error = result.error or HoldfastError("The job failed.", code="job.failed")
    error.add_note(f"The log of job {result.job_id} has more: {result.log}")
    raise error


def _say(message: str) -> None:
    event(message)
    screen.print(message, markup=False)


def _new_id() -> str:
    """Return an id that sorts by time and looks like SeaTunnel's: 18 digits."""
    return str(time.time_ns())[:18]


class WatchedRun(Protocol):
    """A job that can be watched."""

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; say whether it has ended."""

    def view(self) -> RunView:
        """Return how far it has come."""


class Progress:
    """Rows, rows a second and bytes for each table, while a job runs.

    A live table on a terminal; a line every ten seconds where output goes to a file.
    """

    def __init__(self, run: WatchedRun, *, quiet: bool) -> None:
        self.run = run
        self.quiet = quiet
        self.started_s = time.monotonic()
        self.said_s = self.started_s
        self.live = Live(console=screen, transient=True, refresh_per_second=4)

    def __enter__(self) -> "Progress":
        if screen.is_terminal and not self.quiet:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live.is_started:
            self.live.stop()

    def wait(self) -> None:
        """Show progress until the job has ended."""
        while not self.run.wait(LIVE_EVERY_S):
            if self.quiet:
                continue
            if self.live.is_started:
                self.live.update(self._grid(self.run.view()))
            elif time.monotonic() - self.said_s >= PLAIN_EVERY_S:
                self.said_s = time.monotonic()
                screen.print(self._line(self.run.view()))

    def _rate(self, rows: int) -> float:
        return rows / max(time.monotonic() - self.started_s, 0.001)

    def _line(self, now: RunView) -> str:
        read = now.read + now.moving.rows_in
        written = now.rows_written + now.moving.rows_out
        rejected = f" rejected {now.rejected:,}," if now.rejected else ""
        return (
            f"{now.name}: read {read:,} rows,{rejected} written {written:,},"
            f" committed {now.committed:,} ({self._rate(written):,.0f} rows/s)"
        )

    def _grid(self, now: RunView) -> Grid:
        grid = Grid(title=self._line(now), title_justify="left", box=None, pad_edge=False)
        for name in ("sink", "table", "rows", "rows/s", "size"):
            left = name in ("sink", "table")
            grid.add_column(name, justify="left" if left else "right", style="cyan")
        for (sink, table), (rows, size) in sorted(now.written.items()):
            grid.add_row(sink, table, f"{rows:,}", f"{self._rate(rows):,.0f}", human_bytes(size))
        moving = now.moving
        if moving.rows_out or moving.rows_in:
            rows = moving.rows_out or moving.rows_in
            moved = human_bytes(moving.bytes_out or moving.bytes_in)
            grid.add_row("", "moving now", f"{rows:,}", f"{self._rate(rows):,.0f}", moved)
        return grid
