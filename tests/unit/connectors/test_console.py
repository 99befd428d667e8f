"""Console: the lines that people grep."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import Committable, Staging
from holdfast.connectors.console import Console
from holdfast.model.job import Guarantee

Make = Callable[..., Console]

pytestmark = pytest.mark.spark


def printed(text: str) -> list[str]:
    return text.splitlines()


def test_rows_are_printed_as_seatunnel_prints_them(
    make: Make, spark: SparkSession, staging: Staging, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.range(0, 3, 1, 2).selectExpr(
        "concat('n', id) AS name", "IF(id = 1, NULL, CAST(id AS INT)) AS age"
    )
    sink = make(Console, {})
    assert sink.guarantee is Guarantee.AT_LEAST_ONCE
    tables = Tables([Rows.of("fake", frame)])
    assert sink.write(tables, staging) == [Committable(1, "fake", 3, 0, None)]
    row = "SeaTunnelRow#tableId=fake SeaTunnelRow#kind=INSERT"
    assert printed(capsys.readouterr().out) == [
        "output rowType: name<STRING>, age<INT>",
        f"subtaskIndex=0  rowIndex=1:  {row} : n0, 0",
        f"subtaskIndex=1  rowIndex=1:  {row} : n1, null",
        f"subtaskIndex=1  rowIndex=2:  {row} : n2, 2",
    ]
    sink.write(tables, staging)
    assert printed(capsys.readouterr().out)[0].startswith("subtaskIndex=0  rowIndex=2:  ")


def test_every_type_is_printed_as_java_prints_it(
    make: Make, spark: SparkSession, staging: Staging, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {
        "TRUE": "true",
        "10000000000D": "1.0E10",
        "CAST(1.5 AS FLOAT)": "1.5",
        "CAST('12.40' AS decimal(10,2))": "12.40",
        "X'6D69FF'": "[109, 105, -1]",
        "X''": "[]",
        "DATE'2023-04-22'": "2023-04-22",
        "TIMESTAMP_NTZ'2023-04-22 23:20:58'": "2023-04-22T23:20:58",
        "TIMESTAMP_NTZ'2023-04-22 23:20:00'": "2023-04-22T23:20",
        "TIMESTAMP_NTZ'2023-04-22 23:20:58.12'": "2023-04-22T23:20:58.120",
        "TIMESTAMP_NTZ'2023-04-22 23:20:58.0001'": "2023-04-22T23:20:58.000100",
        "TIMESTAMP'2023-04-22 23:20:58'": "2023-04-22T23:20:58Z",
        "TIME'07:08:00'": "07:08",
        "array('a', NULL)": "[a, null]",
        "array(array(1), array())": "[[1], []]",
        "map('k', array(1, 2))": '{"k":[1,2]}',
        "CAST(NULL AS map<string,int>)": "null",
        "named_struct('a', 1, 'b', named_struct('c', CAST(NULL AS string)))": "[1, [null]]",
        "CAST(NULL AS struct<a:int>)": "null",
        "NULL": "null",
    }
    frame = spark.range(1).selectExpr(*(f"{sql} AS c{i}" for i, sql in enumerate(shown)))
    make(Console, {}).write(Tables([Rows.of("t", frame)]), staging)
    header, line = printed(capsys.readouterr().out)
    assert line.partition(" : ")[2] == ", ".join(shown.values())
    assert "c3<Decimal(10, 2)>" in header
    assert "c15<Map<STRING, ARRAY<INT>>>" in header
    assert "c17<ROW<a INT,b ROW<c STRING>>>" in header


def test_a_changelog_prints_its_kinds_and_data_can_be_left_out(
    make: Make, spark: SparkSession, staging: Staging, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.range(0, 1, 1, 1).selectExpr("id", "'DELETE' AS __kind", "0L AS __seq")
    tables = Tables([Rows.of("db.t", frame)])
    make(Console, {}).write(tables, staging)
    assert printed(capsys.readouterr().out) == [
        "output rowType: id<BIGINT>",
        "subtaskIndex=0  rowIndex=1:  SeaTunnelRow#tableId=db.t SeaTunnelRow#kind=DELETE : 0",
    ]
    silent = make(Console, {"log.print.data": False})
    assert silent.write(tables, staging)[0].rows == 1
    assert printed(capsys.readouterr().out) == ["output rowType: id<BIGINT>"]
