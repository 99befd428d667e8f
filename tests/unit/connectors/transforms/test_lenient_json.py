"""JSON as people write it."""

import math

import pytest

from holdfast.connectors.transforms.json.lenient import Float, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: this is text , b : true}", {"a": "this is text", "b": True}),
        ("{'a':'it\\'s',\"b\":\"16:12:43\"}", {"a": "it's", "b": "16:12:43"}),
        ("{t:16:12:43,d:2023-10-29}", {"t": "16:12:43", "d": "2023-10-29"}),
        ("[1,,2,]", [1, 2]),
        ("{,a:1,}", {"a": 1}),
        ("[-1, 007, 1.50, .5, 2e3, 1-2, +5]", [-1, 7, 1.5, 0.5, 2000.0, "1-2", "+5"]),
        ("[null, nullx, False, false]", [None, "nullx", "False", False]),
        ("{a:{b:[{c:d}]}}", {"a": {"b": [{"c": "d"}]}}),
        ('{"a":"\\u00e9\\n\\/\\q"}', {"a": "é\n/q"}),
        ("{a:1} and more", {"a": 1}),
        ("plain words", "plain words"),
        ("  [ ]  ", []),
        ("{ }", {}),
        ("{a:\nb\n}", {"a": "b"}),
    ],
)
def test_what_json_smart_reads_is_read(text, value):
    assert parse(text) == value


def test_numbers_remember_how_they_were_written():
    (number,) = parse("[3.10]")
    assert isinstance(number, Float)
    assert number.text == "3.10"
    (nothing,) = parse("[NaN]")
    assert math.isnan(nothing)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a value should stand at character 1, before 'the end'"),
        ("{a", "a value should stand at character 3, before 'the end'"),
        ("{a:1", "a value should stand at character 5, before 'the end'"),
        ("{a:}", "a value should stand at character 4, before '}'"),
        ("[1", "a value should stand at character 3, before 'the end'"),
        ('{"a" 1}', "':' should stand at character 6, before '1}'"),
        ('{"a":"b" c}', "',' or '}' should stand at character 10, before 'c}'"),
        ("['a' b]", "',' or ']' should stand at character 6, before 'b]'"),
        ("{'a", "a closing ' should stand at character 4, before 'the end'"),
        ('"\\u12"', "four hexadecimal digits should stand at character 4, before '12\"'"),
        ("[", "a value should stand at character 2, before 'the end'"),
    ],
)
def test_what_makes_no_sense_is_explained(text, why):
    with pytest.raises(ValueError) as error:
        parse(text)
    assert str(error.value) == why
