"""What a master answers: a leading one without workers, on a store in memory."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from holdfast.api import service as module
from holdfast.api.requests import Submit
from holdfast.api.service import Api
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.job import JobStatus
from holdfast.core.task import TaskStatus
from holdfast.errors import Unavailable, UserError
from holdfast.master.master import Master
from holdfast.master.ports import MasterSettings, Ports
from holdfast.model.secret import Secret
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import SinkTables
from holdfast.process.failpoints import points_from_env
from holdfast.process.links import WorkerLinks
from holdfast.process.master_process import build_app
from holdfast.store.contract import Delete, Guard, Put
from holdfast.store.open import open_store
from holdfast.wire.messages import Heartbeat, TaskReport

TOKEN = Secret("t")
JOB = """
env { job.name = small, job.mode = BATCH }
source { FakeSource { plugin_output = f, parallelism = 2, schema { fields { id = int } } } }
sink { Console { plugin_input = f } }
"""


def spec(text: str = JOB) -> str:
    tree = parse_job(text, "job.conf", {}, None, CheckReport())
    assert tree is not None
    return encode_spec(JobSource("job.conf", tree))


def asked(job: str, token: str = "", *, restore: bool = False) -> Submit:
    return Submit(spec(), token or secrets.token_hex(4), job, restore)


def leading(
    folder: Path, test: Callable[[Api], Awaitable[None]], *, refuse_too_large: bool = False
) -> None:
    """Run a test against a master that leads."""

    async def run() -> None:
        registry, links = Registry.load(), WorkerLinks(TOKEN, lambda *_, **__: None)
        clock, points = SystemClock(), points_from_env({}, print)
        settings = MasterSettings(lease_s=30.0, tombstone_s=0.05)
        ports = Ports(clock, open_blobs(str(folder)), SinkTables(registry), links, points, settings)
        master = Master("M1", "i", await open_store("memory:"), ports, "http://m1")
        api = Api(master, registry, TOKEN, refuse_too_large=refuse_too_large)
        running = asyncio.ensure_future(master.run())
        while not (master.leader and master.leader.loaded):
            assert not running.done()
            await asyncio.sleep(0.01)
        try:
            await test(api)
        finally:
            master.stop()
            await running

    asyncio.run(run())


async def worker(api: Api, name: str, slots: int, **tags: str) -> None:
    assert api.master.leader
    hello = Heartbeat(name, f"{name}-1", 1, 0, slots, tuple(tags.items()), ())
    await api.master.leader.hear(hello.incarnation, hello)


def test_the_same_submit_many_times_at_once_is_one_job(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        term = api.master.election.term
        answers = await asyncio.gather(*(api.submit(asked("one", "same")) for _ in range(8)))
        assert {a.job_id for a in answers} == {"one"} and answers[0].name == "small"
        assert [j.job_id for j in (await api.jobs()).jobs] == ["one"]
        with pytest.raises(UserError, match="Job id one is in use"):
            await api.submit(asked("one", "another"))
        both = await asyncio.gather(
            api.submit(asked("two", "a")), api.submit(asked("two", "b")), return_exceptions=True
        )
        assert sorted(type(b).__name__ for b in both) == ["Accepted", "UserError"]
        assert api.master.election.term == term, "nothing of this costs the leadership"

    leading(tmp_path, test)


def test_waiting_jobs_say_their_place_and_what_is_missing(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        for job in ("one", "two", "three"):
            await api.submit(asked(job))
        await until(api, lambda waits: "no worker is connected" in waits)
        first = (await api.explain("one")).waits[0]
        assert "number 1 of 3 jobs" in first.what and first.whom == "a worker that connects"
        await worker(api, "W1", 1)
        await until(api, lambda waits: "needs 2 slots, 1 are free" in waits)
        first = (await api.explain("one")).waits[0]
        assert (
            "could not carry it even if they were empty: needs 2 slots, 1 are there" in first.next
        )
        await worker(api, "W2", 3)
        await until(api, lambda waits: not waits)
        third = (await api.explain("three")).waits[0]
        assert "number 2 of 2 jobs" in third.what and "waits behind job two" in third.what
        assert third.whom == "job two; slots held by job one (2)"
        assert (await api.job("one")).status == JobStatus.RUNNING

    async def until(api: Api, ready: Callable[[str], bool]) -> None:
        while not ready(" ".join((await api.job("one")).pipelines[0].tasks[0].waits.split())):
            await asyncio.sleep(0.01)

    leading(tmp_path, test)


def test_a_job_that_fits_nowhere_is_refused_where_masters_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(api: Api) -> None:
        with pytest.raises(Unavailable, match="just begun to lead"):
            await api.submit(asked("early"))
        monkeypatch.setattr(module, "SETTLED_S", 0.0)
        assert (await api.submit(asked("nobody-is-there"))).job_id, "nobody knows who will come"
        await worker(api, "W1", 1)
        with pytest.raises(UserError, match="needs 2 slots, 1 are there"):
            await api.submit(asked("large"))
        await worker(api, "W2", 2)
        assert (await api.submit(asked("fits"))).job_id == "fits"

    leading(tmp_path, test, refuse_too_large=True)


def test_a_hello_that_waits_for_the_store_says_nothing_of_what_came_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(api: Api) -> None:
        leader, store = api.master.leader, api.master.store
        assert leader
        await worker(api, "W1", 4)
        for job in ("a", "slow"):
            await api.submit(asked(job))
            while leader.jobs[job].pipelines[1].state.tasks[0].status is not TaskStatus.PLACED:
                await asyncio.sleep(0.01)
        commit = store.commit

        async def slow(guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
            await asyncio.sleep(0.2 if any("slow" in c.key for c in changes) else 0.0)
            return await commit(guards, changes)

        monkeypatch.setattr(store, "commit", slow)
        tasks = {job: leader.jobs[job].pipelines[1] for job in ("a", "slow")}
        held = {j: TaskReport(k.task_key(k.state.tasks[0].id), 1) for j, k in tasks.items()}
        first = Heartbeat("W1", "W1-1", 2, 0, 4, (), (held["slow"],))
        second = Heartbeat("W1", "W1-1", 3, 0, 4, (), (held["a"], held["slow"]))
        await asyncio.gather(*(leader.hear("W1-1", hello) for hello in (first, second)))
        for keeper in tasks.values():
            assert [t.status for t in keeper.state.tasks] == [TaskStatus.RUNNING]
            assert not keeper.state.failures

    leading(tmp_path, test)


def test_a_restore_needs_a_savepoint(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        with pytest.raises(UserError, match="There is no job lost to restore"):
            await api.submit(asked("lost", restore=True))
        await api.submit(asked("one"))
        await api.cancel("one")
        assert api.master.leader
        while "one" in api.master.leader.jobs:
            await asyncio.sleep(0.01)
        with pytest.raises(UserError, match="ended as CANCELED and left nothing"):
            await api.submit(asked("one", restore=True))

    leading(tmp_path, test)


def test_errors_come_as_json_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(api: Api) -> None:
        app = build_app(api, WorkerLinks(TOKEN, lambda *_, **__: None), api.master, None)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
        async with httpx2.AsyncClient(transport=transport, base_url="http://m1") as http:
            assert (await http.get("/api/jobs")).status_code == 401
            http.headers["Authorization"] = "Bearer t"
            assert (await http.get("/api/jobs")).json()["jobs"] == []
            assert (await http.get("/api/jobs/nobody")).status_code == 404
            bad = await http.post("/api/jobs", content=b"{}")
            assert bad.status_code == 400 and "cannot be read" in bad.json()["message"]
            monkeypatch.setattr(api, "jobs", None)
            bug = await http.get("/api/jobs")
            assert bug.status_code == 500 and bug.json()["code"] == "master.bug"

    leading(tmp_path, test)
