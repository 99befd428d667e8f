"""Fixtures for every test: one Spark session for the whole run."""

import os
from collections.abc import Iterator

import hypothesis
import pytest
from pyspark.sql import SparkSession

from holdfast.spark import session

# A slow machine is no broken property.
hypothesis.settings.register_profile("house", deadline=None)
hypothesis.settings.load_profile("house")

SERVERS = {"etcd", "etcd_cluster", "postgres", "mariadb", "server", "s3"}
NEEDS = {"spark", "spark_cluster", *SERVERS}
"""Fixtures that start Spark or a server: `make test-fast` leaves out the tests that use one."""

# Tests start Spark from a cache where `holdfast warmup` has made one, and never make one.
os.environ.setdefault("HOLDFAST_AOT", "use")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Spark or a server as slow, before marks are selected."""
    for item in items:
        needs = NEEDS.intersection(getattr(item, "fixturenames", ()))
        if needs or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark on two cores, started as jobs start it, with the settings jobs run with."""
    starting = session.begin({}, 2, tmp_path_factory.mktemp("logs") / "spark.log")
    try:
        yield starting.session()
    finally:
        session.stop(starting)
