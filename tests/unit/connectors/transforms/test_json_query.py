"""Values found in JSON text by path, as Spark's Python workers find them."""

import pyarrow as pa
import pytest

from holdfast.connectors.transforms.json.query import MISSING, Ask, Query, answer_batch, answers

STORE = (
    '{"books":[{"t":"A","p":8.50},{"t":"B","p":12}],"n":null,"ok":true,"a-b":{"@id":1,"2nd":2},'
    '"s":"x"}'
)


def ask(path, text=STORE, whole=False):
    ((value, error),) = answers(text, [Ask(path, whole)])
    return value if error is None else error


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.books[0].t", "A"),
        ("$['books'][1]['p']", "12"),
        ("books[-1].t", "B"),
        ("$.books[0].p", "8.50"),
        ("$.books[0]", '{"t":"A","p":8.5}'),
        ("$.books[*].t", '["A","B"]'),
        ("$..p", "[8.5,12]"),
        ("$.books[?(@.p > 10)].t", '["B"]'),
        ("$.books[0:1].t", '["A"]'),
        ("$.books[*].none", "[]"),
        ("$.a-b.@id", "1"),
        ("$.a-b.2nd", "2"),
        ("$.n", None),
        ("$.ok", "true"),
    ],
)
def test_a_path_finds_a_value_or_a_list(path, value):
    assert ask(path) == value


@pytest.mark.parametrize(
    "path", ["$.none", "$.books[2]", "$.books.t", "$.s.x", "$.n.x", "$.none[*].t", "$[0]"]
)
def test_a_step_that_is_not_there_is_an_error(path):
    assert ask(path) == MISSING


def test_null_has_neither_value_nor_error():
    assert answers(None, [Ask("$.a"), Ask("$.b")]) == [(None, None), (None, None)]


def test_broken_text_is_an_error_for_every_path():
    assert (
        answers("{a", [Ask("$.a"), Ask("$.b")])
        == [(None, "it is not JSON: a value should stand at character 3, before 'the end'")] * 2
    )
    assert ask("$.a", "[" * 100_000) == "its JSON is nested too deeply"
    assert ask("$..a", "just words") == "[]"


def test_numbers_fit_whole_columns():
    assert ask("$.a", '{"a": 42.0}', whole=True) == "42"
    assert ask("$.a", '{"a": 42.0}') == "42.0"
    assert ask("$.a", '{"a": 1e400}', whole=True) == "1e400"


def test_half_characters_do_not_break_arrow():
    assert ask("$.a", '{"a":"\\ud83d\\ude00"}') == "😀"
    assert ask("$.a", '{"a":"\\ud83dx"}') == "\ufffdx"
    assert ask("$.a", "{a:'\\ud83d\\ude00'}") == "😀"


def test_a_batch_answers_each_path_with_value_and_error():
    made = answer_batch(pa.array(['{"a":1}', None]), [Ask("$.a"), Ask("$.b")])
    assert made.to_pylist() == [
        {"v0": "1", "e0": None, "v1": None, "e1": MISSING},
        {"v0": None, "e0": None, "v1": None, "e1": None},
    ]


def test_what_is_no_path_is_explained():
    with pytest.raises(ValueError, match=r"'\$\.a\[' is not a JSON path: "):
        Query("$.a[")
    with pytest.raises(ValueError, match="more than one"):
        Query("$.a | $.b")
