"""Run a suite of SeaTunnel job files and compare how each ends with what its own test expects.

    python -m tests.compat.run DIRECTORY [part of a file name]

One Spark session serves all of them.  A batch job must end with the exit code expected; a
streaming one must move rows, then cancel cleanly.
"""

import contextlib
import io
import logging
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.cli.job_file import read_tree
from holdfast.cli.run import report_for
from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError
from holdfast.model.job import JobPlan, Mode
from holdfast.plan.record import JobSource
from holdfast.process.local_run import LocalCluster
from holdfast.process.run_outcome import RunOutcome, RunStatus, admit
from holdfast.spark import session as driver
from holdfast.worker.attempt import WorkerRuntime
from tests.compat.suite import Case, deferred, load_cases, set_up

BATCH_S_MAX = 240.0
STREAM_S_MAX = 60.0
CANCEL_S_MAX = 20.0


@dataclass(frozen=True)
class Ended:
    """How a job file ended: its exit code, a reason if it failed, and what it took."""

    code: int
    reason: str
    seconds: float
    note: str = ""


def main() -> int:
    """Run the suite named on the command line; 0 if every file ends as expected."""
    suite = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/compat").resolve()
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    if not (suite / "expect.json").is_file():
        print(f"compat: {suite} has no expect.json; give a directory with jobs/ and expect.json.")
        return 2
    cases = [c for c in load_cases(suite) if only in str(c.path)]
    scratch = Path(tempfile.mkdtemp(prefix="holdfast-compat-"))
    data = scratch / "seatunnel"
    shutil.copytree(suite / "seatunnel", data)
    cases.sort(key=lambda c: deferred(c, data))
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    starting = driver.begin({}, None, scratch / "spark.log")
    try:
        session, registry = starting.session(), Registry.load()
        ended = [(c, run_case(c, session, registry, scratch, data)) for c in cases]
    finally:
        driver.stop(starting)
        shutil.rmtree(scratch, ignore_errors=True)
    return show(ended)


def run_case(
    case: Case, spark: SparkSession, registry: Registry, scratch: Path, data: Path
) -> Ended:
    """Run one job file as a user would, and say how it ended."""
    started = time.monotonic()
    copy = set_up(case, scratch, data)
    note = ""
    try:
        spec, job, warnings = load(copy, case, registry)
        note = about_unknown(warnings)
        admit(job, case.slots, dict(job.tag_filter) if case.tagged else {})
        outcome = run(spec, job, case, WorkerRuntime(registry, lambda: spark))
        code = {RunStatus.FINISHED: 0, RunStatus.CANCELED: 0}.get(outcome.status, 1)
        reason = str(outcome.error) if code else ""
        if outcome.status is RunStatus.CANCELED and not case.streaming:
            code, reason = 1, "still running when its time was up"
    except HoldfastError as error:
        code, reason = 1, str(error)
    seconds = time.monotonic() - started
    ended = Ended(code, reason.splitlines()[0] if reason else "", seconds, note)
    print(
        f"{'ok  ' if as_expected(case, ended) else 'MISS'} {seconds:5.1f} s  {case.name}",
        flush=True,
    )
    return ended


def load(copy: Path, case: Case, registry: Registry) -> tuple[JobSource, JobPlan, list[str]]:
    """Parse and check a job file as it comes through SeaTunnel's flag; return its warnings too."""
    report = report_for(copy, lenient=False, allow_unset=False)
    tree = read_tree(copy, case.variables, report)
    spec = JobSource(str(copy), tree, lenient=report.lenient)
    return spec, spec.job(registry, report), [w.message for w in report.warnings]


def about_unknown(warnings: Sequence[str]) -> str:
    """Say how many options of a file nobody knows, or nothing."""
    unknown = sum("unknown option" in warning for warning in warnings)
    return f"warned of {unknown} unknown option(s), mistakes by our own flags" if unknown else ""


def run(spec: JobSource, job: JobPlan, case: Case, runner: WorkerRuntime) -> RunOutcome:
    """Run a job until it ends; a streaming one until rows have moved, then cancel it."""
    number = str(time.time_ns())[:18]
    said = io.StringIO()
    embedded = LocalCluster(runner, lambda message: None, dict(job.tag_filter))
    try:
        with contextlib.redirect_stdout(said):
            embedded.start()
            embedded.submit(spec, job, number)
            return watch(embedded, job, case, said)
    finally:
        embedded.close()


def watch(embedded: LocalCluster, job: JobPlan, case: Case, said: io.StringIO) -> RunOutcome:
    """Wait for what a case is to show, and return how it ended."""
    streams = case.streaming or job.mode is Mode.STREAMING
    deadline = time.monotonic() + (STREAM_S_MAX if streams else BATCH_S_MAX)
    while not embedded.wait(0.05) and time.monotonic() < deadline:
        # A sink that delays each row has moved some long before its first slice is done.
        if case.streaming and (embedded.view().written or "Row#" in said.getvalue()):
            break
    if embedded.wait(0):
        return embedded.outcome()
    moved = embedded.view().rows_written or "Row#" in said.getvalue()
    embedded.cancel()
    assert embedded.wait(CANCEL_S_MAX), f"{case.name} does not cancel"
    if case.streaming and not moved:
        raise HoldfastError(f"no row moved within {STREAM_S_MAX:.0f} s")
    return embedded.outcome()


def as_expected(case: Case, ended: Ended) -> bool:
    """Compare an exit code with `==0`, `!=0` or `==1`."""
    wanted = int(case.exit[2:])
    return (ended.code == wanted) == case.exit.startswith("==")


def show(ended: list[tuple[Case, Ended]]) -> int:
    """Print the table by group and the misses with their reasons."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for case, end in ended:
        groups[case.group].append(as_expected(case, end))
    print(f"\n{'group':<42}{'as expected':>12}")
    for group, good in sorted(groups.items()):
        print(f"{group:<42}{sum(good):>6} of {len(good):>2}")
    for case, end in ended:
        if not as_expected(case, end):
            print(f"miss: {case.path.name}: exit {end.code}, expected {case.exit}. {end.reason}")
    for case, end in ended:
        if end.note:
            print(f"note: {case.path.name}: {end.note}")
    good = sum(as_expected(c, e) for c, e in ended)
    print(f"{sum(e.seconds for _, e in ended):.0f} s in all")
    print(f"{good} of {len(ended)} as expected")
    return 0 if good == len(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
