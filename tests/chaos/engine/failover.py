"""Measure failovers: kill the leader under a streaming job, again and again.

Printed beside the lease and the interval, which no failover can beat: how long until the store has
dropped the dead leader, another leads, gives its first order, has a checkpoint complete and its
rows in sight.  Tasks must not restart, and rows must not stop.  When rows were written the sink's
own files say, after the run, so that looking costs the run nothing.
"""

import asyncio
import json
import random
import shutil
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import monotonic, time

import pyarrow.parquet as pq

from tests.chaos.engine.cluster import MASTERS, Cluster
from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.chaos.engine.moments import committed, complete
from tests.chaos.engine.reader import shown_files
from tests.chaos.engine.run import Runner, judge, nothing
from tests.chaos.engine.scene import Scenario, Scene
from tests.chaos.engine.tail import Facts, Tail

LEASE_S = 3.0
INTERVAL_S = 1.0
DIP_S = 10.0
"""How long rows are counted after a kill; the dead one is left dead so long."""
CALM_S = 2.0
KILL_S_MAX = 180.0


@dataclass(frozen=True)
class Cost:
    """What one kill cost: seconds from the kill to each of these.

    `rows_s` were written in the ten seconds after it, `calm_rows_s` in the calm just before.
    """

    detect_s: float
    elect_s: float
    order_s: float
    checkpoint_s: float
    visible_s: float
    rows_s: float
    calm_rows_s: float


@dataclass(frozen=True)
class Sample:
    """What came of all kills.  Flaws are promises that were broken, as the oracle says."""

    costs: tuple[Cost, ...]
    restarted: int
    flaws: tuple[str, ...]

    @property
    def dips(self) -> list[float]:
        """What share of the rows of a calm time was missing after each kill; below 0: none.

        Calm times are short, so all of them together are the measure.
        """
        usual = sum(c.calm_rows_s for c in self.costs) / len(self.costs)
        return [1 - c.rows_s / usual for c in self.costs]


@dataclass(frozen=True)
class _Kill:
    """The moments of one kill, on the clock that all processes share."""

    calm: float
    at: float
    detected: float
    elected: float
    ordered: float
    completed: float
    visible: float


async def measure(kind: str, kills: int, build: Path) -> int:
    """Measure so many failovers, and print and write what came of them; return the exit code."""
    sample = await take(kind, kills, build)
    _report(kind, sample)
    facts = {"rows": [asdict(c) for c in sample.costs], "restarted": sample.restarted,
             "flaws": sample.flaws}  # fmt: skip
    (build / f"failover-{kind}.json").write_text(json.dumps(facts, indent=2) + "\n")
    return 1 if sample.flaws or sample.restarted else 0


async def take(kind: str, kills: int, build: Path) -> Sample:
    """Kill the leader so many times; return what came of it.  Needs a store with a standby."""
    if len(MASTERS[kind]) < 2:
        raise SystemExit(f"With the store {kind} one master runs, and nobody takes over.")
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
        await scene.until(complete(10))
        found: list[_Kill] = []
        for number in range(1, kills + 1):
            found.append(await _in_time(scene, number))
            print(f"{number:3} {_line(found[-1])}", flush=True)
        await scene.rest()
        restarted = [e for e in scene.events("start") if e["attempt"] > 1]
        flaws = await asyncio.to_thread(judge, scene)
        written = await asyncio.to_thread(_written, scene.jobs["j"].out)
    finally:
        await cluster.close()
    if not flaws:
        cluster.remove()
    return Sample(tuple(_cost(k, written) for k in found), len(restarted), tuple(flaws))


async def _in_time(scene: Scene, number: int) -> _Kill:
    try:
        return await asyncio.wait_for(_kill_once(scene), KILL_S_MAX)
    except TimeoutError as error:
        dead = [m.name for m in scene.cluster.masters.values() if not m.alive]
        raise SystemExit(
            f"After kill {number} things were not back to normal within {KILL_S_MAX:g} s: leader"
            f" {scene.cluster.ledger.leader()}, dead masters {dead}. What they said is in"
            f" {scene.cluster.folder}/logs."
        ) from error


async def _kill_once(scene: Scene) -> _Kill:
    """Kill the leader at any moment of its lease.  The dead one is back before the next."""
    ledger = scene.cluster.ledger
    calm = monotonic()
    await asyncio.sleep(CALM_S + random.uniform(0, LEASE_S))
    term, name = ledger.term(), await scene.leader()
    scene.note_fault("kill", name)
    at = monotonic()
    scene.cluster.process(name).kill()
    await scene.elected(term)
    elected = monotonic()
    # What the dead one has completed is all in the store by now; the next is its successor's.
    before = ledger.pipeline(scene.jobs["j"].id)
    assert before and before.checkpoints.latest
    number = before.checkpoints.latest.number + 1
    first, completed, visible = await asyncio.gather(
        scene.tail.saw(at, lambda e: _is_order(e) and e["term"] > term),
        _when(scene.until(complete(number))),
        _when(scene.until(committed(number))),
    )
    await asyncio.sleep(at + DIP_S - monotonic())
    scene.cluster.process(name).start()
    await scene.further(2)
    await Runner.all_there(scene.cluster)
    return _Kill(calm, at, _dropped(scene, at), elected, float(first["at"]), completed, visible)


def _is_order(event: Facts) -> bool:
    """Say whether somebody told a worker to do something; a welcome asks for nothing."""
    return bool(event["kind"] == "order" and event["order"] != "HeartbeatAck")


async def _when(moment: Awaitable[object]) -> float:
    """Return when something had come."""
    await moment
    return monotonic()


def _dropped(scene: Scene, since: float) -> float:
    """Return when the store had dropped the dead leader's key."""
    return next(
        one.at
        for one in scene.cluster.ledger.applied
        if one.at > since and any(c.key == "leader" and c.item is None for c in one.changes)
    )


def _written(out: Path) -> list[tuple[float, int]]:
    """Return when each file of the sink was written, and its rows; a commit only renames it."""
    ahead = time() - monotonic()
    return [
        (path.stat().st_mtime - ahead, pq.read_metadata(path).num_rows) for path in shown_files(out)
    ]


def _cost(kill: _Kill, written: list[tuple[float, int]]) -> Cost:
    def rows_s(since: float, until: float) -> float:
        return sum(rows for at, rows in written if since <= at < until) / (until - since)

    return Cost(
        detect_s=kill.detected - kill.at,
        elect_s=kill.elected - kill.at,
        order_s=kill.ordered - kill.at,
        checkpoint_s=kill.completed - kill.at,
        visible_s=kill.visible - kill.at,
        rows_s=rows_s(kill.at, kill.at + DIP_S),
        calm_rows_s=rows_s(kill.calm, kill.at),
    )


def _line(kill: _Kill) -> str:
    return (
        f"elect {kill.elected - kill.at:5.2f} s  first order {kill.ordered - kill.at:5.2f} s"
        f"  next checkpoint {kill.completed - kill.at:5.2f} s"
    )


def _report(kind: str, sample: Sample) -> None:
    costs = sample.costs
    beside = f"{len(costs)} kills; lease {LEASE_S:g} s, interval {INTERVAL_S:g} s"
    elect, checkpoint = [c.elect_s for c in costs], [c.checkpoint_s for c in costs]
    for what, values in (("detect + elect", elect), ("next checkpoint", checkpoint)):
        print(f"{kind}: kill -> {what}: p50 {median(values):.2f} s, max {max(values):.2f} s"
              f" ({beside})")  # fmt: skip
    after, calm = [c.rows_s for c in costs], [c.calm_rows_s for c in costs]
    print(f"{kind}: rows written in the {DIP_S:g} s after a kill: {median(after):.0f}/s, never less"
          f" than {min(after):.0f}/s; before it {median(calm):.0f}/s")  # fmt: skip
    print(f"{kind}: tasks restarted: {sample.restarted}; flaws: {list(sample.flaws) or 'none'}")
