"""Assert: every rule, when it holds and when it does not."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import Staging
from holdfast.connectors.assert_.sink import Assert
from holdfast.errors import UserError
from holdfast.model.table import Column, Key, Table, TablePath
from holdfast.model.types import parse_type

Make = Callable[..., Assert]

COLUMNS = {
    "i": "CAST(id AS INT)",
    "n": "IF(id = 0, NULL, CAST(id AS INT))",
    "none": "CAST(NULL AS STRING)",
    "s": "concat('row', id)",
    "one": "1",
    "f": "CAST(3.14 AS FLOAT)",
    "d": "CAST(12.40 AS decimal(10,2))",
    "y": "X'6D69'",
    "day": "DATE'2012-12-21'",
    "ts": "TIMESTAMP_NTZ'2012-12-21 12:34:56'",
    "at": "TIME'23:51:09'",
    "a": "array(0, 1, 2)",
    "m": "map('k0', 'v0', 'k1', 'v1')",
    "r": "named_struct('x', 'AAA', 'm', map('k', 1))",
}


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Rows:
    frame = spark.range(0, 3, 1, 2).selectExpr(*(f"{v} AS {k}" for k, v in COLUMNS.items()))
    return Rows.of("test.t", frame)


def field(name: str, kind: Any = None, **rule: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"field_name": name}
    if kind:
        found["field_type"] = kind
    if rule:
        found["field_value"] = [rule]
    return found


def sink(make: Make, **rules: Any) -> Assert:
    return make(Assert, {"rules": rules})


@pytest.mark.spark
def test_rules_that_hold_let_all_rows_pass(make: Make, rows: Rows, staging: Staging) -> None:
    rules = [
        field("i", "int", rule_type="NOT_NULL"),
        field("none", "int", rule_type="NULL"),
        field("i", rule_type="MIN", rule_value=0),
        field("i", rule_type="MAX", rule_value=2.0),
        field("s", rule_type="MIN_LENGTH", rule_value=4),
        field("s", rule_type="MAX_LENGTH", rule_value=4),
        field("none", rule_type="MAX_LENGTH", rule_value=0),
        field("none", equals_to="a null passes"),
        field("one", "int", equals_to=1, rule_type="NOT_NULL"),
        field("f", "float", equals_to=3.14),
        field("d", "decimal(4,2)", equals_to="12.40"),
        field("y", "bytes", equals_to="bWk="),
        field("day", "date", equals_to="2012-12-21"),
        field("ts", "timestamp", equals_to="2012-12-21 12:34:56"),
        field("at", "time", equals_to="23:51:09"),
        field("a", "array<int>", equals_to=[0, 1, 2]),
        field("m", "map<string, string>", equals_to={"k1": "v1", "k0": "v0"}),
        field("r", {"x": "string", "m": "map<string, int>"}, equals_to=["AAA", {"k": 1}]),
    ]
    (found,) = sink(make, field_rules=rules).write(Tables([rows]), staging)
    assert (found.table, found.rows) == ("test.t", 3)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (field("n", rule_type="NOT_NULL"), "field 'n', NOT_NULL: fails for 1 row, such as 'null'"),
        (field("i", rule_type="NULL"), "field 'i', NULL: fails for 3 rows, such as '0'"),
        (field("i", rule_type="MIN", rule_value=2), "MIN = 2: fails for 2 rows, such as '0'"),
        (field("n", rule_type="MAX", rule_value=9), "MAX = 9: fails for 1 row, such as 'null'"),
        (field("s", rule_type="MAX", rule_value=9), "MAX = 9: fails for 3 rows, such as 'row0'"),
        (field("i", "bigint"), "field_type = bigint (it is int): fails for 3 rows"),
        (field("d", "decimal(3,2)"), "field_type = decimal(3,2) (it is decimal(10,2))"),
        (field("m", equals_to={"k0": "v0"}), "equals_to map('k0', 'v0'): fails for 3 rows"),
        (field("r", equals_to=["AAA", {"k": 2}]), "fails for 3 rows"),
        (field("nope"), "there is no field 'nope'. Fields: i, n,"),
        (field("i", equals_to="x"), "field 'i', equals_to: 'x' is not a whole number"),
    ],
)
def test_a_rule_that_fails_says_which_where_and_how_often(
    make: Make, rows: Rows, staging: Staging, rule: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as failed:
        sink(make, field_rules=[rule]).write(Tables([rows]), staging)
    assert "Sink Assert, table test.t: " in str(failed.value)
    assert message in str(failed.value)


@pytest.mark.spark
def test_one_slice_can_be_too_much(make: Make, rows: Rows, staging: Staging) -> None:
    rules = [{"rule_type": "MAX_ROW", "rule_value": 2}]
    with pytest.raises(UserError, match="MAX_ROW = 2: there are 3 rows"):
        sink(make, row_rules=rules).write(Tables([rows]), staging)


def test_rows_are_counted_over_the_whole_job(make: Make) -> None:
    rules = [{"rule_type": "MAX_ROW", "rule_value": 5}, {"rule_type": "MIN_ROW", "rule_value": 5}]
    checked = sink(make, row_rules=rules)
    checked.prepare([Table(TablePath("t"))])
    checked.finish({"t": 5})
    with pytest.raises(UserError, match="table t: MAX_ROW = 5: there are 6 rows"):
        checked.finish({"t": 6})
    with pytest.raises(UserError, match="table t: MIN_ROW = 5: there are 0 rows"):
        checked.finish({})


def test_tables_have_rules_of_their_own(make: Make) -> None:
    rules = [{"table_path": "a", "row_rules": [{"rule_type": "MIN_ROW", "rule_value": 2}]}]
    checked = sink(make, tables_configs=rules)
    checked.finish({"a": 2, "b": 0})
    with pytest.raises(UserError, match="table a: MIN_ROW"):
        checked.finish({"b": 9})


def test_exactly_the_named_tables_have_rows(make: Make) -> None:
    checked = sink(make, **{"table-names": ["a", "b"]})
    checked.finish({"a": 1, "b": 2, "empty": 0})
    with pytest.raises(UserError, match="for the tables a, but table-names says a, b"):
        checked.finish({"a": 1})


TABLE = Table(
    TablePath("t", "test"),
    (Column("id", parse_type("bigint"), comment="key"), Column("v", parse_type("float_vector"))),
    Key("pk", ("id",)),
    (Key("u", ("id",), "UNIQUE_KEY", ("ASC",)),),
    catalog="FakeSource",
)
CONSTRAINT = {
    "constraint_key_name": "u",
    "constraint_key_type": "UNIQUE_KEY",
    "constraint_key_columns": [
        {"constraint_key_column_name": "id", "constraint_key_sort_type": "ASC"}
    ],
}
GOOD = {
    "primary_key_rule": {"primary_key_name": "pk", "primary_key_columns": ["id"]},
    "constraint_key_rule": [CONSTRAINT],
    "column_rule": [
        {"name": "v", "type": "float_vector"},
        {"name": "id", "type": "bigint", "nullable": True, "comment": "key"},
    ],
    "table_identifier_rule": {"catalog_name": "FakeSource", "table": "test.t"},
}


def test_what_is_known_about_a_table_is_checked_at_the_start(make: Make) -> None:
    sink(make, catalog_table_rule=GOOD).prepare([TABLE])


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"primary_key_rule": {"primary_key_name": "x"}}, "is named 'pk', not 'x'"),
        ({"primary_key_rule": {"primary_key_columns": ["v"]}}, "has columns id, not v"),
        ({"constraint_key_rule": []}, "its constraints are u (UNIQUE_KEY: id ASC), not none"),
        ({"column_rule": [{"name": "id", "type": "bigint"}]}, "columns that no rule names: v"),
        (
            {"column_rule": [{"name": "id", "type": "int"}, {"name": "v", "type": "float_vector"}]},
            "column 'id' has type bigint, not int",
        ),
        (
            {"table_identifier_rule": {"catalog_name": "Jdbc", "table": "test.t"}},
            "it is test.t of FakeSource, not test.t of Jdbc",
        ),
    ],
)
def test_a_table_that_differs_fails(make: Make, rule: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as failed:
        sink(make, catalog_table_rule=rule).prepare([TABLE])
    assert message in str(failed.value)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "rules are empty."),
        ({"field_rules": [field("i", rule_type="MIN")]}, "rule_type = MIN needs a rule_value."),
        ({"field_rules": [{"field_nmae": "i"}]}, "Did you mean 'field_name'?"),
        ({"field_rules": [field("i", "itn")]}, "'itn' is not a type."),
        (
            {"row_rules": [{"rule_type": "MAXROW", "rule_value": 1}]},
            "rule_type must be MAX_ROW or MIN_ROW, not 'MAXROW'",
        ),
    ],
)
def test_mistakes_are_named(
    rules: dict[str, Any], message: str, mistakes: Callable[..., list[str]]
) -> None:
    assert any(message in m for m in mistakes(Assert, {"rules": rules}))
