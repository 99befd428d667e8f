"""The commands of the quick start, typed as they are printed."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "quick-start.md").read_text()
INSTALL, *BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)


def test_what_is_installed_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert ".[all]" in INSTALL
    for named in re.findall(r"`\[(\w+)\]`", TEXT):
        assert named in extras


@pytest.mark.spark
def test_every_block_works_in_turn(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = [typed(block, tmp_path, path) for block in BLOCKS]
    first = next(s for s in said if "Total Write Count" in s)
    assert str(tmp_path / "out/people") in first
    rows = pq.read_table(tmp_path / "out/people").sort_by("id").to_pylist()
    assert [r["name"] for r in rows] == ["Ann", 'Bo "the boat" Smith', "Cy\n(on two lines)"]
    assert rows[0]["city"] == "BERLIN"
    # What does not fit is named by file, line and value, and nothing of it shows.
    assert "people.csv" in said[-1] and "four" in said[-1] and "it said why" in said[-1]


def typed(block: str, folder: Path, path: str) -> str:
    ran = subprocess.run(
        ["bash", "-euc", block],
        cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr
