"""The tutorial's text is run as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial-connector.md"
LINES_MAX = 35


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)


def test_each_connector_fits_in_35_lines() -> None:
    for code in blocks("python"):
        assert len(code.splitlines()) <= LINES_MAX


@pytest.mark.spark
def test_the_printed_connectors_run_the_printed_job(tmp_path: Path) -> None:
    source, sink = blocks("python")
    (tmp_path / "squares.py").write_text(source)
    (tmp_path / "json_folder.py").write_text(sink)
    (tmp_path / "job.conf").write_text(blocks("hocon")[0])
    command = re.search(r"^holdfast (run .*)$", TUTORIAL.read_text(), re.MULTILINE)
    assert command
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", *command[1].split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    written = sorted(
        line
        for file in (tmp_path / "build" / "squares").rglob("part-*.json")
        for line in file.read_text().splitlines()
    )
    assert written == sorted(f'{{"id":{n},"square":{n * n}}}' for n in range(10))
    assert "Total Write Count         :                  10" in ran.stderr
