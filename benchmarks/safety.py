"""What checkpoints cost: the same job with one each second, one in five seconds, and none.

Without them a batch job is one Spark job over all files; with them it is many slices, each staged
by itself, and every checkpoint is written down and committed.  Runs are interleaved, so that what
else the machine does hits all alike.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.arrivals import COLUMNS, write_file
from benchmarks.job import moving_s, run_job, warm_up
from benchmarks.measure import Cost, middle
from benchmarks.report import Bar, Plot, Report, Row, holdfast, publish
from benchmarks.threads import Threads

FILES = int(os.environ.get("FILES", 960))
DIFFERENT = 320
"""How many files differ; the others are further names of these."""
ROWS_A_FILE = 25_000
ROUNDS = int(os.environ.get("ROUNDS", 2))
INTERVALS = {"none": 0, "5 s": 5000, "1 s": 1000}
COST_MOST = 0.05


@dataclass(frozen=True)
class Run:
    """One run: what it cost, how many commits it made, and what its slices took."""

    cost: Cost
    slices: int
    slices_s: float
    spark_s: float
    threads: Mapping[str, float]
    """CPU seconds by what the JVM's threads are for."""


def main(results: Path) -> bool:
    """Run the job with each interval, print the table, write JSON; say if the bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        _make_files(folder / "csv")
        taken: dict[str, list[Run]] = {name: [] for name in INTERVALS}
        for round_number in range(ROUNDS):
            for name, interval_ms in INTERVALS.items():
                taken[name].append(_run(folder, interval_ms))
            said = ", ".join(f"{n} {moving_s(runs[-1].cost):.1f} s" for n, runs in taken.items())
            print(f"round {round_number + 1}, interval: {said}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_report(taken), results)


def _make_files(folder: Path) -> None:
    folder.mkdir()
    for number in range(FILES):
        file = folder / f"{number:04d}.csv"
        if number < DIFFERENT:
            write_file(file, number, ROWS_A_FILE)
        else:
            file.hardlink_to(folder / f"{number % DIFFERENT:04d}.csv")


def _run(folder: Path, interval_ms: int) -> Run:
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    os.sync()
    fields = " ".join(f'{name} = "{kind}",' for name, kind in COLUMNS.items())
    interval = f", checkpoint.interval = {interval_ms}" if interval_ms else ""
    text = f"""env {{ job.mode = BATCH{interval} }}
source {{ LocalFile {{ path = "{folder / "csv"}", file_format_type = csv
  schema {{ fields {{ {fields} }} }} }} }}
sink {{ LocalFile {{ path = "{out}", file_format_type = parquet }} }}
"""
    with Threads(os.getpid()) as threads:
        cost = run_job(folder, text)
    rows = sum(pq.read_metadata(f).num_rows for f in out.glob("*.parquet"))
    assert rows == FILES * ROWS_A_FILE, f"{rows} rows of {FILES * ROWS_A_FILE}"
    lines = map(json.loads, (folder / "holdfast.log").read_text().splitlines())
    slices = [e for e in lines if e["message"] == "slice staged"]
    took_s, spark_s = (sum(s[what] for s in slices) for what in ("took_s", "spark_s"))
    return Run(cost, len(slices), took_s, spark_s, threads.spent_s())


def _report(taken: dict[str, list[Run]]) -> Report:
    none_s = middle([moving_s(r.cost) for r in taken["none"]])
    lost = {n: 1 - none_s / middle([moving_s(r.cost) for r in runs]) for n, runs in taken.items()}
    speed = [
        (name, FILES * ROWS_A_FILE / middle([moving_s(r.cost) for r in runs]))
        for name, runs in taken.items()
    ]
    bar = Bar("share of throughput lost at 1 s", lost["1 s"], COST_MOST, "most")
    return Report(
        name="safety",
        question="What do checkpoints cost a job, against the same job without any?",
        data=f"{FILES} CSV files of {ROWS_A_FILE:,} rows x {len(COLUMNS)} columns, into Parquet"
        " files",
        rounds=ROUNDS,
        peers=holdfast(),
        table=[_row(name, runs, lost[name]) for name, runs in taken.items()],
        bars=[bar],
        profile="" if bar.met else "\n".join(map(_profile, taken, taken.values())),
        plots=[Plot("Rows a second by checkpoint interval", "bars", "rows/s", {"Holdfast": speed})],
        notes=(
            "wall s and CPU s: from a session that is up to the end of the job.  A slice: from the"
            " end of the one before.  Outside Spark: what of it passes while no Spark job runs.",
        ),
    )


def _profile(name: str, runs: list[Run]) -> str:
    """Say what threads spent their time on."""
    kinds = runs[0].threads
    jvm = {kind: middle([r.threads[kind] for r in runs]) for kind in kinds}
    rest_s = middle([r.cost.cpu_s - sum(r.threads.values()) for r in runs])
    whose = ", ".join(f"{kind} {cpu_s:.1f}" for kind, cpu_s in jvm.items())
    said = f"CPU seconds, checkpoint each {name}, starts included"
    return f"{said}: {whose}, Python and the rest {rest_s:.1f}"


def _row(name: str, runs: list[Run], lost: float) -> Row:
    wall_s = middle([moving_s(r.cost) for r in runs])
    return {
        "checkpoint each": name,
        "rows/s": FILES * ROWS_A_FILE / wall_s,
        "wall s": wall_s,
        "CPU s": middle([r.cost.cpu_between("ready", "ended") for r in runs]),
        "throughput lost": lost,
        "slices": middle([float(r.slices) for r in runs]),
        "a slice, ms": middle([r.slices_s * 1000 / r.slices for r in runs]),
        "of it outside Spark, ms": middle(
            [(r.slices_s - r.spark_s) * 1000 / r.slices for r in runs]
        ),
    }
