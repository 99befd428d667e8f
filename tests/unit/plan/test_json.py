"""JSON job files."""

import pytest
from parse_texts import errors, job, parsed, places

JOB = """{
  "env": {"job.mode": "BATCH", "parallelism": 2},
  "source": [
    {"row.num": 5, "plugin_name": "FakeSource"},
    {"plugin_name": "FakeSource", "price": 1.20}
  ],
  "transform": [],
  "sink": {"Console": {}}
}
"""


def test_a_json_job_has_the_same_shape() -> None:
    assert parsed(JOB, "job.json") == {
        "env": {"job.mode": "BATCH", "parallelism": 2},
        "source": [
            {"plugin_name": "FakeSource", "row.num": 5},
            {"plugin_name": "FakeSource", "price": 1.2},
        ],
        "sink": [{"plugin_name": "Console"}],
    }


def test_dotted_keys_are_found_by_their_path() -> None:
    found = job(JOB, "job.json").find("env.job.mode")
    assert found
    assert (found.place.line, found.place.column) == (2, 11)


def test_places_are_those_of_the_file() -> None:
    found = places(job(JOB, "job.json"))
    assert found["/source/0"] == "4:5"
    assert found["/source/0/row.num"] == "4:6 4:17"
    assert found["/source/0/plugin_name"] == "4:20 4:35"
    assert found["/sink/0/plugin_name"] == "8:12"


def test_quoted_variables_are_put_in() -> None:
    text = '{"env": {"a": "${x}", "b": "${x:1}-${y:2}"}}'
    assert parsed(text, "job.json", variables={"x": "7"}) == {"env": {"a": 7, "b": "7-2"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"env": {\n"a": 1,}}',
            "2:8: This is not JSON: expecting property name enclosed in double quotes."
            " Correct it, or name the file .conf.",
        ),
        (
            '{"env": {"a": 1\n',
            "2:1: This is not JSON: expecting ',' delimiter. Correct it, or name the file .conf.",
        ),
        (
            "# no\n{}",
            "1:1: This is not JSON: expecting value. Correct it, or name the file .conf.",
        ),
        ('["a"]', "1:1: A JSON job is an object with env, source and sink."),
        ('{"env": {"a": 1,\n "a": 2}}', "2:2: The key 'a' occurs twice. Remove one."),
        ('{"sink": [],\n "sink": []}', "2:2: The key 'sink' occurs twice. Remove one."),
        ('{"a":' * 5000, "1:1: This JSON nests deeper than 50. Nest less."),
        (
            '{"a":' * 60 + "1" + "}" * 60,
            "1:251: Blocks and lists nest deeper than 50 here. Nest less.",
        ),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    assert errors(text, "job.json") == [message]


def test_a_number_of_any_length_is_read() -> None:
    digits = "9" * 6000
    assert parsed(f'{{"env": {{"a": {digits}}}}}', "job.json") == {"env": {"a": digits}}
