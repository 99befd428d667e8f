"""Any master answers: a standby hands on to the leader, and reads the store while nobody leads."""

import asyncio
from pathlib import Path

from holdfast.client import FOLLOWS
from holdfast.master.ports import MasterSettings
from holdfast.store.open import open_store
from tests.api.served import Served, with_master
from tests.api.test_links_attacked import listening
from tests.conformance.servers import free_ports

SETTINGS = MasterSettings(lease_s=30.0, campaign_s=0.02, tombstone_s=60.0, worker_lost_s=60.0)


def test_a_standby_answers_everything_and_the_store_answers_without_a_leader(
    tmp_path: Path,
) -> None:
    (port,) = free_ports(1)

    async def leading(leader: Served) -> None:
        async def standing_by(standby: Served) -> None:
            await leader.submit("17")
            await leader.runs("17")
            async with listening(leader, port):
                await handed_on(leader, standby)
            leader.api.master.stop()
            await alone(standby)

        await with_master(
            leader.api.master.store, tmp_path / "two", standing_by, name="M2", url="http://m2",
            settings=SETTINGS,
        )  # fmt: skip

    async def handed_on(leader: Served, standby: Served) -> None:
        assert standby.api.leading() is None
        for path in ("/running-jobs", "/overview", "/api/overview", "/api/workers", "/job-info/17"):
            here, there = await standby.get(path), await leader.get(path)
            assert type(here) is type(there) and len(here) == len(there)
        assert (await standby.get("/api/jobs/17"))["live"]
        assert (await standby.get("/api/me"))["master"] == "M2", "what is its own it answers"
        answer = await standby.http.post("/submit-job?jobId=18&format=hocon", content=b"x")
        assert answer.status_code == 400 and answer.json()["status"] == "fail"
        stopped = await standby.http.post("/stop-job", json={"jobId": "17"})
        assert stopped.json() == {"jobId": "17"}
        nobody = await standby.http.get("/running-jobs", headers={"Authorization": ""})
        assert nobody.status_code == 401
        told = await standby.http.post("/api/jobs/17/cancel", headers={FOLLOWS: "1"})
        assert told.status_code == 421 and told.json()["leader"] == f"http://127.0.0.1:{port}"

    async def alone(standby: Served) -> None:
        """The leader is gone: until another leads, what the store knows is told."""
        while True:
            found = await standby.get("/api/jobs/17")
            assert found["job_id"] == "17" and found["status"] in ("CANCELING", "CANCELED")
            listed = [j["job_id"] for j in (await standby.get("/api/jobs"))["jobs"]]
            assert listed == ["17"]
            if standby.api.leading():
                break
            await asyncio.sleep(0.01)
        assert (await standby.get("/api/overview"))["leader"] == "M2"

    async def run() -> None:
        store = await open_store("memory:")
        await with_master(
            store, tmp_path / "one", leading, url=f"http://127.0.0.1:{port}", settings=SETTINGS
        )

    asyncio.run(run())
