"""Count the calls that cross from one file of Holdfast to another while rows and facts travel.

    python -m tools.walk write            run, and keep the figures in tools/baseline.json
    python -m tools.walk compare          run again; fail if a walk has become longer
    python -m tools.walk show             print the walks that are kept

Real runs of `holdfast run` are traced in their own process, with all their threads.

- *row*: a batch job, LocalFile to LocalFile, from its command line to its end.  Counted is each
  call of one function by another in another file, once: how often a loop looks is chance.  Only
  what was seen in every one of three runs counts.
- *checkpoint*: from the moment that one is due until it is stored; *commit*: from then until it is
  committed.  The job streams, and is given a file just after each commit, so that nothing else
  moves when the next checkpoint is due.  What every checkpoint does counts, as often as each does
  it at least; what is ever seen between a commit and the next checkpoint, such as a slice or a
  heartbeat, does not, so the figures do not depend on how fast the machine is.

A call through a library counts from the last function of ours.  The steps of an event loop and the
first function of a thread have no caller.  Calls made while a module is imported do not count.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import holdfast
from holdfast.cli.launch import Launch, launch

PACKAGE = str(Path(holdfast.__file__).parent) + os.sep
FILE = Path(__file__).with_name("baseline.json")
FUNCTION = 1
"""The flag of a code object that is a function's, and not a module's or a class's."""

RESUME_START = 0
RUNS = 3
CHECKPOINTS = 7
LEFT_OUT = 2
"""So many checkpoints at the start do what is done once."""

INTERVAL_MS = 5000
CHANCE = 1.01
"""By so much may a row's walk differ between two runs of the same code."""

LOOP = (os.sep + "asyncio" + os.sep + "events.py", os.sep + "threading.py")
DUE, STORED = "before:pipeline.CheckpointDue", "after:pipeline.CheckpointStored"
COMMITTED = ("after:pipeline.Committed",)
MARKS = (DUE, STORED, *COMMITTED)
PASSES = ("hit", "failpoint")
"""What a moment is called in the product: a function whose argument is the moment's name."""

Edge = tuple[str, str, str, str]
"""A call: file and function of the caller, file and function of what it calls."""

BATCH = """
env {{ job.name = walk, job.mode = BATCH, parallelism = 1 }}
source {{ LocalFile {{ plugin_output = rows, path = "{folder}/in", file_format_type = csv
  skip_header_row_number = 1
  schema {{ fields {{ id = bigint, name = string }} }} }} }}
sink {{ LocalFile {{ plugin_input = rows, path = "{folder}/out", file_format_type = parquet }} }}
"""
STREAM = BATCH.replace("BATCH", "STREAMING").replace(
    "parallelism = 1", f"parallelism = 1, checkpoint.interval = {INTERVAL_MS}"
)


class Tracer:
    """Counts calls between files, in phases that marks divide."""

    def __init__(self, marked: "Stage | None" = None) -> None:
        self.phases: list[tuple[str, Counter[Edge]]] = [("start", Counter())]
        self._marked = marked
        self._starts: dict[tuple[CodeType, int], bool] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Begin, in this thread and in all that will be started."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Hear of one call."""
        code = frame.f_code
        if event != "call" or not _ours(code) or not self._begins(frame):
            return
        if code.co_name in PASSES:
            self._mark(str(frame.f_locals.get("name")))
        caller = _caller(frame)
        if caller is None or caller.co_filename == code.co_filename:
            return
        edge = (_file(caller), caller.co_qualname, _file(code), code.co_qualname)
        self.phases[-1][1][edge] += 1

    def _begins(self, frame: FrameType) -> bool:
        """Whether a function is entered, and not gone on with after an `await` or a `yield`."""
        key = (frame.f_code, frame.f_lasti)
        if key not in self._starts:
            argument = frame.f_code.co_code[frame.f_lasti + 1] if frame.f_lasti >= 0 else 0
            self._starts[key] = argument == RESUME_START
        return self._starts[key]

    def _mark(self, name: str) -> None:
        if name in MARKS and self.phases[-1][0] != name:  # points may be wrapped in points
            with self._lock:
                self.phases.append((name, Counter()))
            if self._marked:
                self._marked.reached(name)


class Stage:
    """Gives a streaming job a file after each commit, and ends it after the last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._commits = 0

    def reached(self, name: str) -> None:
        """Hear of a mark."""
        if name not in COMMITTED:
            return
        self._commits += 1
        if self._commits < CHECKPOINTS:
            threading.Timer(0.2, write_rows, (self._folder, self._commits)).start()
        elif self._commits == CHECKPOINTS:
            os.kill(os.getpid(), signal.SIGINT)


def write_rows(folder: Path, number: int) -> None:
    """Move a file of a few rows into place."""
    lines = "".join(f"{number * 10 + i},name {i}\n" for i in range(10))
    draft = folder / f"draft-{number}"
    draft.write_text("id,name\n" + lines)
    draft.rename(folder / "in" / f"rows-{number}.csv")


def _ours(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE) and bool(code.co_flags & FUNCTION)


def _caller(frame: FrameType) -> CodeType | None:
    """Return the last function of ours that led here, unless a loop or a thread began it."""
    outer = frame.f_back
    while outer is not None:
        code = outer.f_code
        if code.co_filename.startswith(PACKAGE):
            return code if code.co_flags & FUNCTION else None
        if code.co_filename.endswith(LOOP) or "importlib" in code.co_filename:
            return None
        outer = outer.f_back
    return None


def _file(code: CodeType) -> str:
    return code.co_filename.removeprefix(PACKAGE)


def trace(kind: str, out: Path) -> None:
    """Run one job under the tracer, in this process; write the phases down."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "in").mkdir()
        write_rows(folder, 0)
        job = folder / "job.conf"
        job.write_text((BATCH if kind == "batch" else STREAM).format(folder=folder))
        tracer = Tracer(Stage(folder) if kind == "stream" else None)
        tracer.install()
        try:
            launch(Launch(job, quiet=True))
        finally:
            sys.setprofile(None)
    rows = [[name, [[*edge, n] for edge, n in counts.items()]] for name, counts in tracer.phases]
    out.write_text(json.dumps(rows))


def run(kind: str) -> list[tuple[str, Counter[Edge]]]:
    """Run one job in a process of its own; return its phases."""
    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "phases.json"
        command = [sys.executable, "-m", "tools.walk", "trace", kind, str(out)]
        subprocess.run(command, check=False, timeout=900, stdout=sys.stderr)
        rows: list[Any] = json.loads(out.read_text())
    return [(name, Counter({(a, b, c, d): n for a, b, c, d, n in edges})) for name, edges in rows]


def row_walk() -> dict[str, int]:
    """Return the calls of a batch job that every run makes, each once."""
    seen: list[set[Edge]] = []
    for _ in range(RUNS):
        seen.append({edge for _, counts in run("batch") for edge in counts})
    return {" ".join(edge): 1 for edge in sorted(set.intersection(*seen))}


def fact_walks() -> tuple[dict[str, int], dict[str, int]]:
    """Return the calls of a checkpoint and of a commit."""
    phases = run("stream")
    idle = [counts for name, counts in phases if name in COMMITTED][LEFT_OUT:-1]
    checkpoints = [counts for name, counts in phases if name == DUE][LEFT_OUT:-1]
    commits = [counts for name, counts in phases if name == STORED][LEFT_OUT:-1]
    if min(len(idle), len(checkpoints), len(commits)) < 3:
        raise SystemExit(f"Too few checkpoints: {[name for name, _ in phases]}.")
    quiet = _every(idle)
    return _usual(checkpoints, quiet), _usual(commits, quiet)


def _usual(windows: Sequence[Counter[Edge]], quiet: set[Edge]) -> dict[str, int]:
    found = {edge: min(counts[edge] for counts in windows) for edge in _every(windows) - quiet}
    return {" ".join(edge): n for edge, n in sorted(found.items()) if n > 0}


def _every(windows: Iterable[Counter[Edge]]) -> set[Edge]:
    return {edge for counts in windows for edge in counts}


def measure() -> dict[str, dict[str, int]]:
    """Return all walks."""
    checkpoint, commit = fact_walks()
    return {"row": row_walk(), "checkpoint": checkpoint, "commit": commit}


def main(arguments: Sequence[str] | None = None) -> int:
    """Trace, write, compare or show."""
    parser = argparse.ArgumentParser(prog="python -m tools.walk")
    parser.add_argument("what", choices=["write", "compare", "show", "trace"])
    parser.add_argument("given", nargs="*", help="of trace: batch or stream, and a file")
    given = parser.parse_args(arguments)
    if given.what == "trace":
        trace(given.given[0], Path(given.given[1]))
        return 0
    if given.what == "write":
        walks = measure()
        FILE.write_text(json.dumps(walks, indent=0) + "\n")
    kept: dict[str, dict[str, int]] = json.loads(FILE.read_text())
    if given.what != "compare":
        for name, walk in kept.items():
            print(
                f"{name}: {sum(walk.values())} calls between files, {len(walk)} of them different"
            )
            if given.what == "show":
                print("".join(f"  {edge} x{n}\n" for edge, n in walk.items()), end="")
        return 0
    longer = 0
    for name, walk in measure().items():
        before, now = sum(kept[name].values()), sum(walk.values())
        longer += now > before * CHANCE
        print(f"{name}: {now} calls between files, {before} before: {now / before:.2f}")
    return 1 if longer else 0


if __name__ == "__main__":
    sys.exit(main())
