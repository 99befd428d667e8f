"""Names of files and folders."""

from datetime import datetime

import pytest

from holdfast.connectors.files.names import file_name, java_time, partition_folder

MOMENT = datetime(2024, 1, 31, 16, 5, 9, 120_000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy.MM.dd", "2024.01.31"),
        ("yyyyMMddHHmmss", "20240131160509"),
        ("yy-M-d H:m:s.SSS", "24-1-31 16:5:9.120"),
        ("yyyy-MM-dd'T'hh:mm a", "2024-01-31T04:05 PM"),
        ("d MMM yyyy, 'o''clock'", "31 Jan 2024, oclock"),
        ("DDD", "031"),
    ],
)
def test_java_patterns_are_understood(pattern: str, text: str) -> None:
    assert java_time(pattern, MOMENT) == text


@pytest.mark.parametrize("pattern", ["YYYY", "yyyy'T"])
def test_a_pattern_without_sense_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="'"):
        java_time(pattern, MOMENT)


def test_file_names_take_the_transaction_the_time_and_an_id() -> None:
    made = file_name("${transactionId}_${now}_${uuid}_${x}", "T_7", "u-1", MOMENT, "yyyyMMdd")
    assert made == "T_7_20240131_u-1_${x}"


@pytest.mark.parametrize(
    ("expression", "folder"),
    [
        ("${k0}=${v0}/${k1}=${v1}/.../${kn}=${vn}/", "a=1/b=x%2Fy"),
        ("", "a=1/b=x%2Fy"),
        ("${k0}=${v0}", "a=1"),
        ("/dt-${v0}//${v1}/", "dt-1/x%2Fy"),
        ("../${v0}", "%2E%2E/1"),
    ],
)
def test_partition_folders_follow_the_expression_and_stay_inside(
    expression: str, folder: str
) -> None:
    assert partition_folder(expression, ("a", "b"), ("1", "x%2Fy")) == folder
