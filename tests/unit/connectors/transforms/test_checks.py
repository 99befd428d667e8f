"""RegexExtract and DataValidator."""

import pytest
from pyspark.errors import PySparkException

from holdfast.connect.rows import Rows
from holdfast.connectors.transforms.data_validator import DataValidator
from holdfast.connectors.transforms.regex_extract import RegexExtract

EMAIL = "([^@]+)@([^.]+)\\.(.+)"


def shown(rows):
    return [tuple(r) for r in rows.frame.collect()]


@pytest.mark.spark
def test_groups_become_columns(build, frame):
    rows = Rows.of("t", frame("e string", ("a@b.c.d",), ("nobody",), (None,)))
    given = {"source_field": "e", "regex_pattern": EMAIL, "output_fields": ["x", "y", "z"]}
    made = build(RegexExtract, **given).apply(rows)
    assert shown(made) == [
        ("a@b.c.d", "a", "b", "c.d"),
        ("nobody", None, None, None),
        (None, None, None, None),
    ]
    made = build(RegexExtract, **given, default_values=["1", "2", "3"]).apply(rows)
    assert shown(made)[1:] == [("nobody", "1", "2", "3"), (None, "1", "2", "3")]


def test_groups_columns_and_defaults_are_counted(build):
    given = {"source_field": "e", "regex_pattern": "(?<a>.)(b)", "output_fields": ["x"]}
    assert build.mistakes(RegexExtract, **given) == [
        "RegexExtract: 1 columns for 2 groups. Give as many."
    ]
    given |= {"output_fields": ["x", "y"], "default_values": ["1"]}
    assert build.mistakes(RegexExtract, **given) == [
        "RegexExtract: 1 defaults for 2 columns. Give as many."
    ]


@pytest.mark.spark
def test_rows_that_break_a_rule_are_left_out(build, frame):
    ddl = "id int, age int, name string, tags array<int>, __kind string"
    good = (0, 30, "Ann", [1], "DELETE")
    rows = Rows.of(
        "test.t",
        frame(
            ddl,
            good,
            (1, 151, "Ann", [1], "INSERT"),
            (2, 18, "Ann", [1], "INSERT"),
            (3, 30, None, [1], "INSERT"),
            (4, 30, "anne", [1], "INSERT"),
            (5, 30, "A", [1], "INSERT"),
            (6, 30, "Ann", [], "INSERT"),
            (7, None, "ANN", None, "INSERT"),
        ),
    )
    rules = [
        {"field_name": "age", "rule_type": "RANGE", "min_value": 18.0, "min_inclusive": False},
        {"field_name": "age", "rule_type": "RANGE", "max_value": 150},
        {"field_name": "tags", "rule_type": "LENGTH", "exact_length": 1},
        {
            "field_name": "name",
            "rules": [
                {"rule_type": "NOT_NULL"},
                {"rule_type": "LENGTH", "min_length": 2, "max_length": 3},
                {"rule_type": "REGEX", "pattern": "an+", "case_sensitive": False},
            ],
        },
    ]
    made = build(DataValidator, field_rules=rules, row_error_handle_way="SKIP").apply(rows)
    assert shown(made) == [good, (7, None, "ANN", None, "INSERT")]
    assert made.table == rows.table
    assert made.rejects and made.rejects.value == 6, "a row that breaks several rules counts once"


@pytest.mark.spark
def test_rows_that_are_left_out_count_once_however_often_spark_reads_them(spark, build):
    rows = Rows.of("t", spark.range(0, 1000, 1, 4))
    rule = {"field_name": "id", "rule_type": "RANGE", "max_value": 899}
    made = build(DataValidator, field_rules=[rule], row_error_handle_way="SKIP").apply(rows)
    assert made.rejects and made.rejects.value == 0
    for _ in range(2):
        assert len(made.frame.where("id % 2 = 0").select("id").collect()) == 450
    assert made.rejects.value == 100
    made.rejects.close()
    made.frame.collect()
    assert made.rejects.value == 100


@pytest.mark.spark
def test_a_broken_rule_stops_the_job_and_says_so(build, frame):
    rows = Rows.of("test.t", frame("age int, name string", (200, "x")))
    rule = {"field_name": "age", "rule_type": "RANGE", "min_value": 0, "max_value": 150}
    made = build(DataValidator, field_rules=[rule]).apply(rows)
    wanted = r"column 'age' of table test\.t, value '200': it breaks the rule RANGE \[0, 150\]\."
    with pytest.raises(PySparkException, match=wanted):
        made.frame.select("name").collect()
    custom = build(DataValidator, field_rules=[rule | {"custom_message": "Too old"}]).apply(rows)
    with pytest.raises(PySparkException, match="value '200': Too old"):
        custom.frame.collect()


@pytest.mark.parametrize(
    ("rule", "mistake"),
    [
        ({}, "a rule needs a 'rule_type'"),
        ({"rule_type": "REGEX"}, "a REGEX rule needs a 'pattern'"),
        ({"rule_type": "RANGE"}, "a RANGE rule needs 'min_value', 'max_value' or both"),
        ({"rules": [{"rule_type": "LENGTH"}]}, "a LENGTH rule needs 'min_length'"),
    ],
)
def test_a_rule_must_be_whole(build, rule, mistake):
    found = build.mistakes(DataValidator, field_rules=[{"field_name": "a"} | rule])
    assert any(mistake in m for m in found)
