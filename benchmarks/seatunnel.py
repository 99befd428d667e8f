"""SeaTunnel itself, where SEATUNNEL_HOME names an installation: our job files on its own engine.

It is not on PyPI, so nothing here fetches it.  Its client prints when a job began and ended, in
whole seconds, and how many rows were written; those are its marks.
"""

import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from benchmarks.measure import Cost, run

VARIABLE = "SEATUNNEL_HOME"
ABSENT = f"not run: {VARIABLE} names no installation"

_FIGURE = re.compile(r"^.*?(Start Time|End Time|Total Write Count)\s*:\s*(.+?)\s*$", re.MULTILINE)
_MOMENT = "%Y-%m-%d %H:%M:%S"


def named(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the installation that the environment names.  One that cannot work is refused now,
    before anything is measured."""
    value = environ.get(VARIABLE)
    if not value:
        return None
    home = Path(value)
    lacking = [
        what
        for what, pattern in (
            ("bin/seatunnel.sh", "bin/seatunnel.sh"),
            ("the LocalFile connector", "connectors/connector-file-local-*.jar"),
            ("the Jdbc connector", "connectors/connector-jdbc-*.jar"),
            ("PostgreSQL's Java driver in lib", "lib/postgresql*.jar"),
        )
        if not any(home.glob(pattern))
    ]
    if lacking:
        raise SystemExit(
            f"{VARIABLE} = {home} cannot run the benchmark: it lacks {', '.join(lacking)}."
            f" Add what is lacking, or unset {VARIABLE}."
        )
    return home


def version(home: Path) -> str:
    """Return an installation's version, which its connectors carry in their names."""
    jar = next(home.glob("connectors/connector-file-local-*.jar"))
    return jar.stem.removeprefix("connector-file-local-")


def run_job(home: Path, folder: Path, text: str, rows: int) -> Cost:
    """Run a job file to its end on the engine that the installation brings, in one process."""
    job, log = folder / "seatunnel.conf", folder / "seatunnel.log"
    cores = len(os.sched_getaffinity(0))
    job.write_text(text.replace("job.mode = BATCH", f"job.mode = BATCH, parallelism = {cores}"))
    client = [str(home / "bin" / "seatunnel.sh"), "--config", str(job), "-m", "local"]
    keep = ["bash", "-o", "pipefail", "-c", '"$@" 2>&1 | tee "$0"', str(log)]
    return run([*keep, *client], lambda: marks(log.read_text(), rows))


def marks(said: str, rows: int) -> dict[str, float]:
    """Return when a job began and ended, from what the client printed about it."""
    figures = dict(_FIGURE.findall(said))
    if figures.keys() != {"Start Time", "End Time", "Total Write Count"}:
        raise SystemExit(f"SeaTunnel printed no statistics of its job:\n{said[-3000:]}")
    written = int(figures["Total Write Count"])
    assert written == rows, f"SeaTunnel wrote {written} rows of {rows}"
    return {
        "ready": datetime.strptime(figures["Start Time"], _MOMENT).timestamp(),
        "ended": datetime.strptime(figures["End Time"], _MOMENT).timestamp(),
    }
