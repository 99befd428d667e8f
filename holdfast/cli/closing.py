"""The last lines of a run: how it ended, where its rows are, and what to try next."""

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.terminal import screen, statistics
from holdfast.process.run_result import RunResult

if TYPE_CHECKING:
    from holdfast.cli.launch import Launch

READERS = {
    "_delta_log": "import deltalake as d; print(d.DeltaTable({0!r}).to_pandas())",
    "*.parquet": "import pandas as p; print(p.read_parquet({0!r}))",
}
"""What shows rows of a folder, by what is in it; the libraries come with Holdfast."""
TEXTS = ("*.csv", "*.json", "*.txt")
LONG = 60
Steps = Sequence[tuple[str, str]]


def show_closing(result: RunResult, steps: Steps, *, box: bool) -> None:
    """Say how a job ended.  `box`: with the statistics that SeaTunnel's users know and grep."""
    if box:
        ended = datetime.now()
        lost = sum(t.rows for t in result.tables) - result.written
        failed = max(0, lost) if result.status == "FAILED" else 0
        started = ended - timedelta(seconds=result.seconds)
        table = statistics(started, ended, result.read, result.written, failed, result.rejected)
        screen.print(table, markup=False)
    else:
        screen.print(
            f"\nJob {result.name} is {result.status} after {result.seconds:.0f} s: read"
            f" {result.read:,} rows, wrote {result.written:,}, rejected {result.rejected:,}.",
            markup=False,
        )
    show_places(result)
    if result.ok and steps:
        _show_steps([*steps, *_looks(result)])


def show_places(result: RunResult) -> None:
    """Say where the rows of a run are, sink by sink, and how many it left out."""
    if not result.tables or not (result.ok or result.written):
        return
    cells = [("rows", "table", "sink", "where")]
    cells += [
        (f"{t.rows:,}", t.table, t.sink.partition("-")[2] or t.sink, t.destination or "?")
        for t in result.tables
    ]
    rows, tables, sinks = (max(len(cell[n]) for cell in cells) for n in (0, 1, 2))
    screen.print()
    for count, table, sink, where in cells:  # a line each, however long: people and grep read it
        line = f"{count:>{rows}}  {table:<{tables}}  {sink:<{sinks}}  {where}"
        screen.print(line, markup=False)
    if not result.ok:
        screen.print(f"{result.written:,} of these rows are visible; the rest never will be.")
    if result.rejected:
        screen.print(
            f"{result.rejected:,} rows were left out: row_error_handle_way = SKIP. FAIL names the"
            " first of them."
        )


def steps_after_run(asked: "Launch") -> Steps:
    """Return what to try after a run in one process; each step takes the file as the run did."""
    sent = _as_given(asked)
    here = " ".join([sent, *(f"--plugin {shlex.quote(one)}" for one in asked.plugins)])
    return (
        (f"holdfast plan {here}", "draws the job, with its tables and columns"),
        (f"holdfast run {here}", "once more; data_save_mode says whether rows are added"),
        (f"holdfast submit {sent}", "the same on a cluster (holdfast master, holdfast worker)"),
    )


def _as_given(asked: "Launch") -> str:
    """Return the file with the flags without which it would not be the same job."""
    words = ["-c"] if asked.box else ["--lenient"] if asked.lenient else []
    words.append(shlex.quote(str(asked.file)))
    words += [f"-i {name}=..." for name in asked.variables]  # a value may be a secret
    words += ["--allow-unset"] if asked.allow_unset else []
    words += ["--allow-python"] if asked.allow_python else []
    return " ".join(words)


def steps_after_submit(job_id: str, master: str) -> Steps:
    """Return what to try after a job of a cluster."""
    return (
        (f"holdfast status {job_id}", "its checkpoints, tasks and counters"),
        (f"holdfast logs {job_id}", "what the masters logged about it"),
        (f"{master}/#/jobs/{job_id}", "its page"),
    )


def _looks(result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield what shows the rows of the first table that is a folder of this machine."""
    folders = [t.destination for t in result.tables if t.rows and Path(t.destination).is_dir()]
    for folder in folders[:1]:
        here = _from_here(Path(folder))
        for pattern, code in READERS.items():
            if any(here.glob(pattern)) and not set('"$`\\') & set(str(here)):
                yield f'{_python()} -c "{code.format(str(here))}"', "shows rows"
                return
        text = next((p for p in TEXTS if any(here.glob(p))), "")
        if text:
            yield f"head {shlex.quote(str(here))}/{text}", "shows rows"


def _python() -> str:
    """Return how this Python, which has the libraries, is called from here."""
    found = shutil.which("python")
    if found == sys.executable:
        return "python"
    return shlex.quote(str(_from_here(Path(sys.executable))))


def _from_here(path: Path) -> Path:
    """Return the path as one types it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _show_steps(steps: Steps) -> None:
    width = max((len(command) for command, _ in steps if len(command) < LONG), default=0)
    screen.print("\nNext:")
    for command, why in steps:
        screen.print(f"  {command:<{width}}  {why}", markup=False)
