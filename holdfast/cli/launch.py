"""Run a job in this process, from its file to its exit code."""

import importlib
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.load import checked, read_tree, spark_settings
from holdfast.cli.logs import event, log, log_to
from holdfast.cli.signals import Signals
from holdfast.cli.terminal import Progress, screen, show_warnings, statistics
from holdfast.connect.registry import Registry
from holdfast.connect.report import Report
from holdfast.errors import HoldfastError
from holdfast.node.outcome import Outcome, Status, admit
from holdfast.plan.spec import Spec
from holdfast.worker import aot, driver, home
from holdfast.worker.attempt import Runner
from holdfast.worker.meter import first_job_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.node.embedded import Embedded


@dataclass(frozen=True)
class Launch:
    """What the command line says about a run."""

    file: Path
    variables: Mapping[str, str]
    name: str | None
    job_id: str | None
    cores: int | None
    slots: int | None
    tags: Mapping[str, str]
    plugins: Sequence[str]
    lenient: bool
    allow_python: bool
    quiet: bool
    json_log: bool
    log_file: Path | None


def launch(asked: Launch) -> int:
    """Run the job to its end and return the exit code.  A failed job raises its error."""
    report = Report(lenient=asked.lenient)
    tree = read_tree(asked.file, asked.variables, report)
    number = asked.job_id or _new_id()
    logged = asked.log_file or home.logs() / f"job-{number}.log"
    log_to(logged, terminal_json=asked.json_log)
    with ExitStack() as cleanup:
        signals = cleanup.enter_context(Signals())
        # The JVM boots while the file is checked, Python imports Spark, and a leader is elected.
        starting = driver.begin(spark_settings(tree), asked.cores, logged.with_suffix(".spark.log"))
        cleanup.callback(driver.stop, starting)
        signals.check()
        registry = Registry.load(asked.plugins)
        python = asked.allow_python
        job = checked(tree, asked.file, registry, report, name=asked.name, allow_python=python)
        admit(job, asked.slots, asked.tags)
        show_warnings(report.warnings)
        signals.check()
        embedded = _embedded(Runner(registry, starting.session, starting.loss), asked.tags)
        embedded.start()
        cleanup.callback(embedded.close)
        signals.check()
        spec = Spec(str(asked.file), tree, asked.name, asked.lenient, python)
        embedded.submit(spec, job, number)
        signals.cancel = embedded.cancel
        if signals.asked:
            embedded.cancel()
        try:
            spark = starting.session()
            event("job started", job_id=number, job=job.name, file=str(asked.file))
            outcome = follow(embedded, spark, quiet=asked.quiet or asked.json_log)
        except SystemExit:
            # Asked twice: with Spark gone, nothing that is left can take long.
            driver.stop(starting)
            raise
    aot.train_in_background_if_missing()
    return _close(outcome, signals, number, logged)


def follow(embedded: "Embedded", spark: "SparkSession", *, quiet: bool) -> Outcome:
    """Wait for a job's end, showing progress, and say how it went."""
    started = datetime.now()
    with Progress(embedded, quiet=quiet) as progress:
        progress.wait()
    outcome, view = embedded.outcome(), embedded.view()
    written = view.committed
    lost = view.rows_written - written if outcome.status is Status.FAILED else 0
    table = statistics(started, datetime.now(), view.read, written, max(0, lost), view.rejected)
    screen.print(table, markup=False)
    first = first_job_s(spark) if outcome.status is Status.FINISHED else None
    facts = {
        "read": view.read, "written": written, "rejected": view.rejected, "first_spark_job": first,
    }  # fmt: skip
    event("job ended", status=outcome.status, **facts)
    return outcome


def _embedded(runner: Runner, tags: Mapping[str, str]) -> "Embedded":
    """Return the control plane.  Its many modules are imported only now that Spark is starting."""
    module = importlib.import_module("holdfast.node.embedded")
    embedded: Embedded = module.Embedded(runner, _say, tags)
    return embedded


def _close(outcome: Outcome, signals: Signals, job_id: str, logged: Path) -> int:
    """Say what happened where it is not plain success; return the exit code."""
    if outcome.status is Status.FINISHED:
        return 0
    if outcome.status is Status.CANCELED:
        screen.print(f"Job {job_id} was cancelled.", markup=False)
        return signals.code()
    log.error("job failed", exc_info=outcome.error)
    screen.print(f"Job {job_id} failed. Log: {logged}", markup=False)
    raise outcome.error or HoldfastError(f"Job {job_id} failed.", code="job.failed")


def _say(message: str) -> None:
    event(message)
    screen.print(message, markup=False)


def _new_id() -> str:
    """Return an id that sorts by time and looks like SeaTunnel's: 18 digits."""
    return str(time.time_ns())[:18]
