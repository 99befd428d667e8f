"""The same work done by Holdfast and its peers in turns, and how far ahead we are.

The figure is rows a second, from a session that is up to the end of the job.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report, seatunnel
from benchmarks.job import moving_s
from benchmarks.measure import Cost, middle
from benchmarks.threads import Threads
from holdfast.spark import java

OURS, SCRIPT = "Holdfast", "PySpark"
DLT, DLT_ARROW = "dlt", "dlt fed with Arrow"
NO_JAR = "needs a jar that is not on PyPI"


@dataclass(frozen=True)
class Race:
    """What each peer's rounds of one piece of work cost."""

    work: str
    rows: int
    taken: Mapping[str, Sequence[Cost]]
    fewer: Mapping[str, int]
    """The rows of those who are so slow that they get fewer."""
    spent: Mapping[str, float]
    """CPU seconds of our JVM in the last round, by what its threads are for."""

    def profile(self) -> list[str]:
        """Say where the time goes: whose threads, and how busy the cores were."""
        whose = ", ".join(f"{kind} {cpu_s:.1f}" for kind, cpu_s in self.spent.items())
        busy = ", ".join(
            f"{name} {self.cpu_s(name) * self.rows_s(name) / self.rows_of(name):.1f}"
            for name in self.taken
        )
        return [
            f"{self.work}: CPU seconds of Holdfast's JVM in the last round, its start included:"
            f" {whose}",
            f"{self.work}: cores busy while rows moved: {busy}",
        ]

    def rows_of(self, name: str) -> int:
        """Return how many rows a peer has moved."""
        return self.fewer.get(name, self.rows)

    def rows_s(self, name: str) -> float:
        """Return the rows a second of a peer's middle round."""
        return self.rows_of(name) / middle([moving_s(cost) for cost in self.taken[name]])

    def cpu_s(self, name: str) -> float:
        """Return the CPU seconds of all of a peer's processes while it moved the rows."""
        return middle([cost.cpu_between("ready", "ended") for cost in self.taken[name]])

    def first_job_s(self, name: str) -> float | None:
        """Return the time from the command to its first Spark job, for those that run Spark."""
        found = [c.since_start("first_job") for c in self.taken[name] if "first_job" in c.marks]
        return middle(found) if found else None

    def lead(self, name: str) -> float:
        """Return how many rows we move while a peer moves one."""
        return self.rows_s(OURS) / self.rows_s(name)

    def table(self) -> Iterator[report.Row]:
        """Return a row for each peer."""
        for name, costs in self.taken.items():
            yield {
                "work": self.work,
                "with": name,
                "rows": self.rows_of(name),
                "rounds": len(costs),
                "rows/s": round(self.rows_s(name)),
                "Holdfast / it": None if name == OURS else self.lead(name),
                "CPU s a million rows": self.cpu_s(name) / self.rows_of(name) * 1e6,
                "first job s": self.first_job_s(name),
                "whole s": middle([cost.wall_s for cost in costs]),
            }
        if "SeaTunnel" not in self.taken:
            yield absent(self.work, "SeaTunnel", seatunnel.ABSENT)

    def bars(self, bounds: Mapping[str, float]) -> Iterator[report.Bar]:
        """Return the promise to be ahead of each peer by so much."""
        for name in self.taken:
            if name != OURS:
                what = f"{self.work}: rows/s against {name}"
                yield report.Bar(what, self.lead(name), bounds[name], "least")

    def points(self) -> dict[str, report.Point]:
        """Return each peer's bar of a plot."""
        return {name: (self.work, self.rows_s(name)) for name in self.taken}


def absent(work: str, name: str, why: str) -> report.Row:
    """Return the row of a peer that could not take part."""
    return {"work": work, "with": name, "rows/s": why}


def run_race(
    work: str,
    rows: int,
    writers: Mapping[str, Callable[[], Cost]],
    rounds: Mapping[str, int],
    fewer: Mapping[str, int] | None = None,
) -> Race:
    """Let all take turns, for as many rounds as each has, so that noise hits all alike."""
    taken: dict[str, list[Cost]] = {name: [] for name in writers}
    ours: Mapping[str, float] = {}
    for number in range(max(rounds[name] for name in writers)):
        for name, writer in writers.items():
            if number < rounds[name]:
                # Who flushes what it has written must not wait for what others have left.
                os.sync()
                with Threads(os.getpid()) as threads:
                    taken[name].append(writer())
                ours = threads.spent_s() if name == OURS else ours
                spent = moving_s(taken[name][-1])
                print(f"{work}, round {number + 1}, {name}: {spent:.1f} s", flush=True)
    return Race(work, rows, taken, fewer or {}, ours)


def both() -> dict[str, str]:
    """Return our version and the script's, each with its Java.

    A script runs on the Java that the machine has, and on ours where it has none.
    """
    ours = java.find()
    home = os.environ.get("JAVA_HOME")
    program = (
        Path(home, "bin", "java") if home else Path(shutil.which("java") or ours.home / "bin/java")
    )
    machines = java.inspect(program.resolve().parent.parent)
    if machines is None:
        raise SystemExit(f"{program} is no Java that can be used. Unset JAVA_HOME, or mend it.")
    javas = {OURS: ours.version, SCRIPT: machines.version}
    return {name: f"{v} on Java {javas[name]}" for name, v in report.holdfast().items()}
