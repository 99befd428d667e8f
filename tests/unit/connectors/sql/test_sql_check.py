"""What can be told about a query without Spark."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import read_options
from holdfast.connectors.sql.functions_other import FUNCTIONS
from holdfast.connectors.sql.transform import Sql, SqlOptions
from holdfast.errors import SourceLocation
from holdfast.model.tree import Block, Entry, Scalar

HERE = Path(__file__).parent
PLACE = SourceLocation("job.conf", 3, 5)


def _mistakes(query: str) -> list[str]:
    return [message for _, message in SqlOptions(query=query).problems()]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select a from", "query: the query cannot be read at line 1, column 13 of the query"),
        ("select a\n b c from t", "at line 2, column 4 of the query near 'c'"),
        ("select 'a from t", "Is a quote or a comment left open?"),
        ("select a from t; select b from t", "not one SELECT"),
        ("delete from t", "not one SELECT"),
        ("select 1", "a SELECT without FROM"),
        ("select\n  upper(a), uper(b) from t",
         "there is no function 'uper' at line 2, column 13 of the query. Did you mean 'UPPER'?"),
        ("select left(a) from t", "left at line 1, column 8 of the query takes 2 arguments, not 1"),
        ("select cast(a as geometry) from t", "is not a type that CAST knows. Types: STRING"),
        ("select cast(a as decimal(50,2)) from t", "at most 38 digits"),
        ("select dateadd(a, 1, 'FORTNIGHT') from t", "'FORTNIGHT' is not a unit. Units: YEAR"),
        ("select dateadd(a, 1, b) from t", "the unit must be a text in quotes"),
        ("select extract(moon from a) from t", "'MOON' is not a field. Fields: YEAR"),
        ("select regexp_like(a, 'x', 'g') from t", "'g' is not a flag. Flags: i, c, n, m"),
        ("select to_date(a, 'HH') from t", "neither a year nor minutes"),
        ("select formatdatetime(a, 'YYYY-MM-dd') from t", "letter 'Y'"),
        ("select rand(a) from t", "the seed must be a whole number"),
        ("select des_encrypt('12345678', a) from t", "Use a Python transform in its place"),
        ("select des_decrypt('12345678', a) from t", "docs/sql-functions.md#des has one"),
        ("select a as x, b as x from t", "column 'x' more than once"),
        ("select * from t lateral view stack(a) as b", "no function 'stack'"),
        ("select * from t lateral view split(a) as b", "LATERAL VIEW takes EXPLODE(array) only"),
        ("select a from t where a in (select b from u) qualify x = 1", "QUALIFY is not supported"),
        ("select * except (a) from t", "List the columns instead"),
        ("select a between symmetric 1 and 2 as x from t", "is not supported in a query"),
        ("select a at time zone 'UTC' as x from t", "is not supported in a query"),
        ("select distinct on (a) a, b from t", "DISTINCT ON is not supported"),
        ("select count(*) n from t tablesample (10 percent)", "is not supported in FROM"),
        ("with recursive r as (select 1 from t) select * from r", "WITH RECURSIVE"),
        ("select count(a, b) over (order by foo(c)) from t", "no function 'foo'"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_query_is_found_before_it_runs(query: str, message: str) -> None:
    found = _mistakes(query)
    assert len(found) == 1
    assert message in found[0]


def test_every_unknown_function_is_named() -> None:
    assert len(_mistakes("select foo(a), bar(b), upper(c) from t")) == 2


def test_a_mistake_stands_at_the_query_in_the_job_file() -> None:
    text = Scalar("select a", "select a", PLACE)
    block = Block((Entry("query", text, PLACE),), SourceLocation("job.conf", 1, 1))
    report = CheckReport()
    assert read_options(SqlOptions, block, "Sql", report) is None
    assert [str(m) for m in report.mistakes] == [
        "job.conf:3:5: Sql: query: the query has a SELECT without FROM. Name its input, or dual."
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from a", False),
        ("select * from dual", False),
        ("select * from A join b using (id)", True),
        ("select * from a where id in (select id from b)", True),
        ("with b as (select * from a) select * from b", False),
        ("select * from a x join a y on x.id = y.id", False),
    ],
)
def test_inputs_meet_where_the_query_reads_more_than_one(query: str, expected: bool) -> None:
    assert Sql.joins(SqlOptions(query=query), ("a", "b")) is expected


SEATUNNEL = """
    ASCII BIT_LENGTH CHAR_LENGTH LENGTH OCTET_LENGTH CHAR CHR CONCAT CONCAT_WS HEXTORAW RAWTOHEX
    INSERT LOWER LCASE BINARY BYTE UPPER UCASE LEFT RIGHT LOCATE INSTR POSITION LPAD RPAD LTRIM
    RTRIM TRIM REGEXP_REPLACE REGEXP_LIKE REGEXP_SUBSTR REPEAT REPLACE SOUNDEX SPACE SUBSTRING
    SUBSTR TO_CHAR TRANSLATE SPLIT ABS ACOS ASIN ATAN COS COSH COT SIN SINH TAN TANH ATAN2 MOD
    CEIL CEILING EXP FLOOR LN LOG LOG10 RADIANS SQRT PI POWER RAND RANDOM ROUND SIGN TRUNC
    TRUNCATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP NOW DATEADD TIMESTAMPADD DATEDIFF
    DATE_TRUNC DAYNAME DAY_OF_MONTH DAY_OF_WEEK DAY_OF_YEAR FORMATDATETIME HOUR MINUTE MONTH
    MONTHNAME PARSEDATETIME TO_DATE IS_DATE QUARTER SECOND WEEK YEAR FROM_UNIXTIME EXPLODE ARRAY
    COALESCE IFNULL NULLIF UUID
"""


def test_every_function_of_seatunnel_is_known_and_tested() -> None:
    wanted = set(SEATUNNEL.split())
    assert wanted <= FUNCTIONS.keys()
    tables = ("text", "number", "time", "system")
    shown = "".join((HERE / f"test_sql_{name}.py").read_text("utf-8") for name in tables)
    assert {name for name in wanted - {"EXPLODE"} if name not in shown} == set()


@pytest.mark.parametrize(
    ("password", "text", "java"),
    [
        ("12345678", "", "RDHMAmeVSGY="),
        ("12345678", "hello", "sxqYZRqwq+Q="),
        ("password-long", "größe 12345678", "n+l0buphn8gWx1VaAodYaNwT+BZiHJ2F"),
    ],
)
def test_what_the_docs_give_in_place_of_des_is_what_java_gives(
    password: str, text: str, java: str
) -> None:
    pytest.importorskip("cryptography")
    page = (Path(__file__).parents[4] / "docs/sql-functions.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    functions: dict[str, Any] = {}
    exec(code, functions)
    assert functions["encrypted"](password, text) == java
    assert functions["decrypted"](password, java) == text
