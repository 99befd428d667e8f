"""A real master with a probe: it notes when checkpoints begin and become durable, and nothing else.

`python -m benchmarks.control_master FOLDER WORKERS` is `holdfast master`, configured by the
environment.  In FOLDER it keeps

    samples      one line a checkpoint: due, reserved, durable (seconds of the monotonic clock)
    commits      one line a commit: durable, committed
    status.json  when it was elected, when all was under control, how many jobs there are
    profile      where the event loop's time went, once the benchmark has made `profile.wanted`
    speed        written by the benchmark: how much faster than their job files say checkpoints
                 are due; 0: none are
"""

import asyncio
import cProfile
import io
import json
import os
import pstats
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.cli.main import main
from holdfast.core.checkpoint import CheckpointDue, CheckpointKind, CheckpointStored, LeaderChanged
from holdfast.core.commit import Committed
from holdfast.core.pipeline import PipelineRecord
from holdfast.master import pipeline_keeper
from holdfast.master.leader import Leader
from holdfast.master.master import Master
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.process import master_process as node
from holdfast.wire.messages import Heartbeat

LOOK_S = 0.1
PROFILE_S = 5.0
PROFILE_LINES = 25

now = time.monotonic


class Probe:
    """What one master process has seen of itself."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.workers = workers
        self.speed = 1.0
        self.elected_s = self.controlled_s = self.late_s = 0.0
        self.heard: set[str] = set()
        self.taken: set[str] = set()
        self.due: dict[str, tuple[float, float]] = {}
        self.stored: dict[str, tuple[int, float]] = {}
        self.samples = (folder / "samples").open("a", buffering=1 << 16)
        self.commits = (folder / "commits").open("a", buffering=1 << 16)

    async def run(self, master: Master) -> None:
        """Tell how this master stands, again and again."""
        profiling: list[asyncio.Task[None]] = []
        while True:
            asked_s = now()
            await asyncio.sleep(LOOK_S)
            self.late_s = max(self.late_s, now() - asked_s - LOOK_S)
            speed = self.folder / "speed"
            self.speed = float(speed.read_text()) if speed.exists() else 1.0
            self.samples.flush()
            self.commits.flush()
            self._tell(master.leader)
            wanted = self.folder / "profile.wanted"
            if wanted.exists():
                wanted.unlink()
                profiling.append(asyncio.ensure_future(self._profile()))

    async def _profile(self) -> None:
        profiler, told = cProfile.Profile(), io.StringIO()
        profiler.enable()
        await asyncio.sleep(PROFILE_S)
        profiler.disable()
        found = pstats.Stats(profiler, stream=told).strip_dirs()
        found.sort_stats("tottime").print_stats(PROFILE_LINES)
        (self.folder / "profile").write_text(told.getvalue())

    def _tell(self, leader: Leader | None) -> None:
        jobs = list(leader.jobs.values()) if leader and leader.loaded else []
        status = {
            "pid": os.getpid(),
            "leads": leader is not None,
            "elected_s": self.elected_s,
            "controlled_s": self.controlled_s,
            "jobs": len(jobs),
            "over": sum(job.terminal for job in jobs),
            "loop_late_s": self.late_s,
            **self.facts(leader),
        }
        draft = self.folder / "status.draft"
        draft.write_text(json.dumps(status))
        draft.rename(self.folder / "status.json")
        self.late_s = 0.0

    def facts(self, leader: Leader | None) -> dict[str, float]:
        """Return what else is to be told."""
        return {}

    def begin(self) -> None:
        """Hear that this master was elected."""
        self.elected_s, self.controlled_s = now(), 0.0
        self.heard, self.taken = set(), set()

    def look(self, leader: Leader) -> None:
        """Note the moment at which every record is taken over and every worker was answered."""
        if self.controlled_s or len(self.heard) < self.workers or not leader.loaded:
            return
        parts = [p for job in leader.jobs.values() if not job.terminal for p in job.pipelines]
        if len(self.taken) >= len(parts):
            self.controlled_s = now()

    async def watch(self, keeper: PipelineKeeper, handle: Any, *events: object) -> None:
        """Carry out a step of a pipeline, and note what it means."""
        begun_s = now()
        await handle(keeper, *events)
        for event in events:
            match event:
                case CheckpointDue():
                    self.due[keeper.key] = begun_s, now()
                case CheckpointStored(number) if keeper.key in self.due:
                    latest = keeper.state.checkpoints.latest
                    if latest and latest.number == number:
                        due_s, reserved_s = self.due.pop(keeper.key)
                        self.samples.write(f"{due_s} {reserved_s} {now()}\n")
                        self.stored[keeper.key] = number, now()
                case Committed(number) if self.stored.get(keeper.key, (0, 0.0))[0] == number:
                    self.commits.write(f"{self.stored[keeper.key][1]} {now()}\n")
                case LeaderChanged():
                    self.taken.add(keeper.key)


def install(probe: Probe) -> None:
    """Let the probe stand beside the code that it measures."""
    handle, hello, wanted = PipelineKeeper.handle, Leader._hello, pipeline_keeper.wanted
    interval, init, watch = PipelineKeeper.interval_s, Leader.__init__, node._watch

    async def handled(self: PipelineKeeper, *events: object) -> None:
        await probe.watch(self, handle, *events)

    async def greeted(self: Leader, message: Heartbeat) -> None:
        await hello(self, message)
        probe.heard.add(message.incarnation)
        probe.look(self)

    def elected(self: Leader, *about: Any) -> None:
        probe.begin()
        init(self, *about)

    def due(pipeline: PipelineRecord, kind: CheckpointKind) -> bool:
        return wanted(pipeline, kind) and (probe.speed > 0 or kind is not CheckpointKind.PERIODIC)

    async def watched(parts: Any) -> None:
        await asyncio.gather(watch(parts), probe.run(parts.master))

    def faster(self: PipelineKeeper) -> float:
        assert interval.fget
        return float(interval.fget(self)) / (probe.speed or 1.0)

    PipelineKeeper.handle = handled  # type: ignore[method-assign, assignment]
    PipelineKeeper.interval_s = property(faster)  # type: ignore[assignment]
    Leader._hello = greeted  # type: ignore[method-assign]
    Leader.__init__ = elected  # type: ignore[method-assign]
    pipeline_keeper.wanted = due
    node._watch = watched


if __name__ == "__main__":
    install(Probe(Path(sys.argv[1]), int(sys.argv[2])))
    sys.argv[1:] = ["master"]
    main()
