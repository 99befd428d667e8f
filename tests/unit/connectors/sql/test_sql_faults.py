"""Rows that were silently wrong beside SeaTunnel's own functions, T1 to T23, each by its name.

What differs by decision is said in docs/sql-functions.md; the tests of those hold what it says.
"""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows
from holdfast.connectors.sql.transform import Sql, SqlOptions
from holdfast.model.job import Mode

CONTEXT = PluginContext("1", "test", "Transform[0]-Sql", Mode.BATCH)
NAN = float("nan")
Ask = Callable[..., list[Any]]

pytestmark = pytest.mark.spark


@pytest.fixture
def ask(spark: SparkSession) -> Ask:
    """Return the values of expressions over the one row of a Spark query, in one job."""

    def ask(rows: str, *expressions: str, **options: Any) -> list[Any]:
        items = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(expressions))
        made = transform(f"SELECT {items} FROM dual", **options).apply(
            Rows.of("t", spark.sql(rows))
        )
        return list(made.frame.collect()[0])

    return ask


@pytest.fixture
def kept(spark: SparkSession) -> Callable[[str, str], list[Any]]:
    """Return the first column of the rows that a condition keeps."""

    def kept(rows: str, where: str) -> list[Any]:
        made = transform(f"SELECT * FROM dual WHERE {where}").apply(Rows.of("t", spark.sql(rows)))
        return [row[0] for row in made.frame.collect()]

    return kept


def transform(query: str, **options: Any) -> Sql:
    read = SqlOptions(query=query, **options)
    assert list(read.problems()) == []
    return Sql(read, CONTEXT)


def test_t01_not_in_keeps_texts_that_are_no_numbers(kept: Any) -> None:
    codes = "SELECT * FROM VALUES ('A'), ('12'), (NULL) AS t(code)"
    assert kept(codes, "code NOT IN (12, 13)") == ["A", "12"]
    assert kept(codes, "code IN (12, 13)") == []
    assert kept(codes, "code NOT IN ('12')") == ["A"]
    assert kept(codes, "code IN (12, 'A')") == ["A"]


def test_t02_a_null_among_the_values_makes_nothing_unknown(kept: Any) -> None:
    values = "SELECT * FROM VALUES (5, NULL), (1, NULL), (7, 7), (NULL, 3) AS t(v, w)"
    assert kept(values, "v NOT IN (1, w)") == [5]
    assert kept(values, "v IN (1, w)") == [1, 7]
    assert kept(values, "NOT v IN (1, w, NULL)") == [5]


def test_t03_base64_is_one_line(ask: Ask) -> None:
    (found, raw) = ask(
        "SELECT repeat('x', 100) AS s, cast(repeat('x', 100) AS binary) AS b",
        "TO_BASE64(s)",
        "TO_BASE64(b)",
    )
    assert found == raw == "eHh4" * 33 + "eA=="


def test_t04_decimals_are_cast_up_to_the_next_larger(ask: Ask) -> None:
    rows = (
        "SELECT '12.341' AS up, '-12.345' AS below, 12.341D AS d, -12.345D AS e, 1e-300D AS f,"
        " cast('12.3401' AS decimal(20,4)) AS m, '1e3' AS k, '0.' || repeat('0', 50) || '1' AS tiny"
    )
    cast = [f"CAST({c} AS DECIMAL(10,2))" for c in ("up", "below", "d", "e", "f", "m", "k", "tiny")]
    wanted = ["12.35", "-12.34", "12.35", "-12.34", "0.01", "12.35", "1000.00", "0.01"]
    assert ask(rows, *cast) == [Decimal(w) for w in wanted]
    assert ask(rows, "COALESCE(CAST(NULL AS DECIMAL(10,2)), up)") == [Decimal("12.35")]
    digits = "9" * 20 + "." + "9" * 18
    big = f"CAST('{digits}1' AS DECIMAL(38,17))"
    assert ask(rows, big) == [Decimal("1" + "0" * 20 + "." + "0" * 17)]


def test_t05_split_is_javas(ask: Ask) -> None:
    rows = r"SELECT 'ab_cab' AS a, 'a,b\n' AS line, 'fooBarBaz' AS camel, 'abc' AS c"
    found = ask(
        rows,
        r"SPLIT(a, 'a|ab')",
        "SPLIT(line, ',')",
        "SPLIT(camel, '(?<=[a-z])(?=[A-Z])')",
        "SPLIT(c, '')",
        "SPLIT(c, 'x*')",
        "SPLIT(a, 'b$')",
        "SPLIT('a1b22', '[0-9]')",
    )
    assert found == [
        ["", "b_c", "b"],
        ["a", "b\n"],
        ["foo", "Bar", "Baz"],
        ["a", "b", "c"],
        ["a", "b", "c"],
        ["ab_ca"],
        ["a", "b"],
    ]


def test_t06_an_instant_is_read_in_the_zone_of_choice(ask: Ask) -> None:
    rows = "SELECT timestamp'2024-01-01 23:30:00+00:00' AS at"
    asked = (
        "HOUR(at)", "YEAR(at)", "DAY_OF_MONTH(at)", "CAST(at AS TIMESTAMP)", "CAST(at AS STRING)",
        "EXTRACT(HOUR FROM at)", "FORMATDATETIME(at, 'yyyy-MM-dd HH')", "EXTRACT(EPOCH FROM at)",
        "DATE_TRUNC(at, 'DAY')", "CAST(CAST(at AS DATE) AS STRING)", "WEEK(at)",
    )  # fmt: skip
    assert ask(rows, *asked) == [
        23, 2024, 1, datetime(2024, 1, 1, 23, 30), "2024-01-01T23:30Z", 23, "2024-01-01 23",
        1704151800, datetime(2024, 1, 1), "2024-01-01", 2,
    ]  # fmt: skip
    assert ask(rows, *asked, time_zone="Asia/Shanghai") == [
        7, 2024, 2, datetime(2024, 1, 2, 7, 30), "2024-01-02T07:30+08:00", 7, "2024-01-02 07",
        1704151800, datetime(2024, 1, 2), "2024-01-02", 2,
    ]  # fmt: skip
    assert ask(rows, "CAST(at AS STRING)", time_zone="-03:30") == ["2024-01-01T20:00-03:30"]
    (problem,) = SqlOptions(query="select 1 as a from dual", time_zone="Mars/Base").problems()
    assert "'Mars/Base' is no time zone" in problem[1]


def test_t08_what_is_no_number_is_above_below_and_equal_to_nothing(kept: Any) -> None:
    rows = "SELECT * FROM VALUES (double('NaN')), (2D), (0.5D), (NULL) AS t(d)"
    assert kept(rows, "d > 1") == [2.0]
    assert kept(rows, "d >= 1") == [2.0]
    assert kept(rows, "1 < d") == [2.0]
    assert kept(rows, "d BETWEEN 1 AND 5") == [2.0]
    assert kept(rows, "d = d") == [2.0, 0.5]
    assert [str(v) for v in kept(rows, "d <> d")] == ["nan"]
    assert kept(rows, "d < 1") == [0.5]


def test_t10_a_text_and_a_number_are_never_equal(kept: Any, ask: Ask) -> None:
    codes = "SELECT * FROM VALUES ('A'), ('12') AS t(code)"
    assert kept(codes, "code = 12") == []
    assert kept(codes, "code <> 12") == ["A", "12"]
    assert kept(codes, "NOT code = 12") == ["A", "12"]
    assert kept("SELECT '12' AS code", "code > 11") == ["12"]
    with pytest.raises(Exception, match="'A' is no number"):
        kept(codes, "code > 11")
    assert ask("SELECT '12' AS code", "CASE code WHEN 12 THEN 'n' ELSE 't' END") == ["t"]


def test_t11_decimals_divide_to_the_nearest_and_keep_their_scale(ask: Ask) -> None:
    rows = "SELECT cast(7 AS decimal(10,2)) AS seven, cast(0.05 AS decimal(10,2)) AS small"
    found = ask(rows, "seven / 3", "small * small", "-seven / 3", "small / 10")
    assert found == [Decimal("2.33"), Decimal("0.00"), Decimal("-2.33"), Decimal("0.01")]


def test_t12_mod_and_trim_scale_keep_every_digit(ask: Ask) -> None:
    rows = "SELECT 0.1234567890123456D AS d, 1e-5D AS small, 3.14159e22D AS big, 7 AS seven"
    found = ask(
        rows,
        "MOD(d, 0.1)", "MOD(big, 0.7)", "MOD(small, 3e-7)", "MOD(d, seven)", "MOD(99.99, seven)",
        "TRIM_SCALE(d)", "TRIM_SCALE(small)", "TRIM_SCALE(1e20)", "TRIM_SCALE(-0.0)",
        "TRIM_SCALE(CAST('0.123456789012345678901234567890' AS DECIMAL(38,30)))",
    )  # fmt: skip
    assert found == [
        0.0234567890123456, 0.6, 1e-07, 0, 1,
        "0.1234567890123456", "0.00001", "100000000000000000000", "0",
        "0.12345678901234567890123456789",
    ]  # fmt: skip
    with pytest.raises(Exception, match=r"Transform\[0\]-Sql: MOD: '7' divided by '0.0'"):
        ask(rows, "MOD(seven, 0.0)")


def test_t13_nullif_compares_types_too(ask: Ask) -> None:
    rows = "SELECT 0L AS big, 0 AS small, cast(0 AS decimal(5,1)) AS dec, '0' AS text, 0D AS d"
    found = ask(
        rows,
        "NULLIF(big, 0)", "NULLIF(small, 0)", "NULLIF(big, CAST(0 AS BIGINT))", "NULLIF(text, 0)",
        "NULLIF(d, 0.0)", "NULLIF(dec, CAST(0 AS DECIMAL(9,2)))", "NULLIF(dec, dec)",
    )  # fmt: skip
    assert found == [0, None, None, "0", None, Decimal("0.0"), None]


def test_t14_a_date_needs_month_and_day_and_must_exist(ask: Ask) -> None:
    found = ask(
        "SELECT '2021' AS y",
        "IS_DATE(y, 'yyyy')", "IS_DATE('2021-02-30', 'yyyy-MM-dd')",
        "IS_DATE('2021-02-28', 'yyyy-MM-dd')", "IS_DATE('10:61:00', 'HH:mm:ss')",
        "IS_DATE('2021-06', 'yyyy-MM')",
    )  # fmt: skip
    assert found == [False, False, True, False, False]
    with pytest.raises(Exception, match="2021-02-30"):
        ask("SELECT '2021-02-30' AS y", "TO_DATE(y, 'yyyy-MM-dd')")


def test_t16_weeks_count_as_the_version_of_choice(ask: Ask) -> None:
    rows = "SELECT date'2021-01-01' AS first, date'2021-04-18' AS sunday"
    asked = ("WEEK(first)", "WEEK(sunday)", "EXTRACT(DAYOFWEEK FROM sunday)", "DAY_OF_WEEK(sunday)")
    assert ask(rows, *asked) == [1, 16, 7, 7]
    assert ask(rows, *asked, weeks="newer") == [0, 15, 0, 7]


def test_t17_like_is_the_standards(ask: Ask) -> None:
    found = ask(
        "SELECT 'abc' AS s, 'a.c' AS dot",
        "s LIKE 'a%c'", "s LIKE 'a_c'", "s LIKE 'a.c'", "dot LIKE 'a.c'", "s LIKE '%b%'",
    )  # fmt: skip
    assert found == [True, True, False, True, True]


def test_t19_regexp_substr_is_javas(ask: Ask) -> None:
    found = ask(
        "SELECT 'abab' AS s",
        "REGEXP_SUBSTR('ac', '(a)(b)?', 1, 1, NULL, 2)",
        "REGEXP_SUBSTR(s, '^b', 2, 1, NULL, 0)",
        "REGEXP_SUBSTR(s, 'b', 1)",
        "REGEXP_SUBSTR(s, 'b', 1, 1)",
        "REGEXP_SUBSTR(s, 'b', 1, 1, 'i')",
        "REGEXP_SUBSTR(s, '(?<=a)b', 2, 1, NULL, 0)",
        "REGEXP_SUBSTR(s, 'x*')",
        "REGEXP_SUBSTR(s, '(a)(b)', 2, 1, NULL, 2)",
    )
    assert found == [None, None, None, None, None, "b", "", "b"]
    query = "select regexp_substr(s, 'b', 0, 1, null, 0) as x from t"
    (problem,) = SqlOptions(query=query).problems()
    assert "the position counts from 1, so it cannot be 0" in problem[1]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("FROM_BASE64('!!')", "FROM_BASE64: '!!' is not base64"),
        ("FROM_BASE64('aGk=\n')", "is not base64"),
        ("FROM_BASE64('aGkaa')", "is not base64"),
        ("CAST(five AS INT)", "CAST(five AS INT): ' 5 ' is no int: only digits"),
        ("CAST('5.0' AS BIGINT)", "'5.0' is no bigint"),
        ("CAST(300 AS TINYINT)", "'300' is no tinyint"),
        ("CAST(d AS TINYINT)", "a double cannot become a tinyint: its decimals would be lost"),
        ("CAST(d AS SMALLINT)", "a double cannot become a smallint"),
        ("CAST(1e10 AS INT)", "'1.0E10' is no int"),
        ("CAST('x' AS DECIMAL(5,2))", "'x' is no decimal(5,2)"),
        ("CAST(123456 AS DECIMAL(5,2))", "at most 3 digits before the point"),
        ("CAST('2021-02-30' AS DATE)", "'2021-02-30' is no date"),
        ("1 / zero", "'1' divided by zero"),
        ("CAST(1 AS DECIMAL(5,2)) / zero", "divided by zero"),
    ],
)
def test_t20_what_cannot_be_cast_fails_in_words(ask: Ask, sql: str, message: str) -> None:
    with pytest.raises(Exception) as caught:
        ask("SELECT ' 5 ' AS five, 1.9D AS d, 0 AS zero", sql)
    assert message in str(caught.value)


def test_t20_what_can_be_cast_is(ask: Ask) -> None:
    found = ask(
        "SELECT '+5' AS five",
        "CAST(five AS INT)", "FROM_BASE64('aGk')", "FROM_BASE64('')", "TRY_CAST(' 5' AS INT)",
        "CAST('-128' AS TINYINT)", "CAST(1.9 AS INT)", "CAST(NULL AS INT)",
    )  # fmt: skip
    assert found == [5, "hi", "", None, -128, 1, None]


def test_t21_case_of_every_letter_and_null_replacements(ask: Ask) -> None:
    found = ask(
        "SELECT 'É' AS e, cast(NULL AS string) AS n",
        "REGEXP_LIKE(e, '(?i)é')", "REGEXP_LIKE(e, 'é', 'i')", "REGEXP_LIKE(e, 'é')",
        "REGEXP_REPLACE(e, '(?i)é', 'x')", "TRANSLATE('abc', 'ab', n)",
        "TRANSLATE('abc', 'ab', 'X')",
    )  # fmt: skip
    assert found == [True, True, False, "x", "abc", "Xbc"]


def test_t22_lengths_and_places_count_characters(ask: Ask) -> None:
    found = ask(
        "SELECT '😀b' AS s",
        "LENGTH(s)", "SUBSTRING(s, 2)", "LEFT(s, 1)", "LOCATE('b', s)", "OCTET_LENGTH(s)",
    )  # fmt: skip
    assert found == [2, "b", "😀", 2, 5]


def test_t23_the_rest(ask: Ask) -> None:
    rows = (
        "SELECT 'abc' AS s, timestamp_ntz'2024-01-01 02:00:00' AS two,"
        " timestamp_ntz'2024-01-01 00:00:00.5' AS first, array('x', NULL, 'y') AS xs"
    )
    found = ask(
        rows,
        "CONCAT_WS(',', s, ARRAY())", "CONCAT_WS(',', s, xs)", "CONCAT_WS(NULL, s, xs)",
        "LOCATE('', s, 2)", "LOCATE('', s, 9)", "INSTR(s, '', 3)", "LOCATE('', s)",
        "DATEDIFF(two, first, 'HOUR')", "DATEDIFF(two, first, 'MINUTE')",
        "DATEDIFF(first, two, 'HOUR')", "CEIL(12.34, 1)", "FLOOR(-12.34, 1)",
    )  # fmt: skip
    assert found == ["abc,", "abc,x,y", "abcxy", 2, 4, 3, 1, -2, -120, 1, 12, -12]
