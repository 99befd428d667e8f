"""OpenLineage events reach a real HTTP server; one that is slow or gone never holds a job up."""

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.api import lineage
from holdfast.api.lineage import Lineage
from holdfast.config import OpenLineage, load_config
from holdfast.core.task import TaskFailed
from holdfast.model.secret import Secret
from holdfast.store.open import open_store
from tests.api.served import STREAM, Served, served, with_master

SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
REQUIRED: dict[str, type] = {
    "eventTime": str, "producer": str, "schemaURL": str, "run": dict, "job": dict,
    "run.runId": str, "job.namespace": str, "job.name": str,
}  # fmt: skip
"""Fields that the schema requires of a RunEvent, with their types."""
REQUIRED_IN_FACETS = {
    "processing_engine": {"version"},
    "errorMessage": {"message", "programmingLanguage"},
    "jobType": {"processingType", "integration"},
    "outputStatistics": {"rowCount"},
}
KINDS = {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}


class Hook:
    """A server that notes what is posted to it.  `answers`: what to say first, then 200."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answers: list[int] = []
        self.url = ""

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [e for e in self.events if e["eventType"] in kinds]


@contextmanager
def hooked() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            code = hook.answers.pop(0) if hook.answers else 200
            if code == 200:
                hook.keys.append(self.headers["Authorization"])
                hook.events.append(json.loads(body))
            self.send_response(code)
            self.end_headers()

        def log_message(self, *_about: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/api/v1/lineage"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def check_schema(event: dict[str, Any]) -> None:
    for path, kind in REQUIRED.items():
        value: Any = event
        for part in path.split("."):
            value = value[part]
        assert isinstance(value, kind), path
    uuid.UUID(event["run"]["runId"])
    assert event["eventType"] in KINDS and event["schemaURL"] == SCHEMA
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    for dataset in (*event["inputs"], *event["outputs"]):
        assert isinstance(dataset["namespace"], str) and isinstance(dataset["name"], str)
    facets = {**event["run"]["facets"], **event["job"]["facets"]}
    for dataset in event["outputs"]:
        facets |= dataset.get("outputFacets", {})
    for name, facet in facets.items():
        assert {"_producer", "_schemaURL"} | REQUIRED_IN_FACETS[name] <= set(facet), name


@contextmanager
def telling(master: Served, hook: Hook, **more: Any) -> Iterator[Lineage]:
    options = OpenLineage(url=hook.url, api_key=Secret("the-key"), **more)
    told = master.api.lineage = Lineage(options, master.api.sketches)
    running = asyncio.ensure_future(told.run(master.api.board))
    try:
        yield told
    finally:
        running.cancel()


async def until(hook: Hook, kind: str) -> dict[str, Any]:
    while not hook.of(kind):
        await asyncio.sleep(0.01)
    return hook.of(kind)[0]


def test_a_job_that_is_cancelled_tells_start_running_and_abort(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        with hooked() as hook, telling(master, hook) as told:
            await master.submit("17")
            await master.runs("17")
            start = await until(hook, "START")
            await master.checkpoint("17", 100)
            running = await until(hook, "RUNNING")
            await master.checkpoint("17", 150)
            await master.http.post("/api/jobs/17/cancel")
            end = await until(hook, "ABORT")
            assert [e["eventType"] for e in hook.events] == ["START", "RUNNING", "ABORT"]
            for event in hook.events:
                check_schema(event)
            assert {e["run"]["runId"] for e in hook.events} == {start["run"]["runId"]}
            assert start["job"]["name"] == "stream" and start["job"]["namespace"] == "holdfast"
            assert start["inputs"] == [{"namespace": "holdfast:FakeSource", "name": "shop.orders"}]
            assert start["outputs"] == [{"namespace": "file", "name": "/tmp/nowhere"}]
            rows = [
                e["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
                for e in (running, end)
            ]
            assert rows == [100, 150]
            while told.sent < 3:  # the server has it before its answer is heard
                await asyncio.sleep(0.01)
            assert set(hook.keys) == {"Bearer the-key"} and (told.sent, told.dropped) == (3, 0)
            text = (await master.http.get("/metrics")).text
            assert 'holdfast_lineage_events_total{outcome="sent"} 3' in text
            assert "the-key" not in text

    served(tmp_path, test)


def test_a_failure_is_told_without_the_secrets_in_its_words(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        with hooked() as hook, telling(master, hook):
            await master.submit("17", STREAM.replace("parallelism = 1", "job.retry.times = 0"))
            await master.runs("17")
            (keeper,) = master.keepers()
            task = keeper.state.tasks[0]
            assert task.place
            await keeper.handle(TaskFailed(task.id, 1, task.place, "no: password=abcabc"))
            fail = await until(hook, "FAIL")
            check_schema(fail)
            assert "no: password" in fail["run"]["facets"]["errorMessage"]["message"]
            assert "abcabc" not in str(hook.events)

    served(tmp_path, test)


def test_a_server_that_is_away_for_a_while_still_hears_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "WAIT_S", 0.01)

    async def test(master: Served) -> None:
        with hooked() as hook, telling(master, hook) as told:
            hook.answers = [503, 429, 500]
            await master.submit("17")
            await master.runs("17")
            await until(hook, "START")
            assert (told.failures, told.dropped) == (3, 0)
            hook.answers = [400]  # this one it will never take, and the next it does
            await master.checkpoint("17", 100)
            while not told.dropped:
                await asyncio.sleep(0.01)
            await master.http.post("/api/jobs/17/cancel")
            await until(hook, "ABORT")
            assert [e["eventType"] for e in hook.events] == ["START", "ABORT"]

    served(tmp_path, test)


def test_a_server_that_is_gone_costs_events_and_never_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "WAIT_S", 0.001)
    monkeypatch.setattr(lineage, "WAIT_S_MAX", 0.01)
    with hooked() as gone:
        pass

    async def test(master: Served) -> None:
        with telling(master, gone) as told:
            await master.submit("17")
            await master.runs("17")
            await master.checkpoint("17", 100)
            while told.dropped < 2:
                await asyncio.sleep(0.01)
            assert (await master.get("/api/jobs/17"))["status"] == "RUNNING"
            assert told.sent == 0 and told.failures >= 2 * lineage.TRIES_MAX
            text = (await master.http.get("/metrics")).text
            assert 'holdfast_lineage_events_total{outcome="dropped"} 2' in text

    served(tmp_path, test)


def test_no_more_events_wait_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "QUEUED_MAX", 2)

    async def test(master: Served) -> None:
        told = Lineage(OpenLineage(url="http://127.0.0.1:9/x"), master.api.sketches)
        for number in range(5):
            await master.submit(str(number))
            await master.runs(str(number))
        while len(master.api.board.lives) < 5:
            await asyncio.sleep(0.01)
        told.look(master.api.board)
        told.look(master.api.board)
        assert (told.waiting, told.dropped) == (2, 3)

    served(tmp_path, test)


def test_the_next_leader_tells_the_same_events_under_the_same_run(tmp_path: Path) -> None:
    heard: list[list[dict[str, Any]]] = []

    async def leads(master: Served) -> None:
        with hooked() as hook, telling(master, hook):
            if not heard:
                await master.submit("17")
            await master.runs("17")
            await until(hook, "START")
            if not heard:
                await master.checkpoint("17", 100)
            await until(hook, "RUNNING")
            heard.append(hook.events)

    async def run() -> None:
        store = await open_store("memory:")
        for _ in range(2):
            await with_master(store, tmp_path, leads)

    asyncio.run(run())
    first, second = heard
    assert first == second and len(first) == 2


def test_it_is_set_in_the_config_and_its_key_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("openlineage:\n  url: http://marquez:5000/api/v1/lineage\n  api_key: hush\n")
    effective = load_config({}, {}, str(file))
    found = effective.config.openlineage
    assert found and found.url == "http://marquez:5000/api/v1/lineage" and found.running_s == 60
    assert found.api_key and found.api_key.reveal() == "hush" and "hush" not in effective.shown()
    again = load_config({}, {"HOLDFAST_OPENLINEAGE": "url=http://m/x,api_key=hush"})
    assert again.config.openlineage and again.config.openlineage.url == "http://m/x"
    with pytest.raises(Exception, match=r"must not hold a password"):
        load_config({}, {"HOLDFAST_OPENLINEAGE": "url=http://u:p@m/x"})
    with pytest.raises(Exception, match=r"must be a URL such as"):
        load_config({}, {"HOLDFAST_OPENLINEAGE": "url=marquez"})
