"""Rows into PostgreSQL: a job file against what people would use instead, on the same files.

Spark's writer commits each task by itself, so a job that fails has written a part, and one that is
run again writes twice; ours stages rows and moves them into the table in one transaction.  The
rewriting of batched INSERTs, which PostgreSQL's Java driver does only if asked, is measured too.
Runs are interleaved, so that what else the machine does hits all alike.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import psycopg
import pyarrow.parquet as pq

from benchmarks import report, seatunnel
from benchmarks.batch import dlt_copy
from benchmarks.job import make_rows, run_job, run_script, warm_up
from benchmarks.measure import Cost
from benchmarks.peer import python_of
from benchmarks.rivals import DLT_ARROW, NO_JAR, OURS, SCRIPT, Race, absent, both, run_race
from tests.conformance.servers import Postgres
from tools.debian import unpacked

ROWS = int(os.environ.get("ROWS", 10_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 2))
WORK = "parquet -> PostgreSQL"
REWRITING = f"{SCRIPT}, batches rewritten"
BOUNDS = {SCRIPT: 2.0, REWRITING: 0.95, DLT_ARROW: 1.0, "SeaTunnel": 1.0}
"""How many rows Holdfast moves, at least, while a peer moves one."""
COLUMNS = {
    "id": "bigint", "customer": "integer", "amount": "numeric(12,2)", "price": "double precision",
    "name": "text", "city": "text", "active": "boolean", "day": "date", "at": "timestamp",
    "score": "real",
}  # fmt: skip
"""The table's columns as PostgreSQL names them."""

SERVER = {"shared_buffers": "2GB", "max_wal_size": "8GB", "min_wal_size": "6GB"}
"""As PostgreSQL's manual advises for many rows; its own defaults are those of a tiny machine."""

FILL = "CREATE TABLE fill AS SELECT i, repeat('x', 1000) FROM generate_series(1, 2600000) i"
"""A server that is in use has its log's files already; a new one would make them while we measure.
"""

FEWER_SHARE = 4
"""The scripts, which are slow, get one row of so many, and one round."""
SOME = "some"

DRIVER = "libpostgresql-jdbc-java"


def main(results: Path) -> bool:
    """Run all writers, publish the report; say whether every bar was met."""
    home, dlt = seatunnel.named(), python_of("dlt")
    jar = find_driver()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = Postgres(**SERVER)
    try:
        server.start()
        _use(server)
        warm_up()
        make_rows(folder, ROWS, "parquet")
        fewer = _link_some(folder / "parquet", folder / SOME, ROWS // FEWER_SHARE)
        race = _race(_writers(folder, server, jar, dlt, home), server, fewer)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    return report.publish(_report(race, dlt, home), results)


def find_driver() -> Path:
    """Return PostgreSQL's Java driver, unpacked from Debian's package into a cache folder."""
    jar = unpacked("postgresql-jdbc", DRIVER) / "usr/share/java/postgresql.jar"
    return jar.resolve()


def _writers(
    folder: Path, server: Postgres, jar: Path, dlt: Path, home: Path | None
) -> dict[str, Callable[[], Cost]]:
    rows, marks = folder / "parquet", folder / "marks.json"
    address = f"127.0.0.1:{server.port}/postgres"
    url = f"jdbc:postgresql://{address}"

    def spark(url: str) -> Cost:
        return run_script("plain_jdbc.py", folder / SOME, url, "bench", jar, marks, marks=marks)

    # This server asks for no password, and dlt asks for one.
    secret = f"postgresql://postgres:none@{address}"
    writers = {
        SCRIPT: lambda: spark(url),
        REWRITING: lambda: spark(f"{url}?reWriteBatchedInserts=true"),
        OURS: lambda: run_job(folder, _job_file(folder, url)),
        DLT_ARROW: lambda: dlt_copy("parquet", rows, secret, marks, dlt, "arrow"),
    }
    if home:
        named = ", ".join(COLUMNS)
        query = f"INSERT INTO bench ({named}) VALUES ({', '.join('?' * len(COLUMNS))})"
        text = _job_file(folder, f"{url}?reWriteBatchedInserts=true").replace(
            "table = bench", f'driver = "org.postgresql.Driver", query = "{query}"'
        )
        writers["SeaTunnel"] = lambda: seatunnel.run_job(home, folder, text, ROWS)
    return writers


def _job_file(folder: Path, url: str) -> str:
    return f"""env {{ job.mode = BATCH }}
source {{ LocalFile {{ path = "{folder / "parquet"}", file_format_type = parquet }} }}
sink {{ Jdbc {{ url = "{url}", user = postgres, table = bench }} }}
"""


def _link_some(whole: Path, some: Path, rows: int) -> int:
    """Link files until they have this many rows; return how many they have."""
    some.mkdir()
    linked = 0
    for file in sorted(whole.glob("*.parquet")):
        if linked < rows:
            (some / file.name).hardlink_to(file)
            linked += pq.read_metadata(file).num_rows
    return linked


def _race(writers: Mapping[str, Callable[[], Cost]], server: Postgres, some: int) -> Race:
    fewer = {SCRIPT: some, REWRITING: some}

    def checked(name: str) -> Cost:
        _empty(server)
        cost = writers[name]()
        _check(server, name, fewer.get(name, ROWS))
        return cost

    turns = {name: partial(checked, name) for name in writers}
    rounds = {name: 1 if name in fewer else ROUNDS for name in turns}
    return run_race(WORK, ROWS, turns, rounds, fewer)


def _use(server: Postgres) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(FILL.encode())
        connection.execute("DROP TABLE fill")
        connection.execute("CHECKPOINT")


def _empty(server: Postgres) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench")
        connection.execute("DROP SCHEMA IF EXISTS bench CASCADE")
        connection.execute(f"CREATE TABLE bench ({columns})".encode())
        connection.execute("CHECKPOINT")


def _check(server: Postgres, name: str, rows: int) -> None:
    # dlt makes its own table, in a schema of its own.
    table = "bench.rows" if name == DLT_ARROW else "bench"
    with psycopg.connect(server.url) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert found == (rows,), f"{name} wrote {found} rows of {rows}"


def _report(race: Race, dlt: Path, home: Path | None) -> report.Report:
    peers = both() | report.versions("dlt", python=dlt)
    if home:
        peers["SeaTunnel"] = seatunnel.version(home)
    speeds = {name: [point] for name, point in race.points().items()}
    bars = [*race.bars(BOUNDS)]
    return report.Report(
        name="jdbc",
        question="How many rows a second go into a PostgreSQL table?",
        data=f"{ROWS:,} rows of {len(COLUMNS)} columns from Parquet files into an empty table"
        " without an index, server on the same machine with"
        f" {', '.join(f'{name} = {value}' for name, value in SERVER.items())}",
        rounds=ROUNDS,
        peers=peers,
        table=[*race.table(), absent(WORK, "PyFlink", NO_JAR)],
        bars=bars,
        profile="" if all(bar.met for bar in bars) else "\n".join(race.profile()),
        plots=[report.Plot("Rows into PostgreSQL", "bars", "rows/s", speeds)],
        notes=[
            "rows/s from a session that is up to the end of the job; CPU seconds are those of the"
            " command, not of the server.",
            "Only Holdfast's rows appear in one transaction, and once, whichever process is"
            " killed.",
            "dlt loads Parquet through ADBC, the faster of its two ways of loading many rows; it"
            " cannot load a column of floats so, and gets doubles.",
        ],
    )
