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

# Tests start Spark from a cache where `holdfast warmup` has made one, and never make one.
os.environ.setdefault("HOLDFAST_AOT", "use")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark on two cores, started as jobs start it, with the settings jobs run with."""
    starting = session.begin({}, 2, tmp_path_factory.mktemp("logs") / "spark.log")
    try:
        yield starting.session()
    finally:
        session.stop(starting)
