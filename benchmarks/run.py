"""`make bench`: run every benchmark, or the one named.  Fails if a bar is missed."""

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import commits, copy, jdbc, sinks

ALL: dict[str, Callable[[Path], bool]] = {
    "copy": copy.main,
    "sinks": sinks.main,
    "jdbc": jdbc.main,
    "commits": commits.main,
}


def main() -> int:
    """Run the benchmarks and return the exit code."""
    results = Path(__file__).with_name("results")
    results.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or list(ALL)
    unknown = [name for name in wanted if name not in ALL]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. Known: {', '.join(ALL)}.")
        return 2
    met = [ALL[name](results) for name in wanted]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
