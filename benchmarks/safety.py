"""What checkpoints cost: the same job with one each second, one in five seconds, and none.

Without them a batch job is one Spark job over all files; with them it is many slices, each staged
by itself, and every checkpoint is written down and committed.  Runs are interleaved, each round in
the other order, and the fastest ones are compared: what else the machine does can only slow a run,
and by more than what is looked for.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
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
ROUNDS = int(os.environ.get("ROUNDS", 3))
INTERVALS = {"none": 0, "1 s": 1000, "5 s": 5000}
SELDOM = {"5 s": 1}
"""Intervals without a bar get fewer rounds."""
COST_MOST = 0.05


@dataclass(frozen=True)
class Run:
    """One run: what it cost, and CPU seconds by what the JVM's threads are for."""

    cost: Cost
    threads: Mapping[str, float]


@dataclass(frozen=True)
class Slices:
    """What the slices of a run took, which was asked in a run of its own."""

    count: int
    took_s: float
    spark_s: float

    def columns(self) -> Row:
        """Return what the table has of them."""
        return {
            "slices": self.count,
            "a slice, ms": self.took_s * 1000 / self.count,
            "of it outside Spark, ms": (self.took_s - self.spark_s) * 1000 / self.count,
        }


def main(results: Path) -> bool:
    """Run the job with each interval, print the table, write JSON; say if the bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        _make_files(folder / "csv")
        taken: dict[str, list[Run]] = {name: [] for name in INTERVALS}
        for number in range(ROUNDS):
            due = {n: ms for n, ms in INTERVALS.items() if number < SELDOM.get(n, ROUNDS)}
            for name in list(due) if number % 2 == 0 else reversed(due):
                taken[name].append(_run(folder, due[name]))
            said = ", ".join(f"{n} {moving_s(taken[n][-1].cost):.1f} s" for n in due)
            print(f"round {number + 1}, interval: {said}", flush=True)
        slices = {name: _slices(folder, INTERVALS[name]) for name in ("1 s",)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_report(taken, slices), results)


def _make_files(folder: Path) -> None:
    folder.mkdir()
    for number in range(FILES):
        file = folder / f"{number:04d}.csv"
        if number < DIFFERENT:
            write_file(file, number, ROWS_A_FILE)
        else:
            file.hardlink_to(folder / f"{number % DIFFERENT:04d}.csv")


def _run(folder: Path, interval_ms: int, slices: bool = False) -> Run:
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
        cost = run_job(folder, text, slices)
    rows = sum(pq.read_metadata(f).num_rows for f in out.glob("*.parquet"))
    assert rows == FILES * ROWS_A_FILE, f"{rows} rows of {FILES * ROWS_A_FILE}"
    return Run(cost, threads.spent_s())


def _slices(folder: Path, interval_ms: int) -> Slices:
    _run(folder, interval_ms, slices=True)
    lines = map(json.loads, (folder / "holdfast.log").read_text().splitlines())
    slices = [e for e in lines if e["message"] == "slice staged"]
    took_s, spark_s = (sum(s[what] for s in slices) for what in ("took_s", "spark_s"))
    return Slices(len(slices), took_s, spark_s)


def lost_share(without_s: Sequence[float], with_s: Sequence[float]) -> float:
    """Return the share of throughput that is lost, by the fastest run of each."""
    return 1 - min(without_s) / min(with_s)


def lost_in_rounds(without_s: Sequence[float], with_s: Sequence[float]) -> float:
    """Return the share that is lost in the middle one of the rounds, each judged by itself."""
    pairs = zip(without_s, with_s, strict=False)
    return middle([1 - alone / checked for alone, checked in pairs])


def _report(taken: dict[str, list[Run]], slices: Mapping[str, Slices]) -> Report:
    taken_s = {name: [moving_s(r.cost) for r in runs] for name, runs in taken.items()}
    speed = [(name, FILES * ROWS_A_FILE / min(all_s)) for name, all_s in taken_s.items()]
    lost = lost_share(taken_s["none"], taken_s["1 s"])
    bar = Bar("share of throughput lost at 1 s", lost, COST_MOST, "most")
    return Report(
        name="safety",
        question="What do checkpoints cost a job, against the same job without any?",
        data=f"{FILES} CSV files of {ROWS_A_FILE:,} rows x {len(COLUMNS)} columns, into Parquet"
        f" files; the fastest of {ROUNDS} interleaved runs",
        rounds=1,
        peers=holdfast(),
        table=[_row(name, runs, taken_s, slices.get(name)) for name, runs in taken.items()],
        bars=[bar],
        profile="" if bar.met else "\n".join(map(_profile, taken, taken.values())),
        plots=[Plot("Rows a second by checkpoint interval", "bars", "rows/s", {"Holdfast": speed})],
        notes=(
            "wall s and CPU s: from a session that is up to the end of the job.  A slice: from the"
            " end of the one before, in a run of its own.  Outside Spark: time in a slice"
            " with no Spark job running.  Lost: the fastest run against the fastest without"
            " checkpoints; by rounds: against the run without checkpoints of the same round, in the"
            " middle one of the rounds.",
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


def _row(
    name: str, runs: list[Run], taken_s: Mapping[str, list[float]], slices: Slices | None
) -> Row:
    none_s, own_s = taken_s["none"], taken_s[name]
    row = {
        "checkpoint each": name,
        "rounds": len(runs),
        "rows/s": FILES * ROWS_A_FILE / min(own_s),
        "wall s": min(own_s),
        "CPU s": min(r.cost.cpu_between("ready", "ended") for r in runs),
        "throughput lost": lost_share(none_s, own_s),
        "lost by rounds": lost_in_rounds(none_s, own_s),
    }
    return {**row, **(slices.columns() if slices else {})}
