"""Ways to build a transform from what a job file would say, and to look at its result."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import read_options
from holdfast.connect.plugin import PluginContext
from holdfast.errors import SourceLocation
from holdfast.model.job import Mode
from holdfast.model.tree import Block, Entry, Items, Node, Scalar

HERE = SourceLocation("job.conf", 1, 1)


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return Block(tuple(Entry(k, node(v), HERE) for k, v in value.items()), HERE)
    if isinstance(value, list):
        return Items(tuple(node(v) for v in value), HERE)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Scalar(value, text, HERE)


class Build:
    """`build(Copy, fields={...})` makes the transform; `build.mistakes(...)` says what is wrong."""

    def __call__(self, kind: Any, allow_python: bool = False, **given: Any) -> Any:
        report = CheckReport()
        read = read_options(kind.options_class, node(given), kind.name, report)
        report.raise_if_any()
        stage = f"Transform[0]-{kind.name}"
        return kind(read, PluginContext("1", "test", stage, Mode.BATCH, allow_python=allow_python))

    def mistakes(self, kind: Any, **given: Any) -> list[str]:
        report = CheckReport()
        read_options(kind.options_class, node(given), kind.name, report)
        return [m.message for m in report.mistakes]


@pytest.fixture
def build() -> Build:
    return Build()


@pytest.fixture
def frame(spark: SparkSession) -> Callable[..., DataFrame]:
    """`frame("id int", (1,), (2,))`: rows by way of Arrow, without a Python worker."""

    def made(ddl: str, *rows: tuple[Any, ...]) -> DataFrame:
        schema = StructType.fromDDL(ddl)
        named = [dict(zip(schema.names, row, strict=True)) for row in rows]
        table = pa.Table.from_pylist(named, to_arrow_schema(schema))
        return spark.createDataFrame(table)

    return made
