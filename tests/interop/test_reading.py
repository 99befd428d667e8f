"""What others find in tables that we have made: every type, predicates, aggregates, partitions."""

from functools import cache
from typing import Any

import pytest

from holdfast.connectors.delta.staged_files import NULL_FOLDER
from tests.interop.cases import NESTED, VALUES, predicates, rows_sql
from tests.interop.tables import KINDS, World, by_id, differences

pytestmark = pytest.mark.interop

READERS = [
    ("delta", "deltalake"), ("delta", "polars"), ("delta", "daft"),
    ("iceberg", "pyiceberg"), ("iceberg", "polars"), ("iceberg", "daft"), ("paimon", "java"),
]  # fmt: skip
COLUMNS = [*VALUES, *NESTED]
ARROW = [c for c in VALUES if c not in ("b", "at")]
"""Columns that tasks carry as Arrow."""

ASKED = ["r32", "r64", "d38", "s", "day", "wall"]

AGGREGATED = [c for c in VALUES if c not in ("day", "at", "wall")]


@cache
def made(world: World, kind: str) -> str:
    """Write the table of all types, once; return its name."""
    world.put(world.sink(kind, "types"), world.spread(rows_sql()))
    return "types"


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_spark_finds_every_value_and_each_predicate_its_rows(world: World, kind: str) -> None:
    assert len(list(predicates())) >= 40
    assert differences(world, kind, made(world, kind), rows_sql(), COLUMNS) == []


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_spark_finds_what_tasks_have_written_from_arrow(world: World, kind: str) -> None:
    sql = rows_sql(ARROW, nested=False)
    world.put(world.sink(kind, "arrow"), world.as_batches(sql))
    assert differences(world, kind, "arrow", sql, ARROW, ASKED) == []


@pytest.mark.parametrize(("kind", "reader"), READERS)
def test_others_find_every_value(world: World, kind: str, reader: str) -> None:
    found = world.read(reader, kind, made(world, kind), COLUMNS)
    assert found == world.expected(rows_sql(), COLUMNS)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_aggregates_from_statistics_are_those_of_the_rows(world: World, kind: str) -> None:
    said = ", ".join(f"count({c}), min({c}), max({c})" for c in AGGREGATED)
    asked = f"SELECT count(*), {said} FROM "
    (found,) = world.engine.sql(asked + world.named(kind, made(world, kind)))
    (wanted,) = world.expected_rows(asked + f"({rows_sql()})")
    assert found == wanted


JAVAS: list[list[Any]] = [
    [method, column, value]
    for column, values in {
        "i32": (-(1 << 31), 0, (1 << 31) - 1), "i64": (-(1 << 63), 1 << 32, (1 << 63) - 1),
        "r64": (0.1, 1.7), "s": ("", "a", "null"), "d5": ("-999.99", "0.01"),
        "d38": ("0.000000000000000001",), "day": (-719162, 2932896),
        "at": (-62135596800000000, 253402300799999999), "wall": (-1, 253402300799999999),
    }.items()
    for value in values
    for method in ("equal", "greaterThan", "lessOrEqual")
] + [[m, c, None] for m in ("isNull", "isNotNull") for c in ("f", "r32", "s", "at")]  # fmt: skip


def sql_of(said: list[Any]) -> str:
    """Return a predicate of Paimon's as Spark SQL; Paimon has days and instants as numbers."""
    method, column, value = said
    kind = VALUES[column][0]
    if value is None:
        return f"{column} IS {'NOT ' if method == 'isNotNull' else ''}NULL"
    left = {"DATE": f"unix_date({column})", "TIMESTAMP": f"unix_micros({column})"}.get(kind, column)
    if kind == "TIMESTAMP_NTZ":
        left = f"unix_micros(CAST({column} AS TIMESTAMP))"
    right = f"'{value}'" if kind == "STRING" else f"{value}D" if kind == "DOUBLE" else str(value)
    if kind.startswith("DECIMAL"):
        right = f"CAST('{value}' AS {kind})"
    sign = {"equal": "=", "greaterThan": ">", "lessOrEqual": "<="}[method]
    return f"{left} {sign} {right}"


@pytest.mark.parametrize("way", ["spark", "arrow"])
def test_java_paimon_finds_with_each_predicate_its_rows(world: World, way: str) -> None:
    assert len(JAVAS) >= 40
    if way == "spark":
        name, sql, asked = made(world, "paimon"), rows_sql(), JAVAS
    else:
        name, sql = "arrow", rows_sql(ARROW, nested=False)
        world.put(world.sink("paimon", name), world.as_batches(sql))
        asked = [one for one in JAVAS if one[1] in ARROW]
    found = world.engine.ask(
        "paimon_read", warehouse=world.paimon, table=f"db.{name}", predicates=asked
    )
    wanted = world.expected_by(sql, [sql_of(one) for one in asked])
    wrong = [(a, w, f) for a, w, f in zip(asked, wanted, found, strict=True) if w != f]
    assert wrong == []


KEYS = ["f", "i8", "i16", "i32", "i64", "s", "day"]
MORE_KEYS = {"delta": ["at", "wall"], "iceberg": ["d5", "d18", "at"]}


@pytest.mark.parametrize("kind", KINDS)
def test_odd_partitions_come_back_and_are_found(world: World, kind: str) -> None:
    keys = KEYS + MORE_KEYS.get(kind, [])
    # Delta has no empty text in a partition, and no folder has a long name.
    rows = rows_sql(keys, nested=False)
    sql = f"SELECT * EXCEPT (s), left(nullif(s, ''), 40) AS s FROM ({rows})"
    world.put(world.sink(kind, "odd", by=keys), world.spread(sql))
    if kind != "paimon":
        assert differences(world, kind, "odd", sql, keys) == []
    for reader in [reader for one, reader in READERS if one == kind]:
        found = world.read(reader, kind, "odd", keys)
        # polars takes values from folders' names, where this text is null, whoever has written it.
        seen = f"SELECT * EXCEPT (s), nullif(s, '{NULL_FOLDER}') AS s FROM ({sql})"
        told = seen if (kind, reader) == ("delta", "polars") else sql
        assert by_id(found, keys) == world.expected(told, keys), reader


def test_decimals_in_deltas_partitions_have_all_their_digits(world: World) -> None:
    # By Spark alone: delta-rs cannot read a decimal below zero there, whoever has written it.
    keys = ["d5", "d18", "d38"]
    sql = rows_sql(keys, nested=False)
    world.put(world.sink("delta", "digits", by=keys), world.spread(sql))
    assert differences(world, "delta", "digits", sql, keys) == []
