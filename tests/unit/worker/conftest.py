"""Fixtures for tests that run tasks: a worker to play leader for, and a cellar that is empty."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.unit.worker.bench import Bench, Play
from tests.unit.worker.plugins import Cellar


@pytest.fixture(autouse=True)
def cellar() -> Iterator[None]:
    """Nothing of one test is left for the next."""
    Cellar.empty()
    yield
    Cellar.empty()


@pytest.fixture
def play(spark: SparkSession) -> Play:
    """Run a test's part of the leader beside the worker."""

    def run(
        part: Callable[[Bench], Awaitable[None]],
        session: Callable[[], SparkSession] = lambda: spark,
        **settings: float,
    ) -> None:
        async def both() -> None:
            bench = Bench(session, **settings)
            beating = asyncio.ensure_future(bench.worker.run())
            try:
                await part(bench)
            finally:
                await bench.worker.stop()
                beating.cancel()

        asyncio.run(both())

    return run
