"""Saved states over REST: left by failures and cancels, listed, gone on from at once, removed."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.job import JobStatus
from holdfast.errors import SourceLocation
from holdfast.master.looks import LookRequests
from holdfast.master.ports import MasterSettings
from holdfast.plan.record import JobSource, decode_spec
from holdfast.store.open import open_store
from tests.api.served import STREAM, Served, served, with_master
from tests.unit.master.test_looks import Wires, hello


async def cancelled(master: Served, job: str, *, checkpoints: int = 2) -> None:
    """Run a job for some checkpoints and cancel it; its tombstone stands a minute."""
    if job not in (j["job_id"] for j in (await master.get("/api/jobs"))["jobs"]):
        await master.submit(job)
    await master.runs(job)
    for _ in range(checkpoints):
        await master.checkpoint(job)
    await master.http.post(f"/api/jobs/{job}/cancel")
    leader = master.api.master.leader
    assert leader
    while leader.jobs[job].state.status is not JobStatus.CANCELED:
        await asyncio.sleep(0.01)


async def listed(master: Served, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await master.get("/api/savepoints", params={"job": job})
    return found


def test_a_cancelled_job_goes_on_at_once(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await cancelled(master, "a")
        leader = master.api.master.leader
        assert leader
        old = leader.jobs["a"].state
        (state,) = await listed(master, "a")
        assert (state["state"], state["kind"], state["rows"]) == (1, "canceled", 100)
        assert (state["checkpoints"], state["past"]) == ({"1": 2}, [])
        plain = await master.http.post("/api/submit", json={"text": STREAM, "job_id": "a"})
        assert plain.status_code == 409, "a job that does not go on waits for the tombstone"
        body = {"token": "once"}
        for _ in range(2):  # the same request again is the same restart
            again = await master.http.post("/api/jobs/a/restart", json=body)
            assert again.status_code == 200, again.text
        now = leader.jobs["a"]
        assert now.state.incarnation != old.incarnation and now.state.life == 2
        assert now.pipelines[1].state.restore, "it begins with a blob of its own"
        assert [k.state for k in leader.graves.values()] == [old]
        busy = await master.http.post("/api/jobs/a/restart", json={})
        assert busy.status_code == 409 and "is in use" in busy.json()["message"]

    served(tmp_path, test)


def test_a_state_stays_until_a_later_life_has_shown_more(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await cancelled(master, "a")
        for life in (2, 3, 4):  # they show nothing, and the state stays where to go on
            again = await master.http.post("/api/jobs/a/restart", json={})
            assert again.status_code == 200, again.text
            await cancelled(master, "a", checkpoints=0)
            assert [s["past"] for s in await listed(master, "a")] == [[]], life
        await master.http.post("/api/jobs/a/restart", json={})
        await cancelled(master, "a", checkpoints=1)
        newest, oldest = await listed(master, "a")
        assert (newest["state"], newest["past"]) == (5, [])
        assert (oldest["state"], len(oldest["past"])) == (1, 1)
        assert "life 5" in oldest["past"][0] and "commit 1 of pipeline 1" in oldest["past"][0]
        older = await master.http.post("/api/jobs/a/restart", json={"number": 1})
        assert older.status_code == 409 and older.json()["code"] == "saved.past"
        other = {"text": STREAM, "job_id": "b", "source": "a", "number": 1, "restore": True}
        copy = await master.http.post("/api/submit", json=other)
        assert copy.status_code == 409 and "--write-again" in copy.json()["message"]
        wanted = await master.http.post("/api/submit", json={**other, "write_again": True})
        assert wanted.status_code == 200, wanted.text
        lines = [line for line in master.app.audit.latest if line["what"] == "writes again"]
        assert [(line["jobId"], line["source"], line["number"]) for line in lines] == [
            ("b", "a", 1)
        ]

    served(tmp_path, test)


def test_what_is_left_later_is_later_though_a_leader_died_before_it_wrote_how_long_it_led(
    tmp_path: Path,
) -> None:
    async def first(master: Served) -> None:
        leader = master.api.master.leader
        assert leader
        leader.vault._led = (1000.0, 0)  # so long has it led, and its time to say so comes later
        await cancelled(master, "a")

    async def second(master: Served) -> None:
        leader = master.api.master.leader
        assert leader
        assert await leader.desk.read("led") is None
        for life in (2, 3):
            again = await master.http.post("/api/jobs/a/restart", json={})
            assert again.status_code == 200, again.text
            await cancelled(master, "a", checkpoints=1)
            assert [s["state"] for s in await listed(master, "a")] == [*range(life, 0, -1)]

    async def run() -> None:
        store = await open_store("memory:")
        for test in (first, second):
            await with_master(store, tmp_path, test)

    asyncio.run(run())


def test_a_life_that_ends_while_a_restart_is_planned_is_where_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(master: Served) -> None:
        await cancelled(master, "a")
        await master.http.post("/api/jobs/a/restart", json={})
        await master.runs("a")
        await master.checkpoint("a")
        planning, ended, plan = threading.Event(), threading.Event(), JobSource.job

        def slowly(*given: Any) -> Any:
            planning.set()
            ended.wait()
            return plan(*given)

        monkeypatch.setattr(JobSource, "job", slowly)
        asking = asyncio.ensure_future(master.http.post("/api/jobs/a/restart", json={}))
        await asyncio.to_thread(planning.wait)
        await cancelled(master, "a", checkpoints=0)
        ended.set()
        answer = await asking
        assert answer.status_code == 200, answer.text
        leader = master.api.master.leader
        assert leader and leader.jobs["a"].state.life == 3
        assert [s["state"] for s in await listed(master, "a")] == [2, 1]
        assert leader.jobs["a"].state.origin == leader.vault.of("a")[0].id

    served(tmp_path, test)


def test_a_state_is_removed_and_its_blobs_with_it(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await cancelled(master, "a")
        unknown = await master.http.delete("/api/jobs/a/savepoints/7")
        assert unknown.status_code == 404
        for _ in range(2):
            removed = await master.http.delete("/api/jobs/a/savepoints/1")
            assert removed.status_code == 200, removed.text
        assert await listed(master, "a") == []
        again = await master.http.post("/api/jobs/a/restart", json={})
        assert again.status_code == 409 and "left nothing" in again.json()["message"]

    served(tmp_path, test)


RETAINED = STREAM.replace("env {", "env { savepoint.retained.seconds = %s,")


async def saved(master: Served, job: str, text: str = STREAM) -> None:
    """Run a job for a checkpoint and stop it with a savepoint."""
    await master.submit(job, text)
    await master.runs(job)
    await master.checkpoint(job)
    await master.save(job)


def blobs(master: Served, job: str) -> list[str]:
    """The checkpoints of a job that are stored; folders may vanish meanwhile."""
    return [name for _, _, names in os.walk(master.folder / "blobs" / job) for name in names]


def quick() -> MasterSettings:
    return MasterSettings(lease_s=30.0, tombstone_s=0.2, worker_lost_s=6.0, history=3, tidy_s=0.1)


def test_savepoints_are_there_when_the_history_has_forgotten_their_jobs(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        jobs = [f"small{n}" for n in range(6)]
        for job in jobs:
            await saved(master, job)
        leader = master.api.master.leader
        assert leader
        # The history holds three.
        while leader.jobs or len(await leader.desk.read_range("history/")) > 3:
            await master.beat()
            await asyncio.sleep(0.02)
        assert {s["job_id"] for s in await listed(master, "")} == {*jobs}
        for job in jobs:
            assert len(blobs(master, job)) == 1, "of each its savepoint, and nothing else"
        again = await master.http.post("/api/jobs/small0/restart", json={})
        assert again.status_code == 200, again.text
        # What it leaves has a number of its own, though nothing else tells of the life before.
        await cancelled(master, "small0", checkpoints=1)
        assert [s["state"] for s in await listed(master, "small0")] == [2, 1]
        newest = await master.http.delete("/api/jobs/small0/savepoints/2")
        assert newest.status_code == 200, newest.text
        for job in jobs:
            removed = await master.http.delete(f"/api/jobs/{job}/savepoints/1")
            assert removed.status_code == 200, removed.text
        while any(blobs(master, job) for job in jobs):  # for ever would be the test's time limit
            await master.beat()
            await asyncio.sleep(0.02)
        assert await listed(master, "") == []

    served(tmp_path, test, settings=quick())


def test_a_savepoint_goes_when_its_time_is_over_and_no_other_one_does(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for job, seconds in (("brief", 1), ("long", 3600), ("ever", 0)):
            await saved(master, job, RETAINED % seconds)
        kept = {s["job_id"]: s["expires_in_s"] for s in await listed(master, "")}
        assert kept["ever"] is None and 3590 < kept["long"] <= 3600
        while blobs(master, "brief"):
            await master.beat()
            await asyncio.sleep(0.02)
        assert {s["job_id"] for s in await listed(master, "")} == {"long", "ever"}
        assert blobs(master, "long") and blobs(master, "ever")
        gone = await master.http.post("/api/jobs/brief/restart", json={})
        assert gone.status_code in (404, 409) and "savepoint.retained" in gone.text

    served(tmp_path, test, settings=quick())


KEYED = STREAM.replace(
    'LocalFile { plugin_input = g, path = "/tmp/nowhere", file_format_type = json }',
    """Jdbc { plugin_input = g, url = "jdbc:postgresql://127.0.0.1:1/shop", table = orders,
      primary_keys = [id], generate_sink_sql = true %s }""",
)


def test_an_older_state_may_be_gone_on_from_where_every_sink_goes_by_key(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for job, more in (("adds", ", enable_upsert = false"), ("keyed", "")):
            await master.submit(job, KEYED % more)
            await cancelled(master, job)
            assert (await master.http.post(f"/api/jobs/{job}/restart", json={})).status_code == 200
            await cancelled(master, job, checkpoints=1)
        refused = await master.http.post("/api/jobs/adds/restart", json={"number": 1})
        assert refused.status_code == 409 and "rows more" in refused.json()["message"]
        taken = await master.http.post("/api/jobs/keyed/restart", json={"number": 1})
        assert taken.status_code == 200, taken.text
        said = taken.json()["restored"][-1]
        assert "Every sink replaces rows by their keys" in said and "rows more" in said

    served(tmp_path, test)


EMPTIES = STREAM.replace("file_format_type", "data_save_mode = DROP_DATA, file_format_type")


class Seer:
    """A worker that opens what a job names, and sees what a test says."""

    def __init__(self, master: Served) -> None:
        self.master = master
        self.wires = Wires("W9-1")
        self.looks = master.api.looks = LookRequests(self.wires)

    async def restarts(self, token: str, **seen: Any) -> Any:
        """Restart job `a`, have the worker answer, and return what the master answers."""
        await hello(self.master.api, "W9")
        asked = len(self.wires.sent)
        asking = asyncio.ensure_future(
            self.master.http.post("/api/jobs/a/restart", json={"token": token})
        )
        while len(self.wires.sent) == asked:
            assert not asking.done(), asking.result().text
            await asyncio.sleep(0.01)
        _, order = self.wires.sent[-1]
        self.wires.answers(self.looks._looks[order.request], **seen)
        return await asking

    def stage(self, role: str) -> SourceLocation:
        """Where the source or the sink stands in the file that the worker was sent."""
        planned = decode_spec(self.wires.sent[-1][1].spec).job(self.master.api.registry)
        (found,) = (s for s in planned.stages if s.role == role)
        return found.place


def test_what_a_worker_cannot_open_is_refused_while_the_job_is_as_it_was(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("a", EMPTIES)
        await cancelled(master, "a")
        leader, seer = master.api.master.leader, Seer(master)
        assert leader
        before = leader.jobs["a"].state
        slow = await seer.restarts("t0", failure="it did not end within 5 s", mistakes=())
        assert slow.status_code == 200 and "has not opened all" in slow.json()["warnings"][-1]
        assert "DROP_DATA" not in seer.wires.sent[-1][1].spec, "its table is known, and kept"
        await cancelled(master, "a", checkpoints=0)
        last = leader.jobs["a"].state
        assert (before.life, last.life) == (1, 2)

        source, sink = seer.stage("source"), seer.stage("sink")
        at = {s: (s.file, s.line, s.column) for s in (source, sink)}
        wrong = ((*at[source], "its folder is gone"), (*at[sink], "its disk is full"))
        refused = await seer.restarts("t1", mistakes=wrong)
        assert refused.status_code == 409 and refused.json()["code"] == "restore.places"
        told = refused.json()["message"]
        assert f"- {sink}: its disk is full" in told and "worker W9" in told
        assert "its folder is gone" not in told, "a source that goes on may not need it any more"
        assert leader.jobs["a"].state is last, "nothing was begun"
        assert [s["past"] for s in await listed(master, "a")] == [[]]

        warned = await seer.restarts("t2", mistakes=wrong[:1])
        assert warned.status_code == 200, warned.text
        assert f"{source}: its folder is gone" in warned.json()["warnings"]
        # The same request again is the same restart, whatever a worker would see now.
        again = await master.http.post("/api/jobs/a/restart", json={"token": "t2"})
        assert again.status_code == 200 and len(seer.wires.sent) == 3

    served(tmp_path, test)
