"""Every store passes the public kit: in memory, in a file, and on real servers that are killed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.store.contract import Store
from holdfast.store.etcd import EtcdStore
from holdfast.store.memory import Memory, MemoryStore
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from holdfast.testing.check_store import (
    OUTAGE_CHECKS,
    STORE_CHECKS,
    Check,
    check_store,
    run_check,
)
from holdfast.testing.store_bench import Disturb, Open
from tests.conformance.network import Disturbance, Proxy
from tests.conformance.servers import Etcd, Postgres

LEASE_S = 1.0
IMPATIENCE_S = 1.0


@dataclass
class Place:
    """A store to test: how to open clients, and how to break it."""

    open: Open
    disturb: Disturb | None = None


Surroundings = Callable[[], AbstractAsyncContextManager[Place]]


def run(check: Check, surroundings: Surroundings) -> None:
    async def inside() -> None:
        async with surroundings() as place:
            await run_check(check, place.open, disturb=place.disturb, lease_s=LEASE_S)

    asyncio.run(inside())


def named(checks: tuple[Check, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("check", checks, ids=lambda check: check.__name__)


def in_file(folder: Path) -> Surroundings:
    @asynccontextmanager
    async def inside() -> AsyncIterator[Place]:
        async def open_() -> Store:
            return await SqliteStore.open(folder / "store.db")

        yield Place(open_)

    return inside


def on_etcd(server: Etcd) -> Surroundings:
    @asynccontextmanager
    async def inside() -> AsyncIterator[Place]:
        async with Proxy(server.port).listening() as proxy:

            async def open_() -> Store:
                return EtcdStore([f"http://127.0.0.1:{proxy.port}"], timeout_s=IMPATIENCE_S)

            yield Place(open_, Disturbance(server, proxy))

    return inside


def on_postgres(server: Postgres) -> Surroundings:
    @asynccontextmanager
    async def inside() -> AsyncIterator[Place]:
        async with Proxy(server.port).listening() as proxy:

            async def open_() -> Store:
                return await PostgresStore.open(server.url_at(proxy.port), timeout_s=IMPATIENCE_S)

            yield Place(open_, Disturbance(server, proxy))

    return inside


def test_memory() -> None:
    async def inside() -> None:
        memory = Memory()

        async def open_() -> Store:
            return MemoryStore(memory)

        await check_store(open_, lease_s=0.5)

    asyncio.run(inside())


@named(STORE_CHECKS)
def test_sqlite(check: Check, tmp_path: Path) -> None:
    run(check, in_file(tmp_path))


@named(STORE_CHECKS + OUTAGE_CHECKS)
def test_etcd(check: Check, etcd: Etcd) -> None:
    run(check, on_etcd(etcd))


@named(STORE_CHECKS + OUTAGE_CHECKS)
def test_postgres(check: Check, postgres: Postgres) -> None:
    run(check, on_postgres(postgres))
