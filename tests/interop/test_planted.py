"""Bugs like those that were found, planted one by one: the comparison must see each."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.connectors.delta import partitions, staged_files, writer
from holdfast.connectors.iceberg import staging as iceberg_staging
from holdfast.connectors.lake import footers
from holdfast.connectors.lake.footers import ColumnStats
from tests.interop.cases import rows_sql
from tests.interop.tables import World, differences

pytestmark = pytest.mark.interop

Patch = pytest.MonkeyPatch
DELTAS_BOUND, FOOTERS_STATS = staged_files._bound, footers._stats


def a_zone_dropped(patch: Patch) -> None:
    real = partitions.log_value
    patch.setattr(
        staged_files, "log_value", lambda t, kind: (real(t, kind) or "").rstrip("Z") or None
    )


def a_digit_lost(patch: Patch) -> None:
    def bound(value: Any, *, up: bool = False) -> Any:
        found = DELTAS_BOUND(value, up=up)
        return round(found, 0) if isinstance(found, float) else found

    patch.setattr(staged_files, "_bound", bound)


def a_bound_beside_nan(patch: Patch) -> None:
    def stats(chunks: Any, column: Any) -> ColumnStats:
        found = FOOTERS_STATS(chunks, column)
        if column.physical_type == "DOUBLE" and found.low is None:
            return dataclasses.replace(found, low=-1.0, high=1.0)
        return found

    patch.setattr(footers, "_stats", stats)


def a_null_for_a_value(patch: Patch) -> None:
    real = staged_files.value_texts
    nulls = {"__HIVE_DEFAULT_PARTITION__": None}
    patch.setattr(
        staged_files, "value_texts",
        lambda parts: [nulls.get(t, t) if t is not None else None for t in real(parts)],
    )  # fmt: skip


def a_file_forgotten(patch: Patch) -> None:
    patch.setattr(writer, "staged_parts", lambda *given: footers.staged_parts(*given)[1:])


PLANTED: list[tuple[Callable[[Patch], None], list[str], list[str]]] = [
    # the bug, the columns of the table, and those it is partitioned by
    (a_zone_dropped, ["i32", "at"], ["at"]),
    (a_digit_lost, ["d5", "r64"], []),
    (a_bound_beside_nan, ["i32", "r64"], []),
    (a_null_for_a_value, ["i32", "s"], ["s"]),
    (a_file_forgotten, ["i32"], []),
]


@pytest.mark.parametrize(
    ("plant", "columns", "by"), PLANTED, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_planted_bug_is_seen(
    world: World, monkeypatch: Patch, plant: Callable[[Patch], None], columns: list[str],
    by: list[str],
) -> None:  # fmt: skip
    rows = rows_sql(columns, nested=False)
    if by == ["s"]:
        rows = f"SELECT * EXCEPT (s), left(nullif(s, ''), 40) AS s FROM ({rows})"
    name = plant.__name__
    world.put(world.sink("delta", f"{name}_fine", by=by), world.spread(rows))
    assert differences(world, "delta", f"{name}_fine", rows, columns) == []
    with monkeypatch.context() as patch:
        plant(patch)
        world.put(world.sink("delta", name, by=by), world.spread(rows))
    assert differences(world, "delta", name, rows, columns) != []


def test_numbers_that_are_not_written_are_seen(world: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(iceberg_staging, "number_files", lambda folder, schema: None)
    sql = "SELECT 1L AS id, map('k', array(2)) AS pairs"
    world.put(world.sink("iceberg", "numberless"), world.spark.sql(sql))
    table = world.named("iceberg", "numberless")
    try:
        found = world.engine.sql(f"SELECT id, pairs FROM {table}")
    except AssertionError as error:  # without their numbers, keys and values are not found at all
        assert "pairs" in str(error)
    else:
        assert found != [[1, [["k", [2]]]]]
