"""Lines that two files of production share: eight in a row, and how many such runs there may be.

    python -m tools.copies            print the pairs of files, and what is above its ceiling
    python -m tools.copies --lower    lower the ceilings to today's counts; none is ever raised

Compared are lines of code without their indentation; docstrings, comments, imports and lines of
mere punctuation do not count.  `tests/copies.txt` has a line for each pair that shares some.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from tools.rename_table import dotted, python_files
from tools.rooms import ROOT, code_lines

RUN = 8
FILE = ROOT / "tests" / "copies.txt"
HEAD = """\
# Runs of eight equal lines that two modules share: one | other | how many at most.
# `python -m tools.copies --lower` lowers the numbers.  Nothing raises them: share a function.
"""

Pair = tuple[str, str]


def copies() -> dict[Pair, int]:
    """Return how many runs of equal lines each pair of modules shares."""
    where: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in python_files(ROOT):
        if path.relative_to(ROOT).parts[0] == "holdfast":
            for run in runs(path.read_text()):
                where[run].add(dotted(path, ROOT))
    pairs = Counter(p for modules in where.values() for p in combinations(sorted(modules), 2))
    return dict(sorted(pairs.items()))


def runs(text: str) -> set[tuple[str, ...]]:
    """Return all runs of lines of code of a file."""
    all_lines = text.splitlines()
    lines = [all_lines[n - 1].strip() for n in sorted(code_lines(text))]
    lines = [line for line in lines if any(c.isalnum() for c in line)]
    return {tuple(lines[i : i + RUN]) for i in range(len(lines) - RUN + 1)}


def ceilings() -> dict[Pair, int]:
    """Return how many runs each pair may share."""
    rows = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    parts = [[part.strip() for part in row.split("|")] for row in rows]
    return {(one, other): int(most) for one, other, most in parts}


def wrong(found: dict[Pair, int], most: dict[Pair, int]) -> list[str]:
    """Return the pairs that share more than they may, and ceilings that are too high."""
    more = [
        f"{one} and {other} share {n} runs of {RUN} lines, allowed are {most.get((one, other), 0)}:"
        " make what they share a function of its own"
        for (one, other), n in found.items()
        if n > most.get((one, other), 0)
    ]
    less = [
        f"{one} and {other} share {found.get((one, other), 0)} runs, and {n} are allowed: run"
        " python -m tools.copies --lower"
        for (one, other), n in most.items()
        if n > found.get((one, other), 0)
    ]
    return more + less


def main(arguments: Sequence[str] | None = None) -> int:
    """Print, or lower the ceilings."""
    parser = argparse.ArgumentParser(prog="python -m tools.copies")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings")
    given = parser.parse_args(arguments)
    found, most = copies(), ceilings()
    if given.lower:
        rows = {pair: min(n, most[pair]) for pair, n in found.items() if pair in most}
        FILE.write_text(HEAD + "".join(f"{a} | {b} | {n}\n" for (a, b), n in rows.items()))
        return 0
    for (one, other), n in found.items():
        print(f"{n:>4} {one} {other}")
    said = wrong(found, most)
    print("\n".join(said) or "No pair shares more than it may.")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
