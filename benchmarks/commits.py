"""What the three-hundredth commit to a lake table costs, against the tenth on the same table."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

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
    (results / "commits.json").write_text(json.dumps(found, indent=1))
    print(f"{'into':<12}{'commit 10':>12}{'commit 300':>12}{'ratio':>7}")
    for name, row in found.items():
        early, late = row["early_s"] * 1000, row["late_s"] * 1000
        print(f"{name:<12}{early:>9.1f} ms{late:>9.1f} ms{row['ratio']:>7.2f}")
    print(f"bar: at most {GROWTH_MOST} times; medians of ten commits around each")
    return all(row["ratio"] <= GROWTH_MOST for row in found.values())


def _grow(name: str, folder: Path, spark: SparkSession) -> dict[str, float]:
    print(f"{name}: three hundred commits ...", flush=True)
    opened, read = LAKES[name]
    place = folder / name
    world = SinkWorld(spark, partial(opened, place), partial(read, place))
    figures = run_sink_check(the_hundredth_commit_costs_what_the_tenth_did, world)
    return figures | {"ratio": figures["late_s"] / figures["early_s"]}
