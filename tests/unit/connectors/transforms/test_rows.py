"""Transforms that look at rows: kinds, metadata, replacing and splitting text."""

import pytest

from holdfast.connect.registry import Registry
from holdfast.connect.rows import Rows
from holdfast.connectors import transforms
from holdfast.connectors.transforms.filter_row_kind import FilterRowKind
from holdfast.connectors.transforms.metadata import Metadata
from holdfast.connectors.transforms.replace import Replace
from holdfast.connectors.transforms.row_kind_extractor import RowKindExtractor
from holdfast.connectors.transforms.split import Split
from holdfast.errors import UserError
from holdfast.model.job import Role
from holdfast.model.table import Column
from holdfast.model.types import Type

KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")


@pytest.fixture
def log(frame):
    rows = [(i, kind, i) for i, kind in enumerate(KINDS)]
    return Rows.of("test.log", frame("id int, __kind string, __seq bigint", *rows))


@pytest.fixture
def plain(frame):
    return Rows.of("test.s.plain", frame("id int", (1,), (2,)))


@pytest.fixture
def texts(frame):
    def made(*values, ddl="v string"):
        return Rows.of("test.t", frame(ddl, *((v,) for v in values)))

    return made


def shown(rows):
    return [tuple(r) for r in rows.frame.collect()]


@pytest.mark.spark
def test_row_kinds_are_kept_or_dropped(build, log):
    made = build(FilterRowKind, include_kinds=["INSERT", "DELETE"]).apply(log)
    assert shown(made) == [(0, "INSERT", 0), (3, "DELETE", 3)]
    made = build(FilterRowKind, exclude_kinds=["INSERT", "DELETE"]).apply(log)
    assert shown(made) == [(1, "UPDATE_BEFORE", 1), (2, "UPDATE_AFTER", 2)]
    assert made.table.changelog


@pytest.mark.spark
def test_a_table_that_only_grows_holds_inserts(build, plain):
    assert len(shown(build(FilterRowKind, include_kinds=["INSERT"]).apply(plain))) == 2
    empty = build(FilterRowKind, exclude_kinds=["INSERT"]).apply(plain)
    assert shown(empty) == []
    assert empty.table == plain.table


def test_row_kinds_are_checked(build):
    wanted = "FilterRowKind: give one of 'include_kinds' and 'exclude_kinds', not both."
    assert build.mistakes(FilterRowKind) == [wanted]
    (mistake,) = build.mistakes(FilterRowKind, include_kinds=["INSERT", "+I"])
    assert "include_kinds[1]" in mistake


@pytest.mark.spark
def test_extracted_kinds_make_every_row_an_insert(build, log):
    made = build(RowKindExtractor).apply(log)
    assert shown(made) == [(0, "+I"), (1, "-U"), (2, "+U"), (3, "-D")]
    assert not made.table.changelog
    full = build(RowKindExtractor, custom_field_name="k", transform_type="FULL").apply(log)
    assert shown(full) == list(enumerate(KINDS))
    assert full.table.column("k") == Column("k", Type("string"), nullable=False, length=13)


@pytest.mark.spark
def test_kinds_of_a_table_that_only_grows_are_inserts(build, plain):
    assert shown(build(RowKindExtractor).apply(plain)) == [(1, "+I"), (2, "+I")]
    with pytest.raises(UserError, match=r"test\.s\.plain already has a column 'id'"):
        build(RowKindExtractor, custom_field_name="id").apply(plain)


@pytest.mark.spark
def test_metadata_shows_path_and_kind(build, log, plain):
    fields = {"Table": "t", "RowKind": "k", "Database": "d", "EventTime": "e", "Partition": "p"}
    made = build(Metadata, metadata_fields=fields).apply(log)
    assert made.table.names == ("id", "t", "k", "d", "e", "p")
    assert shown(made)[3] == (3, "log", "-D", "test", None, None, "DELETE", 3)
    assert made.table.column("e").type == Type("bigint")
    assert made.table.column("p").type == Type("string")
    grown = build(Metadata, metadata_fields={"RowKind": "k", "Delay": "w"}).apply(plain)
    assert shown(grown) == [(1, "+I", None), (2, "+I", None)]


@pytest.mark.spark
def test_metadata_overwrites_no_column(build, plain):
    with pytest.raises(UserError, match="already has a column 'id'"):
        build(Metadata, metadata_fields={"Table": "id"}).apply(plain)


def test_metadata_keys_are_checked(build):
    assert build.mistakes(Metadata, metadata_fields={"rowkind": "k"}) == [
        "Metadata: 'rowkind' is not one of Database, Table, RowKind, EventTime, Delay, Partition."
        " Did you mean 'RowKind'?"
    ]


ALL = {"is_regex": True}
FIRST = {"is_regex": True, "replace_first": True}
REPLACED = [
    # options, pattern, replacement, before, after
    ({}, ".", "$1", "a.b.c", "a$1b$1c"),
    ({}, ".", "$1", None, None),
    ({"replace_first": True}, ".", "-", "a.b.c", "a-b-c"),
    (ALL, "[ac]", "", "abc", "b"),
    (ALL, "(.)(.)", "$2$1", "abcd", "badc"),
    (FIRST, ".+", "b", "abc", "b"),
    (FIRST, ".+", "b", "", ""),
    (FIRST, ".+", "$0", None, None),
    (FIRST, "X", "-", "aXbX", "a-bX"),
    (FIRST, "X", "-", "a\nXX", "a\n-X"),
    (FIRST, "x*", "-", "abc", "-abc"),
    (FIRST, "x*", "-", "", "-"),
    (FIRST, "x*", "-", "xxa", "-a"),
    (FIRST, "(a)|(b)", "[$1$2]", "bab", "[b]ab"),
    (FIRST, "(a)|(b)", "[$1$2]", "c", "c"),
    (FIRST, "(?<=a)x", "<$0>", "xaxax", "xa<x>ax"),
    (FIRST, "(?<=a)x", "<$0>", "x", "x"),
    (FIRST, "(b)\\1|$", "\\$0$0", "abbbb", "a$0bbbb"),
    (FIRST, "(b)\\1|$", "\\$0$0", "c", "c$0"),
    (FIRST, "[$]", "$0\\\\", "a$b$", "a$\\b$"),
    (FIRST, "(?<n>\\d)", "${n}${n}", "a1b2", "a11b2"),
]


@pytest.mark.spark
def test_text_is_replaced_as_java_replaces_it(build, frame):
    ddl = ", ".join(f"v{i} string" for i in range(len(REPLACED)))
    rows = Rows.of("t", frame(ddl, tuple(before for *_, before, _ in REPLACED)))
    for i, (given, pattern, replacement, _, _) in enumerate(REPLACED):
        asked = {"replace_field": f"v{i}", "pattern": pattern, "replacement": replacement}
        rows = build(Replace, **asked, **given).apply(rows)
    assert shown(rows)[0] == tuple(after for *_, after in REPLACED)


@pytest.mark.spark
def test_a_number_becomes_text_to_be_replaced_in(build, texts):
    rows = texts(1010, ddl="v int")
    made = build(Replace, replace_field="v", pattern="1", replacement="x").apply(rows)
    assert shown(made) == [("x0x0",)]
    assert made.table.column("v").type == Type("string")
    assert build.mistakes(Replace, replace_field="v", pattern="", replacement="x") == [
        "Replace: 'pattern' is empty. Say what to look for."
    ]


@pytest.mark.spark
def test_split_cuts_into_as_many_parts_as_columns(build, texts, log):
    rows = texts("a b c", "a", "", None)
    made = build(Split, separator=" ", split_field="v", output_fields=["x", "y"]).apply(rows)
    assert shown(made) == [
        ("a b c", "a", "b c"),
        ("a", "a", None),
        ("", "", None),
        (None, None, None),
    ]
    kept = build(Split, separator="0", split_field="id", output_fields=["x", "id"]).apply(log)
    assert kept.frame.columns == ["id", "x", "__kind", "__seq"]
    assert shown(kept)[0] == ("", "", "INSERT", 0)


@pytest.mark.spark
def test_the_separator_is_a_java_expression(build, texts):
    rows = texts("a|b1c")
    made = build(Split, separator="[|\\d]", split_field="v", output_fields=["x", "y", "z"])
    assert shown(made.apply(rows)) == [("a|b1c", "a", "b", "c")]
    assert build.mistakes(Split, separator=",", split_field="v", output_fields=["x", "x"]) == [
        "Split: 'output_fields' names 'x' twice. Name each column once."
    ]


def test_every_transform_is_found_and_the_refused_say_what_to_use():
    registry = Registry()
    registry.add(transforms)
    names = {
        "Copy", "FieldMapper", "FieldRename", "Filter", "FilterRowKind", "JsonPath", "Metadata",
        "Python", "Replace", "RowKindExtractor", "Split", "TableMerge", "TableRename",
    }  # fmt: skip
    assert names <= set(registry.names(Role.TRANSFORM))
    for name in ("DynamicCompile", "LLM", "Embedding"):
        assert "Python transform" in registry.find(Role.TRANSFORM, name).refused
    assert all(registry.find(Role.TRANSFORM, n).refused == "" for n in names)
