"""Casts and the functions of no one type, with the values and types SeaTunnel gives."""

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

SYSTEM = [
    ("CAST(id AS STRING)", "1", "string"),
    ("CAST(later AS VARCHAR(9))", "2022-05-23T12:00", "string"),
    ("CAST(number_text AS DOUBLE)", 12.4, "double"),
    ("CAST(number_text AS DECIMAL(10,2))", Decimal("12.40"), "decimal(10,2)"),
    ("CAST(millis AS DECIMAL(17,4))", Decimal("1687747869032.0000"), "decimal(17,4)"),
    ("CAST(thin AS DOUBLE)", 1.23, "double"),
    ("CAST(13.9 AS INT)", 13, "int"),
    ("CAST(id AS LONG)", 1, "bigint"),
    ("CAST(id AS BYTE)", 1, "tinyint"),
    ("CAST(id AS SMALLINT)", 1, "smallint"),
    ("CAST(id AS FLOAT)", 1.0, "float"),
    ("id::BIGINT", 1, "bigint"),
    ("CAST(millis AS TIMESTAMP)", datetime(2023, 6, 26, 2, 51, 9, 32000), "timestamp"),
    ("CAST(said AS DATETIME)", datetime(2021, 4, 8, 13, 34, 45), "timestamp"),
    ("CAST(moment AS DATE)", date(2021, 4, 15), "date"),
    ("CAST(digits AS DATE)", date(2023, 6, 25), "date"),
    ("CAST(clock_digits AS TIME)", time(23, 51, 9), "time"),
    ("CAST(moment AS TIME)", time(13, 34, 45, 235000), "time"),
    ("CAST(day AS TIME)", time(0, 0), "time"),
    ("CAST(name AS BINARY)", bytearray(b"Joy Ding"), "bytes"),
    ("CAST(id AS BYTES)", bytearray(b"1"), "bytes"),
    ("BINARY(name)", bytearray(b"Joy Ding"), "bytes"),
    ("BYTE('7')", 7, "tinyint"),
    ("CAST('TRUE' AS BOOLEAN)", True, "boolean"),
    ("CAST(0 AS BOOLEAN)", False, "boolean"),
    ("CAST(nothing AS BOOLEAN)", None, "boolean"),
    ("TRY_CAST(name AS INT)", None, "int"),
    ("TRY_CAST(name AS BOOLEAN)", None, "boolean"),
    ("TRY_CAST(99 AS DATE)", None, "date"),
    ("COALESCE(nothing, 'Unknown')", "Unknown", "string"),
    ("COALESCE(nothing, id)", "1", "string"),
    ("COALESCE(NULL, id, 2)", 1, "int"),
    ("IFNULL(NULLIF(name, 'Joy Ding'), 'NULL')", "NULL", "string"),
    ("NULLIF(name, 'x')", "Joy Ding", "string"),
    ("LENGTH(UUID())", 36, "bigint"),
    ("ARRAY(1, 2)", [1, 2], "array<int>"),
    ("ARRAY('c_1', 2, 3.12)", ["c_1", "2", "3.12"], "array<string>"),
    ("ARRAY(id, big)", [1, 5000000000], "array<bigint>"),
    ("ARRAY()", [], "array<string>"),
    ("ARRAY_MAX(letters)", "b", "string"),
    ("ARRAY_MIN(letters)", "a", "string"),
    ("letters[1]", "a", "string"),
    ("GREATEST(1, 3)", 3, "int"),
    ("MD5('a')", "0cc175b9c0f1b6a831c399e269772661", "string"),
    ("SIZE(letters)", 3, "int"),
]


@pytest.mark.spark
def test_casts_and_other_functions_are_as_in_seatunnel(expect: Any) -> None:
    expect(SYSTEM)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "CAST(name AS INT)",
            r"Sql: CAST\(name AS INT\): 'Joy Ding' is no int: only digits",
        ),
        ("CAST(name AS BOOLEAN)", "'Joy Ding' is no boolean"),
        ("LN(0)", "LN: '0' is not above zero"),
        ("COT(0)", "COT: division by zero"),
        ("MOD(id, 0)", "MOD: '1' divided by '0'"),
        ("HEXTORAW('abc')", "HEXTORAW"),
        ("TO_DATE(name, 'yyyy-MM-dd')", "CANNOT_PARSE_TIMESTAMP"),
    ],
)
def test_what_has_no_value_fails_the_job(one: Any, sql: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        one(sql)
