"""A real master as `control_master` runs it, whose commits wait while a file says so.

`python -m benchmarks.waiting_master FOLDER WORKERS`.  In FOLDER it keeps, beside the other's,

    hold     written by the benchmark: while it is there, no sink can be reached
    acks     one line an answer to a barrier: its checkpoint's number, its bytes on the wire
    lost     one line for each task that was taken from a worker: which, and why
    terms    one line for each time it was elected
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks.control_master import Probe, install
from holdfast.cli.main import main
from holdfast.core.task import TaskFailed, WorkerLost
from holdfast.errors import Unavailable
from holdfast.master.leader import Leader
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.process import links
from holdfast.process.committers import SinkTables
from holdfast.wire.codec import decode
from holdfast.wire.messages import BarrierAck, ToLeader, ToWorker


class WaitingProbe(Probe):
    """What one master has seen, with the bytes of answers and whatever was lost."""

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder, workers)
        self.acks = (folder / "acks").open("a", buffering=1)
        self.lost = (folder / "lost").open("a", buffering=1)
        self.terms = (folder / "terms").open("a", buffering=1)

    def begin(self) -> None:
        """Count terms, too."""
        super().begin()
        self.terms.write(f"{self.elected_s}\n")

    def facts(self, leader: Leader | None) -> dict[str, float]:
        """Return how many commits wait at most, and how long ago the quietest worker spoke."""
        if leader is None or not leader.loaded:
            return {"waiting": 0, "silent_s": 0.0}
        parts = [p for job in leader.jobs.values() for p in job.pipelines.values()]
        now_s = leader.desk.ports.clock.now()
        return {
            "waiting": max((len(p.state.commits.waiting) for p in parts), default=0),
            "silent_s": max((now_s - s.at_s for s in leader.crew.seen.values()), default=0.0),
        }

    async def watch(self, keeper: PipelineKeeper, handle: Any, *events: object) -> None:
        """Note what is lost, too."""
        for event in events:
            if isinstance(event, WorkerLost | TaskFailed):
                self.lost.write(f"{keeper.key} {event}\n")
        await super().watch(keeper, handle, *events)


def install_more(probe: WaitingProbe) -> None:
    """Have commits wait, and weigh answers."""
    publish = SinkTables.publish

    async def published(self: SinkTables, *about: Any) -> bool:
        if (probe.folder / "hold").exists():
            raise Unavailable("The benchmark keeps this sink out of reach.")
        return await publish(self, *about)

    def weighed(frame: bytes) -> ToWorker | ToLeader:
        message = decode(frame)
        if isinstance(message, BarrierAck):
            probe.acks.write(f"{message.acked.number} {len(frame)}\n")
        return message

    SinkTables.publish = published  # type: ignore[method-assign]
    links.decode = weighed


if __name__ == "__main__":
    probe = WaitingProbe(Path(sys.argv[1]), int(sys.argv[2]))
    install(probe)
    install_more(probe)
    sys.argv[1:] = ["master"]
    main()
