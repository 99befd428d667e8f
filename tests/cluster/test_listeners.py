"""Listeners and watermarks with real processes: a leader that dies between commit and listener."""

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import deltalake
import pytest

from tests.chaos.engine.points import Points
from tests.cluster.processes import Cluster

pytestmark = pytest.mark.spark

CITIES = ("berlin", "lagos", "lima")
LATER = 50_000_000


class Hook(ThreadingHTTPServer):
    """A web server that counts reports; it answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.status = 200
        self.heard: list[tuple[str, str]] = []


class _Hook(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((body["partition"]["city"], self.headers["Idempotency-Key"]))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Points:
    return Points(tmp_path_factory.mktemp("failpoints") / "points")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, points: Points) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    started = Cluster(folder)
    started.environ["HOLDFAST_LEASE_S"] = "2"
    started.environ["HOLDFAST_REPORT_HOSTS"] = "127.0.0.1"
    started.environ["HOLDFAST_FAILPOINTS"] = str(points.folder)
    started.master()
    started.worker()
    yield started
    started.end()


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def marked(out: Path, hook: Hook) -> str:
    """A batch job: one commit, after which every partition is done."""
    return f"""
env {{ job.mode = BATCH }}
source {{ FakeSource {{ row.num = 60, string.fake.mode = template,
  string.template = [{", ".join(CITIES)}],
  schema {{ fields {{ id = bigint, city = string }} }} }} }}
sink {{ LocalFile {{ path = "{out}", file_format_type = json, partition_by = [city],
  partition.mark-done-action = "success-file,http-report", partition.end-input-to-done = true,
  partition.mark-done-action.http.url = "http://127.0.0.1:{hook.server_port}/" }} }}
"""


@pytest.mark.parametrize("point", ["after:pipeline.Committed", "after:table.listen"])
def test_a_leader_that_dies_around_its_listeners_leaves_the_marks_to_the_next(
    cluster: Cluster, points: Points, hook: Hook, tmp_path: Path, point: str
) -> None:
    name = re.sub(r"\W", "-", point).lower()
    armed = points.arm(point)
    file = tmp_path / "job.conf"
    file.write_text(marked(tmp_path / "out", hook))
    sent = cluster.ask("submit", str(file), "--async", "--set-job-id", name)
    assert sent.returncode == 0, sent.stderr
    dead = cluster.processes["M1"]
    cluster.until("the leader dies", lambda: dead.poll() is not None)
    assert points.found(armed)
    marks = sorted(p.parent.name for p in (tmp_path / "out").rglob("_SUCCESS"))
    folders = [f"city={city}" for city in CITIES]
    assert marks == (folders if point == "after:table.listen" else [])
    rows = sum(len(p.read_text().splitlines()) for p in (tmp_path / "out").rglob("*.json"))
    assert rows == 60, "they are visible before and whatever the listeners do"
    before = dict(hook.heard)
    cluster.master()
    assert cluster.client.wait(name, lambda _: None).status == "FINISHED"
    marks = sorted(p.parent.name for p in (tmp_path / "out").rglob("_SUCCESS"))
    assert marks == folders
    keys = dict(hook.heard)
    assert sorted(keys) == sorted(CITIES)
    if before:
        assert keys == before and len(hook.heard) >= 2 * len(CITIES), "repeated, and it shows"


def test_a_listener_that_fails_is_explained_and_the_commit_stays(
    cluster: Cluster, hook: Hook, tmp_path: Path
) -> None:
    hook.status = 503
    file = tmp_path / "job.conf"
    file.write_text(marked(tmp_path / "out", hook))
    sent = cluster.ask("submit", str(file), "--async", "--set-job-id", "unheard")
    assert sent.returncode == 0, sent.stderr
    cluster.until("it was told twice", lambda: len(hook.heard) > len({c for c, _ in hook.heard}))
    told = cluster.ask("explain", "unheard").stdout
    assert "Its rows are visible; what fails is: The partition city=" in told, told
    assert "HTTP Error 503" in told
    rows = sum(len(p.read_text().splitlines()) for p in (tmp_path / "out").rglob("*.json"))
    assert rows == 60
    hook.status = 200
    assert cluster.client.wait("unheard", lambda _: None).status == "FINISHED"


def marks_of(path: Path) -> list[tuple[int, int | None, list[int]]]:
    """The commits of a Delta table: number, watermark, and all ids that readers see then."""
    found = []
    for entry in sorted(deltalake.DeltaTable(path).history(), key=lambda e: e["version"]):
        if "holdfast.number" in entry:
            seen = deltalake.DeltaTable(path, version=entry["version"]).to_pyarrow_table()
            mark = entry.get("holdfast.watermark")
            said: Any = None if mark is None else int(mark)
            found.append((int(entry["holdfast.number"]), said, seen["id"].to_pylist()))
    return found


def test_a_watermark_is_the_least_of_active_sources_and_never_goes_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    fake = """FakeSource {{ plugin_output = {0}, row.num = {1}, split.num = {2},
      split.read-interval = 300, auto.increment.enabled = true, auto.increment.start = {3},
      schema {{ columns = [{{ name = id, type = bigint }}],
        primaryKey {{ name = pk, columnNames = [id] }} }} }}"""
    file, table = tmp_path / "job.conf", tmp_path / "table"
    file.write_text(f"""
env {{ job.mode = BATCH, checkpoint.interval = 500, watermark.column = id,
  watermark.idle.seconds = 3600
  job.retry.times = 20, job.retry.interval.seconds = 0 }}
source {{
  {fake.format("early", 100, 20, 1)}
  {fake.format("late", 5_000_000, 1_000_000, LATER)}
}}
sink {{ Delta {{ plugin_input = [early, late], path = "{table}" }} }}
""")
    sent = cluster.ask("submit", str(file), "--async", "--set-job-id", "marks")
    assert sent.returncode == 0, sent.stderr
    cluster.until("some is committed", lambda: cluster.committed("marks", 3))
    worker = cluster.processes["W1"]
    os.kill(worker.pid, 9)
    worker.wait()
    cluster.worker()

    def over_early() -> bool:
        return any((mark or 0) >= LATER for _, mark, _ in marks_of(table))

    cluster.until("the early source has ended", over_early)
    cluster.ask("cancel", "marks")
    commits = marks_of(table)
    known = [mark for _, mark, _ in commits if mark is not None]
    assert known == sorted(known)
    assert known[0] < LATER <= known[-1]
    both = 0
    for number, mark, ids in commits:
        early, late = [i for i in ids if i < LATER], [i for i in ids if i >= LATER]
        assert len(ids) == len(set(ids)), "no row twice"
        if early and late and len(early) < 100:
            both += 1
            assert mark == max(early), f"commit {number}: the one that lags behind counts"
        elif len(early) == 100 and mark is not None and mark >= LATER:
            assert mark == max(late)
    assert both, "no commit saw both sources at work"
