"""Scenarios side by side: processes of their own, each with a cluster, a store and ports.

Each is given the next scenarios of the list as it gets on, so that none is idle while another has
much left.  A scenario mostly waits (for leases, for checkpoints), so two or three clusters fit
where one does, unless the machine is small: then a run says that windows were missed.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from time import monotonic

import msgspec

from tests.chaos.engine.run import Result
from tests.chaos.engine.scene import Scenario

SHARE_MAX = 40
"""So many scenarios at once at most: a process's cluster serves all of its share."""

BETWEEN = "|"


class Summary:
    """What became of a run so far; it prints each result, and what is left to do."""

    def __init__(self, store: str, total: int) -> None:
        self.store = store
        self.total = total
        self.results: list[Result] = []
        self._began_s = monotonic()

    def add(self, result: Result) -> None:
        """Note a result and print it."""
        self.results.append(result)
        done = len(self.results)
        spent_s = monotonic() - self._began_s
        left_min = spent_s / done * (self.total - done) / 60
        text = "\n".join(result.told())
        print(f"{done:>3}/{self.total} {text}   {left_min:.0f} min left", flush=True)

    @property
    def good(self) -> bool:
        """Whether every scenario was run and is well."""
        return bool(self.results) and self.total == len([r for r in self.results if r.ok])

    def text(self) -> str:
        """Return the end of a run: every failure with what to do, and the sum."""
        bad = [r for r in self.results if not r.ok]
        lines = ["", "What failed:", *(line for r in bad for line in r.told())] if bad else []
        hit, took_s = sum(r.window_hit for r in self.results), monotonic() - self._began_s
        lines.append(
            f"{self.store}: {len(self.results)} of {self.total} scenarios run, {hit} windows hit,"
            f" {len(self.results) - len(bad)} ok, {len(bad)} failed, in {took_s / 60:.1f} min."
        )
        return "\n".join(lines)


def teller(fd: int) -> Callable[[Result], None]:
    """Return what tells results through a pipe, a line each."""

    def tell(result: Result) -> None:
        os.write(fd, msgspec.json.encode(asdict(result)) + b"\n")

    return tell


def shares(scenarios: Sequence[Scenario], count: int) -> list[list[Scenario]]:
    """Return the scenarios in shares for so many processes, smaller ones towards the end."""
    found, left = [], list(scenarios)
    while left:
        size = max(1, min(SHARE_MAX, len(left) // (2 * count)))
        found.append(left[:size])
        left = left[size:]
    return found


def run(
    store: str, scenarios: Sequence[Scenario], count: int, said: Callable[[Result], None]
) -> None:
    """Run scenarios in so many processes at once; `said` hears of each result, one at a time."""
    todo = iter(shares(scenarios, count))
    lock, children = threading.Lock(), set[subprocess.Popen[bytes]]()

    def work() -> None:
        while True:
            with lock:
                mine = next(todo, None)
            if mine is None:
                return
            reader, writer = os.pipe()
            with lock:
                child = _child(store, mine, writer)
                children.add(child)
            os.close(writer)
            missing = {s.id for s in mine}
            for result in _results(reader):
                missing.discard(result.id)
                with lock:
                    said(result)
            code = child.wait()
            with lock:
                children.discard(child)
                for id in sorted(missing):
                    lost = f"its process ended with {code} before it came to this one; see above"
                    said(Result(id, store, flaws=[lost]))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for child in list(children):
            child.send_signal(signal.SIGINT)
        for child in list(children):
            child.wait()


def _child(store: str, mine: Sequence[Scenario], writer: int) -> subprocess.Popen[bytes]:
    ids = BETWEEN.join(s.id for s in mine)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.engine", store, "--ids", ids,
         "--told", str(writer)],
        stdin=subprocess.DEVNULL, pass_fds=(writer,),
    )  # fmt: skip


def _results(reader: int) -> Iterator[Result]:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=Result)
