"""Bugs of the kinds that were found, planted one by one: the checks of this verb catch each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.connectors.files import values, writing
from holdfast.connectors.files.formats import columnar
from holdfast.model.types import Type
from tests.formats.test_formats import drawn, sunk

pytestmark = [pytest.mark.spark, pytest.mark.formats]

Make = Callable[..., Any]
Plant = pytest.MonkeyPatch


def test_planted_in_a_sink_a_digit_is_lost(
    spark: SparkSession, sink: Make, tmp_path: Path, monkeypatch: Plant
) -> None:
    def rounded(value: str, kind: Type) -> str:
        return f"try_cast(round({value}, 5) AS {kind.ddl})" if kind.scale > 5 else value

    monkeypatch.setattr(writing._stored, "__defaults__", (rounded,))
    assert any(", n38: " in said for said in sunk(spark, sink, tmp_path, "parquet"))


def test_planted_in_a_sink_a_zone_is_dropped(
    spark: SparkSession, sink: Make, tmp_path: Path, monkeypatch: Plant
) -> None:
    monkeypatch.setattr(values, "instant_text", lambda value: f"CAST({value} AS STRING)")
    assert any(", z: " in said for said in sunk(spark, sink, tmp_path, "csv"))


def test_planted_in_a_sink_a_row_is_cut(
    spark: SparkSession, sink: Make, tmp_path: Path, monkeypatch: Plant
) -> None:
    right = writing._stored
    monkeypatch.setattr(writing, "_stored", lambda *given: right(*given).where("id <> 7"))
    said = sunk(spark, sink, tmp_path, "orc")
    assert any("row 7 is missing" in one for one in said)


def test_planted_in_a_sink_a_text_becomes_null(
    spark: SparkSession, sink: Make, tmp_path: Path, monkeypatch: Plant
) -> None:
    right = writing.text_sql

    def nulled(value: str, kind: Type, *rest: Any) -> str:
        return f"nullif({value}, 'NULL')" if kind.kind == "string" else right(value, kind, *rest)

    monkeypatch.setattr(writing, "text_sql", nulled)
    said = sunk(spark, sink, tmp_path, "xml")
    assert any(", s: 'NULL' became None" in one for one in said)


ROUNDED = "try_cast(round(n38, 5) AS decimal(38,18))"

BUGS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "a digit is lost": (
        lambda rows: rows.selectExpr("* EXCEPT (n38)", f"{ROUNDED} AS n38"),
        ", n38: ",
    ),
    "a zone is dropped": (
        lambda rows: rows.selectExpr("* EXCEPT (z)", "from_utc_timestamp(z, 'Asia/Tokyo') AS z"),
        ", z: ",
    ),
    "a row is cut": (lambda rows: rows.where("id <> 7"), "row 7 is missing"),
    "a value becomes null": (
        lambda rows: rows.selectExpr("* EXCEPT (i8)", "nullif(i8, 0) AS i8"), ", i8: 0 became None",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_planted_in_a_source(
    spark: SparkSession, source: Make, tmp_path: Path, monkeypatch: Plant, bug: str
) -> None:
    right, (broken, shown) = columnar._rows, BUGS[bug]
    monkeypatch.setattr(columnar, "_rows", lambda *given: broken(right(*given)))
    said = drawn(spark, source, tmp_path, "parquet by pyarrow")
    assert any(shown in one for one in said)
