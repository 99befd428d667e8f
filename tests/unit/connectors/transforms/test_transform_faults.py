"""Rows that other transforms made silently wrong beside SeaTunnel's: T7, T9, T18 and T23.

What differs by decision is said in docs/sql-functions.md.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast.connect.rows import Rows
from holdfast.connectors.transforms.data_validator import DataValidator
from holdfast.connectors.transforms.field_rename import FieldRename
from holdfast.connectors.transforms.json_path import JsonPath
from holdfast.connectors.transforms.regex_extract import RegexExtract
from holdfast.connectors.transforms.replace import Replace
from holdfast.connectors.transforms.split import Split
from holdfast.connectors.transforms.table_rename import TableRename
from holdfast.errors import UserError
from holdfast.model.table import TablePath

TEN = datetime(2024, 1, 1, 10)


def shown(rows: Rows) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in rows.frame.collect()]


@pytest.fixture
def moments(frame: Any) -> Rows:
    made = frame("at timestamp_ntz", (TEN,), (None,))
    return Rows.of("t", made.selectExpr("cast(at AS timestamp_ntz) AS at"))


@pytest.mark.spark
def test_t07_transforms_read_a_timestamp_as_java_prints_it(build: Any, moments: Rows) -> None:
    split = build(Split, separator="T", split_field="at", output_fields=["day", "hour"])
    assert shown(split.apply(moments)) == [(TEN, "2024-01-01", "10:00"), (None, None, None)]
    replaced = build(Replace, replace_field="at", pattern="T10:00", replacement=" ten")
    assert shown(replaced.apply(moments)) == [("2024-01-01 ten",), (None,)]
    pattern = {"regex_pattern": "(.*)T(.*)", "output_fields": ["day", "hour"]}
    found = build(RegexExtract, source_field="at", **pattern).apply(moments)
    assert shown(found)[0] == (TEN, "2024-01-01", "10:00")
    rules = [{"field_name": "at", "rule_type": "REGEX", "pattern": r"\d{4}-\d\d-\d\dT\d\d:\d\d"}]
    assert len(shown(build(DataValidator, field_rules=rules).apply(moments))) == 2
    rules = [{"field_name": "at", "rule_type": "LENGTH", "exact_length": 16}]
    assert len(shown(build(DataValidator, field_rules=rules).apply(moments))) == 2


@pytest.mark.spark
@pytest.mark.parametrize(
    ("pattern", "name", "renamed"),
    [
        (r"[^\w]", "größe", "gr__e"),
        ("[a-z&&[^b]]", "abc", "_b_"),
        (r"\p{Lu}", "aBc", "a_c"),
        (r"\Qa.b\E", "a.b", "_"),
        ("a++", "aab", "_b"),
        (r"\h", "a b", "a_b"),
        ("b", "😀b", "😀_"),
    ],
)
def test_t09_names_are_matched_by_javas_expressions(
    build: Any, frame: Any, pattern: str, name: str, renamed: str
) -> None:
    rules = [{"replace_from": pattern, "replace_to": "_"}]
    rows = Rows.of("t", frame(f"`{name}` int", (1,)))
    assert build(FieldRename, replacements_with_regex=rules).apply(rows).table.names == (renamed,)
    table = build(TableRename, replacements_with_regex=rules)
    assert table.apply(rows.renamed(TablePath(name))).table.path.table == renamed


@pytest.mark.spark
def test_t09_what_java_does_not_know_is_refused_in_words(build: Any, frame: Any) -> None:
    rules = [{"replace_from": r"\p{Nothing}", "replace_to": "_"}]
    rename = build(FieldRename, replacements_with_regex=rules)
    with pytest.raises(UserError, match=r"is not a Java regular expression: .*Nothing"):
        rename.apply(Rows.of("t", frame("a int", (1,))))


NUMBERS = '{"a": 12.50, "b": 1e2, "c": 0.12345678901234567890123, "d": 12345678901234567890}'


@pytest.mark.spark
@pytest.mark.parametrize(
    ("json", "wanted"),
    [
        ("lenient", ("12.50", "1e2", "0.12345678901234567890123", "12345678901234567890")),
        ("strict", ("12.5", "100.0", "0.12345678901234567890123", "12345678901234567890")),
    ],
)
def test_t18_numbers_become_text_without_losing_a_digit(
    build: Any, frame: Any, json: str, wanted: tuple[str, ...]
) -> None:
    columns = [{"src_field": "j", "dest_field": n, "path": f"$.{n}"} for n in "abcd"]
    rows = Rows.of("t", frame("j string", (NUMBERS,)))
    assert shown(build(JsonPath, columns=columns, json=json).apply(rows))[0][1:] == wanted
    exact = [{"src_field": "j", "dest_field": "c", "path": "$.c", "dest_type": "decimal(38,23)"}]
    made = build(JsonPath, columns=exact, json=json).apply(rows)
    assert shown(made)[0][1] == Decimal("0.12345678901234567890123")


@pytest.mark.spark
def test_t23_a_group_without_a_match_is_null(build: Any, frame: Any) -> None:
    given = {"source_field": "s", "regex_pattern": "(a)(b)?(c*)", "output_fields": ["x", "y", "z"]}
    made = build(RegexExtract, **given, default_values=["1", "2", "3"])
    rows = Rows.of("t", frame("s string", ("ad",), ("abc",), ("d",)))
    assert shown(made.apply(rows)) == [
        ("ad", "a", None, ""),
        ("abc", "a", "b", "c"),
        ("d", "1", "2", "3"),
    ]
