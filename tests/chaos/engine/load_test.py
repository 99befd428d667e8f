"""`python -m tests.chaos.engine.load_test`: many jobs at once on a cluster with few slots.

Many small batch jobs are submitted together.  Each must start in the order of its submit, explain
what it waits for, and end with every row once.  Then endless jobs take the slots, and half of all
jobs, running and waiting, are cancelled at once.
"""

import argparse
import asyncio
import shutil
import signal
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import HoldfastError
from holdfast.master.records import decode
from holdfast.store.open import open_store
from tests.chaos.engine.client import Client
from tests.chaos.engine.jobs import ENDLESS, From, Shape
from tests.chaos.engine.ledger import Ledger
from tests.chaos.engine.process import Process
from tests.chaos.engine.servers import free_ports
from tests.chaos.engine.spec import spec_text

FOLDER = Path("build/load-test")
TOKEN = "crowd-token-crowd-token-crowd-token"
WORKERS, SLOTS = ("W1", "W2"), 2
AT_ONCE = 64
LOOK_S = 0.1
READY_S = 120.0
JOB_S = 3.0
"""How long a small job may take, all told, before this run is given up."""

SMALL = Shape(((From(1, 5, 0),),), interval_ms=None, retries=0)
STREAM = Shape(((From(ENDLESS, 3, 500),),), interval_ms=2000, streaming=True, retries=0)


@dataclass
class Board:
    """What the store says of all jobs, in its own order: created, started, ended."""

    ledger: Ledger
    created: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    status: dict[str, JobStatus] = field(default_factory=dict)
    _read: int = 0

    def look(self) -> None:
        """Take in what is new."""
        fresh = self.ledger.applied[self._read :]
        self._read += len(fresh)
        for change in (c for one in fresh for c in one.changes if c.item):
            assert change.item
            if change.key.startswith("job/"):
                self._job(decode(JobRecord, change.item.value))
            elif change.key.startswith("pipeline/"):
                self._pipeline(decode(PipelineRecord, change.item.value))

    async def until(self, status: Iterable[JobStatus], jobs: Iterable[str], limit_s: float) -> None:
        """Wait until all these jobs stand so."""
        wanted, names, deadline = set(status), list(jobs), monotonic() + limit_s
        while True:
            self.look()
            late = [j for j in names if self.status.get(j) not in wanted]
            if not late:
                return
            if monotonic() > deadline:
                shown = ", ".join(f"{j} {self.status.get(j)}" for j in late[:5])
                raise HoldfastError(f"{len(late)} jobs not there after {limit_s:.0f} s: {shown}")
            await asyncio.sleep(LOOK_S)

    def _job(self, job: JobRecord) -> None:
        if job.id not in self.status:
            self.created.append(job.id)
        self.status[job.id] = job.status

    def _pipeline(self, pipeline: PipelineRecord) -> None:
        if pipeline.job not in self.started and any(t.place for t in pipeline.tasks):
            self.started.append(pipeline.job)


class Crowd:
    """One master on SQLite, two workers with few slots, and what was found out."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("logs", "jobs", "out"):
            (folder / part).mkdir(parents=True)
        self.folder = folder.resolve()
        self.store = f"sqlite:{self.folder / 'store.db'}"
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.client = Client({"M1": self.url}, TOKEN)
        self.board = Board(Ledger())
        self.figures: list[tuple[str, str]] = []
        self.flaws: list[str] = []
        self.processes = [self._process("M1", "master", HOLDFAST_LISTEN=f"127.0.0.1:{port}")]
        for name in WORKERS:
            slots = {"HOLDFAST_SLOTS": str(SLOTS), "HOLDFAST_CORES": "1"}
            self.processes.append(self._process(name, "worker", **slots))

    def _process(self, name: str, verb: str, **more: str) -> Process:
        environ = {
            "HOLDFAST_NAME": name,
            "HOLDFAST_AOT": "use",
            "HOLDFAST_HOME": str(self.folder / "home"),
            "HOLDFAST_STORE": self.store,
            "HOLDFAST_BLOBS": str(self.folder / "blobs"),
            "HOLDFAST_MASTERS": self.url,
            "HOLDFAST_TOKEN": TOKEN,
            "HOLDFAST_TOMBSTONE_S": "2",
            "HOLDFAST_LOGS": str(self.folder / "logs" / name),
            **more,
        }
        return Process(name, verb, environ, self.folder / "logs")

    async def run(self, count: int) -> int:
        """Do everything; return the exit code."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE))
        for process in self.processes:
            process.start()
        watching: asyncio.Task[None] | None = None
        try:
            await asyncio.wait_for(self._workers(), READY_S)
            store = await open_store(self.store)
            watching = asyncio.ensure_future(self.board.ledger.watch(store))
            await self._warm_up()
            await self._small_jobs(count)
            await self._cancel_half(count)
        except (HoldfastError, TimeoutError) as error:
            self.flaws.append(f"given up: {error or 'no worker came'}")
        finally:
            for process in reversed(self.processes):
                process.kill()
            if watching:
                watching.cancel()
        return self._report()

    async def _workers(self) -> None:
        while await self.client.workers() < len(WORKERS):
            await asyncio.sleep(LOOK_S)

    async def _warm_up(self) -> None:
        """Have every slot run something, so that Spark's start is not in the figures."""
        jobs = [f"first{n}" for n in range(len(WORKERS) * SLOTS)]
        await self._submit(jobs, SMALL)
        await self.board.until(TERMINAL, jobs, READY_S + len(jobs) * JOB_S)

    async def _small_jobs(self, count: int) -> None:
        jobs = [f"small{n:03}" for n in range(count)]
        begun = monotonic()
        await self._submit(jobs, SMALL)
        accepted_s = monotonic() - begun
        await self._explained(jobs, "of the small jobs")
        await self.board.until(TERMINAL, jobs, READY_S + count * JOB_S)
        took_s = monotonic() - begun
        self._figure("small jobs submitted at once", f"{count}, accepted in {accepted_s:.1f} s")
        self._figure("all ended after", f"{took_s:.1f} s, {count / took_s:.1f} jobs/s")
        ended = [j for j in jobs if self.board.status[j] is JobStatus.FINISHED]
        self._expect("FINISHED", len(ended), count)
        mine = set(jobs)
        order = [j for j in self.board.created if j in mine]
        starts = [j for j in self.board.started if j in mine]
        late = sum(a != b for a, b in zip(order, starts, strict=False))
        self._expect("started in the order of submit", len(starts) - late, count)
        right = [j for j in ended if not self._row_flaws(j)]
        self._expect("each row exactly once", len(right), count)

    async def _cancel_half(self, count: int) -> None:
        jobs = [f"stream{n:03}" for n in range(count)]
        await self._submit(jobs, STREAM)
        room = len(WORKERS) * SLOTS
        running = [j for j in self.board.created if j in set(jobs)][:room]
        await self.board.until([JobStatus.RUNNING], running, READY_S)
        waiting = [j for j in jobs if j not in running]
        await self._explained(waiting, "behind endless jobs", holders=running)
        chosen = [*running, *waiting][: count // 2]
        begun = monotonic()
        answers = await asyncio.gather(*(self.client.cancel(j) for j in chosen))
        answered_s = monotonic() - begun
        await self.board.until(TERMINAL, chosen, READY_S)
        took_s = monotonic() - begun
        self._expect("cancels answered yes", sum(a.yes for a in answers), len(chosen))
        kinds = f"{len(running)} running and {len(chosen) - len(running)} waiting"
        self._figure("cancelled at once", f"{kinds}, answered in {answered_s:.1f} s")
        self._figure("all of them over after", f"{took_s:.1f} s")
        ended = [j for j in chosen if self.board.status[j] is JobStatus.CANCELED]
        self._expect("CANCELED", len(ended), len(chosen))
        left = [j for j in jobs if j not in chosen]
        await self.board.until([JobStatus.RUNNING], left[:room], READY_S)
        self._figure("the next ones got the slots", f"{len(left[:room])} run")
        await asyncio.gather(*(self.client.cancel(j) for j in left))
        await self.board.until(TERMINAL, left, READY_S)
        self._expect("the rest over too", sum(self.board.status[j] in TERMINAL for j in left),
                     len(left))  # fmt: skip

    async def _submit(self, jobs: list[str], shape: Shape) -> None:
        specs = {}
        for job in jobs:
            file = self.folder / "jobs" / f"{job}.conf"
            file.write_text(shape.text(job, self.folder / "out" / job))
            specs[job] = spec_text(file)
        asked = [self.client.submit(job, specs[job], f"token of {job}") for job in jobs]
        answers = await asyncio.gather(*asked)
        refused = [a.message for a in answers if not a.yes]
        if refused:
            raise HoldfastError(f"{len(refused)} submits were refused: {refused[0]}")
        while True:
            self.board.look()
            if set(jobs) <= set(self.board.created):
                return
            await asyncio.sleep(LOOK_S)

    async def _explained(self, jobs: list[str], which: str, holders: Iterable[str] = ()) -> None:
        """Ask what every waiting job waits for; each must name its place and who holds slots."""
        found = await asyncio.gather(*(self.client.ask(f"/api/jobs/{j}/explain") for j in jobs))
        waiting = [a.body for a in found if a.yes and a.body["status"] == JobStatus.PENDING]
        named = [body for body in waiting if _names(body, list(holders))]
        self._expect(f"explain names what each waits for, {which}", len(named), len(waiting))
        for body in [b for b in waiting if b not in named][:1]:
            self.flaws.append(f"explain of {body['job']} says only: {body['waits']}")
        if not waiting:
            self.flaws.append("no job waited: there is nothing to see")

    def _row_flaws(self, job: str) -> list[str]:
        found = SMALL.flaws(self.folder / "out" / job, finished=True)
        self.flaws += [f"{job}: {flaw}" for flaw in found]
        return found

    def _figure(self, what: str, value: str) -> None:
        self.figures.append((what, value))

    def _expect(self, what: str, found: int, wanted: int) -> None:
        self._figure(what, f"{found} of {wanted}")
        if found != wanted:
            self.flaws.append(f"{what}: {found} of {wanted}")

    def _report(self) -> int:
        width = max((len(what) for what, _ in self.figures), default=0)
        for what, value in self.figures:
            print(f"{what:<{width}}  {value}")
        for flaw in self.flaws[:20]:
            print(f"FLAW: {flaw}")
        if self.flaws:
            print(f"kept: {self.folder}")
            print("\n".join(p.tail() for p in self.processes))
            return 1
        shutil.rmtree(self.folder, ignore_errors=True)
        return 0


def _names(body: dict[str, Any], holders: list[str]) -> bool:
    """Say whether an explanation names the place in the queue, and one who holds slots."""
    waits = body["waits"]
    if not waits or "jobs that wait to start" not in waits[0]["what"] or not waits[0]["whom"]:
        return False
    whom = waits[0]["whom"]
    return not holders or ("slots held by" in whom and any(f"job {h} " in whom for h in holders))


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description="Many jobs at once on few slots.")
    parser.add_argument("--jobs", type=int, default=200)
    asked = parser.parse_args()
    # However it is ended, the cluster goes with it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    return asyncio.run(Crowd(FOLDER).run(asked.jobs))


if __name__ == "__main__":
    sys.exit(main())
