"""A control plane to measure: a store with jobs in it, two masters, and workers without Spark.

The records are written as a former leader would have left them: every task runs on some worker, and
three checkpoints are complete.  So a thousand jobs are there in a second, and the first thing that
is measured is what a new leader does with them.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from benchmarks.measure import TICKS
from benchmarks.stub_worker import CrewFile, Member
from holdfast.api.sealing import SPEC
from holdfast.client import Client
from holdfast.config import load_config
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.checkpoint import CheckpointKind, Checkpoints, Completed
from holdfast.core.commit import Commits
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import STOPPED, PipelineRecord
from holdfast.core.task import TaskStatus, WorkerId
from holdfast.master.admission import new_records
from holdfast.master.checkpoint_content import blob_name
from holdfast.master.records import encode, job_key, pipeline_key
from holdfast.model.job import JobPlan as Planned
from holdfast.model.secret import Secret
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec
from holdfast.security.seal import Seal
from holdfast.security.token_files import join_token
from holdfast.store.contract import Put
from holdfast.store.open import open_store
from holdfast.wire.messages import TaskKey
from tests.chaos.engine.servers import SERVERS, Server, free_ports

TOKEN = "bench-token-bench-token-bench-token"
LIFE = "18a0c0ffee"
PATIENCE_S = 120.0
KEPT = 3
TOGETHER = 40
"""So many records are written in one commit."""

BEAT_S = 0.5
"""How often a worker says that it lives, and what it runs."""


@dataclass(frozen=True)
class Size:
    """How much there is, and how often checkpoints are due."""

    jobs: int
    tasks: int = 10
    workers: int = 50
    interval_s: float = 10.0
    tombstones: int = 0
    tombstone_s: float = 3600.0
    files: int = 1
    """How many files each task stages between two checkpoints."""


class Cluster:
    """The processes of one measurement, in a folder."""

    def __init__(
        self, kind: str, folder: Path, size: Size, master: str = "benchmarks.control_master"
    ) -> None:
        self.kind = kind
        self.folder = folder
        self.size = size
        self.master = master
        for part in ("store", "blobs", "logs", "M1", "M2"):
            (folder / part).mkdir(parents=True)
        self.server: Server = SERVERS[kind](folder / "store")
        self.ports = dict(zip(("M1", "M2"), free_ports(2), strict=True))
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports.values()]
        self.spec, self.planned = _job(size)
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *masters: str) -> None:
        """Fill the store, start everybody, and wait until the first master has it all in hand."""
        self.server.start()
        asyncio.run(self._fill())
        self._launch("workers", ["benchmarks.stub_worker", str(self._crew())])
        for name in masters or ("M1", "M2"):
            self.start_master(name)
            self.wait(lambda name=name: (self.folder / name / "status.json").exists())  # type: ignore[misc]
        self.wait(lambda: bool(self.status("M1")["controlled_s"]))

    def start_master(self, name: str) -> None:
        """Start a master."""
        arguments = [str(self.folder / name), str(self.size.workers)]
        self._launch(name, [self.master, *arguments], self._environ(name))

    def kill(self, name: str) -> None:
        """Kill -9 a process."""
        self._children[name].send_signal(signal.SIGKILL)
        self._children.pop(name).wait()

    def close(self) -> None:
        """End everything."""
        for name in list(self._children):
            self.kill(name)
        self.server.remove()

    def client(self, name: str) -> Client:
        """Return a client of a master."""
        return Client(f"http://127.0.0.1:{self.ports[name]}", TOKEN)

    def status(self, name: str) -> dict[str, float]:
        """Return what a master last told of itself."""
        found: dict[str, float] = json.loads((self.folder / name / "status.json").read_text())
        return found

    def wait(self, there: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait for something; a process that has ended, or a long wait, is an error."""
        until_s = time.monotonic() + patience_s
        while not there():
            for name, child in self._children.items():
                if child.poll() is not None:
                    raise SystemExit(f"{name} ended:\n{self._said(name)}")
            if time.monotonic() > until_s:
                said = "\n".join(self._said(name) for name in self._children)
                raise SystemExit(f"{self.kind}, {self.size}: waited {patience_s:g} s:\n{said}")
            time.sleep(0.02)

    def speed(self, name: str, factor: float) -> None:
        """Have checkpoints be due more often, or (0) not at all."""
        (self.folder / name / "speed").write_text(str(factor))

    def profile(self, name: str) -> str:
        """Return where the time of a master's event loop goes just now."""
        (self.folder / name / "profile.wanted").touch()
        self.wait(lambda: (self.folder / name / "profile").exists())
        return (self.folder / name / "profile").read_text()

    def lines(self, name: str, what: str) -> list[tuple[float, ...]]:
        """Return the moments that a master has noted."""
        text = (self.folder / name / what).read_text()
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [tuple(float(part) for part in line.split()) for line in whole]

    def cpu_s(self, name: str) -> float:
        """Return the CPU seconds that a process has spent: a master, `workers` or `store`."""
        child = self.server.process if name == "store" else self._children[name]
        if child is None:
            return 0.0  # a file
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self, name: str, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Let a process stand still while something is done, and for some time after."""
        self._children[name].send_signal(signal.SIGSTOP)
        try:
            meanwhile()
            time.sleep(seconds)
        finally:
            self._children[name].send_signal(signal.SIGCONT)

    def log(self, name: str) -> str:
        """Return all that a process has said."""
        return (self.folder / "logs" / f"{name}.log").read_text(errors="replace")

    def rss_kb(self, name: str) -> int:
        """Return the memory of a process."""
        status = Path(f"/proc/{self._children[name].pid}/status").read_text()
        line = next(x for x in status.splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1])

    def _said(self, name: str) -> str:
        return (self.folder / "logs" / f"{name}.log").read_text(errors="replace")[-2_000:]

    def _launch(self, name: str, module: list[str], environ: dict[str, str] | None = None) -> None:
        with (self.folder / "logs" / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(
                [sys.executable, "-m", *module], env={**os.environ, **(environ or {})},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _environ(self, name: str) -> dict[str, str]:
        return {
            "HOLDFAST_NAME": name,
            "HOLDFAST_TOKEN": TOKEN,
            "HOLDFAST_STORE": self.server.url(self.server.port),
            "HOLDFAST_BLOBS": str(self.folder / "blobs"),
            "HOLDFAST_LISTEN": f"127.0.0.1:{self.ports[name]}",
            "HOLDFAST_MASTERS": ",".join(self.urls),
            "HOLDFAST_LOGS": str(self.folder / "logs" / name),
            "HOLDFAST_TOMBSTONE_S": str(self.size.tombstone_s),
        }

    def _worker_of(self, job: int, task: int) -> int:
        return (job * self.size.tasks + task) % self.size.workers

    def _crew(self) -> Path:
        """Write down who works, and what each holds."""
        each = -(-self.size.jobs * self.size.tasks // self.size.workers)
        members = [Member(f"w{i:03}", f"w{i:03}-1", 2 * each, []) for i in range(self.size.workers)]
        for job, (_, pipeline) in enumerate(self._running()):
            for number, task in enumerate(pipeline.tasks):
                key = TaskKey(pipeline.job, LIFE, pipeline.number, task.id)
                members[self._worker_of(job, number)].held.append((key, 1))
        config = load_config({}, {"HOLDFAST_TOKEN": TOKEN}).config
        first = self._records("x", JobStatus.RUNNING)[1]
        crew = CrewFile(
            self.urls, join_token(config, create=False).reveal(), BEAT_S,
            {t.id: list(t.sources) for t in first.tasks}, first.sinks[0], members,
            self.size.files, str(self.folder / "withhold"),
        )  # fmt: skip
        path = self.folder / "crew.json"
        path.write_bytes(msgspec.json.encode(crew))
        return path

    async def _fill(self) -> None:
        store = await open_store(self.server.url(self.server.port))
        try:
            puts: list[Put] = []
            for job, pipeline in (*self._running(), *self._over()):
                puts.append(Put(job_key(job.id), encode(job)))
                puts.append(Put(pipeline_key(job.id, pipeline.number), encode(pipeline)))
                self._blobs(pipeline)
                if len(puts) >= TOGETHER:
                    await store.commit([], puts)
                    puts = []
            await store.commit([], puts)
        finally:
            await store.close()

    def _blobs(self, pipeline: PipelineRecord) -> None:
        for one in pipeline.checkpoints.kept:
            path = self.folder / "blobs" / one.blob
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"a former leader's")

    def _running(self) -> Iterator[tuple[JobRecord, PipelineRecord]]:
        for number in range(self.size.jobs):
            job, pipeline = self._records(f"job-{number:05}", JobStatus.RUNNING)
            tasks = tuple(
                replace(task, status=TaskStatus.RUNNING, place=WorkerId(f"w{w:03}", f"w{w:03}-1"))
                for i, task in enumerate(pipeline.tasks)
                for w in (self._worker_of(number, i),)
            )
            yield job, replace(pipeline, tasks=tasks)

    def _over(self) -> Iterator[tuple[JobRecord, PipelineRecord]]:
        for number in range(self.size.tombstones):
            job, pipeline = self._records(f"over-{number:05}", JobStatus.CANCELED)
            tasks = tuple(replace(t, status=TaskStatus.DONE) for t in pipeline.tasks)
            yield replace(job, ended_s=time.time()), replace(pipeline, tasks=tasks, status=STOPPED)

    def _records(self, name: str, status: JobStatus) -> tuple[JobRecord, PipelineRecord]:
        job, (pipeline,) = new_records(name, LIFE, f"token-{name}", self.spec, self.planned)
        done = tuple(
            Completed(n, CheckpointKind.PERIODIC, blob_name(pipeline, n, 1), n - 1, time.time())
            for n in range(1, KEPT + 1)
        )
        since_s = time.time()
        checkpoints = Checkpoints(next=KEPT + 1, latest=done[-1], kept=done)
        commits = Commits(through=KEPT, listened=KEPT)
        return replace(job, status=status, since_s=since_s), replace(
            pipeline, checkpoints=checkpoints, commits=commits, since_s=since_s
        )


def _job(size: Size) -> tuple[str, Planned]:
    """Return a job of one pipeline with so many tasks, sealed as a submit seals it."""
    sources = "\n".join(
        f'FakeSource {{ plugin_output = "s{i}", row.num = 100, schema {{ fields {{ id = bigint,'
        f' name = string, amount = "decimal(12,2)" }} }} }}'
        for i in range(size.tasks)
    )
    inputs = ", ".join(f'"s{i}"' for i in range(size.tasks))
    text = f"""env {{ job.mode = STREAMING, checkpoint.interval = {int(size.interval_s * 1000)} }}
source {{
{sources}
}}
sink {{ Console {{ plugin_input = [{inputs}] }} }}
"""
    report = CheckReport()
    tree = parse_job(text, "bench.conf", {}, None, report)
    report.raise_if_any()
    assert tree is not None
    spec = JobSource("bench.conf", tree)
    planned = spec.job(Registry.load([]), report)
    assert [len(p.tasks) for p in planned.pipelines] == [size.tasks], "one pipeline is meant"
    return Seal([Secret(TOKEN)]).close(encode_spec(spec), SPEC), planned
