"""Run a query over rows written as Spark SQL."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import Context
from holdfast.connect.tables import Rows
from holdfast.connectors.sql.transform import Sql, SqlOptions
from holdfast.model.job import Mode
from holdfast.model.table import Key

CONTEXT = Context("1", "test", "Transform[0]-Sql", Mode.BATCH)
Run = Callable[..., Rows]


def sql(query: str) -> Sql:
    """Return the transform for a query, which must pass its check."""
    options = SqlOptions(query=query)
    assert list(options.problems()) == []
    return Sql(options, CONTEXT)


@pytest.fixture
def run(spark: SparkSession) -> Run:
    """Run a query over the rows of a Spark query; `key` names its primary key."""

    def run(query: str, rows: str, key: str = "") -> Rows:
        given = Rows.of("db.people", spark.sql(rows))
        if key:
            given = Rows(replace(given.table, primary_key=Key("pk", (key,))), given.frame)
        return sql(query).apply(given)

    return run
