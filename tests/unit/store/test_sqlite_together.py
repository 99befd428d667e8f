"""Writes to an SQLite store that come while the disk is busy share one transaction."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.errors import Unavailable
from holdfast.store.contract import Delete, Guard, LeaseLost, Put
from holdfast.store.sqlite import SqliteFile, SqliteStore

Use = Callable[[SqliteStore], Awaitable[None]]


def run(folder: Path, use: Use) -> None:
    """Use a new store, and close it."""

    async def used() -> None:
        store = await SqliteStore.open(folder / "store.db")
        try:
            await use(store)
        finally:
            await store.close()

    asyncio.run(used())


async def at_once(store: SqliteStore, calls: list[Awaitable[Any]]) -> list[Any]:
    """Make calls while the store's thread is held up, so that all wait when it goes on."""
    go = threading.Event()
    store._thread.submit(go.wait)
    waiting = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    go.set()
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_many_writes_are_one_transaction_and_each_has_its_own_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: list[int] = []
    together = SqliteFile.together

    def counted(self: SqliteFile, writes: Any) -> Any:
        shared.append(len(writes))
        return together(self, writes)

    monkeypatch.setattr(SqliteFile, "together", counted)

    async def use(store: SqliteStore) -> None:
        commits = [store.commit([Guard(f"k{n}", 0)], [Put(f"k{n}", b"v")]) for n in range(20)]
        assert await at_once(store, list(commits)) == list(range(1, 21))
        assert [item.revision for item in (await store.range("k"))[0]] == [
            int(key[1:]) + 1 for key in sorted(f"k{n}" for n in range(20))
        ]

    run(tmp_path, use)
    assert shared == [20]


def test_a_guard_that_fails_and_a_lease_that_is_lost_are_their_callers_alone(
    tmp_path: Path,
) -> None:
    async def use(store: SqliteStore) -> None:
        found = await at_once(
            store,
            [
                store.commit([Guard("a", 0)], [Put("a", b"1")]),
                store.commit([Guard("a", 0)], [Put("a", b"2"), Put("b", b"2")]),
                store.commit([], [Put("c", b"3", lease=99)]),
                store.keep_lease(99),
                store.commit([Guard("a", 1)], [Delete("a"), Put("d", b"4")]),
            ],
        )
        assert [found[0], found[1], found[4]] == [1, None, 2]
        assert isinstance(found[2], LeaseLost)
        assert isinstance(found[3], LeaseLost)
        items, revision = await store.range("")
        assert [(i.key, i.value) for i in items] == [("d", b"4")]
        assert revision == 2

    run(tmp_path, use)


def test_an_error_of_the_file_is_everybodys_and_nothing_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(store: SqliteStore) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(SqliteFile, "revoke_lease", _full)
            broken.setattr("holdfast.store.sqlite.WRITES", (SqliteFile.commit, _full))
            calls = [store.commit([], [Put("a", b"1")]), store.revoke_lease(1)]
            found = await at_once(store, list(calls))
        assert [type(one) for one in found] == [Unavailable, Unavailable]
        assert await store.range("") == ([], 0)
        assert await store.commit([], [Put("a", b"1")]) == 1

    run(tmp_path, use)


def test_a_watch_goes_on_however_much_is_written_elsewhere(tmp_path: Path) -> None:
    async def use() -> None:
        store = await SqliteStore.open(tmp_path / "store.db", history_revisions=3)
        looks = 0
        look = store._changes

        async def counted(prefix: str, after: int) -> Any:
            nonlocal looks
            found = await look(prefix, after)
            looks += 1
            return found

        store._changes = counted  # type: ignore[method-assign]
        watch = store.watch("mine/", 0)
        heard = asyncio.ensure_future(anext(watch))
        for number in range(20):
            before = looks
            await store.commit([], [Put("other/key", str(number).encode())])
            while looks == before:
                await asyncio.sleep(0.001)
        revision = await store.commit([], [Put("mine/key", b"v")])
        assert [change.revision for change in await heard] == [revision]
        await watch.aclose()
        await store.close()

    asyncio.run(use())


def _full(file: SqliteFile, _lease: int) -> None:
    with file._transaction():
        raise apsw.FullError("the disk is full")
