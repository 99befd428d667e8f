"""SeaTunnel's lists, as the leader answers them and as the store does while nobody leads."""

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.api.served import Served, served


async def both(master: Served, path: str) -> list[list[dict[str, Any]]]:
    """What a list holds, from the leader and then from the store alone."""
    led = await master.get(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(master.api, "leading", lambda: None)
        return [led, await master.get(path)]


def test_a_job_that_is_over_is_not_among_those_that_run(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for name in ("over", "runs"):
            await master.submit(name)
            await master.runs(name)
        assert (await master.http.post("/api/jobs/over/cancel")).status_code == 200
        while (await master.get("/api/jobs/over"))["status"] != "CANCELED":
            await master.beat()
            await asyncio.sleep(0.01)
        keeper = master.api.master.leader
        assert keeper and "over" in keeper.jobs, "its tombstone stands"
        for listed in await both(master, "/running-jobs"):
            assert [job["jobId"] for job in listed] == ["runs"]
        assert [job["jobId"] for job in await master.get("/finished-jobs")] == ["over"]
        short = await master.get("/running-jobs/summary")
        assert [job["jobId"] for job in short] == ["runs"]

    served(tmp_path, test)


def test_the_time_of_the_last_checkpoint_is_told(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        for (job,) in await both(master, "/running-jobs"):
            assert job["lastCheckpointTime"] is None
        before_s = int(time.time())
        await master.checkpoint("17", 100)
        after_s = time.time()
        for (job,) in await both(master, "/running-jobs"):
            told = datetime.strptime(job["lastCheckpointTime"], "%Y-%m-%d %H:%M:%S")
            assert before_s <= told.timestamp() <= after_s
            known = job["checkpointHealth"] != "UNKNOWN"
            age_s = job["secondsSinceLastCheckpoint"]
            assert (age_s is not None and 0 <= age_s < 60) if known else age_s is None
        one = await master.get("/job-info/17")
        assert one["lastCheckpointTime"] == job["lastCheckpointTime"]

    served(tmp_path, test)
