"""Appends to lake tables and files against a plain `df.write.parquet` of the same rows.

What counts is CPU seconds of all processes of a command, from a session that is up to the end of
the job: these machines are noisy.  The start, at which a job file is ahead, is left out; it is in
the column beside.  All write Parquet with snappy.  Runs are interleaved.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pypaimon_rust.datafusion import PaimonCatalog

from benchmarks.job import COLUMNS, make_rows, moving_s, run_job, run_script, warm_up
from benchmarks.measure import Cost, middle
from benchmarks.report import Bar, Plot, Report, holdfast, publish, versions

ROWS = int(os.environ.get("ROWS", 5_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 3))
RATIO_LEAST = 0.93

SINKS = {
    "files": """LocalFile {{ path = "{out}", file_format_type = parquet
      compress_codec = snappy }}""",
    "Delta": 'Delta {{ path = "{out}/t" }}',
    "Iceberg": """Iceberg {{ catalog_name = bench, namespace = db, table = t
      iceberg.catalog.config = {{ type = hadoop, warehouse = "{out}" }}
      iceberg.table.write-props = {{ write.parquet.compression-codec = snappy }} }}""",
    "Paimon": """Paimon {{ warehouse = "{out}", database = db, table = t
      paimon.table.write-props = {{ file.compression = snappy }} }}""",
}


def main(results: Path) -> bool:
    """Run every sink beside the script, print the table, write JSON; say whether bars were met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        make_rows(folder, ROWS, "parquet")
        found = _compare(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_answer(found), results)


def _compare(folder: Path) -> dict[str, dict[str, float]]:
    out, marks = folder / "out", folder / "marks.json"
    writers: dict[str, Callable[[], Cost]] = {
        "script": lambda: run_script(
            "plain_copy.py", "parquet", folder / "parquet", out, marks, "", marks=marks
        )
    }
    for name, sink in SINKS.items():
        text = f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{folder / "parquet"}", file_format_type = parquet }} }}
sink {{ {sink.format(out=out)} }}
"""
        writers[name] = lambda text=text: run_job(folder, text)  # type: ignore[misc]
    taken: dict[str, list[Cost]] = {name: [] for name in writers}
    for round_number in range(ROUNDS):
        for name, writer in writers.items():
            shutil.rmtree(out, ignore_errors=True)
            taken[name].append(writer())
            _check(name, out)
        spent = ", ".join(f"{name} {_moving_cpu_s(costs[-1]):.1f}" for name, costs in taken.items())
        print(f"round {round_number + 1}, CPU seconds: {spent}", flush=True)
    script = middle([_moving_cpu_s(c) for c in taken["script"]])
    return {
        name: {
            "cpu_s": (cpu_s := middle([_moving_cpu_s(c) for c in costs])),
            "whole_cpu_s": middle([c.cpu_s for c in costs]),
            "wall_s": middle([moving_s(c) for c in costs]),
            "ratio": script / cpu_s,
        }
        for name, costs in taken.items()
    }


def _moving_cpu_s(cost: Cost) -> float:
    return cost.cpu_between("ready", "ended")


def _check(name: str, out: Path) -> None:
    rows = READERS.get(name, _files)(out)
    assert rows == ROWS, f"{name} wrote {rows} rows of {ROWS}"


def _files(out: Path) -> int:
    return sum(pq.read_metadata(f).num_rows for f in out.glob("*.parquet"))


def _delta(out: Path) -> int:
    return int(DeltaTable(out / "t").to_pyarrow_dataset().count_rows())


def _iceberg(out: Path) -> int:
    newest = max(out.glob("db/t/metadata/*.metadata.json"), key=lambda p: p.stat().st_mtime_ns)
    return StaticTable.from_metadata(str(newest)).scan().count()


def _paimon(out: Path) -> int:
    reader = PaimonCatalog({"warehouse": str(out)}).get_table("db.t").new_read_builder()
    splits = reader.new_scan().plan().splits()
    return sum(batch.num_rows for batch in reader.new_read().read(splits))


READERS: dict[str, Callable[[Path], int]] = {
    "Delta": _delta,
    "Iceberg": _iceberg,
    "Paimon": _paimon,
}


def _answer(found: dict[str, dict[str, float]]) -> Report:
    ratio = "economy, script = 1"
    return Report(
        name="sinks",
        question="What does it cost to append rows to lake tables and files exactly-once, against"
        " a plain `df.write.parquet` of the same rows?",
        data=f"{ROWS:,} rows of {len(COLUMNS)} columns, read from Parquet and written as Parquet"
        " with snappy.",
        rounds=ROUNDS,
        peers=holdfast() | versions("deltalake", "pyiceberg"),
        table=[
            {
                "into": "plain PySpark script" if name == "script" else name,
                "CPU s": row["cpu_s"],
                "wall s": row["wall_s"],
                "CPU s with start": row["whole_cpu_s"],
                ratio: row["ratio"],
            }
            for name, row in found.items()
        ],
        bars=[
            Bar(f"{name}: CPU seconds of the script / ours", found[name]["ratio"], RATIO_LEAST,
                "least")
            for name in SINKS
        ],
        plots=[
            Plot(
                "CPU seconds from a session that is up to the end of the job",
                "bars",
                "CPU seconds",
                {
                    "Holdfast": [(name, found[name]["cpu_s"]) for name in SINKS],
                    "PySpark script": [("plain Parquet files", found["script"]["cpu_s"])],
                },
            )
        ],
    )  # fmt: skip
