"""What the three-hundredth commit to a lake table costs, against the tenth on the same table.

Cost is CPU seconds of the committing process: a wait for the disk is the machine's noise here.  The
wall clock is beside it.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.report import Bar, Plot, Report, holdfast, publish, versions
from holdfast.connect.sink import Sink
from holdfast.testing.check_sink import SinkWorld, run_sink_check
from holdfast.testing.sink_bounds import the_hundredth_commit_costs_what_the_tenth_did
from holdfast.worker import driver
from tests.conformance import test_sink_delta, test_sink_iceberg, test_sink_paimon

GROWTH_MOST = 1.5

Opened = Callable[[Path], Sink[Any]]
Read = Callable[[Path], Iterable[tuple[int, str]]]
LAKES: dict[str, tuple[Opened, Read]] = {
    "Delta": (test_sink_delta.open_sink, test_sink_delta.read),
    "Iceberg": (test_sink_iceberg.open_sink, test_sink_iceberg.read),
    "Paimon": (test_sink_paimon.open_sink, test_sink_paimon.read),
}


def main(results: Path) -> bool:
    """Commit three hundred times to each, print the table, write JSON; say if the bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    starting = driver.begin({}, None, folder / "spark.log")
    try:
        found = {name: _grow(name, folder, starting.session()) for name in LAKES}
    finally:
        driver.stop(starting)
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_answer(found), results)


def _grow(name: str, folder: Path, spark: SparkSession) -> dict[str, float]:
    print(f"{name}: three hundred commits ...", flush=True)
    opened, read = LAKES[name]
    place = folder / name
    world = SinkWorld(spark, partial(opened, place), partial(read, place))
    figures = run_sink_check(the_hundredth_commit_costs_what_the_tenth_did, world)
    return figures | {"ratio": figures["late_cpu_s"] / figures["early_cpu_s"]}


def _answer(found: dict[str, dict[str, float]]) -> Report:
    return Report(
        name="commits",
        question="Does a commit to a lake table cost more when the table has had hundreds?",
        data="300 commits of a few rows to one table of each kind; medians of the ten commits"
        " around the tenth, and of the last ten.",
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
