"""`make bench`: run the usual benchmarks, or those named.  Fails if one breaks or misses a bar.

Each of several runs in a process of its own, so that one which breaks does not stop the others.
After all the usual ones the page with the plots is written.
"""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peer, performance
from benchmarks.catalogue import BY_NAME, USUAL_MINUTES
from benchmarks.job import SHARED, warm_up
from benchmarks.performance import RESULTS, load
from benchmarks.report import bar_line


@dataclass(frozen=True)
class Ran:
    """One benchmark that ran: since when, whether it ended well with every bar met, how long."""

    name: str
    began: float
    good: bool
    took_s: float


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks and return the exit code."""
    usual = [name for name in USUAL_MINUTES if name not in BY_NAME]
    names = [n for a in arguments for n in a.split(",") if n] or usual
    unknown = [name for name in names if name not in USUAL_MINUTES]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. Known: {', '.join(USUAL_MINUTES)}.")
        return 2
    RESULTS.mkdir(exist_ok=True)
    # However it is ended, the servers and sessions of a benchmark go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if len(names) == 1:
        return _run_here(names[0])
    minutes = sum(USUAL_MINUTES[name] for name in names)
    print(f"{len(names)} benchmarks, usually {minutes:.0f} minutes on two cores.", flush=True)
    _set_up()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as shared:
        os.environ[SHARED] = shared
        all_ran = [_run_apart(name) for name in names]
    took = sum(ran.took_s for ran in all_ran) / 60
    print(f"\nSummary, after {took:.1f} minutes")
    print("\n".join(line for ran in all_ran for line in outcome(ran, RESULTS)))
    # Of a few the page would show only those, and what older runs of the others left.
    written = performance.main() == 0 if names == usual else True
    return 0 if written and all(ran.good for ran in all_ran) else 1


def _set_up() -> None:
    """Have what is made once on a machine, so that no benchmark pays for it."""
    began = time.monotonic()
    for name in peer.NAMES:
        peer.python_of(name)
    warm_up()
    print(f"Set up in {(time.monotonic() - began) / 60:.1f} minutes.", flush=True)


def outcome(ran: Ran, results: Path) -> list[str]:
    """Return what a benchmark has found, with the bars it missed."""
    path, took = results / f"{ran.name}.json", f"{ran.took_s / 60:.1f} minutes"
    if not path.exists() or path.stat().st_mtime < ran.began:
        return [f"{ran.name:<10} BROKEN after {took}: it left no result; what it said is above"]
    report = load(path).report
    missed = [bar for bar in report.bars if not bar.met]
    count = f"{len(report.bars) - len(missed)} of {len(report.bars)} bars met in {took}"
    late = [] if ran.good or missed else [f"{'':<10} BROKEN after it left its result; see above"]
    return [f"{ran.name:<10} {count}", *(f"{'':<10} {bar_line(bar)}" for bar in missed), *late]


def _run_here(name: str) -> int:
    usual = USUAL_MINUTES[name]
    print(f"{name}: usually {usual:g} minute{'s' if usual != 1 else ''} ...", flush=True)
    met = importlib.import_module(f"benchmarks.{name}").main(RESULTS)
    return 0 if met else 1


def _run_apart(name: str) -> Ran:
    began = time.time()
    # In a session of its own, so that a Ctrl-C reaches it once, from us, and it can clean up.
    command = [sys.executable, "-m", "benchmarks.run", name]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return Ran(name, began, good=process.wait() == 0, took_s=time.time() - began)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
