"""`python -m tests.chaos.engine.pause_masters`: do tasks write on while all masters are paused?

Staged rows are counted in a quiet period and, in the same run, while every master is paused
(SIGSTOP).  An independent reader counts them in the sink: staged files or tables, and what is
visible.
"""

import argparse
import asyncio
import shutil
import signal
import sys
from pathlib import Path
from time import monotonic

from tests.chaos.engine.cluster import PATIENT, Cluster
from tests.chaos.engine.jobs import From, Shape
from tests.chaos.engine.moments import committed
from tests.chaos.engine.run import Runner, judge, nothing
from tests.chaos.engine.scene import Scenario, Scene
from tests.chaos.engine.servers import SERVERS
from tests.chaos.engine.sinks import KINDS
from tests.chaos.engine.tail import Tail

BUILD = Path("build/chaos")
SHARE_LEAST = 0.95
READY_S = 300.0
FLOW = Shape(((From(100_000, 20, 100), From(100_000, 20, 100)),), interval_ms=1000, streaming=True)


async def measure(store: str, sink: str, seconds: float) -> bool:
    """Measure one kind of sink; say whether writers did not wait."""
    folder = BUILD / f"pause-masters-{store}-{sink}"
    shutil.rmtree(folder, ignore_errors=True)
    cluster = Cluster(store, folder, PATIENT)
    await cluster.start()
    try:
        await asyncio.wait_for(Runner.all_there(cluster), READY_S)
        scenario = Scenario("pause-masters", sink, nothing, FLOW, sink=sink)
        scene = Scene(cluster, scenario, "paused", Tail(cluster.events))
        scene.noted.append(cluster.setting())
        await asyncio.to_thread(scene.sink.start)
        await scene.submit()
        await scene.until(committed(10))
        quiet = await _rows(scene, seconds)
        for name in cluster.masters:
            scene.note_fault("pause", name)
            cluster.process(name).stop()
        paused = await _rows(scene, seconds)
        for name in cluster.masters:
            cluster.process(name).go_on()
        await scene.further(2)
        scene.untouched()
        await scene.rest()
        flaws = await asyncio.to_thread(judge, scene)
    finally:
        await cluster.close()
    share = paused / quiet
    held = share >= SHARE_LEAST and not flaws
    print(
        f"{sink:<14} rows staged in {seconds:g} s: quiet {quiet:.0f}, all masters paused"
        f" {paused:.0f}; ratio {share:.3f} (at least {SHARE_LEAST})"
        f" {'ok' if held else 'FAILED'}",
        flush=True,
    )
    for flaw in flaws:
        print(f"    {flaw}", flush=True)
    if held:
        cluster.remove()
    return held


async def _rows(scene: Scene, seconds: float) -> float:
    """Return how many rows are staged in a time."""
    began_s, before = await _staged(scene)
    await asyncio.sleep(seconds)
    ended_s, after = await _staged(scene)
    return (after - before) * seconds / (ended_s - began_s)


async def _staged(scene: Scene) -> tuple[float, int]:
    """Return a moment, and how many rows were staged by then, shown or not.

    Staged ones are looked at first: a row that is being committed is then seen twice, not never.
    """
    out = scene.jobs["j"].out
    at_s = monotonic()
    hidden = await asyncio.to_thread(scene.sink.hidden, out)
    shown = await asyncio.to_thread(scene.sink.shown, out, "p1")
    return at_s, len({*hidden, *shown})


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description="Freeze all masters; do writers go on?")
    parser.add_argument("--sink", default="files", help="kinds, such as files,delta")
    parser.add_argument("--store", default="etcd", choices=sorted(SERVERS))
    parser.add_argument("--seconds", type=float, default=30.0)
    asked = parser.parse_args()
    sinks = asked.sink.replace(",", " ").split()
    unknown = sorted(set(sinks) - set(KINDS))
    if unknown:
        parser.error(f"there is no sink {', '.join(unknown)}; known: {', '.join(KINDS)}")
    # However it is ended, the cluster goes with it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    held = [asyncio.run(measure(asked.store, sink, asked.seconds)) for sink in sinks]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
