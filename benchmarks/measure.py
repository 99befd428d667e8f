"""Run a command and measure what it cost: wall time, and CPU time of every process it started."""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SAMPLE_S = 0.05
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What one run of a command cost, and the marks it left about itself."""

    wall_s: float
    cpu_s: float
    started: float
    marks: dict[str, float]
    spent: tuple[tuple[float, float], ...]
    """What all processes had spent so far, at moments (epoch seconds)."""

    def cpu_between(self, mark: str, other: str) -> float:
        """CPU seconds spent between two marks."""
        before, after = (self._spent_at(self.marks[name]) for name in (mark, other))
        return after - before

    def _spent_at(self, moment: float) -> float:
        return max((cpu for at, cpu in self.spent if at <= moment), default=0.0)

    def since_start(self, mark: str) -> float:
        """Seconds from the command's start to a mark it set."""
        return self.marks[mark] - self.started


def run(command: list[str], marks: Callable[[], dict[str, float]]) -> Cost:
    """Run a command to its end.  It must succeed; `marks` then reads the epoch seconds it left."""
    started, clock = time.time(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    spent: list[tuple[float, float]] = []
    done = threading.Event()
    sampler = threading.Thread(target=_sample, args=(process.pid, spent, done), daemon=True)
    sampler.start()
    said, _ = process.communicate()
    done.set()
    sampler.join()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{said[-3000:]}")
    wall = time.monotonic() - clock
    return Cost(wall, spent[-1][1], started, marks(), tuple(spent))


def middle(values: list[float]) -> float:
    """Return the median: these machines are noisy."""
    return median(values)


def _sample(root: int, spent: list[tuple[float, float]], done: threading.Event) -> None:
    """Note the CPU time of all processes below `root`; the last reading of each counts."""
    latest: dict[int, float] = {}
    while not done.wait(SAMPLE_S):
        latest |= {pid: own for pid, (own, _) in readings(root).items()}
        spent.append((time.time(), sum(latest.values())))


def spent_s(root: int) -> float:
    """Return the CPU seconds of a process that lives and of all below it, dead ones included."""
    return sum(own + of_dead for own, of_dead in readings(root).values())


def readings(root: int) -> dict[int, tuple[float, float]]:
    """Return the CPU seconds of every process below `root`: its own, its dead children's."""
    parents: dict[int, int] = {}
    times: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            pid = int(entry.name)
            parents[pid] = int(fields[1])
            user, system, dead_user, dead_system = (int(f) / TICKS for f in fields[11:15])
            times[pid] = (user + system, dead_user + dead_system)
    return {pid: spent for pid, spent in times.items() if _below(pid, root, parents)}


def _below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid and pid != root:
        pid = parents.get(pid, 0)
    return pid == root
