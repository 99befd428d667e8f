"""Named moments of a real process, where a test may kill, stop, delay or fail it.

Off, and without cost, unless HOLDFAST_FAILPOINTS names a folder.  A test arms a point at any time
by putting a file `arm-<n>.json` there:

    {"point": "before:pipeline.TaskPlaced", "count": 1, "action": "kill", "process": "M1"}

The process that passes the point for the `count`-th time since then (unless the file is gone)
claims it by creating `hit-<n>.json`, and then acts: "kill" (kill -9 of itself), "stop" (SIGSTOP of
itself), "sleep:S", "hold" (until a file `release-<n>` is there), "error" (the call fails, undone;
before: points), "unknown" (it was done and seems to have failed; after: points).  `process` is a
pattern that the process's name (HOLDFAST_FAILPOINTS_NAME) must match whole; without it anyone will
do.

Masters pass the labels of their durable steps (`Ports.durable`); workers pass worker.start, .slice,
.stage, .ack, .end_report and .prepare, each before: and after: it.
"""

import asyncio
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import OutcomeUnknown, Unavailable, UserError

FOLDER = "HOLDFAST_FAILPOINTS"
NAME = "HOLDFAST_FAILPOINTS_NAME"
LOOK_S = 0.01

ACTIONS = ("kill", "stop", "sleep", "hold", "error", "unknown")


class NoPoints:
    """Points of a process that is not under test."""

    async def hit(self, name: str) -> None:
        """Pass a moment."""

    def pass_now(self, name: str) -> None:
        """Pass a moment in a thread of a worker."""


@dataclass
class Armed:
    """One armed point, as this process counts it."""

    number: str
    point: str
    action: str
    process: str
    left: int


class Failpoints:
    """Points of a process under test."""

    def __init__(self, folder: Path, process: str, log: Callable[[str], object]) -> None:
        self._folder = folder
        self._process = process
        self._log = log
        self._lock = threading.Lock()
        self._armed: dict[str, Armed] = {}

    async def hit(self, name: str) -> None:
        """Pass a moment: `before:label` or `after:label`."""
        for armed in self._claimed(name):
            seconds = self._act(armed)
            if seconds is not None:
                await asyncio.sleep(seconds)
            while armed.action == "hold" and not self._released(armed):
                await asyncio.sleep(LOOK_S)

    def pass_now(self, name: str) -> None:
        """Pass a moment in a thread, which then is all that waits."""
        for armed in self._claimed(name):
            seconds = self._act(armed)
            if seconds is not None:
                time.sleep(seconds)
            while armed.action == "hold" and not self._released(armed):
                time.sleep(LOOK_S)

    def _claimed(self, name: str) -> list[Armed]:
        """Count this pass for every armed point of that name; return those whose turn it is."""
        with self._lock:
            self._look()
            due = []
            for armed in self._armed.values():
                if armed.point == name and armed.left > 0:
                    armed.left -= 1
                    if armed.left == 0 and self._claim(armed):
                        due.append(armed)
            return due

    def _look(self) -> None:
        """Take in what was armed since the last look, and forget what was disarmed."""
        there = {p.stem.removeprefix("arm-"): p for p in sorted(self._folder.glob("arm-*.json"))}
        self._armed = {number: a for number, a in self._armed.items() if number in there}
        for number in there.keys() - self._armed.keys():
            self._armed[number] = _read(there[number], number, self._process)

    def _claim(self, armed: Armed) -> bool:
        """Say so in a file that only one process can create."""
        path = self._folder / f"hit-{armed.number}.json"
        facts = {
            "process": self._process,
            "pid": os.getpid(),
            "at": time.monotonic(),
            "point": armed.point,
        }
        draft = self._folder / f".hit-{armed.number}-{os.getpid()}"
        draft.write_text(json.dumps(facts))
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _act(self, armed: Armed) -> float | None:
        """Do what was armed; return how long to wait afterwards."""
        self._log(f"Failpoint {armed.point}: {armed.action}.")
        match armed.action.split(":"):
            case ["kill"]:
                os.kill(os.getpid(), signal.SIGKILL)
            case ["stop"]:
                os.kill(os.getpid(), signal.SIGSTOP)
            case ["sleep", seconds]:
                return float(seconds)
            case ["error"]:
                raise Unavailable(f"A failpoint at {armed.point} let this fail.")
            case ["unknown"]:
                raise OutcomeUnknown(f"A failpoint at {armed.point} hid the answer.")
        return None

    def _released(self, armed: Armed) -> bool:
        return (self._folder / f"release-{armed.number}").exists()


Points = NoPoints | Failpoints


def points_from_env(environ: Mapping[str, str], log: Callable[[str], object]) -> Points:
    """Return this process's points: such as do nothing, unless a test has set a folder."""
    folder = environ.get(FOLDER)
    if not folder:
        return NoPoints()
    if not Path(folder).is_dir():
        raise UserError(f"{FOLDER} is {folder}, which is no folder.  Unset it, or create it.")
    log(f"Failpoints are switched on ({FOLDER}={folder}).")
    return Failpoints(Path(folder), environ.get(NAME, ""), log)


def _read(path: Path, number: str, process: str) -> Armed:
    facts = json.loads(path.read_text())
    point, action = facts["point"], facts.get("action", "kill")
    fits = re.fullmatch(facts.get("process") or ".*", process)
    verb = action.partition(":")[0]
    wrong = (
        verb not in ACTIONS
        or (verb == "error" and not point.startswith("before:"))
        or (verb == "unknown" and not point.startswith("after:"))
    )
    if wrong:
        raise UserError(f"{path}: {action} cannot be armed at {point}.")
    return Armed(number, point, action, process, int(facts.get("count", 1)) if fits else 0)
