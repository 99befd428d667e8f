"""Batch copies of ten million rows: a job file against the PySpark script a user would write.

Two figures for each: rows a second once the session is up, and the time from the command to its
first Spark job.  Runs are interleaved, so that what else the machine does hits both alike.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.job import COLUMNS, make_rows, moving_s, run_job, run_script, warm_up
from benchmarks.measure import Cost, middle

ROWS = int(os.environ.get("ROWS", 10_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 3))
THROUGHPUT_LEAST = 0.95
START_MOST = 0.7


def main(results: Path) -> bool:
    """Run all copies, print the table, write JSON; say whether every bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        make_rows(folder, ROWS, "parquet", "csv")
        rows = [_compare(form, folder) for form in ("parquet", "csv")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (results / "copy.json").write_text(json.dumps(rows, indent=1))
    _show(rows)
    return all(r["throughput"] >= THROUGHPUT_LEAST and r["start"] <= START_MOST for r in rows)


def _compare(form: str, folder: Path) -> dict[str, Any]:
    ours, theirs = [], []
    for round_number in range(ROUNDS):
        theirs.append(_script(form, folder))
        ours.append(_holdfast(form, folder))
        print(
            f"{form} -> parquet, round {round_number + 1}: script {moving_s(theirs[-1]):.1f} s,"
            f" holdfast {moving_s(ours[-1]):.1f} s",
            flush=True,
        )
    copy = {
        "script": middle([moving_s(c) for c in theirs]),
        "ours": middle([moving_s(c) for c in ours]),
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


def _script(form: str, folder: Path) -> Cost:
    target, marks = folder / "script-out", folder / "marks.json"
    shutil.rmtree(target, ignore_errors=True)
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return run_script("plain_copy.py", form, folder / form, target, marks, schema, marks=marks)


def _holdfast(form: str, folder: Path) -> Cost:
    target = folder / "holdfast-out"
    shutil.rmtree(target, ignore_errors=True)
    fields = " ".join(f'{name} = "{kind}",' for name, kind in COLUMNS.items())
    schema = f"schema {{ fields {{ {fields} }} }}" if form == "csv" else ""
    return run_job(
        folder,
        f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{folder / form}", file_format_type = {form}
  {schema} }} }}
sink {{ LocalFile {{ path = "{target}", file_format_type = parquet, compress_codec = snappy }} }}
""",
    )


def _show(rows: list[dict[str, Any]]) -> None:
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
