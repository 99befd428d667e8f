"""Run a job in this process, from its file to its exit code."""

import importlib
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.closing import show_closing, steps_after_run
from holdfast.cli.job_file import checked, read_tree, spark_settings
from holdfast.cli.logs import event, log, logging_to
from holdfast.cli.signals import Signals
from holdfast.cli.terminal import Progress, screen, show_warnings
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError
from holdfast.files import state_dir
from holdfast.plan.record import JobSource
from holdfast.process.run_outcome import RunOutcome, RunStatus, admit
from holdfast.process.run_result import RunResult, result_of
from holdfast.spark import session, startup_cache
from holdfast.worker.attempt import WorkerRuntime
from holdfast.worker.row_counts import first_job_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.process.local_run import LocalCluster


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
