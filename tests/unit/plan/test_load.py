"""Which reader a job file gets, and texts that are none."""

import pytest
from parse_texts import errors, job

from holdfast.connect.checks import CheckReport
from holdfast.errors import JobFileError
from holdfast.model.tree import to_plain
from holdfast.plan.load import JobFileFormat, decode_job, format_of, parse_job


@pytest.mark.parametrize(
    ("file", "format"),
    [
        ("a.conf", JobFileFormat.HOCON),
        ("a.config", JobFileFormat.HOCON),
        ("a.hocon", JobFileFormat.HOCON),
        ("v2.batch.config.template", JobFileFormat.HOCON),
        ("job", JobFileFormat.HOCON),
        ("a.txt", JobFileFormat.HOCON),
        ("dir.json/a", JobFileFormat.HOCON),
        ("a.JSON", JobFileFormat.JSON),
        ("a.sql", JobFileFormat.SQL),
        ("a.yaml", JobFileFormat.YAML),
        ("a.yml", JobFileFormat.YAML),
    ],
)
def test_the_name_tells_the_format(file: str, format: JobFileFormat) -> None:
    assert format_of(file) is format


def test_a_given_format_wins_over_the_name() -> None:
    tree = parse_job("env:\n  a: 1", "job.conf", {}, None, CheckReport(), JobFileFormat.YAML)
    assert tree is not None
    assert to_plain(tree) == {"env": {"a": 1}, "source": [], "transform": [], "sink": []}


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff\n"])
@pytest.mark.parametrize("file", ["a.conf", "a.json", "a.sql", "a.yaml"])
def test_an_empty_file_is_a_mistake(text: str, file: str) -> None:
    assert errors(text, file) == ["1:1: The file is empty. A job has env, source and sink blocks."]


@pytest.mark.parametrize("file", ["a.conf", "a.json", "a.sql", "a.yaml"])
def test_a_nul_character_is_a_mistake(file: str) -> None:
    assert errors("env {\n a\0", file) == [
        "2:3: Found a NUL character. Is this a text file in UTF-8?"
    ]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode_job(b"\xef\xbb\xbfenv {}", "a.conf") == "env {}"
    assert job("\ufeffenv {}").entries[0].place.column == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "env {\n é".encode() + b"\xe9",
            "a.conf:2:3: Found a byte 0xe9 that is not UTF-8. Save the file as UTF-8.",
        ),
        ("env".encode("utf-16"), "a.conf:1:1: Found UTF-16. Save the file as UTF-8."),
    ],
)
def test_a_file_that_is_not_utf_8_is_a_mistake(data: bytes, message: str) -> None:
    with pytest.raises(JobFileError) as caught:
        decode_job(data, "a.conf")
    assert str(caught.value) == message


def test_a_mistake_of_an_included_file_keeps_its_place() -> None:
    def read(path: str) -> str:
        return decode_job(b"\n\xff", path)

    report = CheckReport()
    assert parse_job('include "x.conf"', "job.conf", {}, read, report) is None
    assert [str(m) for m in report.mistakes] == [
        "x.conf:2:1: Found a byte 0xff that is not UTF-8. Save the file as UTF-8."
    ]
