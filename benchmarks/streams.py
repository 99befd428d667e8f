"""Engines that copy files as they arrive, each started as its user would start it."""

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.arrivals import COLUMNS, Arrivals, DeltaLog, Log, Plain, Reader, SinkLog
from benchmarks.peer import python_of

FILES, DELTA, CSV = "files", "Delta", "CSV files"
"""The sinks, as a reader is told of them."""

SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
END_S_MAX = 60


@dataclass(frozen=True)
class Batch:
    """One slice or micro-batch: when it began, how long it took, and how long Spark's jobs ran."""

    began: float
    took_s: float
    inside_s: float


class Engine(ABC):
    """One engine at work: a process that writes to `out` what arrives, and a reader of that."""

    name: str

    def __init__(self, folder: Path, sink: str, sample: Path) -> None:
        self.folder = folder
        self.sink = sink
        self.arrivals = Arrivals(folder / "in", folder / "outbox")
        self.out = folder / "out"
        self.reader = Reader(self.out, self.log(sink))
        command, settings = self.command(sample), os.environ | self.settings()
        with (folder / "said.txt").open("w") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, env=settings)

    def settings(self) -> Mapping[str, str]:
        """Return what it needs in its environment."""
        return {}

    @abstractmethod
    def command(self, sample: Path) -> Sequence[str]:
        """Return what to run; `sample` has files as they will arrive."""

    @abstractmethod
    def log(self, sink: str) -> Log:
        """Return what tells a reader which files count."""

    @abstractmethod
    def batches(self) -> list[Batch]:
        """Return every slice or micro-batch that had rows, once the engine has ended.

        An engine that does not cut its stream into such has none.
        """

    def end(self) -> None:
        """Tell it to end, wait for it, and look no more at what it writes."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise SystemExit(f"{self.name} does not end.\n{self.said()}") from None
        finally:
            self.reader.close()

    def check_alive(self) -> None:
        """Raise if the process has ended by itself."""
        if self.process.poll() is not None:
            raise SystemExit(f"{self.name} has ended.\n{self.said()}")

    def said(self) -> str:
        """Return the end of what it has printed."""
        return (self.folder / "said.txt").read_text()[-3000:]


class Holdfast(Engine):
    """A streaming job file and `holdfast run`."""

    name = "Holdfast"

    def settings(self) -> Mapping[str, str]:
        return {"HOLDFAST_LOG_LEVEL": "debug"}  # each slice, with how long it took

    def command(self, sample: Path) -> Sequence[str]:
        fields = " ".join(f'{name} = "{kind}",' for name, kind in COLUMNS.items())
        form = "csv" if self.sink == CSV else "parquet"
        written = f'LocalFile {{ path = "{self.out}", file_format_type = {form} }}'
        if self.sink == DELTA:
            written = f'Delta {{ path = "{self.out}" }}'
        job = self.folder / "job.conf"
        job.write_text(
            f"""env {{ job.mode = STREAMING, checkpoint.interval = 1000 }}
source {{ LocalFile {{ path = "{self.arrivals.folder}", file_format_type = csv
  schema {{ fields {{ {fields} }} }} }} }}
sink {{ {written} }}
"""
        )
        log = str(self.folder / "holdfast.log")
        return [sys.executable, "-m", "holdfast", "run", "--quiet", "--log-file", log, str(job)]

    def log(self, sink: str) -> Log:
        return DeltaLog() if sink == DELTA else Plain()

    def batches(self) -> list[Batch]:
        lines = (self.folder / "holdfast.log").read_text().splitlines()
        slices = [e for e in map(json.loads, lines) if e["message"] == "slice staged"]
        return [_slice(e) for e in slices if e["rows"]]


class MicroBatches(Engine):
    """Spark Structured Streaming, in a script."""

    name = "Structured Streaming"

    def command(self, sample: Path) -> Sequence[str]:
        script = str(Path(__file__).with_name("micro_batches.py"))
        places = (self.arrivals.folder, self.out, self.folder / "state")
        return [sys.executable, script, self.sink, *map(str, places), SCHEMA, str(sample)]

    def log(self, sink: str) -> Log:
        return DeltaLog() if sink == DELTA else SinkLog()

    def batches(self) -> list[Batch]:
        progress = json.loads((self.folder / "state" / "progress.json").read_text())
        return [_micro_batch(b) for b in progress if b["numInputRows"]]


class Flink(Engine):
    """PyFlink's Table API, in a script."""

    name = "PyFlink"

    def command(self, sample: Path) -> Sequence[str]:
        script = str(Path(__file__).with_name("peers") / "flink_stream.py")
        places = (self.arrivals.folder, self.out, self.folder / "state")
        return [str(python_of("pyflink")), script, *map(str, places), SCHEMA]

    def log(self, sink: str) -> Log:
        return Plain()

    def batches(self) -> list[Batch]:
        return []


def _slice(said: Mapping[str, Any]) -> Batch:
    ended = datetime.fromisoformat(said["time"]).timestamp()
    return Batch(ended - said["took_s"], said["took_s"], said["spark_s"])


def _micro_batch(progress: Mapping[str, Any]) -> Batch:
    took = progress["durationMs"]
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return Batch(began, took["triggerExecution"] / 1000, took["addBatch"] / 1000)
