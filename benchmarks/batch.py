"""Batch copies of files: a job file against what people would use instead.

Rows into PostgreSQL are in `jdbc`.  The figure is rows a second from a session that is up to the
end of the job; the time from the command to its first Spark job is given too.  Runs are
interleaved, so that what else the machine does hits all alike.  Every run's rows are counted where
they arrived.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import quoted, report, seatunnel
from benchmarks.job import COLUMNS, make_rows, run_job, run_script, warm_up
from benchmarks.measure import Cost
from benchmarks.peer import NAMES, python_of
from benchmarks.rivals import (
    DLT,
    DLT_ARROW,
    NO_JAR,
    OURS,
    SCRIPT,
    Race,
    absent,
    both,
    run_race,
)

ROWS = int(os.environ.get("ROWS", 10_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 2))
CSV_SHARE = 5
"""CSV is copied to CSV with one row of so many: it takes that much longer."""

FEW_SHARE = 100
"""dlt's own readers, which are slow, get one row of so many, and one round."""

BOUNDS = {SCRIPT: 0.95, DLT: 1.0, DLT_ARROW: 1.0, "PyFlink": 1.0, "SeaTunnel": 1.0}
"""How many rows Holdfast moves, at least, while a peer moves one."""
START_MOST = 0.7

SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
FEW = "few"
NO_SOURCE = "not there: no source reads databases yet"


@dataclass(frozen=True)
class Copy:
    """Rows of files in one format, written as files in another."""

    source: str
    target: str
    folder: Path
    rows: int

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


Writers = dict[str, Callable[[Path], Cost]]
"""How each who takes part in a copy writes into a folder."""


def main(results: Path) -> bool:
    """Run all copies, publish the report; say whether every bar was met."""
    home = seatunnel.named()
    pythons = {name: python_of(name) for name in NAMES}
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        make_rows(folder, ROWS, "parquet", "csv")
        make_rows(folder / FEW, ROWS // FEW_SHARE, "parquet", "csv")
        copies = _copies(folder)
        sizes = [_megabytes(copy.folder) for copy in copies[:2]]
        races = [_race(copy, _writers(copy, folder, pythons, home)) for copy in copies]
        others = quoted.races(folder / "csv", folder, ROWS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    data = (
        f"rows of {len(COLUMNS)} columns, all values random: {copies[0].rows:,} in"
        f" {sizes[0]:,.0f} MB of Parquet with snappy, or {sizes[1]:,.0f} MB of CSV;"
        f" {copies[2].rows:,} of them are copied from CSV to CSV"
    )
    behind = [race for race in races if not all(bar.met for bar in bars_of(race))]
    profile = "\n".join(line for race in behind for line in race.profile())
    made = report_of(races, data, _peers(pythons, home), profile, others)
    return report.publish(made, results)


def _copies(folder: Path) -> list[Copy]:
    csv = folder / "csv-part"
    some = _link_part(folder / "csv", csv, ROWS // CSV_SHARE)
    return [
        Copy("parquet", "parquet", folder / "parquet", ROWS),
        Copy("csv", "parquet", folder / "csv", ROWS),
        Copy("csv", "csv", csv, some),
    ]


def _link_part(whole: Path, part: Path, rows: int) -> int:
    """Link files until they have this many rows; return how many they have."""
    part.mkdir()
    linked = 0
    for file in sorted(whole.glob("*.csv")):
        if linked >= rows:
            break
        (part / file.name).hardlink_to(file)
        linked += _lines(file)
    return linked


def _writers(copy: Copy, folder: Path, pythons: Mapping[str, Path], home: Path | None) -> Writers:
    marks = folder / "marks.json"
    text = partial(job_file, copy)
    form = copy.source
    writers: Writers = {OURS: lambda out: run_job(folder, text(out))}
    if copy.target == "parquet":
        writers[SCRIPT] = lambda out: run_script(
            "plain_copy.py", form, copy.folder, out, marks, SCHEMA, copy.target, marks=marks
        )
        few, dlt = folder / FEW / form, pythons["dlt"]
        writers[DLT] = lambda out: dlt_copy(form, few, out, marks, dlt, "own")
        writers[DLT_ARROW] = lambda out: dlt_copy(form, copy.folder, out, marks, dlt, "arrow")
    else:
        flink = ("peers/flink_copy.py", copy.folder)
        writers["PyFlink"] = lambda out: run_script(
            *flink, out, marks, SCHEMA, marks=marks, python=pythons["pyflink"]
        )
    if home:
        writers["SeaTunnel"] = lambda out: seatunnel.run_job(home, folder, text(out), copy.rows)
    return writers


def dlt_copy(
    form: str, source: Path, target: Path | str, marks: Path, python: Path, readers: str
) -> Cost:
    """Run a copy with dlt, which must not find what an earlier run left in its own folder."""
    shutil.rmtree(marks.with_name("dlt"), ignore_errors=True)
    words = (form, source, target, marks, readers)
    return run_script("peers/dlt_copy.py", *words, marks=marks, python=python)


def job_file(copy: Copy, out: Path) -> str:
    """Return the job file of a copy; SeaTunnel reads it too."""
    fields = " ".join(f'{name} = "{kind}",' for name, kind in COLUMNS.items())
    schema = f"schema {{ fields {{ {fields} }} }}" if copy.source == "csv" else ""
    codec = ", compress_codec = snappy" if copy.target == "parquet" else ""
    return f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{copy.folder}", file_format_type = {copy.source}
  {schema} }} }}
sink {{ LocalFile {{ path = "{out}", tmp_path = "{out}-tmp"
  file_format_type = {copy.target}{codec} }} }}
"""


def _race(copy: Copy, writers: Writers) -> Race:
    """Let all copy in turns."""
    out, fewer = copy.folder.with_name("out"), {DLT: ROWS // FEW_SHARE}

    def checked(name: str) -> Cost:
        cost = writers[name](out)
        arrived = _arrived(out, copy.target)
        wanted = fewer.get(name, copy.rows)
        assert arrived == wanted, f"{name} wrote {arrived} rows of {wanted}"
        shutil.rmtree(out)
        return cost

    turns = {name: partial(checked, name) for name in writers}
    # Whoever is far behind gets one round.
    rounds = {name: 1 if name in (*fewer, SCRIPT, DLT_ARROW) else ROUNDS for name in turns}
    return run_race(str(copy), copy.rows, turns, rounds, fewer)


def _arrived(out: Path, form: str) -> int:
    """Count the rows below a folder; dlt keeps books of its own there, in another format."""
    if form == "parquet":
        return sum(pq.read_metadata(file).num_rows for file in out.rglob("*.parquet"))
    files = (f for f in out.rglob("*") if f.is_file() and not f.name.startswith(("_", ".")))
    return sum(map(_lines, files))


def _lines(file: Path) -> int:
    with file.open("rb") as opened:
        return sum(block.count(b"\n") for block in iter(partial(opened.read, 1 << 20), b""))


def _megabytes(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def _peers(pythons: Mapping[str, Path], home: Path | None) -> dict[str, str]:
    peers = both() | report.versions("dlt", python=pythons["dlt"])
    flink = report.versions("apache-flink", python=pythons["pyflink"])
    peers["PyFlink"] = flink["apache-flink"]
    peers |= report.versions("duckdb")
    return peers | ({"SeaTunnel": seatunnel.version(home)} if home else {})


def report_of(
    races: Sequence[Race],
    data: str,
    peers: Mapping[str, str],
    profile: str,
    others: Mapping[str, Race],
) -> report.Report:
    """Return the report of all copies."""
    speeds: dict[str, list[report.Point]] = {}
    for race in races:
        for name, point in race.points().items():
            speeds.setdefault(name, []).append(point)
    return report.Report(
        name="batch",
        question="How many rows a second does a batch copy of files move, against the PySpark"
        " script, dlt and PyFlink?",
        data=data,
        rounds=ROUNDS,
        peers=peers,
        table=[*table_of(races), *quoted.table(others)],
        bars=[*(bar for race in races for bar in bars_of(race)), *quoted.bars(others)],
        plots=[report.Plot("Batch copies", "bars", "rows/s", speeds)],
        profile=profile,
        notes=[
            "rows/s from a session that is up to the end of the job; whole s is the command from"
            " its start to its end.",
            "PyFlink from PyPI has formats for CSV and JSON only: its Parquet format and its JDBC"
            " connector need jars that are not on PyPI, so it is measured from CSV to CSV, and it"
            " alone. Its"
            " rows/s is by the time that Flink says the job took, the start of its cluster not"
            " counted.",
            "dlt: with the readers it comes with (read_parquet, read_csv), as its documentation has"
            " it.  dlt fed with Arrow: batches that a reader written by hand hands over, which dlt"
            " writes on as they are.  Copying files without reading them, which it can too, is not"
            " measured.",
            "csv with quotes: one file. Spark reads it with multiLine, by one task; DuckDB notes"
            " rows that do not fit (store_rejects). The bars are about CPU seconds.",
        ],
    )


def table_of(races: Sequence[Race]) -> Iterator[report.Row]:
    """Return a row for each copy and peer; who could not take part is said in words."""
    for race in races:
        yield from race.table()
        if "PyFlink" not in race.taken:
            yield absent(race.work, "PyFlink", NO_JAR)
    yield absent("PostgreSQL -> parquet", OURS, NO_SOURCE)


def bars_of(race: Race) -> Iterator[report.Bar]:
    """Return what Holdfast promises about a copy."""
    yield from race.bars(BOUNDS)
    if SCRIPT not in race.taken:
        return
    ours, script = race.first_job_s(OURS), race.first_job_s(SCRIPT)
    assert ours is not None and script is not None, "both run Spark"
    what = f"{race.work}: time to the first job against {SCRIPT}"
    yield report.Bar(what, ours / script, START_MOST, "most")
