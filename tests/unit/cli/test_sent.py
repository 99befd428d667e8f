"""What a job file says to whoever sends it to a cluster."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TWICE = """
source { FakeSource { plugin_output = a } }
source { FakeSource { plugin_output = b } }
sink { Console { plugin_input = b } }
"""


@pytest.mark.parametrize("verb", [("submit",), ("restore", "17"), ("check", "--connect")])
def test_what_only_the_text_tells_is_told_before_it_is_sent(
    verb: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "job.conf").write_text(TWICE)
    nobody = ("--masters", "http://127.0.0.1:1", "--patience", "1")
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", *verb, "job.conf", *nobody],
        cwd=tmp_path, env={**os.environ, "HOLDFAST_TOKEN": "a-token"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "job.conf:3:1: warning: 'source' occurs twice" in ran.stderr, ran.stderr
