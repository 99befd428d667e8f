"""What the three-hundredth commit to a lake table costs, against the tenth to another one.

The two tables get their commits in turns, so that what else the machine does hits both.  Cost is
CPU seconds of the committing process; the wall clock, with its waits for the disk, is given too.
"""

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.report import Bar, Plot, Report, holdfast, publish, versions
from holdfast.spark import session
from holdfast.testing.check_sink import SinkWorld
from holdfast.testing.sink_bench import SinkBench
from tests.conformance.test_sink_lakes import Delta, Iceberg, Lake, Paimon

GROWTH_MOST = 1.5
EARLY, LATE, SAMPLE = 10, 300, 18

LAKES: dict[str, type[Lake]] = {kind.name: kind for kind in (Delta, Iceberg, Paimon)}


def main(results: Path) -> bool:
    """Commit three hundred times to each, print the table, write JSON; say if the bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    starting = session.begin({}, None, folder / "spark.log")
    try:
        found = {name: _grow(name, folder, starting.session()) for name in LAKES}
    finally:
        session.stop(starting)
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_answer(found), results)


class _Grown:
    """One table, and the commits it gets."""

    def __init__(self, name: str, place: Path, spark: SparkSession, commits: int) -> None:
        lake = LAKES[name](place)
        self._bench = SinkBench(SinkWorld(spark, lake.sink, lake.read))
        self._bench.prepare()
        self._user, self._sink = self._bench.user(), self._bench.world.open()
        self._parts = self._bench.write_many(commits, rows=1)
        self._number = 0

    def commit(self) -> tuple[float, float]:
        """Make the next commit; return the CPU and the wall seconds it took."""
        began, spent = time.monotonic(), time.process_time()
        self._bench.commit(self._user, self._number + 1, self._parts[self._number], self._sink)
        self._number += 1
        return time.process_time() - spent, time.monotonic() - began

    def check(self) -> None:
        """Require that every row shows once."""
        self._bench.shows("each commit once", *self._parts)


def _grow(name: str, folder: Path, spark: SparkSession) -> dict[str, float]:
    print(f"{name}: three hundred commits ...", flush=True)
    half = SAMPLE // 2
    old = _Grown(name, folder / f"{name}-old", spark, LATE)
    young = _Grown(name, folder / f"{name}-young", spark, EARLY + half)
    for _ in range(LATE - SAMPLE):
        old.commit()
    for _ in range(EARLY - half):
        young.commit()
    # In turns: what the machine does meanwhile hits both.
    taken = [(young.commit(), old.commit()) for _ in range(SAMPLE)]
    old.check()
    young.check()
    early, late = [y for y, _ in taken], [o for _, o in taken]
    figures = {
        "early_cpu_s": median(c for c, _ in early), "late_cpu_s": median(c for c, _ in late),
        "early_s": median(w for _, w in early), "late_s": median(w for _, w in late),
    }  # fmt: skip
    return figures | {"ratio": figures["late_cpu_s"] / figures["early_cpu_s"]}


def _answer(found: dict[str, dict[str, float]]) -> Report:
    return Report(
        name="commits",
        question="Does a commit to a lake table cost more when the table has had hundreds?",
        data=f"Commits of a row: the last {SAMPLE} of {LATE} to one table, in turns with those"
        f" around the {EARLY}th to another; medians.",
        rounds=1,
        peers=holdfast() | versions("deltalake", "pyiceberg"),
        table=[
            {
                "into": name,
                "commit 10, CPU ms": row["early_cpu_s"] * 1000,
                "commit 300, CPU ms": row["late_cpu_s"] * 1000,
                "commit 10, ms": row["early_s"] * 1000,
                "commit 300, ms": row["late_s"] * 1000,
                "ratio": row["ratio"],
            }
            for name, row in found.items()
        ],
        bars=[
            Bar(f"{name}: commit 300 / commit 10", row["ratio"], GROWTH_MOST, "most")
            for name, row in found.items()
        ],
        plots=[
            Plot(
                "One commit, early and late in the life of a table",
                "bars",
                "CPU milliseconds",
                {
                    "commit 10": [(name, r["early_cpu_s"] * 1000) for name, r in found.items()],
                    "commit 300": [(name, r["late_cpu_s"] * 1000) for name, r in found.items()],
                },
            )
        ],
    )
