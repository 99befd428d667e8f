"""Start masters and workers as a user does, and end them by their process ids."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.client import Client
from holdfast.model.secret import Secret
from tests.conformance.servers import free_ports

COMMAND = [sys.executable, "-m", "holdfast"]
TOKEN = "a token for tests"
START_S = 180.0


class Cluster:
    """Masters and workers of one test module, on free ports and a folder of their own."""

    def __init__(self, folder: Path, store: str = "", masters: int = 1) -> None:
        self.folder = folder
        self.ports = free_ports(masters)
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.environ = {
            **os.environ,
            "HOLDFAST_AOT": "use",
            "HOLDFAST_HOME": str(folder / "home"),
            "HOLDFAST_STORE": store or f"sqlite:{folder / 'store.db'}",
            "HOLDFAST_BLOBS": str(folder / "blobs"),
            "HOLDFAST_MASTERS": ",".join(self.urls),
            "HOLDFAST_TOKEN": TOKEN,
            "HOLDFAST_TOMBSTONE_S": "1",
            "HOLDFAST_LOGS": str(folder / "logs"),
        }
        self.client = Client(self.urls, Secret(TOKEN), 60.0)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def master(self, number: int = 1) -> subprocess.Popen[bytes]:
        return self.start(
            f"M{number}", "master", HOLDFAST_LISTEN=f"127.0.0.1:{self.ports[number - 1]}"
        )

    def worker(self, name: str = "W1", slots: int = 4, **more: str) -> subprocess.Popen[bytes]:
        return self.start(name, "worker", HOLDFAST_SLOTS=str(slots), HOLDFAST_CORES="1", **more)

    def start(self, name: str, verb: str, **environ: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.out").open("ab") as out:
            process = subprocess.Popen(
                [*COMMAND, verb],
                env={**self.environ, "HOLDFAST_NAME": name, **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self.processes[name] = process
        return process

    def end(self) -> None:
        self.client.close()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that is to be watched while it runs."""
        return subprocess.Popen(
            [*COMMAND, *arguments], cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """What a verb says with --json."""
        answer = self.ask(*arguments, "--json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def knows(self, job: str) -> bool:
        """Whether a job of this id was accepted."""
        return job in [j.job_id for j in self.client.jobs().jobs]

    def committed(self, job: str, number: int) -> bool:
        """Whether the first pipeline of a job has committed this checkpoint."""
        found = self.client.job(job)
        return bool(found.pipelines and found.pipelines[0].committed >= number)

    def until(self, what: str, ready: Callable[[], Any], seconds: float = START_S) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := ready()):
            assert time.monotonic() < deadline, f"not in {seconds} s: {what}\n{self.said()}"
            time.sleep(0.1)
        return found

    def said(self) -> str:
        """The ends of all logs, for a test that fails."""
        outs = [self.folder / f"{name}.out" for name in self.processes]
        return "\n".join(f"--- {o.name}\n{o.read_text()[-3000:]}" for o in outs)


def batch(folder: Path, rows: int = 20) -> str:
    return f"""
env {{ job.name = "a batch", job.mode = BATCH }}
source {{
  FakeSource {{ plugin_output = f, row.num = {rows}, schema {{ fields {{ id = bigint }} }} }}
}}
sink {{ LocalFile {{ plugin_input = f, path = "{folder}", file_format_type = json }} }}
"""


def stream(folder: Path) -> str:
    return f"""
env {{ job.name = "a stream", job.mode = STREAMING, checkpoint.interval = 500 }}
source {{ FakeSource {{ plugin_output = f, row.num = 3, split.num = 100, split.read-interval = 200,
  schema {{ fields {{ id = bigint }} }} }} }}
sink {{ LocalFile {{ plugin_input = f, path = "{folder}", file_format_type = json }} }}
"""
