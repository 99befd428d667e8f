"""The reference engines and a folder of tables, shared by the whole run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.interop.engine import Engine
from tests.interop.tables import World


@pytest.fixture(scope="session")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Our Spark and the reference engines, with one folder for both."""
    folder = tmp_path_factory.mktemp("interop")
    engine = Engine(folder)
    try:
        yield World(spark, engine, folder)
    finally:
        engine.close()
