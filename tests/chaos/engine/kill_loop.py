"""`python -m tests.chaos.engine.kill_loop`: a bounded job, killed again and again until it ends.

A job of three sources runs into each kind of sink while masters and workers are killed, one after
another or all at once, and are started again.  Which and when is drawn from a seed, so that a run
can be repeated.  At the end an independent reader must find every row once.
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.chaos.engine.cluster import PATIENT, WORKERS, Cluster
from tests.chaos.engine.jobs import From, Shape
from tests.chaos.engine.run import Runner, judge, nothing
from tests.chaos.engine.scene import Scenario, Scene
from tests.chaos.engine.servers import SERVERS
from tests.chaos.engine.sinks import KINDS
from tests.chaos.engine.tail import Tail

BUILD = Path("build/chaos")
KILLED = Shape(
    ((From(50, 20, 100), From(40, 20, 100), From(30, 20, 100)),), interval_ms=1000, retries=1000
)
PAUSE_S = (0.1, 3.0)
ROWS = (0, 0, 20, 80, 160, 320)
PATIENCE_S = 60.0
"""How long is waited for rows before a kill; they may well not come."""

VICTIMS = {
    "leader": 5,
    "worker": 3,
    "standby": 1,
    "leader and worker": 1,
    "all workers": 1,
    "all masters": 1,
    "everything": 1,
}
"""Who is killed, and how often in comparison."""

END_S = 600.0
READY_S = 300.0


@dataclass(frozen=True)
class Strike:
    """One kill: after so many more rows in checkpoints and so long a pause, of whom."""

    rows: int
    pause_s: float
    victim: str
    worker: str


@dataclass
class Outcome:
    """What came of one kind of sink."""

    sink: str
    kills: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    rows: int = 0
    flaws: list[str] = field(default_factory=list)
    took_s: float = 0.0

    def line(self) -> str:
        """Return it as one line."""
        word = "exact" if not self.flaws else "FAILED"
        return (
            f"{self.sink:<14} {self.kills.total():>5} {self.jobs:>5} {self.rows:>7}  {word:<7}"
            f" {self.took_s:6.0f} s"
        )


def strikes(seed: int, kills: int) -> list[Strike]:
    """Draw who is killed when."""
    draw = random.Random(seed)
    names, weights = list(VICTIMS), list(VICTIMS.values())
    return [
        Strike(
            draw.choice(ROWS),
            draw.uniform(*PAUSE_S),
            draw.choices(names, weights)[0],
            draw.choice(WORKERS),
        )
        for _ in range(kills)
    ]


async def run(store: str, sinks: Iterable[str], kills: int, seed: int) -> int:
    """Run a job into each kind of sink; return the exit code."""
    outcomes = []
    for sink in sinks:
        folder = BUILD / f"kill-loop-{store}-{sink}"
        shutil.rmtree(folder, ignore_errors=True)
        cluster = Cluster(store, folder, PATIENT)
        print(f"{sink}: {kills} kills on {store}; the same again: SEED={seed}", flush=True)
        await cluster.start()
        outcome = Outcome(sink)
        try:
            await asyncio.wait_for(Runner.all_there(cluster), READY_S)
            await _one(cluster, outcome, strikes(seed, kills))
        finally:
            await cluster.close()
        outcomes.append(outcome)
        for flaw in outcome.flaws:
            print(f"    {flaw}", flush=True)
        if outcome.flaws:
            print(f"    kept: {folder}", flush=True)
        else:
            cluster.remove()
    print(f"{'sink':<14} {'kills':>5} {'jobs':>5} {'rows':>7}  verdict")
    for outcome in outcomes:
        print(outcome.line(), flush=True)
    return 1 if any(o.flaws for o in outcomes) else 0


async def _one(cluster: Cluster, outcome: Outcome, planned: list[Strike]) -> None:
    """Kill as planned.  If the job ends before the last kill, another one takes its place."""
    began_s, left = monotonic(), list(planned)
    while left or not outcome.jobs:
        scenario = Scenario("kill-loop", outcome.sink, nothing, KILLED, sink=outcome.sink)
        prefix = f"killed-{outcome.jobs + 1}"
        scene = Scene(cluster, scenario, prefix, Tail(cluster.events))
        scene.noted.append(cluster.setting())
        await asyncio.to_thread(scene.sink.start)
        await scene.submit()
        outcome.jobs += 1
        await _strike(scene, outcome, left)
        cluster.heal()
        print(f"  {prefix}: no more kills, {_standing(scene)}", flush=True)
        try:
            await asyncio.wait_for(scene.rest(), END_S)
            await asyncio.wait_for(Runner.all_there(cluster), READY_S)
        except TimeoutError:
            outcome.flaws.append(f"not over {END_S:.0f} s after the last kill: {_standing(scene)}")
            break
        outcome.flaws += judge(scene)
        outcome.rows += sum(scene.sink.shown(scene.jobs["j"].out, "p1").values())
        if outcome.flaws:
            break
    outcome.took_s = monotonic() - began_s


async def _strike(scene: Scene, outcome: Outcome, left: list[Strike]) -> None:
    """Kill until the job is over, or nobody is left to kill."""
    job = scene.jobs["j"].id
    while left and scene.cluster.ledger.end(job) is None:
        strike = left[0]
        await _moment(scene, strike)
        if scene.cluster.ledger.end(job) is not None:
            return
        left.pop(0)
        names = _victims(scene.cluster, strike)
        await asyncio.to_thread(scene.kill, *names)
        outcome.kills[strike.victim] += 1
        number = outcome.kills.total()
        print(f"  {number:3} {strike.victim:<18} {' '.join(names):<16} {_standing(scene)}",
              flush=True)  # fmt: skip


async def _moment(scene: Scene, strike: Strike) -> None:
    """Wait until it is time for a kill."""
    ledger, job = scene.cluster.ledger, scene.jobs["j"].id
    wanted = _written(scene) + strike.rows
    try:
        reached = ledger.until(lambda: ledger.end(job) is not None or _written(scene) >= wanted)
        await asyncio.wait_for(reached, PATIENCE_S)
    except TimeoutError:
        pass  # nothing moves: a good moment, too
    await asyncio.sleep(strike.pause_s)


def _written(scene: Scene) -> int:
    """Return the rows of the latest complete checkpoint."""
    record = scene.cluster.ledger.pipeline(scene.jobs["j"].id)
    return record.checkpoints.latest.totals.written if record and record.checkpoints.latest else 0


def _victims(cluster: Cluster, strike: Strike) -> list[str]:
    masters, workers = list(cluster.masters), list(cluster.workers)
    leader = cluster.ledger.leader() or masters[0]
    standby = [m for m in masters if m != leader][:1] or [leader]
    return {
        "leader": [leader],
        "worker": [strike.worker],
        "standby": standby,
        "leader and worker": [leader, strike.worker],
        "all workers": workers,
        "all masters": masters,
        "everything": [*masters, *workers],
    }[strike.victim]


def _standing(scene: Scene) -> str:
    """Say how far the job is."""
    job = scene.jobs["j"].id
    record = scene.cluster.ledger.pipeline(job)
    if record is None:
        return f"the job is {scene.cluster.ledger.end(job) or 'over'}"
    latest = record.checkpoints.latest
    attempts = max(t.attempt for t in record.tasks)
    return (
        f"checkpoint {latest.number if latest else 0}, committed {record.commits.through},"
        f" {latest.totals.written if latest else 0} rows, attempt {attempts}"
    )


def main() -> int:
    """Kill; return the exit code."""
    parser = argparse.ArgumentParser(description="Kill a bounded job until it ends.")
    parser.add_argument("--sink", default="", help="kinds, such as delta,files; all by default")
    parser.add_argument("--store", default="etcd", choices=sorted(SERVERS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="who and when; drawn by default")
    asked = parser.parse_args()
    sinks = asked.sink.replace(",", " ").split() or list(KINDS)
    unknown = sorted(set(sinks) - set(KINDS))
    if unknown:
        parser.error(f"there is no sink {', '.join(unknown)}; known: {', '.join(KINDS)}")
    # However it is ended, the cluster goes with it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    seed = asked.seed or random.SystemRandom().randrange(1, 1_000_000)
    return asyncio.run(run(asked.store, sinks, asked.kills, seed))


if __name__ == "__main__":
    sys.exit(main())
