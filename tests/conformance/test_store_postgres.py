"""What only PostgreSQL must get right: schemas, locks, clocks, failovers, abandoned calls."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from holdfast.errors import Unavailable, UserError
from holdfast.store.contract import Compacted, HistoryLost, LeaseLost, Put
from holdfast.store.open import open_store
from holdfast.store.postgres import PostgresStore
from tests.conformance.servers import Postgres, free_ports


@asynccontextmanager
async def opened(server: Postgres, schema: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(server.url, schema=schema, **options)
    try:
        yield store
    finally:
        await store.close()


async def tell(server: Postgres, statement: str, schema: str) -> None:
    async with await psycopg.AsyncConnection.connect(server.url, autocommit=True) as connection:
        await connection.execute(sql.SQL(statement).format(schema=sql.Identifier(schema)))


def test_processes_that_start_together_make_one_schema(postgres: Postgres) -> None:
    async def inside() -> None:
        stores = await asyncio.gather(
            *(PostgresStore.open(postgres.url, schema="together") for _ in range(6))
        )
        made = await asyncio.gather(*(store.commit([], [Put("a", b"")]) for store in stores))
        assert sorted(made) == [1, 2, 3, 4, 5, 6]
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(inside())


@pytest.mark.parametrize("schema", ['we"ird; drop schema "x"', "Ünïcode %s {}", "'"])
def test_a_schema_may_have_any_name(postgres: Postgres, schema: str) -> None:
    async def inside() -> None:
        async with opened(postgres, schema) as store:
            at = await store.commit([], [Put("a", b"1")])
            watch = store.watch("", 0)
            assert (await anext(watch))[0].revision == at
            # Heard at once, and not only at the next look a second later.
            waiting = asyncio.create_task(anext(watch))
            await asyncio.sleep(0.1)
            start = time.monotonic()
            await store.commit([], [Put("a", b"2")])
            await waiting
            assert time.monotonic() - start < 0.8
            await watch.aclose()

    asyncio.run(inside())


@pytest.mark.parametrize("schema", ["", "x" * 64, "a\0b"])
def test_a_schema_that_has_no_such_name_is_refused(postgres: Postgres, schema: str) -> None:
    with pytest.raises(UserError, match="A schema name has 1 to 63 bytes"):
        asyncio.run(PostgresStore.open(postgres.url, schema=schema))


def test_an_unknown_version_is_refused(postgres: Postgres) -> None:
    async def inside() -> None:
        async with opened(postgres, "newer"):
            await tell(postgres, "update {schema}.meta set version = 99", "newer")
        await PostgresStore.open(postgres.url, schema="newer")

    with pytest.raises(UserError, match="has version 99; this Holdfast knows 1"):
        asyncio.run(inside())


def test_a_failover_that_lost_commits_is_noticed(postgres: Postgres) -> None:
    async def inside() -> None:
        async with opened(postgres, "failover") as store, opened(postgres, "failover") as other:
            for n in range(5):
                await store.commit([], [Put("a", b"%d" % n)])
            await other.get("a")
            await tell(postgres, "update {schema}.meta set revision = 3", "failover")
            with pytest.raises(HistoryLost, match="lost commits"):
                await store.commit([], [Put("a", b"never")])
            with pytest.raises(HistoryLost):
                await other.get("a")
            with pytest.raises(HistoryLost):
                await store.grant_lease(1)
        async with opened(postgres, "failover") as anew:
            item = await anew.get("a")
            assert item is not None
            assert item.value == b"4", "the commit was refused, not only reported"
            with pytest.raises(HistoryLost):
                await anext(anew.watch("", 5))

    asyncio.run(inside())


def test_a_clock_that_is_set_back_holds_no_lease(postgres: Postgres) -> None:
    async def inside() -> None:
        async with opened(postgres, "clock") as store:
            lease = await store.grant_lease(0.5)
            await store.commit([], [Put("leader", b"me", lease)])
            # As if the server's clock had been an hour ahead until now.
            await tell(postgres, "update {schema}.meta set clock = clock + '1 hour'", "clock")
            async with asyncio.timeout(5):
                while await store.get("leader"):
                    await asyncio.sleep(0.05)
            with pytest.raises(LeaseLost):
                await store.keep_lease(lease)

    asyncio.run(inside())


def test_history_is_kept_for_so_many_revisions(postgres: Postgres) -> None:
    async def inside() -> None:
        async with opened(postgres, "history", history_revisions=10) as store:
            for n in range(30):
                await store.commit([], [Put("a", b"%d" % n)])
            watch = store.watch("a", 20)
            assert [(await anext(watch))[0].revision for _ in range(10)] == list(range(21, 31))
            await watch.aclose()
            with pytest.raises(Compacted):
                await anext(store.watch("a", 19))

    asyncio.run(inside())


def test_a_held_lock_is_unavailable_in_time(postgres: Postgres) -> None:
    async def inside() -> None:
        async with opened(postgres, "held", timeout_s=1.0) as store:
            await store.commit([], [Put("a", b"1")])
            async with await psycopg.AsyncConnection.connect(postgres.url) as holder:
                await holder.execute("select * from held.meta for update")
                start = time.monotonic()
                with pytest.raises(Unavailable):
                    await store.commit([], [Put("a", b"2")])
                assert time.monotonic() - start < 2
                item = await store.get("a")
            assert item is not None
            assert item.value == b"1"
            assert await store.commit([], [Put("a", b"3")]) == 2

    asyncio.run(inside())


def test_a_cancelled_call_leaves_the_store_working(postgres: Postgres) -> None:
    async def inside() -> None:
        async with opened(postgres, "cancelled") as store:
            for _ in range(10):
                call = asyncio.create_task(store.commit([], [Put("a", b"x" * 100_000)]))
                await asyncio.sleep(0.002)
                call.cancel()
            assert await store.commit([], [Put("b", b"")])

    asyncio.run(inside())


def test_a_url_names_all_of_it(postgres: Postgres) -> None:
    async def inside() -> None:
        store = await open_store(f"{postgres.url}?schema=by_url&application_name=me")
        assert await store.commit([], [Put("a", b"1")]) == 1
        await store.close()
        async with opened(postgres, "by_url") as same:
            assert await same.get("a") is not None

    asyncio.run(inside())


def test_what_cannot_be_reached_is_unavailable() -> None:
    (port,) = free_ports(1)
    with pytest.raises(Unavailable, match=r"PostgreSQL at 127\.0\.0\.1 cannot be reached"):
        asyncio.run(open_store(f"postgres://me@127.0.0.1:{port}/db"))


@pytest.mark.parametrize("password", ["hush/hush", "hush%zz", "hush@[hush"])
def test_a_password_is_not_shown(password: str) -> None:
    with pytest.raises(UserError, match="cannot be read") as said:
        asyncio.run(open_store(f"postgres://me:{password}@127.0.0.1/db"))
    assert "hush" not in str(said.value)
