"""How much of its machine a worker uses: its own process, Spark's JVM and whatever they started.

Read from /proc; where there is none, nobody can say.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.wire.messages import Load

PROC = Path("/proc")
LIMIT = Path("/sys/fs/cgroup/memory.max")
FRESH_S = 5.0
"""A beat comes twice a second; it is measured less often, for a JVM has many threads to look at."""


class LoadMeter:
    """Measures this process and its children, at most every few seconds."""

    def __init__(self, proc: Path = PROC, limit: Path = LIMIT) -> None:
        self._proc = proc
        self._limit = limit
        self._at_s = -FRESH_S
        self._spent: dict[int, float] = {}
        self._load: Load | None = None

    def read(self) -> Load | None:
        """Return the load of the last few seconds; None before the second time, or without /proc.

        Memory that processes share is counted for each of them.
        """
        now_s = time.monotonic()
        if now_s - self._at_s < FRESH_S:
            return self._load
        spent: dict[int, float] = {}
        memory = 0
        for process in self._tree(os.getpid()):
            seen = self._process(process)
            if seen:
                spent[process], size = seen
                memory += size
        # One that has just begun counts from its begin; what one that ended spent last is lost.
        used_s = sum(s - self._spent.get(p, 0.0) for p, s in spent.items())
        if self._spent and spent:
            cpu = max(0.0, used_s / (now_s - self._at_s))
            self._load = Load(round(cpu, 3), os.cpu_count() or 1, memory, self._total())
        self._at_s, self._spent = now_s, spent
        return self._load

    def _tree(self, process: int) -> Iterator[int]:
        yield process
        for thread in self._threads(process):
            try:
                children = (thread / "children").read_text().split()
            except OSError:
                continue  # it has ended meanwhile, or this system does not say
            for child in children:
                yield from self._tree(int(child))

    def _threads(self, process: int) -> list[Path]:
        try:
            return list((self._proc / str(process) / "task").iterdir())
        except OSError:
            return []

    def _process(self, process: int) -> tuple[float, int] | None:
        """Return the processor time and the memory of a process; None if it is gone."""
        folder = self._proc / str(process)
        try:
            # The name, in brackets, may hold anything.
            numbers = (folder / "stat").read_text().rpartition(")")[2].split()
            pages = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            return None
        ticks = int(numbers[11]) + int(numbers[12])
        return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")

    def _total(self) -> int:
        """Return how much memory there is: the machine's, or what this container may use."""
        lines = (self._proc / "meminfo").read_text().splitlines()
        total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal"))
        try:
            limit = self._limit.read_text().strip()
        except OSError:
            return total
        return min(total, int(limit)) if limit.isdigit() else total
