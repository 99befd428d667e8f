"""HOCON job files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parse_texts import env, errors, job, parsed, places, warnings

from holdfast.connect.checks import CheckReport
from holdfast.errors import SourceLocation
from holdfast.model.tree import Block, Plain, Scalar
from holdfast.plan.load import parse_job


def scalar(text: str) -> tuple[object, str]:
    """Return value and text of `env { a = ... }`."""
    block = job(f"env {{ a = {text} }}").get("env")
    assert isinstance(block, Block)
    node = block.get("a")
    assert isinstance(node, Scalar)
    return node.value, node.text


def test_a_plugin_may_stand_more_than_once_and_order_stays() -> None:
    text = """
    source {
      FakeSource { row.num = 1 }
      Jdbc { }
      FakeSource { row.num = 2 }
    }
    sink { Console {} Console { x = 1 } }
    """
    assert parsed(text) == {
        "source": [
            {"plugin_name": "FakeSource", "row": {"num": 1}},
            {"plugin_name": "Jdbc"},
            {"plugin_name": "FakeSource", "row": {"num": 2}},
        ],
        "sink": [{"plugin_name": "Console"}, {"plugin_name": "Console", "x": 1}],
    }


def test_all_four_parts_are_always_there() -> None:
    assert places(job("source {}")) == {
        "/source": "1:1 1:8",
        "/env": "1:1",
        "/transform": "1:1",
        "/sink": "1:1",
    }


@pytest.mark.parametrize(
    "text",
    [
        "source = [{plugin_name = A, x = 1}, {plugin_name = A, x = 2}]",
        "source = [\n{ x = 1, plugin_name = A }\n{A { x = 2 }}\n]",
        "source : { A = {x = 1}, A = {x = 2} }",
        "source\n{\nA\n{ x = 1 }\n\nA : { x : 2 } }",
        "{ source { A { x = 1 }, A { x = 2 }, }, }",
        "source.A { x = 1 }\nsource.A { x = 2 }",
        "source.A { x = 1 }\nsource { A { x = 2 } }",
        "source { A { x = 1 } }\nsource += { plugin_name = A, x = 2 }",
        "source = { A { x = 1 } } { A { x = 2 } }",
        "source += { A { x = 1 } }\nsource += { A { x = 2 } }",
        "x = 1\nbase = { A { x = ${x} } }\nsource = [${base}, { A { x = 2 } }]",
        "base { x = 2 }\nsource { A { x = 1 }\n A = ${base} }",
    ],
)
def test_plugins_may_be_written_in_many_ways(text: str) -> None:
    assert parsed(text) == {
        "source": [{"plugin_name": "A", "x": 1}, {"plugin_name": "A", "x": 2}],
    }


def test_a_name_inside_the_block_wins_over_the_key() -> None:
    text = "sink { console { x = 1, plugin_name = Console } }"
    assert parsed(text) == {"sink": [{"plugin_name": "Console", "x": 1}]}


def test_only_the_top_level_holds_plugins() -> None:
    text = "env { source { a { x = 1 }\n a { y = 2 } } }"
    assert parsed(text) == {"env": {"source": {"a": {"x": 1, "y": 2}}}}


def test_a_second_source_block_replaces_the_first_with_a_warning() -> None:
    text = "source { A {} }\nsource { B {} }"
    assert parsed(text) == {"source": [{"plugin_name": "B"}]}
    assert warnings(text) == [
        "2:1: 'source' occurs twice, and as in SeaTunnel the later replaces the earlier."
        " Put all plug-ins into one block."
    ]


def test_places_are_those_of_the_file() -> None:
    text = 'env {\n\tjob.mode = "BATCH"\n}\nsource {\n  # one\n  A { x = [1,\n   2] }\n}\n'
    assert places(job(text)) == {
        "/env": "1:1 1:5",
        "/env/job": "2:2",
        "/env/job/mode": "2:2 2:13",
        "/source": "4:1 4:8",
        "/source/0": "6:3",
        "/source/0/plugin_name": "6:3",
        "/source/0/x": "6:7 6:11",
        "/source/0/x/0": "6:12",
        "/source/0/x/1": "7:4",
        "/transform": "1:1",
        "/sink": "1:1",
    }


@pytest.mark.parametrize(
    ("text", "value", "kept"),
    [
        ("1.20", 1.2, "1.20"),
        ("-7", -7, "-7"),
        ("007", 7, "007"),
        ("1e+5", 100000.0, "1e+5"),
        ("9223372036854775807", 9223372036854775807, "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808", "9223372036854775808"),
        ("1e999", "1e999", "1e999"),
        ("true", True, "true"),
        ("null", None, "null"),
        ("nullable", "nullable", "nullable"),
        ("10 s", "10 s", "10 s"),
        ("2024-01-02", "2024-01-02", "2024-01-02"),
        ("1.2.3", "1.2.3", "1.2.3"),
        (";", ";", ";"),
        ("'x'", "'x'", "'x'"),
        ("/a/b.csv", "/a/b.csv", "/a/b.csv"),
        ('"5"', "5", "5"),
        (r'"a\tbA\\é😀"', "a\tbA\\é😀", "a\tbA\\é😀"),
        ('"""a\n"b" \\d ${x}"""', 'a\n"b" \\d ${x}', 'a\n"b" \\d ${x}'),
        ('""""quoted""""', '"quoted"', '"quoted"'),
        ('""', "", ""),
        ('a "b c"  d', "a b c  d", "a b c  d"),
        ('"{"data":{"n": "42"}}"', "{data:{n: 42}}", "{data:{n: 42}}"),
        ("a # comment", "a", "a"),
    ],
)
def test_values(text: str, value: object, kept: str) -> None:
    text = text if "#" not in text else text + "\n"
    assert scalar(text) == (value, kept)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1, b : 2\nc {}", {"a": 1, "b": 2, "c": {}}),
        ("a = [1\n2, 3\n]\nb = []", {"a": [1, 2, 3], "b": []}),
        ("a = [[1], {b = 2}\n{c = 3}]", {"a": [[1], {"b": 2}, {"c": 3}]}),
        ("a =\n\n  1 // one\n# two\nb = 2", {"a": 1, "b": 2}),
        ("a { x = 1 }\na { y = 2, x = 3 }", {"a": {"x": 3, "y": 2}}),
        ("a { x = 1 }\na = 2\na { y = 3 }", {"a": {"y": 3}}),
        ("a = {x = 1} {y = 2}", {"a": {"x": 1, "y": 2}}),
        ("a = [1] [2]", {"a": [1, 2]}),
        ("a += 1\na += 2", {"a": [1, 2]}),
        ("a b = 1\n'c' = 2", {"a b": 1, "'c'": 2}),
        ("1.5 = x", {"1": {"5": "x"}}),
        ('"" = 1\n"\\"" = 2', {"": 1, '"': 2}),
        ("include = 1", {"include": 1}),
        ("include_fields = [a]", {"include_fields": ["a"]}),
        ("a\r = 1\r\nb = x\r\n", {"a": 1, "b": "x"}),
    ],
)
def test_blocks_and_lists(text: str, expected: Plain) -> None:
    assert env(text) == expected


def test_dotted_options_nest_and_quoted_keys_stay_whole() -> None:
    assert env('a.b.c = 1\na { b.d = 2 }\n"a.e" = 3') == {
        "a": {"b": {"c": 1}, "b.d": 2},
        "a.e": 3,
    }


def test_an_option_whose_name_starts_another_options_name_survives() -> None:
    expected = {"start_mode": "specific", "start_mode.offsets": {"t-0": 7}}
    assert env("start_mode = specific\nstart_mode.offsets = { t-0 = 7 }") == expected
    assert env("start_mode.offsets = { t-0 = 7 }\nstart_mode = specific") == expected


def test_dots_in_column_names_belong_to_them() -> None:
    text = "source { A { schema { fields { user.name = string } } } }"
    assert parsed(text) == {
        "source": [{"plugin_name": "A", "schema": {"fields": {"user.name": "string"}}}]
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 5\nenv { a = ${n}, b = x${n}y ${n}, c = [${n}] }", {"a": 5, "b": "x5y 5", "c": [5]}),
        ("env { a = ${n} }\nn = 1\nn = 2", {"a": 2}),
        ("env { a = ${?no}, b = ${?no}x, c = [${?no}, 1] }", {"b": "x", "c": [1]}),
        ("env { a = 1, a = ${?no} }", {"a": 1}),
        (
            "env { a = ${now}_${k0}, b = ${table_name} }",
            {"a": "${now}_${k0}", "b": "${table_name}"},
        ),
        ('env { a = "${n}" }\nm = 1', {"a": "${n}"}),
        ("env { a = ${n:7}, b = ${n:}, c = ${now:x} }", {"a": 7, "b": "", "c": "${now:x}"}),
        ("env { a = ${env.b.c}, b { c = 1 } }", {"a": 1, "b": {"c": 1}}),
        ("env { job.mode = x, a = ${env.job.mode} }", {"job": {"mode": "x"}, "a": "x"}),
        ("env { a = ${m.x.y} }\nm = ${n}\nn { x.y = 3 }", {"a": 3}),
        ("env { a = [1], b = ${env.a} [2] }", {"a": [1], "b": [1, 2]}),
        ("d { x = 1, y = 1 }\nenv { a = ${d} { y = 2 } }", {"a": {"x": 1, "y": 2}}),
        ("env { a = x }\nenv { a = ${env.a}y }", {"a": "xy"}),
        ("env { a = ${env.a} }", {"a": "${env.a}"}),
    ],
)
def test_substitutions(text: str, expected: Plain) -> None:
    assert parsed(text)["env"] == expected


def test_a_variable_answers_what_the_file_does_not() -> None:
    text = "a = 1\nenv { a = ${a}, b = ${b}, c = ${?c}, d = ${?d}, e = ${l} [3] }"
    given = {"a": "9", "b": "8", "c": "x", "l": "[1, 2]"}
    assert parsed(text, variables=given) == {"env": {"a": 1, "b": 8, "c": "x", "e": [1, 2, 3]}}


def test_a_substituted_value_stands_where_it_is_used() -> None:
    tree = job("n = 5\nenv {\n  a = ${n}\n}")
    block = tree.get("env")
    assert isinstance(block, Block)
    assert block.get("a") == Scalar(5, "5", SourceLocation("job.conf", 3, 7))


def test_other_top_level_keys_are_kept_unless_a_substitution_used_them() -> None:
    assert parsed("a = 1\nb = 2\nenv { c = ${a} }") == {"b": 2, "env": {"c": 1}}


FILES = {
    "dir/part.conf": "x = 1\ny = ${x}\nz = ${top}",
    "dir/sub/deep.conf": 'include "more"\nd = 1',
    "dir/sub/more.conf": "m = 2",
    "dir/sources.conf": "A { x = 1 }\nA { x = 2 }",
    "dir/whole.json": '{"source": [{"plugin_name": "A"}]}',
    "dir/bad.conf": "a = 1\nb = = 2",
    "dir/round.conf": 'include "round.conf"',
}


def included(text: str) -> dict[str, Plain]:
    return parsed(text, "dir/job.conf", files=FILES)


def test_includes_are_found_beside_the_file_that_includes() -> None:
    assert included('env { include "part"\n x = 2 }\ntop = 3')["env"] == {"x": 2, "y": 2, "z": 3}
    assert included('env { include required(file("sub/deep.conf")) }')["env"] == {"m": 2, "d": 1}
    assert included('source { include "sources" }') == {
        "source": [{"plugin_name": "A", "x": 1}, {"plugin_name": "A", "x": 2}]
    }
    assert included('include file("whole.json")') == {"source": [{"plugin_name": "A"}]}


def test_an_included_file_that_is_missing_is_left_out_unless_required() -> None:
    assert included('include "no"\nenv { a = 1 }') == {"env": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'env { }\ninclude required("no.conf")',
            "dir/job.conf:2:1: The included file 'dir/no.conf' does not exist."
            " Create it, or correct its name.",
        ),
        (
            'include "round.conf"',
            "dir/round.conf:1:1: Includes go round in a circle: dir/round.conf includes"
            " dir/round.conf. Break it.",
        ),
        (
            'include "bad.conf"',
            "dir/bad.conf:2:5: Found '=' in a value."
            " Put a comma or a new line before the next key, or the value in double quotes.",
        ),
        (
            'include url("http://x/y")',
            "dir/job.conf:1:1: include url(...) is not supported."
            " Put the file next to this one and include it by its name.",
        ),
        (
            "include x",
            "dir/job.conf:1:9: Found 'x' after include. Put a quoted file name there.",
        ),
    ],
)
def test_mistakes_in_includes(text: str, message: str) -> None:
    report_file = "dir/job.conf"
    found = errors(text, report_file, files=FILES)
    assert found == [message.removeprefix(report_file + ":")]


def test_without_a_reader_nothing_is_included() -> None:
    assert errors('include "x"') == [
        "1:1: 'x' cannot be included: this job did not come from a file."
        " Write its content here instead."
    ]


def test_a_file_that_cannot_be_read_is_a_mistake() -> None:
    def read(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    report = CheckReport()
    assert parse_job('include "x.conf"', "job.conf", {}, read, report) is None
    assert [str(m) for m in report.mistakes] == [
        "job.conf:1:1: 'x.conf' cannot be included: Permission denied."
    ]


QUOTE = "Put text with special characters in double quotes."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env {\n a = 1", "1:5: This '{' is never closed. Add a '}'."),
        ("a = [1, 2", "1:5: This '[' is never closed. Add a ']'."),
        ("env {} }", "1:8: This '}' closes nothing. Remove it, or open a block."),
        ("{ a = 1 } b", "1:11: Found 'b' after the block that the file opened with. Remove it."),
        ("[1]", "1:1: Found a list where the job's blocks env, source and sink go."),
        ('a = "x\n', '1:5: This " is not closed on its line.'
         ' Add a second ", or use """ for several lines.'),
        ('a = """x', '1:5: This """ is never closed. Add a second """.'),
        (r'a = "x\d"', r"1:7: '\d' is not an escape. Write \\ for a backslash."),
        (r'a = "\ud800"', r"1:5: This text has half of a \u pair. Write both halves."),
        ("a = jdbc:mysql", f"1:9: Found ':' in a value. {QUOTE}"),
        ("a = /x/*.csv", f"1:8: Found '*' in a value. {QUOTE}"),
        ("a = $x", f"1:5: Found '$' in a value. {QUOTE}"),
        ("a = ${x", "1:5: This '${' is not closed on its line. Add a '}'."),
        ("a = ${}", "1:5: This '${}' names nothing. Put a name into it."),
        ("a = ", f"1:5: Found the end of the file where a value should stand. {QUOTE}"),
        ("env { a = }", f"1:11: Found '}}' where a value should stand. {QUOTE}"),
        ("a = [1,, 2]", "1:8: Found a second comma. Remove it."),
        ("a = [1 = 2]", "1:8: Found '=' in a value."
         " Put a comma or a new line before the next key, or the value in double quotes."),
        ("a = [[1] [2}", "1:12: Found '}' after a value. Add a comma or a ']'."),
        ("a secret", "1:9: Found the end of the file after the key 'a'."
         " Put =, : or a block after a key."),
        (", a = 1", f"1:1: Found ',' where a key should stand. {QUOTE}"),
        ("a-> = 1", f"1:5: Found '=' where a key should stand. {QUOTE}"),
        ("a = x { b = 1 }", "1:5: Values of different kinds stand side by side here: blocks join"
         " blocks, lists join lists, and text joins text. Put a comma or a new line between them."),
        ("a = 1\na += 2", "2:6: += adds to a list, but here stood another value."),
        ("sink { A = 5 }", "1:8: 'A' is a plug-in here, so its options must be in a block."
         " Write A { ... }."),
        ("sink = x", "1:8: sink must be a block or a list of plug-ins. Write sink { ... }."),
        ("sink = [{a = 1, b = 2}]", "1:9: This sink has no name."
         " Give it a plugin_name, or write it as Name { ... }."),
        ("a = ${b}\nb = ${c}\nc = ${a}", "3:5: ${a} goes round in a circle. Break it."),
        ("a { b = ${a} }", "1:9: ${a} goes round in a circle. Break it."),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    assert errors(text) == [message]


def test_nesting_has_a_bound() -> None:
    assert env("a = " + "{a=" * 48 + "1" + "}" * 48)
    deep = "1:55: Blocks and lists nest deeper than 50 here. Nest less."
    assert errors("a = " + "[" * 5000) == [deep]
    assert errors("a" + "->a" * 50 + " = 1") == [
        "1:153: This key has more than 50 parts. Use fewer."
    ]
    chain = "\n".join(f"a{i} {{ x = ${{a{i + 1}}} }}" for i in range(500))
    assert errors(chain) == ["51:5: Substitutions nest too deep here. Nest less."]


def test_substitutions_have_a_bound() -> None:
    bomb = "\n".join(f"a{i} = [${{a{i + 1}}}, ${{a{i + 1}}}]" for i in range(30)) + "\na30 = x"
    (found,) = errors(bomb)
    assert found.endswith(": Substitutions make this job too large. Use fewer.")


def test_many_appended_items_are_no_nesting() -> None:
    assert parsed("\n".join(["l += 1"] * 500) + "\nenv { a = ${l} }")["env"] == {"a": [1] * 500}


MARKS = st.lists(
    st.sampled_from(
        ["a", "b", "source", "env", "include ", " ", "\n", "=", ":", "+=", "{", "}", "[", "]", ",",
         '"', '"""', "${", "${a}", "${?b}", "\\", "#", "//", ".", "->", "1.5", "true", "$", "é"]
    )
).map("".join)  # fmt: skip


@given(st.one_of(st.text(), MARKS))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    report = CheckReport()
    tree = parse_job(text, "job.conf", {"b": "[1"}, None, report)
    assert (tree is None) == bool(report.mistakes)
