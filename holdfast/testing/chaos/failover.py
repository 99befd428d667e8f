"""Measure failovers: kill the leader under a streaming job, again and again.

Printed beside the lease and the interval, which no failover can beat: how long until another
leads, and until the next checkpoint is complete.  Tasks must not restart, and rows must not stop.
"""

import json
import shutil
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
        await scene.submit()
        await scene.until(complete(3))
        rows: list[dict[str, float]] = []
        for number in range(1, kills + 1):
            rows.append(await _kill_once(scene))
            print(f"{number:3} elect {rows[-1]['elect_s']:5.2f} s"
                  f"  next checkpoint {rows[-1]['checkpoint_s']:5.2f} s", flush=True)  # fmt: skip
        await scene.rest()
        restarted = [e for e in scene.events("start") if e["attempt"] > 1]
        flaws = judge(scene)
    finally:
        await cluster.close()
    _report(kind, rows, len(restarted), flaws)
    facts = {"rows": rows, "restarted": len(restarted), "flaws": flaws}
    (build / f"failover-{kind}.json").write_text(json.dumps(facts, indent=2) + "\n")
    if not flaws:
        cluster.remove()
    return 1 if flaws or restarted else 0


async def _kill_once(scene: Scene) -> dict[str, float]:
    """Kill the leader; return what it cost.  The dead one is back before the next."""
    ledger = scene.cluster.ledger
    before = ledger.pipeline(scene.jobs["j"].id)
    assert before and before.checkpoints.latest
    number, term = before.checkpoints.latest.number, ledger.term()
    read = _read(await scene.shown())
    name = await scene.leader()
    scene.note_fault("kill", name)
    at_s = monotonic()
    scene.cluster.process(name).kill()
    await scene.elected(term)
    elected_s = monotonic()
    await scene.until(complete(number + 1))
    completed_s = monotonic()
    scene.cluster.process(name).start()
    scene.claim(_read(await scene.shown()) > read, "the rows stood still")
    await scene.further(2)
    await Runner.all_there(scene.cluster)
    return {"elect_s": elected_s - at_s, "checkpoint_s": completed_s - at_s}


def _read(shown: dict[str, object]) -> int:
    return int(str(shown["read"]))


def _report(kind: str, rows: list[dict[str, float]], restarted: int, flaws: list[str]) -> None:
    for what, key in (("detect + elect", "elect_s"), ("next checkpoint", "checkpoint_s")):
        values = sorted(r[key] for r in rows)
        print(f"{kind}: kill -> {what}: p50 {median(values):.2f} s, max {values[-1]:.2f} s"
              f" ({len(values)} kills; lease {LEASE_S} s, interval {INTERVAL_S} s)")  # fmt: skip
    print(f"{kind}: tasks restarted: {restarted}; flaws: {flaws or 'none'}")
