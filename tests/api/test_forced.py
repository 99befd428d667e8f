"""A forced cancel over REST: own path and SeaTunnel's, in the audit log, and shown afterwards."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.job import JobStatus
from holdfast.errors import Unavailable
from holdfast.master.ports import MasterSettings
from holdfast.model.tree import Plain
from tests.api.served import STREAM, Served, served


async def hung(master: Served, job: str) -> None:
    """Run a job whose first commit is visible, and its listeners do not hear of it."""

    async def silent(*_: Any) -> bool:
        raise Unavailable("The web server answers 503.")

    master.api.master.ports.tables.listens = silent  # type: ignore[method-assign]
    await master.submit(job)
    await master.runs(job)
    await master.checkpoint(job)


async def cancelled(master: Served, job: str) -> None:
    leader = master.api.master.leader
    assert leader
    while leader.jobs[job].state.status is not JobStatus.CANCELED:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/jobs/7/cancel?force=true", None), ("/stop-job", {"jobId": 7, "force": True})],
)
def test_a_forced_cancel_ends_what_hangs_is_audited_and_shown(
    tmp_path: Path, path: str, body: dict[str, Any] | None
) -> None:
    async def test(master: Served) -> None:
        await hung(master, "7")
        assert (await master.http.post("/api/jobs/7/cancel")).status_code == 200
        assert (await master.get("/api/jobs/7"))["status"] == "CANCELING", "it waits for listeners"
        forced = await master.http.post(path, json=body)
        assert forced.status_code == 200, forced.text
        await cancelled(master, "7")
        (line,) = [x for x in master.app.audit.latest if x["what"] == "cancels by force"]
        assert (line["jobId"], line["role"]) == ("7", "admin")
        shown = await master.get("/api/jobs/7")
        assert "listeners may not have run" in shown["reason"] and shown["health"] == ""
        told = await master.get("/api/jobs/7/explain")
        incarnation = shown["incarnation"]
        (left,) = told["unfinished"]
        assert (left["pipeline"], left["number"]) == (1, 1)
        assert left["sink"] == "Sink[0]-LocalFile"
        assert left["commit"] == f"7.{incarnation}.1.Sink[0]-LocalFile"
        assert any("holdfast restart 7" in way for way in told["finish"])
        again = await master.http.post("/api/jobs/7/restart", json={})
        assert again.status_code == 200, again.text
        leader = master.api.master.leader
        assert leader and leader.jobs["7"].pipelines[1].state.owes_former

    served(tmp_path, test)


def test_whoever_submits_anew_hears_of_commits_that_may_yet_show(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        async def away(*_: Any) -> bool:
            raise Unavailable("The table does not answer.")

        master.api.master.ports.tables.publish = away  # type: ignore[method-assign]
        await master.submit("7")
        await master.runs("7")
        (keeper,) = master.keepers()
        folder = f".holdfast/7.{keeper.state.incarnation}-t-a1-s1-t0"
        files: Plain = {"root": "/tmp/nowhere", "folder": folder, "files": []}
        made: Plain = {"version": 1, "table": "t", "rows": 0, "bytes": 0, "content": files}
        taken = asyncio.ensure_future(master.checkpoint("7", staged=made))
        while not keeper.state.commits.waiting:
            await asyncio.sleep(0.01)
        await master.http.post("/api/jobs/7/cancel?force=true")
        await cancelled(master, "7")
        taken.cancel()
        while list(master.keepers()):
            await master.beat()
            await asyncio.sleep(0.02)
        anew = await master.http.post("/api/submit", json={"text": STREAM, "job_id": "7"})
        assert anew.status_code == 200, anew.text
        assert "Incarnation 1 of job 7 ended with commits that are" in anew.json()["warnings"][-1]
        assert "holdfast restart 7" in anew.json()["warnings"][-1]

    quick = MasterSettings(lease_s=30.0, tombstone_s=0.2, worker_lost_s=6.0, tidy_s=0.1)
    served(tmp_path, test, settings=quick)


def test_what_is_given_up_is_no_longer_to_be_finished(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await hung(master, "7")
        await master.http.post("/api/jobs/7/cancel?force=true")
        await cancelled(master, "7")
        gone = await master.http.delete("/api/jobs/7/savepoints/1")
        assert gone.status_code == 200, gone.text
        told = await master.get("/api/jobs/7/explain")
        assert "nothing can finish it" in told["finish"][0] and told["unfinished"]

    served(tmp_path, test)
