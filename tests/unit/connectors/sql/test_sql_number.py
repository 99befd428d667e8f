"""Number functions and operators, with the values and types SeaTunnel gives."""

from decimal import Decimal
from typing import Any

import pytest

from holdfast.connectors.sql.functions_number import first_random

NUMBER = [
    ("ABS(-10.3)", 10.3, "double"),
    ("ABS(minus)", 120.72, "double"),
    ("ABS(tiny)", 2, "tinyint"),
    ("ACOS(id)", 0.0, "double"),
    ("ASIN(0)", 0.0, "double"),
    ("ATAN(0)", 0.0, "double"),
    ("COS(0)", 1.0, "double"),
    ("COSH(0)", 1.0, "double"),
    ("COT(1)", 0.6420926159343306, "double"),
    ("SIN(0)", 0.0, "double"),
    ("SINH(0)", 0.0, "double"),
    ("TAN(0)", 0.0, "double"),
    ("TANH(0)", 0.0, "double"),
    ("ATAN2(1, 1)", 0.7853981633974483, "double"),
    ("MOD(thirteen, 5)", 3, "int"),
    ("MOD(thirteen, 5.4)", 2.2, "double"),
    ("MOD(13.7, 5)", 3, "int"),
    ("MOD(big, 7)", 5000000000 % 7, "int"),
    ("MOD(thirteen, big)", 13, "bigint"),
    ("CEIL(13.2)", 14, "int"),
    ("CEILING(-13.2)", -13, "int"),
    ("FLOOR(13.2)", 13, "int"),
    ("EXP(2)", 7.38905609893065, "double"),
    ("LN(13.2)", 2.580216829592325, "double"),
    ("LOG(10, 13.2)", 1.1205739312058498, "double"),
    ("LOG(2, 8)", 3.0, "double"),
    ("LOG10(1324.252)", 3.1219706375172507, "double"),
    ("RADIANS(180)", 3.141592653589793, "double"),
    ("SQRT(10.24)", 3.2, "double"),
    ("PI()", 3.141592653589793, "double"),
    ("POWER(13.2, 2)", 174.23999999999998, "double"),
    ("RAND(42)", 0.7275636800328681, "double"),
    ("RANDOM() < 1", True, "boolean"),
    ("ROUND(120.72524, 2)", 120.73, "double"),
    ("ROUND(-0.5)", -1.0, "double"),
    ("ROUND(money, 2)", Decimal("12.3500"), "decimal(10,4)"),
    ("ROUND(157, -1)", 160, "int"),
    ("SIGN(minus)", -1, "int"),
    ("SIGN(0)", 0, "int"),
    ("SIGN(big)", 1, "int"),
    ("TRUNC(120.72924, 2)", 120.72, "double"),
    ("TRUNCATE(-120.72924, 2)", -120.72, "double"),
    ("TRUNC(120.72)", 120.0, "double"),
    ("TRUNC(money, 2)", Decimal("12.3400"), "decimal(10,4)"),
    ("TRIM_SCALE(money * 10)", "123.456", "string"),
    ("TRIM_SCALE(CAST(100 AS DECIMAL(10,2)))", "100", "string"),
    ("TRIM_SCALE(100)", "100", "string"),
]

OPERATORS = [
    ("id + 1", 2, "int"),
    ("tiny + 3", 5, "int"),
    ("tiny * tiny", 4, "int"),
    ("7 / 2", 3, "int"),
    ("-7 / 2", -3, "int"),
    ("7 % 3", 1, "int"),
    ("big / 3", 1666666666, "bigint"),
    ("thirteen * big", 65000000000, "bigint"),
    ("134.22 / 3", 44.74, "double"),
    ("134.22 % 23.12", 18.619999999999994, "double"),
    ("thin + 1", 2.2300000190734863, "double"),
    ("minus / 0.0", float("-inf"), "double"),
    ("money + 1", Decimal("13.3456"), "decimal(10,4)"),
    ("money / 2", Decimal("6.1728"), "decimal(10,4)"),
    ("money * 0.5", Decimal("6.1728"), "decimal(10,4)"),
    ("money % 5", Decimal("2.3456"), "decimal(10,4)"),
    ("nothing <> 'x'", True, "boolean"),
    ("name != 'x'", True, "boolean"),
    ("nothing = 'x'", None, "boolean"),
    ("name = 5", False, "boolean"),
    ("number_text > 12", True, "boolean"),
    ("id IN (1, NULL)", True, "boolean"),
    ("id NOT IN (2, NULL)", True, "boolean"),
    ("tiny IN (1, 2)", True, "boolean"),
    ("name LIKE 'J%\\d_ng' OR name LIKE '%_Ding'", True, "boolean"),
    ("'a_b' LIKE 'a\\_b' AND NOT 'axb' LIKE 'a\\_b'", True, "boolean"),
    ("'10%' LIKE '10!%' ESCAPE '!'", True, "boolean"),
    ("name NOT LIKE '%Dong' AND name ILIKE '%ding'", True, "boolean"),
    ("name NOT LIKE '%Ding'", False, "boolean"),
    ("name RLIKE '\\w+ D'", True, "boolean"),
    ("NOT name RLIKE '\\d'", True, "boolean"),
    ("id NOT BETWEEN 2 AND 3", True, "boolean"),
    ("id BETWEEN 1 AND 2", True, "boolean"),
    ("nothing IS NULL AND name IS NOT NULL", True, "boolean"),
    ("NOT (id > 1)", True, "boolean"),
    ("CASE WHEN id > 1 THEN 1 ELSE 2.5 END", 2.5, "double"),
    ("CASE name WHEN 'Joy Ding' THEN tiny WHEN 'x' THEN big END", 2, "bigint"),
    ("CASE name WHEN id = 1 THEN 'yes' ELSE 'no' END", "yes", "string"),
    ("CASE WHEN id = 1 THEN id ELSE name END", "1", "string"),
    ("IF(id = 1, 'one', name)", "one", "string"),
    ("MULTI_IF(id > 1, 'A', id > 0, 'B', 'C')", "B", "string"),
    ("- thirteen", -13, "int"),
    ("3000000000", 3000000000, "bigint"),
    ("1e3", 1000.0, "double"),
    ("true", True, "boolean"),
]


@pytest.mark.spark
def test_number_functions_are_as_in_seatunnel(expect: Any) -> None:
    expect(NUMBER)


@pytest.mark.spark
def test_operators_are_as_in_seatunnel(expect: Any) -> None:
    expect(OPERATORS)


def test_a_seed_gives_the_first_number_of_javas_random() -> None:
    assert first_random(0) == 0.730967787376657
