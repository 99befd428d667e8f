"""With 1,000 jobs known and 100 running, lists answer about as fast as with 10, in one run.

Not part of `make test`, because it measures; `make api` runs it.
"""

import asyncio
import http.client
import time
from dataclasses import replace
from pathlib import Path

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskStatus, WorkerId
from holdfast.master.admission import new_records
from holdfast.master.records import encode, history_key, job_key, pipeline_key
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec
from holdfast.store.contract import Put, Store
from holdfast.store.open import open_store
from tests.api.served import STREAM, TOKEN, Served, with_master
from tests.api.test_links_attacked import listening

PATHS = ("/api/jobs?limit=50", "/api/overview", "/running-jobs", "/running-jobs?page=1&rows=10",
         "/api/jobs?status=running&limit=50")  # fmt: skip
ASKED = 400
RATIO_MAX = 3.0
HERE = WorkerId("W1", "W1-1")


def records(number: int, registry: Registry) -> tuple[JobRecord, tuple[PipelineRecord, ...]]:
    tree = parse_job(STREAM, "job.conf", {}, None, CheckReport())
    assert tree
    spec = JobSource("job.conf", tree, f"job number {number}")
    text = encode_spec(spec)
    return new_records(f"job-{number}", "1-1", f"t{number}", text, spec.job(registry))


async def filled(store: Store, running: int, over: int) -> Store:
    """Put jobs into a store as a leader leaves them."""
    registry = Registry.load()
    now_s = time.time()
    for number in range(running + over):
        job, parts = records(number, registry)
        if number < running:
            job = replace(job, status=JobStatus.RUNNING, since_s=now_s - number)
            puts = [Put(job_key(job.id), encode(job))]
            for part in parts:
                tasks = tuple(replace(t, status=TaskStatus.RUNNING, place=HERE) for t in part.tasks)
                part = replace(part, tasks=tasks, since_s=now_s)
                puts.append(Put(pipeline_key(job.id, part.number), encode(part)))
        else:
            job = replace(job, status=JobStatus.FINISHED, since_s=now_s - number, ended_s=now_s)
            puts = [Put(history_key(job.id, job.incarnation), encode(job))]
        await store.commit([], puts)
    return store


def asked(address: str, path: str) -> float:
    """Ask once over a socket and return how long the whole answer took."""
    connection = http.client.HTTPConnection(*address.split(":"), timeout=60)  # type: ignore[arg-type]
    begun = time.perf_counter()
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN.reveal()}"})
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - begun
    connection.close()
    assert answer.status == 200
    return took


def p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99) - 1]


def test_lists_of_many_jobs_are_as_fast_as_short_ones(tmp_path: Path) -> None:
    ratios: dict[str, tuple[float, float]] = {}

    async def few(small: Served) -> None:
        async def many(large: Served) -> None:
            async with listening(small) as one, listening(large) as other:
                await measured(small, large, one.removesuffix("/link"), other.removesuffix("/link"))

        store = await filled(await open_store("memory:"), 100, 900)
        await with_master(store, tmp_path / "many", many)

    async def measured(small: Served, large: Served, one: str, other: str) -> None:
        assert len((await large.get("/api/jobs"))["jobs"]) == 1000
        assert len(await large.get("/running-jobs")) == 100
        assert len(await small.get("/running-jobs")) == 10
        stop = asyncio.Event()
        beating = [asyncio.ensure_future(beats(m, stop)) for m in (small, large)]
        for path in PATHS:
            times: dict[str, list[float]] = {one: [], other: []}
            for _ in range(ASKED):  # in turn, so that a busy moment of the machine hits both
                for address in (one, other):
                    times[address].append(await asyncio.to_thread(asked, address, path))
            ratios[path] = (p99(times[one]), p99(times[other]))
        stop.set()
        await asyncio.gather(*beating)

    async def run() -> None:
        store = await filled(await open_store("memory:"), 10, 0)
        await with_master(store, tmp_path / "few", few)

    asyncio.run(run())
    for path, (short, long) in ratios.items():
        print(f"{path}: p99 {short * 1000:.2f} ms with 10 jobs, {long * 1000:.2f} ms with 1,000,"
              f" ratio {long / short:.2f}")  # fmt: skip
    assert all(long <= RATIO_MAX * short for short, long in ratios.values())


async def beats(master: Served, stop: asyncio.Event) -> None:
    """Be the worker that runs it all."""
    while not stop.is_set():
        await master.beat(slots=1000)
        await asyncio.sleep(0.5)
