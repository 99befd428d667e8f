"""The tutorial's text is run as printed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import CommitEvent, CommitId, Committable

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial-connector.md"
LINES_MAX = 35


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)


def test_each_connector_fits_in_35_lines() -> None:
    for code in blocks("python"):
        assert len(code.splitlines()) <= LINES_MAX


def test_the_printed_listener_remembers(tmp_path: Path) -> None:
    made: dict[str, Any] = {}
    exec(blocks("python")[2], made)
    sink = made["Counted"](made["CountedOptions"](file=str(tmp_path / "count")), None)
    rows, state = (Committable(1, "t", 1, 1, None),), None
    for number, (held, final) in enumerate([(rows, False), ((), False), (rows, True)], 1):
        heard = CommitEvent(CommitId("u", number), held, final=final)
        again = sink.listen(heard, state)
        state = sink.listen(heard, state)
        assert state == again
    assert sink.listens and (tmp_path / "count").read_text() == "2 ended"


@pytest.mark.spark
def test_the_printed_connectors_run_the_printed_job(tmp_path: Path) -> None:
    source, sink, _ = blocks("python")
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
    assert "read 10 rows, wrote 10, rejected 0." in ran.stderr
