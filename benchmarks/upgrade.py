"""What an upgrade costs: `savepoint` and `restore`, beside a plain submit up to its first commit.

All of it on one cluster of real processes, in one run: each round stops the streaming job of the
round before with a savepoint, goes on from it, and submits a plain one besides.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from benchmarks.report import Bar, Report, Row, holdfast, publish
from tests.chaos.engine.cluster import Cluster
from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.chaos.engine.moments import committed
from tests.chaos.engine.run import Runner, nothing
from tests.chaos.engine.scene import Scenario, Scene
from tests.chaos.engine.tail import Tail

ROUNDS = int(os.environ.get("ROUNDS") or 7)
INTERVAL_S = 1.0
ROUND_S_MAX = 120.0
COST_MOST = 1.5
BUILD = Path("build/bench")
STREAM = Shape(
    ((From(ENDLESS, 5, 100), From(ENDLESS, 5, 100)),), int(INTERVAL_S * 1000), streaming=True
)


@dataclass(frozen=True)
class Round:
    """Seconds: a submit to its first commit; a savepoint to its end; on to the next commit."""

    plain_s: float
    saved_s: float
    went_on_s: float

    @property
    def upgrade_s(self) -> float:
        """All of an upgrade: from the wish to stop to the first commit of the next life."""
        return self.saved_s + self.went_on_s


def main(results: Path) -> bool:
    """Measure, print the table, write JSON; say whether every bar was met."""
    rounds, flaws = asyncio.run(_measure())
    for flaw in flaws:
        print(f"flaw: {flaw}")
    return publish(answer(rounds, flaws), results)


def answer(rounds: list[Round], flaws: list[str]) -> Report:
    """Return what the rounds have shown."""
    plain = median(r.plain_s for r in rounds)
    ratios = [r.upgrade_s / r.plain_s for r in rounds]
    table = [
        _row("submit, to the first commit", [r.plain_s for r in rounds], plain),
        _row("savepoint, to SAVEPOINT_DONE", [r.saved_s for r in rounds], plain),
        _row("restore, to the first commit", [r.went_on_s for r in rounds], plain),
        _row("savepoint and restore", [r.upgrade_s for r in rounds], plain),
    ]
    return Report(
        name="upgrade",
        question="How long does a job rest that is stopped with a savepoint and goes on at once?",
        data="A streaming job of two sources into Parquet files on a cluster of one master and two"
        f" workers with SQLite, with a checkpoint each {INTERVAL_S:g} s.",
        rounds=len(rounds),
        peers=holdfast(),
        table=table,
        bars=[
            Bar("savepoint and restore, times a plain submit, median", median(ratios), COST_MOST,
                "most"),
            Bar("rows lost or doubled, as a reader of the files says", len(flaws), 0, "most"),
        ],
        notes=[
            "The id is the same all the time, and its tombstones stand for 60 s. A moment is when"
            " the store holds the record of the commit. A first commit comes an interval after its"
            " tasks have started, in a plain submit as in a life that goes on.",
        ],
    )  # fmt: skip


def _row(name: str, seconds: list[float], plain: float) -> Row:
    middle = median(seconds)
    return {"step": name, "p50, s": middle, "least, s": min(seconds), "most, s": max(seconds),
            "times a submit": middle / plain}  # fmt: skip


async def _measure() -> tuple[list[Round], list[str]]:
    folder = BUILD / "upgrade"
    shutil.rmtree(folder, ignore_errors=True)
    cluster = Cluster("sqlite", folder, {"interval_s": INTERVAL_S, "tombstone_s": 60.0})
    await cluster.start()
    try:
        await asyncio.wait_for(Runner.all_there(cluster), ROUND_S_MAX)
        scene = Scene(cluster, Scenario("upgrade", "measure", nothing, STREAM), "upgrade",
                      Tail(cluster.events))  # fmt: skip
        scene.noted.append(cluster.setting())
        await _submitted(scene, "warm")
        await scene.cancel("warm")
        await _submitted(scene, "j")
        rounds: list[Round] = []
        for number in range(1, ROUNDS + 1):
            rounds.append(await asyncio.wait_for(_round(scene, number), ROUND_S_MAX))
            one = rounds[-1]
            print(f"round {number}: submit {one.plain_s:.2f} s, savepoint {one.saved_s:.2f} s,"
                  f" restore {one.went_on_s:.2f} s", flush=True)  # fmt: skip
        await scene.cancel("j")
        await scene.until_job("CANCELED")
        jobs = scene.jobs.values()
        flaws = [f for j in jobs for f in j.shape.flaws(j.out, finished=False, kind=j.sink)]
    finally:
        await cluster.close()
    cluster.remove()
    return rounds, flaws


async def _round(scene: Scene, number: int) -> Round:
    """Submit a plain job, and upgrade the one that runs; which comes first changes."""
    if number % 2:
        plain_s = await _plain(scene, number)
        saved_s, went_on_s = await _upgrade(scene)
    else:
        saved_s, went_on_s = await _upgrade(scene)
        plain_s = await _plain(scene, number)
    return Round(plain_s, saved_s, went_on_s)


async def _plain(scene: Scene, number: int) -> float:
    took_s = await _submitted(scene, f"plain{number}")
    await scene.cancel(f"plain{number}")
    await scene.until_job("CANCELED", name=f"plain{number}")
    return took_s


async def _submitted(scene: Scene, name: str) -> float:
    """Submit a job; return how long it took to its first commit."""
    began_s = monotonic()
    await scene.submit(name)
    await scene.until(committed(1), name)
    return monotonic() - began_s


async def _upgrade(scene: Scene) -> tuple[float, float]:
    """Stop the job with a savepoint and go on; return how long each took."""
    job = scene.jobs["j"].id
    began_s = monotonic()
    await _asked(scene.client.ask(f"/api/jobs/{job}/savepoint", {}))
    former = await scene.until_job("SAVEPOINT_DONE")
    saved_s = monotonic()
    await _asked(scene.client.ask(f"/api/jobs/{job}/restart", {}))
    await scene.until(lambda p: p.incarnation != former.incarnation and committed(1)(p))
    return saved_s - began_s, monotonic() - saved_s


async def _asked(asking: Awaitable[object]) -> None:
    answer = await asking
    if not getattr(answer, "yes", False):
        raise SystemExit(f"It was refused: {answer}")
