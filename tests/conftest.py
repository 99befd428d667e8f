"""Fixtures for every test: one Spark session for the whole run."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from holdfast.worker.conf import SPARK_CONF


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark with the settings jobs run with."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for key, value in SPARK_CONF.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
