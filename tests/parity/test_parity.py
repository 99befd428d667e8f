"""The rules by hand, and the table by the rules; `make sql-parity` compares both with Spark."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.parity import planted
from tests.parity.cases import RULES, all_cases, lit
from tests.parity.java import Fails, J, double_text
from tests.parity.number_rules import among, arithmetic, compare
from tests.parity.other_rules import cast, like
from tests.parity.run import judged
from tests.parity.table import HERE, differences, lines, shown_case

NULL = J("string", None)
AT = J("timestamp", datetime(2021, 4, 15, 13, 34, 45, 235_000))
LATER = J("timestamp", datetime(2022, 5, 23, 12))

# What SeaTunnel's own tests and documentation say, and what was computed by hand.
STATED: list[tuple[str, tuple[Any, ...], Any]] = [
    ("ASCII", ("Joy Ding",), 74),
    ("BIT_LENGTH", ("Joy Ding",), 64),
    ("CHAR_LENGTH", ("😀",), 2),
    ("OCTET_LENGTH", ("é",), 2),
    ("HEXTORAW", ("0041004200430044",), "ABCD"),
    ("RAWTOHEX", ("Ab",), "00410062"),
    ("INSERT", ("Joy Ding", 5, 2, "**"), "Joy **ng"),
    ("LEFT", ("Joy Ding", 3), "Joy"),
    ("RIGHT", ("Joy Ding", 4), "Ding"),
    ("LOCATE", ("ing", "Joy Ding"), 6),
    ("LOCATE", ("i", "Joy Ding Dim", -3), 6),
    ("LOCATE", ("", "abc", 2), 2),
    ("INSTR", ("abcabc", "c", -2), 3),
    ("LPAD", ("Joy", 5, "*#"), "**Joy"),
    ("RPAD", ("Joy Ding", 3), "Joy"),
    ("REGEXP_REPLACE", ("Hello", "(l)(l)", "$2-$1"), "Hel-lo"),
    ("REGEXP_SUBSTR", ("2020-10-01", r"\d{4}"), "2020"),
    ("REGEXP_SUBSTR", ("ac", "(a)(b)?", 1, 1, "i", 2), None),
    ("SOUNDEX", ("Robert",), "R163"),
    ("SOUNDEX", ("Tymczak",), "T522"),
    ("SUBSTRING", ("Joy Ding", -4, 2), "Di"),
    ("SUBSTRING", ("abc", 4), None),
    ("TRANSLATE", ("Hello world", "eo", "EO"), "HEllO wOrld"),
    ("SPLIT", ("a,b,,c,,", ","), ["a", "b", "", "c"]),
    ("SPLIT", ("ab_cab", "a|ab"), ["", "b_c", "b"]),
    ("FROM_BASE64", ("aGk",), "hi"),
    ("MOD", (13, 5.4), 2.2),
    ("MOD", (13.7, 5), 3),
    ("MOD", (-13, 5), -3),
    ("CEIL", (-13.2,), -13),
    ("FLOOR", (13.2,), 13),
    ("ROUND", (-0.5,), -1.0),
    ("ROUND", (157, -1), 160),
    ("TRUNC", (-120.72924, 2), -120.72),
    ("LOG", (10, 1000), 3.0),
    ("TRIM_SCALE", (1e-5,), "0.00001"),
    ("SIGN", (float("nan"),), 0),
    ("FROM_UNIXTIME", (1687747869, "yyyy-MM-dd HH:mm:ss", "Asia/Shanghai"), "2023-06-26 10:51:09"),
    ("IS_DATE", ("2021-02-30", "yyyy-MM-dd"), True),
    ("IS_DATE", ("2021", "yyyy"), False),
]


def _java(value: Any) -> J:
    return value if isinstance(value, J) else NULL if value is None else lit(value)


@pytest.mark.parametrize(("name", "args", "wanted"), STATED)
def test_rules_give_what_seatunnel_states(name: str, args: tuple[Any, ...], wanted: Any) -> None:
    assert RULES[name](*map(_java, args)).value == wanted


def test_rules_of_moments_give_what_seatunnel_states() -> None:
    found = {u: RULES["DATEDIFF"](AT, LATER, lit(u)).value for u in ("MONTH", "DAYTIME", "WEEK")}
    assert found == {"MONTH": 13, "DAYTIME": 402, "WEEK": 57}
    first, half = datetime(2024, 1, 1, 2), datetime(2024, 1, 1, 0, 0, 0, 500_000)
    back = RULES["DATEDIFF"](J("timestamp", first), J("timestamp", half), lit("HOUR"))
    assert back.value == -2  # -7199.5 seconds are -7200 counted down
    weeks = [RULES["WEEK"](J("date", d)).value for d in (date(2021, 1, 1), date(2021, 4, 15))]
    assert weeks == [1, 16]
    leap = RULES["DATEADD"](J("date", date(2024, 2, 29)), lit(1), lit("YEAR"))
    assert leap.value == date(2025, 2, 28)


def test_rules_of_casts_and_comparisons_give_what_seatunnel_states() -> None:
    assert cast(lit("12.341"), "decimal", 2).value == Decimal("12.35")
    assert cast(lit("-12.345"), "decimal", 2).value == Decimal("-12.34")
    assert cast(J("bigint", 5_000_000_000), "int").value == 705_032_704
    assert cast(LATER, "string").value == "2022-05-23T12:00"
    for text in (" 5", "5.0", "x", "2147483648"):
        with pytest.raises(Fails):
            cast(lit(text), "int")
    seven, three = J("decimal", Decimal("7.00"), scale=2), J("int", 3)
    assert arithmetic("/", seven, three).value == Decimal("2.33")
    assert arithmetic("/", lit(-7), lit(2)).value == -3
    assert arithmetic("+", lit(2**31 - 1), lit(1)).value == -(2**31)
    assert not compare("=", lit("12"), lit(12)) and compare("<>", lit("12"), lit(12))
    assert not compare(">", lit(float("nan")), lit(1)) and compare("<>", NULL, lit("x"))
    assert among(True, lit("12"), lit(12), lit(13)) and not among(True, NULL, lit(12))
    assert like(lit("abc"), "a.c") and not like(lit("abc"), "a%c")
    written = [double_text(d) for d in (1e7, 1e-3, 0.00012, 100.0, 1e20)]
    assert written == ["1.0E7", "0.001", "1.2E-4", "100.0", "1.0E20"]


def test_the_table_is_what_the_rules_give() -> None:
    made = [(c.group, c.sql, c.rule, shown_case(c)) for c in all_cases()]
    found = [(line.group, line.sql, line.rule, line.wanted) for line in lines()]
    assert sorted(made) == sorted(found), "run `python -m tests.parity.table`"
    assert len(found) >= 1200
    rules = {line.rule for line in lines()}
    assert {call.__name__ for call in RULES.values()} <= rules


def test_every_rule_has_a_sentence_and_every_difference_a_decision() -> None:
    assert all((rule.__doc__ or "").endswith(".") for rule in RULES.values())
    page = (HERE.parents[1] / "docs" / "sql-functions.md").read_text()
    names = {d.decision for d in differences().values()}
    assert names and all(f'<a id="{name.lower()}">' in page for name in names)


def test_a_difference_that_nobody_decided_or_that_is_gone_is_told() -> None:
    table = lines()
    ours = {line.sql: line.wanted for line in table}
    ours |= {sql: d.ours for sql, d in differences().items()}
    assert judged(table, ours) == []
    first = next(line for line in table if line.sql not in differences())
    gone = next(line for line in table if line.sql in differences())
    said = judged(table, ours | {first.sql: "int 99", gone.sql: gone.wanted})
    assert len(said) == 2 and any("is not needed any more" in s for s in said)


@pytest.mark.spark
def test_planted_bugs_are_caught(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert planted.check(spark, judged) == 0, capsys.readouterr().out
