"""Transforms that choose, copy and rename columns and tables."""

import pytest

from holdfast.connect.rows import Rows
from holdfast.connectors.transforms.copy import Copy
from holdfast.connectors.transforms.field_mapper import FieldMapper
from holdfast.connectors.transforms.field_rename import FieldRename
from holdfast.connectors.transforms.filter import Filter
from holdfast.connectors.transforms.table_merge import TableMerge
from holdfast.connectors.transforms.table_rename import TableRename
from holdfast.errors import UserError
from holdfast.model.table import KIND, Column, Key, Table, TablePath
from holdfast.model.types import Type

pytestmark = pytest.mark.spark


@pytest.fixture
def users(frame):
    made = frame("id bigint, name string, age int, __kind string", (1, "Ann", 30, "INSERT"))
    table = Table(
        TablePath.parse("test.users"),
        columns=(
            Column("id", Type("bigint"), nullable=False, comment="who"),
            Column("name", Type("string"), length=20),
        ),
        primary_key=Key("pk", ("id",)),
        constraints=(Key("u", ("name",), "UNIQUE_KEY"),),
        partitions=("age",),
    )
    return Rows.of(table, made)


def shown(rows):
    return [tuple(r) for r in rows.frame.collect()]


def test_copy_appends_in_the_order_given(build, users):
    made = build(Copy, fields={"name1": "name", "age1": "age", "name2": "name"}).apply(users)
    assert made.table.names == ("id", "name", "age", "name1", "age1", "name2")
    assert made.frame.columns == [*made.table.names, KIND]
    assert shown(made) == [(1, "Ann", 30, "Ann", 30, "Ann", "INSERT")]
    assert made.table.primary_key == Key("pk", ("id",))


def test_copy_keeps_what_is_known_about_the_column(build, users):
    made = build(Copy, src_field="id", dest_field="id2").apply(users)
    assert made.table.column("id2") == Column("id2", Type("bigint"), nullable=False, comment="who")


def test_copy_to_a_name_that_exists_overwrites_in_place(build, users):
    made = build(Copy, fields={"name": "age"}).apply(users)
    assert shown(made) == [(1, 30, 30, "INSERT")]
    assert made.table.column("name").type == Type("int")


def test_an_unknown_column_names_the_table_and_the_nearest_column(build, users):
    with pytest.raises(UserError) as error:
        build(Copy, fields={"x": "nmae"}).apply(users)
    assert str(error.value) == (
        "Transform[0]-Copy: table test.users has no column 'nmae'. Did you mean 'name'?"
        " Its columns are id, name, age."
    )


def test_column_names_are_case_sensitive(build, users):
    with pytest.raises(UserError, match=r"no column 'Name'\. Did you mean 'name'"):
        build(FieldMapper, field_mapper={"Name": "n"}).apply(users)


def test_copy_without_either_form_is_a_mistake(build):
    wanted = "Copy: give 'fields { new = old }', or both 'src_field' and 'dest_field'."
    assert build.mistakes(Copy) == [wanted]
    assert build.mistakes(Copy, src_field="a") == [wanted]
    assert build.mistakes(Copy, fields={}) == [
        "Copy: 'fields' is empty. Name at least one copy: new = old."
    ]


def test_field_mapper_orders_renames_and_drops(build, users):
    made = build(FieldMapper, field_mapper={"name": "n", "id": "key"}).apply(users)
    assert shown(made) == [("Ann", 1, "INSERT")]
    assert made.table.names == ("n", "key")
    assert made.table.primary_key == Key("pk", ("key",))
    assert made.table.constraints == (Key("u", ("n",), "UNIQUE_KEY"),)
    assert made.table.partitions == ()
    assert made.table.column("key").comment == "who"


def test_field_mapper_may_swap_names(build, users):
    made = build(FieldMapper, field_mapper={"id": "age", "age": "id"}).apply(users)
    assert shown(made) == [(1, 30, "INSERT")]
    assert made.table.primary_key == Key("pk", ("age",))


def test_field_mapper_refuses_one_name_for_two_columns(build):
    assert build.mistakes(FieldMapper, field_mapper={"a": "x", "b": "x"}) == [
        "FieldMapper: 'field_mapper' names 'x' twice. Give each column a name of its own."
    ]


def test_filter_keeps_columns_in_the_order_of_the_list(build, users):
    for option in ("include_fields", "fields"):
        made = build(Filter, **{option: ["age", "id"]}).apply(users)
        assert shown(made) == [(30, 1, "INSERT")]
    assert made.table.primary_key == Key("pk", ("id",))
    assert made.table.constraints == ()


def test_filter_drops_columns(build, users):
    made = build(Filter, exclude_fields=["id"]).apply(users)
    assert shown(made) == [("Ann", 30, "INSERT")]
    assert made.table.primary_key is None


def test_filter_checks_dropped_columns_too(build, users):
    with pytest.raises(UserError, match=r"no column 'agee'\. Did you mean 'age'"):
        build(Filter, exclude_fields=["agee"]).apply(users)


def test_filter_wants_exactly_one_list(build):
    wanted = "Filter: give one of 'include_fields' and 'exclude_fields', not both."
    assert build.mistakes(Filter) == [wanted]
    assert build.mistakes(Filter, fields=["a"], exclude_fields=["b"]) == [wanted]


def test_an_option_of_another_transform_is_unknown(build):
    (mistake,) = build.mistakes(Filter, fields=["a"], src_field="b")
    assert mistake.startswith("Filter: unknown option 'src_field'.")


def test_names_are_replaced_then_cased_then_wrapped(build, users):
    rename = build(
        FieldRename,
        convert_case="UPPER",
        prefix="F_P1_",
        suffix="_S1_F",
        replacements_with_regex=[{"replace_from": "name", "replace_to": "Name_1"}],
    )
    made = rename.apply(users)
    assert made.table.names == ("F_P1_ID_S1_F", "F_P1_Name_1_S1_F", "F_P1_AGE_S1_F")
    assert made.frame.columns == [*made.table.names, KIND]
    assert made.table.primary_key == Key("pk", ("F_P1_ID_S1_F",))
    assert made.table.constraints == (Key("u", ("F_P1_Name_1_S1_F",), "UNIQUE_KEY"),)
    assert made.table.partitions == ("F_P1_AGE_S1_F",)


def test_the_last_rule_that_matches_counts(build, users):
    rules = [
        {"replace_from": "a", "replace_to": "1"},
        {"replace_from": "[me]", "replace_to": "_"},
        {"replace_from": "name", "replace_to": "whole", "is_regex": False},
        {"replace_from": "nam", "replace_to": "not whole", "is_regex": False},
    ]
    made = build(FieldRename, replacements_with_regex=rules[:2]).apply(users)
    assert made.table.names == ("id", "na__", "ag_")
    made = build(FieldRename, replacements_with_regex=rules).apply(users)
    assert made.table.names == ("id", "whole", "ag_")


def test_a_specific_name_skips_the_rules(build, users):
    given = [{"field_name": "id", "target_name": "Key"}, {"field_name": "no", "target_name": "x"}]
    made = build(FieldRename, convert_case="UPPER", specific=given).apply(users)
    assert made.table.names == ("Key", "NAME", "AGE")


def test_two_columns_cannot_become_one(build, users):
    rules = [{"replace_from": ".+", "replace_to": "x"}]
    with pytest.raises(UserError, match=r"table test\.users the result names 'x' twice"):
        build(FieldRename, replacements_with_regex=rules).apply(users)


def test_a_broken_expression_is_a_mistake(build):
    (mistake,) = build.mistakes(
        TableRename, replacements_with_regex=[{"replace_from": "(", "replace_to": "x"}]
    )
    assert "'(' is not a regular expression" in mistake


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("test.abc", "TEST.P1_ABCC_S1"),
        ("abc", "P1_ABCC_S1"),
        ("db.public.cc", "DB.PUBLIC.P1_CCCC_S1"),
    ],
)
def test_table_rename_wraps_the_table_and_cases_the_whole_path(build, users, old, new):
    rename = build(
        TableRename,
        convert_case="UPPER",
        prefix="P1_",
        suffix="_S1",
        replacements_with_regex=[{"replace_from": "c", "replace_to": "CC"}],
    )
    made = rename.apply(users.renamed(TablePath.parse(old)))
    assert str(made.table.path) == new
    assert made.table.names == users.table.names


def test_table_merge_gives_one_path(build, users):
    assert str(build(TableMerge, database="sink", table="all").apply(users).table.path) == (
        "sink.all"
    )
    made = build(TableMerge, database="d", schema="s", table="t").apply(users)
    assert made.table.path == TablePath("t", "d", "s")
    (mistake,) = build.mistakes(TableMerge, database="d")
    assert "required option 'table'" in mistake
