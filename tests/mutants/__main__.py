"""Plant each bug in a copy of the project and run the tests that are named for it.

python -m tests.mutants [--only TEXT]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.table import BUGS, Bug

ROOT = Path(__file__).parents[2]
COPIED = ("holdfast", "tests", "tools", "deploy", "docs", "examples", "pyproject.toml", "Makefile")
FAILED = 1
"""What pytest ends with when a test has failed, and not something else."""

RUN_S_MAX = 900
SAID_MAX = 3000


def planted(bug: Bug, text: str) -> str:
    """Return the file's text with the bug in it."""
    assert text.count(bug.stands) == 1, f"{bug.name}: its place in {bug.file} has gone"
    return text.replace(bug.stands, bug.planted)


def run(folder: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run tests on a copy of the project; return what pytest ends with, and what it says."""
    own = ["-m", "", "-x", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *own, *tests]
    try:
        # Processes that tests start elsewhere must find the copy, too.
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True, text=True, timeout=RUN_S_MAX, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return FAILED, ""  # a test that waits for what a bug keeps from happening
    if done.returncode not in (0, FAILED):
        print(done.stdout[-SAID_MAX:], done.stderr[-SAID_MAX:])
    return done.returncode, done.stdout


def caught(folder: Path, bug: Bug) -> bool:
    """Say whether a test notices a bug in a copy of the project."""
    path = folder / bug.file
    good = path.read_text()
    path.write_text(planted(bug, good))
    try:
        ended, said = run(folder, bug.tests)
        return ended == FAILED and bug.says in said
    finally:
        path.write_text(good)


def main() -> int:
    """Plant all; return 1 if one survives, or if tests fail without any."""
    asked = argparse.ArgumentParser(description="Plant bugs; each must be noticed.")
    asked.add_argument("--only", default="", help="those with this in their name")
    bugs = [bug for bug in BUGS if asked.parse_args().only in bug.name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "node_modules")
                shutil.copytree(source, folder / name, ignore=ignored)
            else:
                shutil.copy(source, folder / name)
        tests = dict.fromkeys(test for bug in bugs for test in bug.tests)
        ended, said = run(folder, tests)
        if ended != 0:
            print(said[-SAID_MAX:] or f"They took more than {RUN_S_MAX} s.")
            print("The tests fail without any bug; nothing was planted.")
            return 1
        survivors = []
        for bug in bugs:
            noticed = caught(folder, bug)
            survivors += [] if noticed else [bug.name]
            print(f"{bug.name:<60} {'noticed' if noticed else 'SURVIVED'}", flush=True)
    print(f"{len(bugs)} bugs planted in real parts, {len(survivors)} survived.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
