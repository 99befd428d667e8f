"""What the benchmarks share: rows to read, and a job file run as a user would run it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from benchmarks.measure import Cost, run
from holdfast.files import state_dir
from holdfast.spark import java

COLUMNS = {
    "id": "bigint", "customer": "int", "amount": "decimal(12,2)", "price": "double",
    "name": "string", "city": "string", "active": "boolean", "day": "date",
    "at": "timestamp", "score": "float",
}  # fmt: skip

SHARED = "HOLDFAST_BENCH_ROWS"
"""The variable that names a folder for rows which several benchmarks read."""

_COMMAND = [sys.executable, "-m", "holdfast"]


def warm_up() -> None:
    """Have the caches that make starts fast, as every machine has after its first jobs."""
    subprocess.run([*_COMMAND, "warmup"], check=True)


def make_rows(folder: Path, rows: int, *formats: str) -> None:
    """Have the data below `folder` in each format; of several benchmarks the first one makes it."""
    shared = os.environ.get(SHARED)
    home = Path(shared, str(rows)) if shared else folder
    missing = [f for f in formats if not (home / f"{f}.made").exists()]
    if missing:
        _make_rows(home, rows, missing)
    if home != folder:
        for form in formats:
            shutil.copytree(home / form, folder / form, copy_function=os.link)


def _make_rows(folder: Path, rows: int, formats: Sequence[str]) -> None:
    """Let a job of our own make the data."""
    print(f"Making {rows:,} rows of {len(COLUMNS)} columns ...", flush=True)
    folder.mkdir(exist_ok=True)
    fields = "\n".join(f'          {name} = "{kind}"' for name, kind in COLUMNS.items())
    sinks = "\n".join(
        f'  LocalFile {{ plugin_input = rows, path = "{folder}/{f}", file_format_type = {f} }}'
        for f in formats
    )
    job = folder / "make.conf"
    job.write_text(
        f"""env {{ job.mode = BATCH }}
source {{
  FakeSource {{
    plugin_output = rows, row.num = {rows // 2}, parallelism = 2, int.max = 100000
    schema {{ fields {{
{fields}
    }} }}
  }}
}}
sink {{
{sinks}
}}
"""
    )
    subprocess.run([*_COMMAND, "run", "--quiet", str(job)], check=True)
    for form in formats:
        (folder / f"{form}.made").touch()


def run_script(
    script: str, *arguments: str | Path, marks: Path, python: str | Path = sys.executable
) -> Cost:
    """Run the script that a user would write instead; it leaves its marks in a file."""
    path = Path(__file__).parent / script
    command = [*java_for_scripts(), str(python), str(path), *map(str, arguments)]
    return run(command, lambda: json.loads(marks.read_text()))


def java_for_scripts() -> list[str]:
    """Return what gives scripts a Java: nothing where the machine has one, else ours."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return []
    # As it is, Spark's launcher would ask it for a module that it does not have.
    return ["env", f"JAVA_HOME={java.submit_home(java.find(), state_dir.cache())}"]


def run_job(folder: Path, text: str, slices: bool = False) -> Cost:
    """Run a job file to its end; its log has the marks that a script sets itself.

    With `slices` it has a line for each slice, for which Spark is asked what the slice took.
    """
    log, job = folder / "holdfast.log", folder / "job.conf"
    log.unlink(missing_ok=True)
    job.write_text(text)
    level = ["env", f"HOLDFAST_LOG_LEVEL={'debug' if slices else 'info'}"]
    command = [*level, *_COMMAND, "run", "--quiet", "--log-file", str(log), str(job)]
    return run(command, lambda: _marks(log))


def moving_s(cost: Cost) -> float:
    """Seconds from a session that is up to the end of the job."""
    return cost.marks["ended"] - cost.marks["ready"]


def _marks(log: Path) -> dict[str, float]:
    events = {e["message"]: e for e in map(json.loads, log.read_text().splitlines())}
    at = {name: datetime.fromisoformat(e["time"]).timestamp() for name, e in events.items()}
    return {
        "ready": at["job started"],
        "ended": at["job ended"],
        "first_job": events["job ended"]["first_spark_job"],
    }
