"""Variables and their defaults."""

import pytest
from parse_texts import env, errors, parsed

from holdfast.connect.checks import CheckReport
from holdfast.connect.placeholders import RESERVED
from holdfast.errors import UsageError
from holdfast.model.tree import to_plain
from holdfast.plan.load import parse_job
from holdfast.plan.variables import parse_assignments


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${k}", "v"),
        ("a ${k} b ${k}", "a v b v"),
        ("${k:x}", "v"),
        ("${none:x}", "x"),
        ("${none:}", ""),
        ("${none:}y", "y"),
        ("${none:http://x:1/y}", "http://x:1/y"),
        ("${n}", 5),
        ("${none:50}", 50),
        ("${n}0", "50"),
        ("${none:1.20}", 1.2),
        ("${none:true}", True),
        ("${none:null}", "null"),
        ("${single}", ["a, b", "c"]),
        ("${double}", ["a, b", 1]),
        ("${block}", {"x": [1, 2], "y.z": "w"}),
        ("${broken}", "[a"),
        ("x${double}", 'x["a, b", 1]'),
        (
            "${now}_${uuid}_${transactionId}/${k0}=${v0}",
            "${now}_${uuid}_${transactionId}/${k0}=${v0}",
        ),
        ("${now:yyyy}", "${now:yyyy}"),
        ("${table_name:x}", "${table_name:x}"),
        ("$k {k} ${", "$k {k} ${"),
        ("${loop}", "${k}"),
    ],
)
def test_values_take_variables(value: str, expected: object) -> None:
    given = {
        "k": "v",
        "n": "5",
        "single": "['a, b','c']",
        "double": '["a, b", 1]',
        "block": '{"x": [1, 2], "y.z": "w"}',
        "broken": "[a",
        "loop": "${k}",
    }
    assert env(f'a = """{value}"""', variables=given) == {"a": expected}


UNSET = """
env { job.name = "day ${DT}" }
source { FakeSource { plugin_output = "${DT}", row.num = ${ROWS}, x = "${DT:1}" } }
sink { LocalFile { path = "/data/${DT}/${HOUR}", file_format_type = csv
  file_name_expression = "${now}_${yyyyMMdd}_${transactionId}", filename_time_format = yyyyMMdd
  save = "${table_name}", partition_dir_expression = "${k0}=${v0}" } }
"""


def test_a_variable_that_nothing_sets_is_named_with_its_place_and_what_to_do() -> None:
    said = errors(UNSET, variables={"OTHER": "1"})
    assert [line.split("'")[1] for line in said] == ["DT", "ROWS", "HOUR"]
    assert said[0] == (
        "2:18: The variable 'DT' is not set. Give it with -i DT=VALUE, write a default as in"
        " ${DT:VALUE}, or keep the text ${DT} with --allow-unset."
    )


def test_unset_variables_are_kept_where_that_is_asked_for() -> None:
    report = CheckReport(allow_unset=True)
    tree = parse_job(UNSET, "job.conf", {}, None, report)
    assert tree is not None and not report.mistakes
    kept = to_plain(tree)
    assert isinstance(kept, dict) and kept["env"] == {"job": {"name": "day ${DT}"}}


@pytest.mark.parametrize("file", ["job.json", "job.yaml", "job.sql"])
def test_unset_variables_are_named_in_every_format(file: str) -> None:
    texts = {
        "job.json": '{"source": [{"plugin_name": "Fake", "x": "${DT}"}]}',
        "job.yaml": 'source:\n  - plugin_name: Fake\n    x: "${DT}"\n',
        "job.sql": "CREATE TABLE a WITH ('connector'='FakeSource', 'type'='source', 'x'='${DT}');\n"
        "CREATE TABLE z WITH ('connector'='Console', 'type'='sink');\nINSERT INTO z SELECT *"
        " FROM a;",
    }
    assert any("The variable 'DT' is not set." in line for line in errors(texts[file], file))


def test_a_group_of_a_pattern_is_no_variable() -> None:
    text = 'transform { Replace { pattern = "(?<y>.*)", replacement = "${y}!" } }'
    assert parsed(text)


def test_names_of_sinks_may_be_given_if_they_are_not_reserved() -> None:
    assert env('a = "${now}-${k0}"', variables={"now": "1", "k0": "2"}) == {"a": "1-2"}


def test_variables_reach_lists_and_plugins_but_not_keys() -> None:
    text = '{"source": [{"plugin_name": "${p}", "x": ["${k}", {"${k}": "${k}"}]}]}'
    assert parsed(text, "job.json", variables={"p": "Fake", "k": "v"}) == {
        "source": [{"plugin_name": "Fake", "x": ["v", {"${k}": "v"}]}]
    }


def test_unquoted_placeholders_take_variables_too() -> None:
    text = """s = "where city = '"${city}"'", n = ${n}, l = ${l}, d = ${x:7}"""
    given = {"city": "Rome", "n": "3", "l": "[1,2]"}
    assert env(text, variables=given) == {"s": "where city = 'Rome'", "n": 3, "l": [1, 2], "d": 7}


def test_digits_of_a_number_are_kept() -> None:
    assert env('a = "x${p}"', variables={"p": "1.20"}) == {"a": "x1.20"}


@pytest.mark.parametrize("name", RESERVED)
def test_placeholders_of_sinks_may_not_be_given(name: str) -> None:
    assert errors("env {}", variables={name: "x"}) == [
        f"1:1: The variable '{name}' may not be given: sinks fill ${{{name}}} for each table."
        " Choose another name."
    ]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], {}),
        (["a=1", "b=2"], {"a": "1", "b": "2"}),
        (["a=1,b=2, c = 3 "], {"a": "1", "b": "2", "c": "3"}),
        (["a=x=y"], {"a": "x=y"}),
        (["a="], {"a": ""}),
        (["a=\"x,y\",b='p,q'"], {"a": "x,y", "b": "p,q"}),
        (["a=['x','y'],b=1"], {"a": "['x','y']", "b": "1"}),
        (['a={"x": [1, 2]},b=1'], {"a": '{"x": [1, 2]}', "b": "1"}),
        (["a=O'Brien,b=1"], {"a": "O'Brien", "b": "1"}),
        (["a=x]y,b=[z"[:5]], {"a": "x]y"}),
        (["a=1", "a=2"], {"a": "2"}),
    ],
)
def test_assignments(items: list[str], expected: dict[str, str]) -> None:
    assert parse_assignments(items) == expected


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("a", "'a' is not a variable: give -i name=value."
         " Put quotes around a value that holds a comma."),
        ("=1", "'=1' is not a variable: give -i name=value."
         " Put quotes around a value that holds a comma."),
        ("a=secret,also", "Part 2 of 'a=...' is not a variable: give -i name=value."
         " Put quotes around a value that holds a comma."),
        ('a="x', "'a=...' opens a quote or bracket and has no closing \"."
         " Add it, or put quotes around the value."),
        ("a=[1,2", "'a=...' opens a quote or bracket and has no closing ]."
         " Add it, or put quotes around the value."),
    ],
)  # fmt: skip
def test_bad_assignments(item: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_assignments([item])
    assert str(caught.value) == message
