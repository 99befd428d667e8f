"""What the pages are made of: timelines, failures with stacks, gaps, changes, health in words."""

import asyncio
from pathlib import Path
from typing import Any, cast

from holdfast.core.checkpoint import CheckpointDue, CheckpointFailed, CheckpointKind
from holdfast.core.task import TaskFailed
from holdfast.wire.messages import TaskReport
from tests.api.served import LOAD, STREAM, Served, served


def test_a_failure_is_told_with_its_stack_its_worker_and_its_restart(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        (keeper,) = master.keepers()
        task = keeper.state.tasks[0]
        assert task.place
        stack = "Traceback ...\n  File x\nValueError: password=abcabc"
        master.api.board.failed(TaskReport(keeper.task_key(task.id), 1, "no", stack=stack))
        await keeper.handle(TaskFailed(task.id, 1, task.place, "url jdbc:x?password=abcabc broke"))
        await master.runs("17")
        found = await master.get("/api/jobs/17/failures")
        (one,) = found["failures"]
        assert (one["task"], one["attempt"], one["worker"]) == (task.id, 1, "W1")
        assert one["at_s"] > 0 and "broke" in one["reason"] and "ValueError" in one["stack"]
        assert "abcabc" not in str(found) and found["restarts"] == 1
        assert "abcabc" not in str(await master.get("/api/jobs/17/explain"))
        assert "abcabc" not in str(await master.get("/api/jobs/17"))
        info = await master.get("/job-info/17")
        assert "abcabc" not in str(info)
        assert info["restartCount"] == 1 and info["restartReasons"][0]["attempt"] == 1
        events = (await master.get("/api/jobs/17/timeline"))["events"]
        told = [(e["what"], e["status"], e["attempt"]) for e in events if e["what"] == "task"]
        assert told[-4:] == [
            ("task", "FAILED", 1), ("task", "WAITING", 2), ("task", "PLACED", 2),
            ("task", "RUNNING", 2),
        ]  # fmt: skip
        assert "abcabc" not in str(events)
        assert [e["at_s"] for e in events] == sorted(e["at_s"] for e in events)

    served(tmp_path, test)


def test_a_list_asked_again_is_as_new_as_the_first_time(tmp_path: Path) -> None:
    """Most of an entry is kept between two requests; nothing of it may grow old."""

    async def test(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        await master.checkpoint("17", 100)

        async def listed() -> dict[str, Any]:
            (found,) = await master.get("/running-jobs")
            return cast("dict[str, Any]", found)

        while (first := await listed())["committedRows"] != 100:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)  # ages are told in milliseconds
        again = await listed()
        assert again["secondsSinceLastCheckpoint"] > first["secondsSinceLastCheckpoint"]
        await master.checkpoint("17", 250)
        while (last := await listed())["committedRows"] != 250:
            await asyncio.sleep(0.01)
        assert last["secondsSinceLastCheckpoint"] < again["secondsSinceLastCheckpoint"] + 1
        await master.beat(read=4321)
        while (await listed())["metrics"]["SourceReceivedCount"] != "4321":
            await asyncio.sleep(0.01)
        assert "explain" in await master.get("/job-info/17")
        assert (await listed())["explain"] == "", "what one request adds is its own"

    served(tmp_path, test)


def test_checkpoints_that_fail_and_gaps_are_shown(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17", STREAM.replace("60000", "100"))
        await master.runs("17")
        await master.checkpoint("17", 100)
        (keeper,) = master.keepers()
        leader = master.api.master.leader
        assert leader
        while keeper.state.checkpoints.pending is None:
            await keeper.handle(CheckpointDue(CheckpointKind.PERIODIC, leader.desk.term))
        number = keeper.state.checkpoints.pending.number
        path = "/api/jobs/17/checkpoints"
        while not (under := (await master.get(path))["pipelines"][0]["in_progress"]):
            await asyncio.sleep(0.01)
        assert under["missing"] == [keeper.state.tasks[0].id] and under["total"] == 1
        await keeper.handle(CheckpointFailed(number, "no answer from p1-t1 within 1 s"))
        while not (part := (await master.get(path))["pipelines"][0])["failed"]:
            await asyncio.sleep(0.01)
        failed = next(c for c in part["history"] if c["outcome"] == "FAILED")
        assert failed["number"] == number and "no answer" in failed["reason"]
        assert failed["duration_s"] > 0 and part["failed_in_a_row"] >= 1
        done = part["history"][-1]
        assert (done["number"], done["rows"], done["bytes"]) == (1, 100, 800) and done["size"] > 0

    served(tmp_path, test)


def test_a_job_without_checkpoints_is_stalled_with_the_reason_in_words(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17", STREAM.replace("60000", "100"))
        await master.runs("17")
        while (row := (await master.get("/api/jobs"))["jobs"][0])["health"] != "STALLED":
            await master.beat()
            await asyncio.sleep(0.05)
        assert "waits for p1-t1" in row["health_reason"] and row["checkpoint_age_s"] > 0.5
        overview = await master.get("/api/overview")
        assert overview["by_health"]["STALLED"] == 1 and overview["worst"][0]["job_id"] == "17"
        info = await master.get("/job-info/17")
        assert info["checkpointHealth"] == "STALLED" and info["checkpointHealthReason"]
        assert (await master.get("/overview"))["stalledJobs"] == "1"
        only = await master.get("/api/jobs?health=stalled")
        assert only["total"] == 1 and not (await master.get("/api/jobs?health=ok"))["jobs"]

    served(tmp_path, test)


def test_changes_are_waited_for_and_not_longer_than_asked(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        now = (await master.get("/api/changes?since=-1"))["change"]
        waiting = asyncio.ensure_future(master.get(f"/api/changes?since={now + 10**6}&wait_s=0"))
        assert (await waiting)["change"] >= now
        await master.submit("17")
        later = await master.get(f"/api/changes?since={now}&wait_s=20")
        assert later["change"] > now and later["leads"]

    served(tmp_path, test)


def test_what_workers_use_of_their_machines_is_shown(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.beat()
        (worker,) = await master.get("/api/workers")
        assert (worker["cpu"], worker["cores"]) == (LOAD.cpu, LOAD.cores)
        assert (worker["memory"], worker["memory_total"]) == (LOAD.memory, LOAD.memory_total)
        (theirs,) = (await master.get("/pending-jobs"))["clusterSnapshot"]["workers"]
        assert (theirs["cpuUsage"], theirs["memUsage"]) == (0.3125, 0.25)

    served(tmp_path, test)


def test_a_drained_worker_says_so_and_why_a_task_stays(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        wrong = await master.http.post("/api/workers/W9/drain")
        assert (wrong.status_code, wrong.json()["code"]) == (400, "worker.unknown")
        assert "There is no worker W9 in contact. These are: W1." in wrong.json()["message"]
        for _ in range(2):  # the same order again is the same drain
            assert (await master.http.post("/api/workers/W1/drain")).status_code == 200
        view = await master.get("/api/cluster")
        while not view["workers"][0]["tasks"][0]["moves"]:
            await asyncio.sleep(0.01)
            view = await master.get("/api/cluster")
        (worker,) = view["workers"]
        assert view["drained"] == ["W1"]
        assert worker["draining"] == "an operator drains it"
        stays = "stays: no other worker has room for it: no worker is connected (besides W1"
        assert worker["tasks"][0]["moves"].startswith(stays)
        (wait,) = [w for w in (await master.get("/api/jobs/17/explain"))["waits"]
                   if "draining" in w["what"]]  # fmt: skip
        assert f"runs on worker W1, which is draining. It {stays}" in wait["what"]
        assert "holdfast_workers_draining 1\n" in (await master.http.get("/metrics")).text

        await master.beat("W2")
        while not any(k.state.tasks[0].to for k in master.keepers()):
            await asyncio.sleep(0.01)
        (wait,) = [w for w in (await master.get("/api/jobs/17/explain"))["waits"]
                   if "draining" in w["what"]]  # fmt: skip
        assert "It moves to worker W2 at the next checkpoint." in wait["what"]
        assert (await master.http.delete("/api/workers/W1/drain")).status_code == 200
        while any(k.state.tasks[0].to for k in master.keepers()):
            await asyncio.sleep(0.01)
        assert (await master.get("/api/workers"))[0]["draining"] == ""
        assert (await master.get("/api/jobs/17"))["restarts"] == 0

    served(tmp_path, test)
