"""Batch copies of ten million rows: a job file against the PySpark script a user would write.

Two figures for each: rows a second once the session is up, and the time from the command to its
first Spark job.  Runs are interleaved, so that what else the machine does hits both alike.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from benchmarks.measure import Cost, middle, run

ROWS = int(os.environ.get("ROWS", 10_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 3))
COLUMNS = {
    "id": "bigint", "customer": "int", "amount": "decimal(12,2)", "price": "double",
    "name": "string", "city": "string", "active": "boolean", "day": "date",
    "at": "timestamp", "score": "float",
}  # fmt: skip
THROUGHPUT_LEAST = 0.95
START_MOST = 0.7


def main(results: Path) -> bool:
    """Run all copies, print the table, write JSON; say whether every bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        subprocess.run([sys.executable, "-m", "holdfast", "warmup"], check=True)
        print(f"Making {ROWS:,} rows of {len(COLUMNS)} columns ...", flush=True)
        _make(folder)
        rows = [_compare(form, folder) for form in ("parquet", "csv")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (results / "copy.json").write_text(json.dumps(rows, indent=1))
    _show(rows)
    return all(r["throughput"] >= THROUGHPUT_LEAST and r["start"] <= START_MOST for r in rows)


def _make(folder: Path) -> None:
    """Let a job of our own make the data, once, in both formats."""
    fields = "\n".join(f'          {name} = "{kind}"' for name, kind in COLUMNS.items())
    sinks = "\n".join(
        f'  LocalFile {{ plugin_input = rows, path = "{folder}/{f}", file_format_type = {f} }}'
        for f in ("parquet", "csv")
    )
    job = folder / "make.conf"
    job.write_text(
        f"""env {{ job.mode = BATCH }}
source {{
  FakeSource {{
    plugin_output = rows, row.num = {ROWS // 2}, parallelism = 2, int.max = 100000
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
    subprocess.run([sys.executable, "-m", "holdfast", "run", "--quiet", str(job)], check=True)


def _compare(form: str, folder: Path) -> dict[str, float | str]:
    ours, theirs = [], []
    for round_number in range(ROUNDS):
        theirs.append(_script(form, folder))
        ours.append(_holdfast(form, folder))
        print(
            f"{form} -> parquet, round {round_number + 1}: script {_copy_s(theirs[-1]):.1f} s,"
            f" holdfast {_copy_s(ours[-1]):.1f} s",
            flush=True,
        )
    copy = {
        "script": middle([_copy_s(c) for c in theirs]),
        "ours": middle([_copy_s(c) for c in ours]),
    }
    first = [middle([c.since_start("first_job") for c in side]) for side in (theirs, ours)]
    cpu = [middle([c.cpu_s for c in side]) for side in (theirs, ours)]
    return {
        "copy": f"{form} -> parquet",
        "script_rows_s": ROWS / copy["script"],
        "holdfast_rows_s": ROWS / copy["ours"],
        "throughput": copy["script"] / copy["ours"],
        "script_first_job_s": first[0],
        "holdfast_first_job_s": first[1],
        "start": first[1] / first[0],
        "script_cpu_s": cpu[0],
        "holdfast_cpu_s": cpu[1],
    }


def _copy_s(cost: Cost) -> float:
    return cost.marks["ended"] - cost.marks["ready"]


def _script(form: str, folder: Path) -> Cost:
    target, marks = folder / "script-out", folder / "marks.json"
    shutil.rmtree(target, ignore_errors=True)
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    command = [sys.executable, str(Path(__file__).with_name("plain_copy.py"))]
    arguments = [form, str(folder / form), str(target), str(marks), schema]
    return run([*command, *arguments], lambda: json.loads(marks.read_text()))


def _holdfast(form: str, folder: Path) -> Cost:
    target, log = folder / "holdfast-out", folder / "holdfast.log"
    log.unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    fields = " ".join(f'{name} = "{kind}",' for name, kind in COLUMNS.items())
    schema = f"schema {{ fields {{ {fields} }} }}" if form == "csv" else ""
    job = folder / f"{form}.conf"
    job.write_text(
        f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{folder / form}", file_format_type = {form}
  {schema} }} }}
sink {{ LocalFile {{ path = "{target}", file_format_type = parquet, compress_codec = snappy }} }}
"""
    )
    command = [sys.executable, "-m", "holdfast", "run", "--quiet", "--log-file", str(log), str(job)]
    return run(command, lambda: _marks(log))


def _marks(log: Path) -> dict[str, float]:
    """Read the same marks from the log that every run writes."""
    events = {e["message"]: e for e in map(json.loads, log.read_text().splitlines())}
    at = {name: datetime.fromisoformat(e["time"]).timestamp() for name, e in events.items()}
    return {
        "ready": at["job started"],
        "ended": at["job ended"],
        "first_job": events["job ended"]["first_spark_job"],
    }


def _show(rows: list[dict[str, float | str]]) -> None:
    print(f"\n{ROWS:,} rows x {len(COLUMNS)} columns, medians of {ROUNDS} interleaved rounds")
    head = (
        "copy",
        "rows/s script",
        "rows/s holdfast",
        "ratio",
        "first job script",
        "holdfast",
        "ratio",
    )
    print("{:<20}{:>14}{:>16}{:>7}{:>18}{:>10}{:>7}".format(*head))
    for r in rows:
        print(
            f"{r['copy']:<20}{r['script_rows_s']:>14,.0f}{r['holdfast_rows_s']:>16,.0f}"
            f"{r['throughput']:>7.2f}{r['script_first_job_s']:>16.2f} s"
            f"{r['holdfast_first_job_s']:>8.2f} s{r['start']:>7.2f}"
        )
    print(f"bars: throughput at least {THROUGHPUT_LEAST}, first job at most {START_MOST}")
