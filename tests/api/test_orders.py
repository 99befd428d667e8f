"""Orders over SeaTunnel's REST v2 and over our own paths: submit, stop, encrypt, tags, retry."""

import asyncio
import json
from pathlib import Path
from typing import Any

from holdfast.master.ports import MasterSettings
from tests.api.served import BATCH, STREAM, Served, served

CONFIG: dict[str, Any] = {
    "env": {"job.mode": "BATCH", "job.name": "from json"},
    "source": [{"plugin_name": "FakeSource", "plugin_output": "f",
                "schema": {"fields": {"id": "int"}}}],
    "transform": [],
    "sink": [{"plugin_name": "Console", "plugin_input": ["f"]}],
}  # fmt: skip
SOON = MasterSettings(lease_s=30.0, tombstone_s=0.05, worker_lost_s=60.0)


def test_a_job_is_submitted_as_json_hocon_and_sql_and_as_a_file(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        post = master.http.post
        answer = await post("/submit-job?jobId=733584788375666689&jobName=mine", json=CONFIG)
        assert answer.json() == {"jobId": "733584788375666689", "jobName": "mine"}
        answer = await post("/submit-job?format=hocon", content=BATCH)
        assert answer.json()["jobName"] == "small" and answer.json()["jobId"].isdigit()
        file = {"config_file": ("job.conf", BATCH.encode())}
        answer = await post("/submit-job/upload?jobId=up", files=file)
        assert answer.json() == {"jobId": "up", "jobName": "small"}
        odd = await post("/submit-job/upload", files={"config_file": ("job.exe", b"x")})
        assert odd.status_code == 400 and "by its ending" in odd.json()["message"]
        assert (await post("/submit-job/upload", files={"other": ("job.conf", b"x")})).is_error
        assert (await post("/submit-job?format=yaml", content=b"env: {}")).status_code == 400

    served(tmp_path, test)


def test_an_unknown_option_is_a_warning_by_rest_v2_and_a_mistake_by_our_paths(
    tmp_path: Path,
) -> None:
    async def test(master: Served) -> None:
        text = BATCH.replace("Console {", "Console { colour = red,", 1)
        ours = await master.http.post("/api/submit", json={"text": text, "job_id": "1"})
        assert ours.status_code == 400 and "unknown option 'colour'" in ours.text
        theirs = await master.http.post("/submit-job?format=hocon&jobId=2", content=text)
        assert theirs.status_code == 200
        told = (await master.get("/api/jobs/2/timeline"))["events"]
        assert ["'colour'" in e["reason"] for e in told if e["status"] == "WARNED"] == [True]
        lacking = BATCH.replace("Console {", "Console { multi_table.failure_policy = SKIP,", 1)
        for path in ("/submit-job?format=hocon", "/submit-job?format=hocon&jobId=3"):
            refused = await master.http.post(path, content=lacking)
            assert refused.status_code == 400 and "give it a job of its own" in refused.text

    served(tmp_path, test)


def test_the_same_request_twice_is_one_submit_and_later_a_new_one(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        send = lambda: master.http.post("/submit-job?jobId=1", json=CONFIG)  # noqa: E731
        answers = [await send() for _ in range(3)]
        assert [a.status_code for a in answers] == [200, 200, 200]
        assert len(await master.get("/running-jobs")) == 1
        other = await master.http.post("/submit-job?jobId=1&jobName=other", json=CONFIG)
        assert other.status_code == 409
        await master.http.post("/stop-job", json={"jobId": 1})
        leader = master.api.master.leader
        assert leader
        while "1" in leader.jobs:
            await asyncio.sleep(0.01)
        first = (await master.get("/finished-jobs"))[0]["incarnation"]
        assert (await send()).status_code == 200
        assert leader.jobs["1"].state.incarnation != first

    served(tmp_path, test, settings=SOON)


def test_of_several_jobs_none_starts_if_one_is_wrong(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        good = {**CONFIG, "params": {"jobId": 881432421482889220, "jobName": "a"}}
        bad = {**CONFIG, "sink": [{"plugin_name": "Nowhere"}]}
        answer = await master.http.post("/submit-jobs", json=[good, bad])
        assert answer.status_code == 400 and answer.json()["mistakes"]
        assert await master.get("/running-jobs") == []
        answer = await master.http.post("/submit-jobs", json=[good, CONFIG])
        assert answer.json()[0] == {"jobId": "881432421482889220", "jobName": "a"}
        both = [{"jobId": 881432421482889220}, {"jobId": answer.json()[1]["jobId"]}]
        stopped = await master.http.post("/stop-jobs", json=both)
        assert stopped.json()[0] == {"jobId": 881432421482889220}, "a number here"

    served(tmp_path, test)


def test_an_encrypted_config_can_be_submitted_and_shows_nothing(tmp_path: Path) -> None:
    secret = "a-password-nobody-may-see"

    async def test(master: Served) -> None:
        sink = {"plugin_name": "Jdbc", "plugin_input": ["f"], "url": "jdbc:postgresql://h/db",
                "driver": "org.postgresql.Driver", "user": "me", "password": secret,
                "table": "t", "generate_sink_sql": True, "database": "db"}  # fmt: skip
        answer = await master.http.post("/encrypt-config", json={**CONFIG, "sink": [sink]})
        sealed = answer.json()
        assert sealed["sink"][0]["password"].startswith("sealed:v1:") and secret not in answer.text
        assert sealed["sink"][0]["user"] == "me"
        answer = await master.http.post("/submit-job?jobId=1", json=sealed)
        assert answer.status_code == 200, answer.text
        leader = master.api.master.leader
        assert leader
        kept = leader.jobs["1"].state.spec
        assert secret not in kept and secret in master.api.opened(kept)
        shown = json.dumps(await master.get("/api/jobs/1/config"))
        assert secret not in shown and "sealed:" not in shown and "******" in shown

    served(tmp_path, test)


def test_tags_of_this_master(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        post = master.http.post
        done = {"status": "success", "message": "update node tags done."}
        empty = {"status": "fail", "message": "Request body is empty."}
        assert (await post("/update-tags", content=b"")).json() == empty
        odd = await post("/update-tags", content=b"{")
        assert odd.json() == {"status": "fail", "message": "Invalid JSON format in request body."}
        assert (await post("/update-tags", json={"zone": "b"})).json() == done
        assert len(await master.get("/system-monitoring-information?zone=b")) == 1
        assert (await post("/update-tags", json={})).json() == done
        assert await master.get("/system-monitoring-information?zone=b") == []

    served(tmp_path, test)


def test_a_job_that_is_over_is_run_again_with_the_same_file(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("1", STREAM)
        busy = await master.http.post("/api/jobs/1/retry", json={})
        assert busy.status_code == 409
        await master.http.post("/api/jobs/1/cancel")
        leader = master.api.master.leader
        assert leader
        while "1" in leader.jobs:
            await asyncio.sleep(0.01)
        saved = await master.http.post("/api/jobs/1/retry", json={"restore": True})
        assert (
            saved.status_code == 409 and "left nothing to continue from" in saved.json()["message"]
        )
        again = await master.http.post("/api/jobs/1/retry", json={})
        assert again.json()["job_id"] == "1" and leader.jobs["1"].state.name == "stream"

    served(tmp_path, test, settings=SOON)


def test_checking_tells_every_mistake_with_its_place(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        text = (
            "env { job.mode = BATCH }\nsource { FakeSorce { x = 1 } }\nsink { Console { y = 2 } }"
        )
        found = (await master.http.post("/api/check", json={"text": text})).json()
        assert not found["ok"] and {m["line"] for m in found["mistakes"]} == {2, 3}
        assert all(m["column"] and m["message"] for m in found["mistakes"])
        fine = (await master.http.post("/api/check", json={"text": BATCH})).json()
        assert fine["ok"] and len(fine["plan"]["stages"]) == 2
        broken = (await master.http.post("/api/check", json={"text": "env {"})).json()
        assert not broken["ok"] and broken["mistakes"]

    served(tmp_path, test)
