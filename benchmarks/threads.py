"""What the threads of a JVM spend CPU time on: tasks, compiling, collecting garbage.

Looked at once a second, which costs half a percent of a core.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from benchmarks.measure import TICKS, readings

LOOK_S = 1.0
KINDS = {
    "tasks": ("Executor task",),
    "compiling": ("C1 ", "C2 "),
    "collecting": ("G1 ", "GC ", "VM Thread"),
}
OTHER = "other"


def kind_of(thread: str) -> str:
    """Return what a thread of this name is for."""
    return next((kind for kind, names in KINDS.items() if thread.startswith(names)), OTHER)


class Threads:
    """Looks at all JVMs below a process, until it is left."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._latest: dict[tuple[int, int], tuple[str, float]] = {}
        self._done = threading.Event()
        self._looker = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> "Threads":
        self._looker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._done.set()
        self._looker.join()

    def spent_s(self) -> Mapping[str, float]:
        """Return CPU seconds by what threads are for; the last look at each counts."""
        spent = dict.fromkeys((*KINDS, OTHER), 0.0)
        for name, cpu_s in self._latest.values():
            spent[kind_of(name)] += cpu_s
        return spent

    def _look_on(self) -> None:
        while not self._done.wait(LOOK_S):
            for pid in readings(self._root):
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        try:
            if (Path("/proc") / str(pid) / "comm").read_text() != "java\n":
                return
            for thread in (Path("/proc") / str(pid) / "task").iterdir():
                head, _, tail = (thread / "stat").read_text().rpartition(")")
                fields = tail.split()
                cpu_s = (int(fields[11]) + int(fields[12])) / TICKS
                self._latest[pid, int(thread.name)] = (head.partition("(")[2], cpu_s)
        except (FileNotFoundError, ProcessLookupError):
            return  # it ended while we looked
