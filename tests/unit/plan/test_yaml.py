"""YAML job files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parse_texts import errors, job, parsed, places

from holdfast.connect.checks import CheckReport
from holdfast.plan.load import parse_job

JOB = """
env:
  job.mode: BATCH
source:
  FakeSource: {row.num: 5}
  FakeSource:
    schema: {fields: {a: int}}
transform:
sink:
  - Console:
  - plugin_name: Console
    path: ${x:ok}
"""


def test_mappings_and_lists_of_plugins_have_the_same_shape() -> None:
    assert parsed(JOB, "job.yaml") == {
        "env": {"job.mode": "BATCH"},
        "source": [
            {"plugin_name": "FakeSource", "row.num": 5},
            {"plugin_name": "FakeSource", "schema": {"fields": {"a": "int"}}},
        ],
        "sink": [{"plugin_name": "Console"}, {"plugin_name": "Console", "path": "ok"}],
    }


def test_places_are_those_of_the_file() -> None:
    assert places(job(JOB, "job.yml")) == {
        "/env": "2:1 3:3",
        "/env/job.mode": "3:3 3:13",
        "/source": "4:1 5:3",
        "/source/0": "5:3",
        "/source/0/plugin_name": "5:3",
        "/source/0/row.num": "5:16 5:25",
        "/source/1": "6:3",
        "/source/1/plugin_name": "6:3",
        "/source/1/schema": "7:5 7:13",
        "/source/1/schema/fields": "7:14 7:22",
        "/source/1/schema/fields/a": "7:23 7:26",
        "/transform": "8:1 8:11",
        "/sink": "9:1 10:3",
        "/sink/0": "10:5",
        "/sink/0/plugin_name": "10:5",
        "/sink/1": "11:5",
        "/sink/1/plugin_name": "11:5 11:18",
        "/sink/1/path": "12:5 12:11",
    }


def test_a_single_plugin_may_stand_alone() -> None:
    text = "sink: {plugin_name: Console, x: 1}"
    assert parsed(text, "job.yaml") == {"sink": [{"plugin_name": "Console", "x": 1}]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1.20", 1.2),
        ("1e5", 100000.0),
        ("012", 12),
        ("12:30", "12:30"),
        ("2024-01-02", "2024-01-02"),
        ("no", "no"),
        ("True", True),
        ("~", None),
        ("'5'", "5"),
        ('"a\\tb"', "a\tb"),
        ("[1, x]", [1, "x"]),
        ("|\n    a\n    b", "a\nb\n"),
    ],
)
def test_values(text: str, value: object) -> None:
    assert parsed(f"env:\n  a: {text}\n", "job.yaml") == {"env": {"a": value}}


def test_aliases_and_merged_mappings_are_put_in() -> None:
    text = "base: &b {x: 1, y: 1}\nenv:\n  a: *b\n  c:\n    y: 2\n    <<: *b\n    z: 3\n"
    assert parsed(text, "job.yaml")["env"] == {
        "a": {"x": 1, "y": 1},
        "c": {"x": 1, "y": 2, "z": 3},
    }


BOMB = "\n".join(
    ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: a: b", "1:7: This is not YAML: mapping values are not allowed here. Correct it."),
        ("env:\n  a: 1\n  a: 2", "3:3: The key 'a' occurs twice. Remove one."),
        ("- a", "1:1: A YAML job is a mapping with env, source and sink."),
        ("? [a]\n: 1", "1:3: This key is not text. Write a plain word."),
        ("a: \x07", "1:4: This is not YAML: special characters are not allowed. Remove it."),
        ("a: *b", "1:4: This is not YAML: found undefined alias 'b'. Correct it."),
        (
            "a: !!python/name:os.system x",
            "1:4: The tag tag:yaml.org,2002:python/name:os.system is not supported. Remove it.",
        ),
        ("a: {<<: 5}", "1:9: A << takes a mapping. Name one with an alias."),
        ("a: &a [*a]", "1:4: Aliases make this job too large. Use fewer."),
        (BOMB, "1:10: Aliases make this job too large. Use fewer."),
        ("a: " + "[" * 400, "1:53: This nests deeper than 50. Nest less."),
        (
            "source: [{a: 1, b: 2}]",
            "1:10: This source has no name. Give it a plugin_name, or write it as Name { ... }.",
        ),
        (
            "a: 1\n---\nb: 2",
            "2:1: This is not YAML: expected a single document in the stream,"
            " but found another document. Correct it.",
        ),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    assert errors(text, "job.yaml") == [message]


MARKS = st.lists(
    st.sampled_from(
        ["a", "source", "env", ": ", "- ", "\n", "  ", "{", "}", "[", "]", ",", "&x ", "*x", "<<",
         "!", "!!str ", "|", ">", "'", '"', "#", "---\n", "?", "%", "@", "~", "\x85", "\u2028"]
    )
).map("".join)  # fmt: skip


@given(st.one_of(st.text(), MARKS))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    report = CheckReport()
    tree = parse_job(text, "job.yaml", {}, None, report)
    assert (tree is None) == bool(report.mistakes)
