"""Measure failovers: kill the leader under a streaming job, again and again.

Printed beside the lease and the interval, which no failover can beat: how long until another
leads, and until the next checkpoint is complete.  Tasks must not restart, and rows must not stop.
"""

import asyncio
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from holdfast.testing.chaos.cluster import Cluster
from holdfast.testing.chaos.jobs import ENDLESS, From, Shape
from holdfast.testing.chaos.moments import complete
from holdfast.testing.chaos.run import Runner, judge, nothing
from holdfast.testing.chaos.scene import Scenario, Scene
from holdfast.testing.chaos.tail import Tail

LEASE_S = 3.0
INTERVAL_S = 1.0


@dataclass(frozen=True)
class Cost:
    """What one kill cost.  `rows` were read from just before it until the next leader showed."""

    elect_s: float
    checkpoint_s: float
    rows: int
    rows_s: float


async def measure(kind: str, kills: int, build: Path) -> int:
    """Measure so many failovers; return the exit code."""
    folder = build / f"failover-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    cluster = Cluster(kind, folder, {"lease_s": LEASE_S, "interval_s": INTERVAL_S})
    shape = Shape(
        ((From(ENDLESS, 3, 100), From(ENDLESS, 3, 100)),), int(INTERVAL_S * 1000), streaming=True
    )
    await cluster.start()
    try:
        scene = Scene(cluster, Scenario("failover", "measure", nothing, shape), "failover",
                      Tail(cluster.events))  # fmt: skip
        scene.noted.append(cluster.setting())
        await Runner.all_there(cluster)
        await scene.submit()
        await scene.until(complete(3))
        costs: list[Cost] = []
        for number in range(1, kills + 1):
            costs.append(await _kill_once(scene))
            print(f"{number:3} {_line(costs[-1])}", flush=True)
        await scene.rest()
        restarted = [e for e in scene.events("start") if e["attempt"] > 1]
        flaws = judge(scene)
    finally:
        await cluster.close()
    _report(kind, costs, len(restarted), flaws)
    facts = {"rows": [asdict(c) for c in costs], "restarted": len(restarted), "flaws": flaws}
    (build / f"failover-{kind}.json").write_text(json.dumps(facts, indent=2) + "\n")
    if not flaws:
        cluster.remove()
    return 1 if flaws or restarted else 0


async def _kill_once(scene: Scene) -> Cost:
    """Kill the leader; return what it cost.  The dead one is back before the next."""
    ledger = scene.cluster.ledger
    before = ledger.pipeline(scene.jobs["j"].id)
    assert before and before.checkpoints.latest
    number, term = before.checkpoints.latest.number, ledger.term()
    read = await _read(scene)
    name = await scene.leader()
    scene.note_fault("kill", name)
    at_s = monotonic()
    scene.cluster.process(name).kill()
    completing = asyncio.ensure_future(_completed(scene, number + 1))
    await scene.elected(term)
    elected_s = monotonic()
    # The first word of the new leader: it has heard the workers by then.
    while (rows := await _read(scene) - read) <= 0:
        scene.claim(monotonic() - elected_s < LEASE_S, "the rows stood still")
    shown_s = monotonic()
    completed_s = await completing
    scene.cluster.process(name).start()
    await scene.further(2)
    await Runner.all_there(scene.cluster)
    return Cost(elected_s - at_s, completed_s - at_s, rows, shown_s - at_s)


async def _completed(scene: Scene, number: int) -> float:
    """Return when a checkpoint was complete, however long it takes to ask for the rows."""
    await scene.until(complete(number))
    return monotonic()


async def _read(scene: Scene) -> int:
    """Return how many rows the tasks have read, as the workers told the leader."""
    shown = await scene.shown()
    return sum(int(t["read"]) for p in shown["pipelines"] for t in p["tasks"])


def _line(cost: Cost) -> str:
    return (
        f"elect {cost.elect_s:5.2f} s  next checkpoint {cost.checkpoint_s:5.2f} s"
        f"  rows read meanwhile {cost.rows} ({cost.rows / cost.rows_s:.0f}/s)"
    )


def _report(kind: str, costs: list[Cost], restarted: int, flaws: list[str]) -> None:
    beside = f"{len(costs)} kills; lease {LEASE_S:g} s, interval {INTERVAL_S:g} s"
    elect, checkpoint = [c.elect_s for c in costs], [c.checkpoint_s for c in costs]
    for what, values in (("detect + elect", elect), ("next checkpoint", checkpoint)):
        print(f"{kind}: kill -> {what}: p50 {median(values):.2f} s, max {max(values):.2f} s"
              f" ({beside})")  # fmt: skip
    slowest = min(c.rows / c.rows_s for c in costs)
    usual = median(c.rows / c.rows_s for c in costs)
    print(f"{kind}: rows read while nobody led: {usual:.0f}/s, never less than {slowest:.0f}/s")
    print(f"{kind}: tasks restarted: {restarted}; flaws: {flaws or 'none'}")
