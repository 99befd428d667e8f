"""Write `docs/invariants.md`: each promise, and the check for it.

python -m tests.oracle.table --write docs/invariants.md
"""

import argparse
from pathlib import Path

from tests.oracle.check import CHECKS, Check, numbers
from tests.oracle.promises import ELSEWHERE, PROMISES

HEAD = """# Invariants

What Holdfast promises, and the check that fails when a promise is broken.  The checks read a
*story*: the history of a simulated run, or the event logs of real processes (`tests/oracle`).

This page is generated from the checks: `python -m tests.oracle.table --write
docs/invariants.md`.

| | promise | check | file, or why there is no check |
| --- | --- | --- | --- |
"""


def speakers() -> dict[str, list[Check]]:
    """Return the checks that speak for each invariant."""
    found: dict[str, list[Check]] = {number: [] for number in PROMISES}
    for check in CHECKS:
        for number in numbers(check):
            found[number].append(check)
    return found


def page() -> str:
    """Return the page."""
    rows = []
    for number, checks in speakers().items():
        names = ", ".join(f"`{c.__name__}`" for c in checks) or "-"
        files = sorted({f"`oracle/{c.__module__.rpartition('.')[2]}.py`" for c in checks})
        where = ", ".join(files) or ELSEWHERE[number]
        rows.append(f"| {number} | {PROMISES[number]} | {names} | {where} |\n")
    return HEAD + "".join(rows)


def main() -> None:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(description="Write the page of invariants.")
    parser.add_argument("--write", type=Path, help="the file to write; printed if left out")
    path: Path | None = parser.parse_args().write
    if path:
        path.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
