"""`make demo-cluster`: two live jobs, and nothing left after Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import holdfast
from tests.e2e.conftest import children

START_S = 240.0

pytestmark = pytest.mark.spark


def test_two_jobs_run_and_all_is_gone_after_ctrl_c(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "examples.demo_cluster"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "HOLDFAST_AOT": "use"},
        start_new_session=True,
    )  # fmt: skip
    assert demo.stdout
    try:
        said = ""
        while "Ctrl-C ends" not in said:
            line = demo.stdout.readline()
            assert line, f"the demo ended: {said}"
            said += line
        pages, token = re.findall(r"(?:the pages|token) +(\S+)", said)
        client = holdfast.Client(pages, token)
        deadline = time.monotonic() + START_S
        while any(client.job(j).written < 100 for j in ("orders_stream", "visits_stream")):
            assert demo.poll() is None and time.monotonic() < deadline, client.jobs()
            time.sleep(0.5)
        client.close()
        below = children(demo.pid)
        assert len(below) >= 3, "a master, a worker, and its Java"
    finally:
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        said += demo.communicate(timeout=START_S)[0]
    assert demo.returncode == 0, said
    assert not list(tmp_path.glob("holdfast-demo-*"))
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]
