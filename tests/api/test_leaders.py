"""What came before a leader is shown by it, with the terms it came under; so is a buried job's."""

import asyncio
from pathlib import Path
from typing import Any

from holdfast.core.checkpoint import CheckpointDue, CheckpointKind
from holdfast.core.completion import SourceEnded
from holdfast.core.task import TaskFailed
from holdfast.master.ports import MasterSettings
from holdfast.store.contract import Store
from holdfast.store.open import open_store
from tests.api.served import Served, served, with_master

SETTINGS = MasterSettings(lease_s=30.0, tombstone_s=0.05, worker_lost_s=60.0)


def two_leaders(folder: Path, first: Any, second: Any) -> None:
    """Run one test after the other, each at a master of its own, with one store for both."""

    async def run() -> None:
        store: Store = await open_store("memory:")
        for test in (first, second):
            await with_master(store, folder, test, settings=SETTINGS)

    asyncio.run(run())


def test_the_next_leader_tells_what_came_before_it(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    async def first(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        (keeper,) = master.keepers()
        task = keeper.state.tasks[0]
        assert task.place
        await keeper.handle(TaskFailed(task.id, 1, task.place, "it broke; password=abcabc"))
        await master.runs("17")
        await master.checkpoint("17", 100)
        await master.checkpoint("17", 150)
        # One is on its way when this leader goes.
        await keeper.handle(CheckpointDue(CheckpointKind.PERIODIC, keeper.desk.term))
        seen.update(await master.get("/api/jobs/17/checkpoints"))
        seen["events"] = (await master.get("/api/jobs/17/timeline"))["events"]
        seen["term"], seen["fence"] = keeper.desk.number, keeper.desk.term

    async def second(master: Served) -> None:
        (keeper,) = master.keepers()
        assert (seen["term"], keeper.desk.number) == (1, 2), "people are shown a count of leaders"
        assert keeper.desk.term > seen["fence"] + 1, "what fences leaps with each write"
        overview = await master.get("/api/overview")
        assert (overview["term"], (await master.get("/api/cluster"))["term"]) == (2, 2)
        assert "holdfast_term 2\n" in (await master.http.get("/metrics")).text
        await master.runs("17")
        await master.checkpoint("17", 175)
        part = (await master.get("/api/jobs/17/checkpoints"))["pipelines"][0]
        before = seen["pipelines"][0]["history"]
        fourth, third, *older = part["history"]
        assert older == before and {c["term"] for c in older} == {seen["term"]}
        assert older[-1]["duration_s"] > 0 and older[-1]["size"] > 0 and older[-1]["rows"] == 100
        assert (third["outcome"], third["term"]) == ("FAILED", seen["term"])
        assert (fourth["rows"], fourth["term"]) == (25, keeper.desk.number)
        assert (part["completed"], part["failed"]) == (1, 0), "counted since this leader began"
        events = (await master.get("/api/jobs/17/timeline"))["events"]
        assert events[: len(seen["events"])] == seen["events"]
        later = events[len(seen["events"]) :]
        assert (later[0]["what"], later[0]["status"]) == ("leader", "LEADS")
        assert later[0]["term"] == keeper.desk.number and "M1 leads" in later[0]["reason"]
        failure = (await master.get("/api/jobs/17/failures"))["failures"][0]
        assert failure["at_s"] > 0 and failure["worker"] == "W1"
        assert "abcabc" not in str(events)
        assert (await master.get("/api/jobs/17"))["started_s"] > 0

    two_leaders(tmp_path, first, second)


def test_what_nobody_has_told_yet_is_of_no_term(tmp_path: Path) -> None:
    async def first(master: Served) -> None:
        await master.submit("17")

    async def second(master: Served) -> None:
        events: list[Any] = []
        while len(events) < 5:  # the new leader may not have looked yet
            await asyncio.sleep(0.01)
            events = (await master.get("/api/jobs/17/timeline"))["events"]
        told = [(e["status"], e["term"]) for e in events]
        leader = master.api.master.leader
        assert leader and told == [
            ("SUBMITTED", 0), ("PENDING", 0), ("ACTIVE", 0), ("WAITING", 0),
            ("LEADS", leader.desk.number),
        ]  # fmt: skip

    two_leaders(tmp_path, first, second)


def test_what_happened_to_a_buried_job_is_told_by_any_later_leader(tmp_path: Path) -> None:
    async def first(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        await master.checkpoint("17", 100)
        await master.http.post("/api/jobs/17/cancel")
        store = master.api.master.store
        while (await store.range("job/"))[0]:
            await master.beat()
            await asyncio.sleep(0.01)
        assert (await store.range("trail/"))[0] == [], "no trail outlives its record"

    async def second(master: Served) -> None:
        events = (await master.get("/api/jobs/17/timeline"))["events"]
        told = [e["status"] for e in events if e["what"] == "job"]
        assert told == ["SUBMITTED", "PENDING", "RUNNING", "CANCELING", "CANCELED"]
        (part,) = (await master.get("/api/jobs/17/checkpoints"))["pipelines"]
        assert [(c["number"], c["rows"]) for c in part["history"]] == [(1, 100)]

    two_leaders(tmp_path, first, second)


def test_an_end_that_is_taken_back_while_it_is_proven_is_not_confirmed(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        await master.runs("17")
        (keeper,) = master.keepers()
        task = keeper.state.tasks[0]
        assert task.place
        ended = SourceEnded(task.id, task.sources[0], task.attempt, task.place)
        assert await keeper.source_ended(ended)
        while keeper.state.checkpoints.pending is None:  # its last one begins: a write of our own
            await asyncio.sleep(0)
        async with keeper.turn:
            again = asyncio.ensure_future(keeper.source_ended(ended))
            await asyncio.sleep(0)
            failed = TaskFailed(task.id, task.attempt, task.place, "it broke")
            failing = asyncio.ensure_future(keeper.handle(failed))
            await asyncio.sleep(0)
        await failing
        assert not keeper.state.completion.has(ended)
        assert not await again, "a worker was told that its end is on record"

    served(tmp_path, test)


def test_a_proof_that_nobody_waits_for_any_more_ends_the_term_and_is_no_bug(
    tmp_path: Path,
) -> None:
    async def test(master: Served) -> None:
        await master.submit("17")
        (keeper,) = master.keepers()
        async with keeper.turn:
            asking = asyncio.ensure_future(keeper.confirm())
            while keeper._proof is None:
                await asyncio.sleep(0)
            proof = keeper._proof
            asking.cancel()
            keeper.desk.abandon()
        assert await proof is None
        assert keeper.desk.error is None and keeper.desk.abandoned.is_set()

    served(tmp_path, test)
