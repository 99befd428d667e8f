"""Run a query over rows written as Spark SQL."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows
from holdfast.connectors.sql.transform import Sql, SqlOptions
from holdfast.model.job import Mode
from holdfast.model.table import Key

CONTEXT = PluginContext("1", "test", "Transform[0]-Sql", Mode.BATCH)
Run = Callable[..., Rows]
Case = tuple[str, Any, str]

ROW = r"""
    SELECT 1 AS id, 'Joy Ding' AS name, cast(NULL AS string) AS nothing, 13 AS thirteen,
      -120.72D AS minus, 5000000000L AS big, cast(2 AS tinyint) AS tiny,
      cast(1.23 AS float) AS thin, cast(12.3456 AS decimal(10,4)) AS money, true AS yes,
      X'4A6F79' AS raw, date'2024-02-29' AS day, time'23:30:05.25' AS clock,
      timestamp_ntz'2021-04-15 13:34:45.235' AS moment,
      timestamp_ntz'2022-05-23 12:00:00' AS later, '2021-04-08 13:34:45' AS said,
      array('b', 'a', NULL) AS letters, 1687747869032L AS millis, 20230625 AS digits,
      235109 AS clock_digits, '12.4' AS number_text
"""


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


@pytest.fixture
def expect(run: Run) -> Callable[[list[Case]], None]:
    """Check a table of expressions over ROW: each with its value and type, all in one Spark job."""

    def expect(cases: list[Case]) -> None:
        items = ", ".join(f"{sql} AS c{i}" for i, (sql, _, _) in enumerate(cases))
        made = run(f"SELECT {items} FROM dual", ROW)
        values = made.frame.collect()[0]
        kinds = [str(column.type) for column in made.table.columns]
        found = {sql: (values[i], kinds[i]) for i, (sql, _, _) in enumerate(cases)}
        assert found == {sql: (value, kind) for sql, value, kind in cases}

    return expect


@pytest.fixture
def one(run: Run) -> Callable[[str], Any]:
    """Return the value of one expression over ROW."""
    return lambda sql: run(f"SELECT {sql} AS x FROM dual", ROW).frame.collect()[0][0]
