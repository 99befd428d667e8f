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
import tempfile
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks.job import make_rows, moving_s, run_job, run_script, warm_up
from benchmarks.measure import Cost, middle
from tests.conformance.servers import Postgres

ROWS = int(os.environ.get("ROWS", 2_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 3))
THROUGHPUT_LEAST = 2.0
COLUMNS = {
    "id": "bigint", "customer": "integer", "amount": "numeric(12,2)", "price": "double precision",
    "name": "text", "city": "text", "active": "boolean", "day": "date", "at": "timestamp",
    "score": "real",
}  # fmt: skip
"""The table's columns as PostgreSQL names them."""

DRIVER = "libpostgresql-jdbc-java"


def main(results: Path) -> bool:
    """Run all writers, print the table, write JSON; say whether the bar was met."""
    jar = find_driver()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = Postgres()
    try:
        server.start()
        warm_up()
        make_rows(folder, ROWS, "parquet")
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
        spent = ", ".join(f"{name} {moving_s(costs[-1]):.1f} s" for name, costs in taken.items())
        print(f"round {round_number + 1}: {spent}", flush=True)
    seconds = {name: middle([moving_s(c) for c in costs]) for name, costs in taken.items()}
    found = {f"{name}_rows_s": ROWS / s for name, s in seconds.items()}
    found |= {f"{n}_cpu_s": middle([c.cpu_s for c in costs]) for n, costs in taken.items()}
    found["ratio"] = seconds["spark"] / seconds["holdfast"]
    found["ratio_rewriting"] = seconds["spark_rewriting"] / seconds["holdfast"]
    return found


def _empty(server: Postgres) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench")
        connection.execute(f"CREATE TABLE bench ({columns})".encode())
        connection.execute("CHECKPOINT")


def _check(server: Postgres, name: str) -> None:
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT count(*) FROM bench").fetchone()
    assert found == (ROWS,), f"{name} wrote {found} rows of {ROWS}"


def _script(folder: Path, url: str, jar: Path) -> Cost:
    marks = folder / "marks.json"
    rows = folder / "parquet"
    return run_script("plain_jdbc.py", rows, url, "bench", jar, marks, marks=marks)


def _holdfast(folder: Path, url: str) -> Cost:
    return run_job(
        folder,
        f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{folder / "parquet"}", file_format_type = parquet }} }}
sink {{ Jdbc {{ url = "{url}", user = postgres, table = bench }} }}
""",
    )


def _show(found: dict[str, float]) -> None:
    print(f"\n{ROWS:,} rows x {len(COLUMNS)} columns, medians of {ROUNDS} interleaved rounds")
    for name in ("spark", "spark_rewriting", "holdfast"):
        print(f"{name:<18}{found[f'{name}_rows_s']:>12,.0f} rows/s{found[f'{name}_cpu_s']:>9.1f} s")
    print(
        f"holdfast / spark: {found['ratio']:.2f} (bar: at least {THROUGHPUT_LEAST});"
        f" against rewritten batches: {found['ratio_rewriting']:.2f}"
    )
