"""Run the command line as a user does."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "holdfast"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def holdfast(tmp_path: Path) -> Run:
    """Run `holdfast ...` to its end in an empty directory."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, "HOLDFAST_AOT": "off", **environment},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `holdfast ...` and hand over the process; it is killed if the test leaves it."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, "HOLDFAST_AOT": "off"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def visible(folder: Path) -> list[Path]:
    """The files a reader of the folder would read."""
    return sorted(
        p
        for p in folder.rglob("*")
        if p.is_file() and not any(part[0] in "._" for part in p.relative_to(folder).parts)
    )


def children(pid: int) -> list[int]:
    """All processes below one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found, wave = [], [pid]
    while wave:
        wave = [p for p, parent in parents.items() if parent in wave]
        found += wave
    return found
