"""CSV that only a reader which knows quotes reads right: one large file, copied to Parquet.

Spark reads such files with `multiLine`, by one task for each file; DuckDB by all cores.  The figure
is CPU seconds from a session that is up to the end of the job: the same work on any machine.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import report
from benchmarks.job import COLUMNS, run_job, run_script
from benchmarks.measure import Cost
from benchmarks.rivals import OURS, Race, run_race

MULTI_LINE, DUCKDB = "Spark multiLine", "DuckDB"
PLAIN, QUOTED, BREAKS = "no quotes", "every field quoted", "line breaks in 1 % of the rows"
MOST = {PLAIN: 0.38, QUOTED: 0.45, BREAKS: 0.45}
"""Of the CPU seconds of Spark's multiLine, how many we may need."""

NAME = list(COLUMNS).index("name")
EACH = 100
SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())


def make(source: Path, folder: Path, kind: str) -> Path:
    """Write the rows of a folder's csv files into one file, as `kind` says."""
    into = folder / "csv-quoted" / kind.split()[0]
    into.mkdir(parents=True)
    with (into / "rows.csv").open("wb") as made:
        for file in sorted(source.glob("*.csv")):
            data = file.read_bytes()
            assert b'"' not in data, "the rows themselves have no quotes"
            made.write(_written(data, kind))
    return into


def _written(data: bytes, kind: str) -> bytes:
    if kind == QUOTED:
        quoted = data.replace(b",", b'","').replace(b"\n", b'"\n"')
        return b'"' + quoted.removesuffix(b'"')
    if kind == BREAKS:
        lines = data.split(b"\n")
        for number in range(0, len(lines) - 1, EACH):
            fields = lines[number].split(b",")
            fields[NAME] = b'"' + fields[NAME] + b'\n""x"""'
            lines[number] = b",".join(fields)
        return b"\n".join(lines)
    return data


def races(source: Path, folder: Path, rows: int) -> dict[str, Race]:
    """Copy each kind of file by all, in turns."""
    found = {}
    for kind in MOST:
        made = make(source, folder, kind)
        found[kind] = _race(kind, made, folder, rows)
        shutil.rmtree(made)
    return found


def _race(kind: str, source: Path, folder: Path, rows: int) -> Race:
    out, marks = folder / "out", folder / "marks.json"
    writers: dict[str, Callable[[], Cost]] = {
        OURS: lambda: run_job(folder, job_file(source, out)),
        MULTI_LINE: lambda: run_script("multi_line.py", source, out, marks, SCHEMA, marks=marks),
        DUCKDB: lambda: run_script("duckdb_copy.py", source, out, marks, SCHEMA, marks=marks),
    }

    def checked(name: str) -> Cost:
        cost = writers[name]()
        arrived = sum(pq.read_metadata(file).num_rows for file in out.rglob("*.parquet"))
        assert arrived == rows, f"{name} wrote {arrived} rows of {rows}"
        shutil.rmtree(out)
        return cost

    turns = {name: partial(checked, name) for name in writers}
    return run_race(f"csv, {kind} -> parquet", rows, turns, dict.fromkeys(turns, 1))


def job_file(source: Path, out: Path) -> str:
    """Return the job file of a copy."""
    fields = " ".join(f'{name} = "{kind}",' for name, kind in COLUMNS.items())
    return f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{source}", file_format_type = csv
  schema {{ fields {{ {fields} }} }} }} }}
sink {{ LocalFile {{ path = "{out}", tmp_path = "{out}-tmp", file_format_type = parquet
  compress_codec = snappy }} }}
"""


def bars(found: Mapping[str, Race]) -> Iterator[report.Bar]:
    """Return what we promise beside Spark."""
    for kind, race in found.items():
        what = f"{race.work}: CPU seconds against {MULTI_LINE}"
        yield report.Bar(what, race.cpu_s(OURS) / race.cpu_s(MULTI_LINE), MOST[kind], "most")


def table(found: Mapping[str, Race]) -> Iterator[report.Row]:
    """Return a row for each who took part."""
    for race in found.values():
        for row in race.table():
            if row["with"] in race.taken:
                yield row
