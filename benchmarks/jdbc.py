"""Rows into PostgreSQL: a job file against Spark's own JDBC writer, on the same Parquet files.

Spark's writer commits each task by itself, so a job that fails has written a part, and one that is
run again writes twice; ours stages rows and moves them into the table in one transaction.  The
rewriting of batched INSERTs, which PostgreSQL's Java driver does only if asked, is shown beside.
Runs are interleaved, so that what else the machine does hits all alike.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import psycopg

from benchmarks.measure import Cost, middle, run
from tests.conformance.servers import Postgres

ROWS = int(os.environ.get("ROWS", 2_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 3))
THROUGHPUT_LEAST = 2.0
COLUMNS = {
    "id": ("bigint", "bigint"), "customer": ("int", "integer"),
    "amount": ("decimal(12,2)", "numeric(12,2)"), "price": ("double", "double precision"),
    "name": ("string", "text"), "city": ("string", "text"), "active": ("boolean", "boolean"),
    "day": ("date", "date"), "at": ("timestamp", "timestamp"), "score": ("float", "real"),
}  # fmt: skip
DRIVER = "libpostgresql-jdbc-java"


def main(results: Path) -> bool:
    """Run all writers, print the table, write JSON; say whether the bar was met."""
    jar = find_driver()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = Postgres()
    try:
        server.start()
        subprocess.run([sys.executable, "-m", "holdfast", "warmup"], check=True)
        print(f"Making {ROWS:,} rows of {len(COLUMNS)} columns ...", flush=True)
        _make(folder)
        found = _compare(folder, server, jar)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    (results / "jdbc.json").write_text(json.dumps(found, indent=1))
    _show(found)
    return found["ratio"] >= THROUGHPUT_LEAST


def find_driver() -> Path:
    """Return PostgreSQL's Java driver, unpacked from Debian's package into a cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast"
    jar = cache / "postgresql-jdbc" / "usr/share/java/postgresql.jar"
    if not jar.exists():
        fetched = cache / f"postgresql-jdbc.{os.getpid()}"
        fetched.mkdir(parents=True)
        try:
            subprocess.run(["apt-get", "download", DRIVER], cwd=fetched, check=True)
            (package,) = fetched.glob("*.deb")
            subprocess.run(["dpkg", "-x", str(package), str(fetched)], check=True)
            fetched.rename(cache / "postgresql-jdbc")
        finally:
            shutil.rmtree(fetched, ignore_errors=True)
    return jar.resolve()


def _make(folder: Path) -> None:
    """Let a job of our own make the data, once."""
    fields = "\n".join(f'          {name} = "{kind}"' for name, (kind, _) in COLUMNS.items())
    job = folder / "make.conf"
    job.write_text(
        f"""env {{ job.mode = BATCH }}
source {{
  FakeSource {{
    row.num = {ROWS // 2}, parallelism = 2, int.max = 100000
    schema {{ fields {{
{fields}
    }} }}
  }}
}}
sink {{ LocalFile {{ path = "{folder}/rows", file_format_type = parquet }} }}
"""
    )
    subprocess.run([sys.executable, "-m", "holdfast", "run", "--quiet", str(job)], check=True)


def _compare(folder: Path, server: Postgres, jar: Path) -> dict[str, float]:
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    writers: dict[str, Callable[[], Cost]] = {
        "spark": lambda: _script(folder, url, jar),
        "spark_rewriting": lambda: _script(folder, f"{url}?reWriteBatchedInserts=true", jar),
        "holdfast": lambda: _holdfast(folder, url),
    }
    taken: dict[str, list[Cost]] = {name: [] for name in writers}
    for round_number in range(ROUNDS):
        for name, writer in writers.items():
            _empty(server)
            taken[name].append(writer())
            _check(server, name)
        spent = ", ".join(f"{name} {_write_s(costs[-1]):.1f} s" for name, costs in taken.items())
        print(f"round {round_number + 1}: {spent}", flush=True)
    seconds = {name: middle([_write_s(c) for c in costs]) for name, costs in taken.items()}
    found = {f"{name}_rows_s": ROWS / s for name, s in seconds.items()}
    found |= {f"{n}_cpu_s": middle([c.cpu_s for c in costs]) for n, costs in taken.items()}
    found["ratio"] = seconds["spark"] / seconds["holdfast"]
    found["ratio_rewriting"] = seconds["spark_rewriting"] / seconds["holdfast"]
    return found


def _empty(server: Postgres) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (_, kind) in COLUMNS.items())
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench")
        connection.execute(f"CREATE TABLE bench ({columns})".encode())
        connection.execute("CHECKPOINT")


def _check(server: Postgres, name: str) -> None:
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT count(*) FROM bench").fetchone()
    assert found == (ROWS,), f"{name} wrote {found} rows of {ROWS}"


def _write_s(cost: Cost) -> float:
    return cost.marks["ended"] - cost.marks["ready"]


def _script(folder: Path, url: str, jar: Path) -> Cost:
    marks = folder / "marks.json"
    command = [sys.executable, str(Path(__file__).with_name("plain_jdbc.py"))]
    arguments = [str(folder / "rows"), url, "bench", str(jar), str(marks)]
    return run([*command, *arguments], lambda: json.loads(marks.read_text()))


def _holdfast(folder: Path, url: str) -> Cost:
    log, job = folder / "holdfast.log", folder / "write.conf"
    log.unlink(missing_ok=True)
    job.write_text(
        f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{folder / "rows"}", file_format_type = parquet }} }}
sink {{ Jdbc {{ url = "{url}", user = postgres, table = bench }} }}
"""
    )
    command = [sys.executable, "-m", "holdfast", "run", "--quiet", "--log-file", str(log), str(job)]
    return run(command, lambda: _marks(log))


def _marks(log: Path) -> dict[str, float]:
    """Read the same marks from the log that every run writes."""
    events = {e["message"]: e for e in map(json.loads, log.read_text().splitlines())}
    at = {name: datetime.fromisoformat(e["time"]).timestamp() for name, e in events.items()}
    return {"ready": at["job started"], "ended": at["job ended"]}


def _show(found: dict[str, float]) -> None:
    print(f"\n{ROWS:,} rows x {len(COLUMNS)} columns, medians of {ROUNDS} interleaved rounds")
    for name in ("spark", "spark_rewriting", "holdfast"):
        print(f"{name:<18}{found[f'{name}_rows_s']:>12,.0f} rows/s{found[f'{name}_cpu_s']:>9.1f} s")
    print(
        f"holdfast / spark: {found['ratio']:.2f} (bar: at least {THROUGHPUT_LEAST});"
        f" against rewritten batches: {found['ratio_rewriting']:.2f}"
    )
