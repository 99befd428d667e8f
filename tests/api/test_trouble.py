"""A worker whose Spark stands still: every way of asking says so, and its next life is told why."""

import asyncio
from pathlib import Path

from holdfast.wire.messages import Heartbeat
from tests.api.served import LOAD, Served, served

BATCH = """
env { job.mode = BATCH }
source { FakeSource { row.num = 5, schema { fields { id = bigint } } } }
sink { Console {} }
"""
SAID = "Spark's Java process has not answered for 12 s."


def test_a_silent_spark_is_told_wherever_one_asks(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17", BATCH)
        await master.runs("17")
        assert (await master.get("/api/jobs/17"))["health"] == "OK"
        await master.beat(silent_s=12.0, trouble=SAID)
        job = await master.get("/api/jobs/17")
        task = job["pipelines"][0]["tasks"][0]["task"]
        assert job["health"] == job["pipelines"][0]["health"] == "STALLED"
        assert job["health_reason"] == f"Task {task} is on worker W1. {SAID}"
        row = (await master.get("/api/jobs"))["jobs"][0]
        assert (row["health"], row["health_reason"]) == ("STALLED", job["health_reason"])
        told = await master.get("/api/jobs/17/explain")
        assert (told["health"], told["summary"]) == ("STALLED", job["health_reason"])
        theirs = await master.get("/job-info/17")
        assert theirs["checkpointHealth"] == "STALLED" and SAID in theirs["checkpointHealthReason"]
        (worker,) = (await master.get("/api/cluster"))["workers"]
        assert (worker["trouble"], worker["silent_s"]) == (SAID, 12.0)
        text = (await master.http.get("/metrics")).text
        assert 'holdfast_worker_spark_silent_seconds{worker="W1"} 12\n' in text
        assert 'holdfast_job_health{job="17"' in text
        await master.beat()
        assert (await master.get("/api/jobs/17"))["health"] == "OK", "it has answered again"

    served(tmp_path, test)


def test_the_next_life_of_its_worker_costs_no_retry_and_says_why(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17", BATCH)
        await master.runs("17")
        await master.beat(silent_s=12.0, trouble=SAID)
        leader = master.api.master.leader
        assert leader
        await leader.hear("W1-2", Heartbeat("W1", "W1-2", 1, 0, 8, (), (), LOAD))
        while not (part := (await master.get("/api/jobs/17"))["pipelines"][0])["failures"]:
            await asyncio.sleep(0.01)
        assert part["failures"][0]["reason"] == f"its worker was lost: {SAID}"
        assert (part["retries"], part["tasks"][0]["attempt"]) == (0, 2)

    served(tmp_path, test)
