"""The expressions of the table: every function over every value worth trying.

`all_cases` says each with the rule it comes from and the value the rule gives.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.parity.java import NUMBERS, Fails, J
from tests.parity.moment_rules import MOMENT, OF_CLOCK, OF_DAY, extract
from tests.parity.number_rules import NUMBER, among, arithmetic, compare
from tests.parity.other_rules import OTHER, cast, like
from tests.parity.row import BIGS, DECIMALS, DOUBLES, INTS, POOL, TEXTS, TINIES
from tests.parity.text_rules import TEXT

RULES: dict[str, Callable[..., J]] = {**TEXT, **NUMBER, **MOMENT, **OTHER}


@dataclass(frozen=True)
class Case:
    """An expression, the rule it comes from, and its value by that rule; None: the job fails."""

    group: str
    sql: str
    rule: str
    value: J | None


def lit(value: Any) -> J:
    """Return a value that the query itself says."""
    if isinstance(value, str):
        return J("string", value, "'" + value.replace("'", "''") + "'")
    return J("double" if isinstance(value, float) else "int", value, repr(value))


def pool(*names: str) -> list[J]:
    """Return columns of the row."""
    return [POOL[n] for n in names]


def _made(group: str, sql: str, rule: Callable[..., Any], *args: Any) -> Case:
    try:
        found = rule(*args)
    except Fails:
        return Case(group, sql, rule.__name__, None)
    if isinstance(found, bool):
        found = J("int", int(found))
    return Case(group, sql, rule.__name__, found)


def call(group: str, name: str, *args: J) -> Case:
    """Return a function's call."""
    sql = f"{name}({', '.join(a.sql for a in args)})"
    return _made(group, sql, RULES[name], *args)


def each(group: str, names: str, *lists: Sequence[J]) -> Iterator[Case]:
    """Yield calls of several functions with every combination of arguments."""
    for name in names.split():
        combined: list[list[J]] = [[]]
        for choices in lists:
            combined = [[*begun, choice] for begun in combined for choice in choices]
        for args in combined:
            yield call(group, name, *args)


def lits(*values: Any) -> list[J]:
    """Return values that the query itself says."""
    return [lit(v) for v in values]


WORDS = pool(*TEXTS)
SOME = pool("t_null", "t_empty", "t_abc", "t_hello", "t_pad", "t_german", "t_smile")
NUMBERED = pool(*INTS, *BIGS, *TINIES, *DOUBLES, *DECIMALS)
PLAIN = pool(*INTS, "l_7", "l_neg", *(d for d in DOUBLES if d != "d_nan"), "m_12", "m_neg", "m_0")
DAYS = pool("day_leap", "day_first", "day_old", "day_null")
STAMPS = pool("at_spring", "at_noon", "at_half", "at_two", "at_old", "at_last", "at_null")
CLOCKS = pool("clock", "clock_0")
ZONED = pool("z_night", "z_eve")


def _text() -> Iterator[Case]:
    group = "text"
    yield from each(group, "ASCII BIT_LENGTH CHAR_LENGTH LENGTH OCTET_LENGTH SOUNDEX", WORDS)
    yield from each(group, "LOWER LCASE UPPER UCASE LTRIM RTRIM TRIM RAWTOHEX TO_BASE64", WORDS)
    yield from each(
        group, "RAWTOHEX TO_BASE64", pool("raw", "i_13", "d_120", "at_noon", "day_leap")
    )
    yield from each(group, "CHAR CHR", [*lits(65, 8364, 0x10041), *pool("i_null", "l_7")])
    yield from each(group, "LEFT RIGHT REPEAT", SOME, [*lits(0, 1, 2, 7, -1), POOL["i_5"]])
    yield from each(group, "LPAD RPAD", SOME, lits(0, 2, 8, -1))
    yield from each(group, "LPAD RPAD", SOME[:4], lits(6), [*lits("*", "", "ab"), POOL["t_null"]])
    yield from each(group, "LTRIM RTRIM TRIM", pool("t_pad", "t_list", "t_x"), lits(",", "x", " ,"))
    yield from each(group, "SUBSTRING SUBSTR", SOME, lits(0, 1, 3, -2, 20, -20))
    yield from each(group, "SUBSTRING", SOME, lits(1, 2, -3), lits(0, 1, 4, 99, -1))
    yield from each(group, "LOCATE POSITION", lits("", "a", "lo", "zz"), SOME)
    yield from each(group, "LOCATE", lits("", "o", "lo"), SOME[1:4], lits(0, 1, 5, -1, -5, -99, 99))
    yield from each(group, "INSTR", SOME[:5], lits("", "a", "lo"))
    yield from each(group, "INSTR", SOME[1:4], lits("o", "l"), lits(2, -2, -9, 9))
    yield from each(group, "INSERT", SOME[:4], lits(0, 1, 3, 4, 9), lits(0, 1, 9), lits("-", ""))
    yield from each(group, "REPLACE", SOME, lits("a", "", "l"), lits("", "xy"))
    yield from each(group, "REPLACE", SOME, lits(" "))
    yield from each(group, "TRANSLATE", SOME, lits("aol", "ll"), [*lits("", "X", "XYZ"), WORDS[0]])
    yield from each(group, "SPACE", [*lits(0, 3, -1), POOL["i_null"]])
    yield from each(group, "HEXTORAW", lits("", "0041", "00e40042", "004", "0041004"))
    yield from each(group, "CONCAT", WORDS, pool("t_abc", "i_13", "d_13"))
    yield from each(
        group, "CONCAT", pool("yes", "at_noon", "day_leap", "clock"), pool("l_7", "b_5")
    )
    yield from each(
        group, "CONCAT_WS", [*lits(",", ""), WORDS[0]], SOME[:4], pool("i_5", "xs", "none")
    )


EXPRESSIONS = ("o", "[a-l]+", "(l+)(o)", "^H", "d$", r"\s", r"\w+", "(?i)WORLD", "O|l", ".*")


def _regex() -> Iterator[Case]:
    group, some = "regex", pool("t_null", "t_empty", "t_abc", "t_hello", "t_german", "t_lines")
    expressions = lits(*EXPRESSIONS)
    yield from each(group, "REGEXP_LIKE", some, expressions)
    yield from each(
        group, "REGEXP_LIKE", some, lits("WORLD", "^two", "e.t", "ÄÖÜ"), lits("i", "m", "n", "c")
    )
    yield from each(
        group, "REGEXP_REPLACE", some, lits("o", "l+", r"(\w)(\w)", r"\s"), lits("", "<")
    )
    yield from each(group, "REGEXP_REPLACE", some, lits(r"(\w)(\w)"), lits("$2$1"))
    yield from each(group, "REGEXP_SUBSTR", some, expressions)
    more = lits(1, 3, 9), lits(1, 2), lits("i"), lits(0, 1)
    yield from each(group, "REGEXP_SUBSTR", some, lits("(l+|o)", "^(.)", r"(\w)(\d)?"), *more)
    yield from each(group, "REGEXP_SUBSTR", pool("t_hello"), lits("o"), lits(1), lits(1))
    patterns = lits(",", "a|ab", "b", "[,;]+", "", "x*", r"\s", "l", "(?<=l)", "$")
    yield from each(group, "SPLIT", [*some, *pool("t_list", "t_ab", "t_x")], patterns)
    encoded = lits("", "aGk=", "aGk", "!!", "aGk =", "w6Q=", "YQ==", "YQ", "Y", "YQ=", "YWJj")
    yield from each(group, "FROM_BASE64", [*encoded, POOL["t_null"]])


ONE = "ABS SIGN CEIL FLOOR ROUND TRUNC TRIM_SCALE"
FUNCTIONS = "SIN COS TAN TANH ATAN EXP RADIANS COSH SINH"


def _number() -> Iterator[Case]:
    group = "number"
    fitting = [n for n in NUMBERED if n.sql not in ("d_nan", "b_min")]
    yield from each(group, ONE, fitting)
    yield from each(group, "SIGN", pool("d_nan", "b_min"))
    yield from each(group, "CEILING TRUNCATE", PLAIN)
    yield from each(group, "ROUND TRUNC", fitting, lits(0, 1, 2, -1, -2))
    yield from each(group, "CEIL FLOOR", pool("d_13", "d_neg", "m_12", "i_13"), lits(1, 2, -1))
    small = [n for n in PLAIN if n.sql not in ("i_max", "d_huge")]
    yield from each(group, FUNCTIONS, small)
    yield from each(group, "ACOS ASIN", pool("d_0", "d_half", "i_1", "d_thin", "d_null"))
    yield from each(group, "SQRT LN LOG10", PLAIN)
    yield from each(
        group, "LOG", [*lits(10, 2, 0), POOL["d_half"]], pool("i_13", "d_13", "d_0", "d_null")
    )
    yield from each(group, "COT", pool("i_1", "d_half", "d_0", "d_null"))
    yield from each(
        group,
        "POWER ATAN2",
        pool("i_5", "d_neg", "d_half", "m_12", "i_null"),
        [*lits(0, 2, -1), POOL["d_half"]],
    )
    divisors = [*lits(5, 0, -3, 5.4, 0.1, 0.0), *pool("l_7", "m_7", "m_3", "d_null")]
    yield from each(group, "MOD", [n for n in NUMBERED if n.sql != "d_nan"], divisors)


def _operators() -> Iterator[Case]:
    group = "operators"
    sides = pool(
        "i_0", "i_5", "i_neg", "i_max", "l_7", "l_big", "b_5", "d_half", "d_neg", "m_7", "m_5",
        "m_12", "m_3", "i_null",
    )  # fmt: skip
    for sign in "+-*/%":
        for a in sides:
            for b in sides:
                yield _made(group, f"{a.sql} {sign} {b.sql}", arithmetic, sign, a, b)


def when(condition: str) -> str:
    """Return what a condition decides, as SeaTunnel lets it: 1 where it holds, else 0."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def _conditions() -> Iterator[Case]:
    group = "conditions"
    sides = pool(
        "i_5", "i_null", "l_7", "d_half", "d_1", "d_nan", "m_7", "t_12", "t_abc", "t_null", "i_1"
    )
    for sign in ("=", "<>", ">", ">=", "<", "<="):
        for a in sides:
            for b in sides:
                mixed = "string" in (a.kind, b.kind) and (a.kind in NUMBERS or b.kind in NUMBERS)
                if mixed and sign not in ("=", "<>"):
                    continue  # SeaTunnel stops the job; we compare, which is said in the page
                yield _made(group, when(f"{a.sql} {sign} {b.sql}"), compare, sign, a, b)
    moments = pool("at_noon", "at_half", "at_null")
    for sign in ("=", "<>", ">", "<="):
        for a in moments:
            for b in moments:
                yield _made(group, when(f"{a.sql} {sign} {b.sql}"), compare, sign, a, b)
    lists = [
        pool("i_5", "i_13"), pool("i_null", "i_5"), pool("i_13", "i_null"), lits(12, 13),
        lits("12", "abc"),
        pool("t_12", "t_null"), [lit(12), lit("abc")], lits(0.5, 7.0),
    ]  # fmt: skip
    for word, negated in (("IN", False), ("NOT IN", True)):
        for items in lists:
            for a in sides:
                said = f"{a.sql} {word} ({', '.join(i.sql for i in items)})"
                yield _made(group, when(said), among, negated, a, *items)
    for pattern in ("abc", "a%", "%c", "%b%", "_bc", "ab_", "%", "a%c", "a.c", "x%"):
        for a in pool("t_abc", "t_x", "t_empty", "t_null", "t_12"):
            yield _made(group, when(f"{a.sql} LIKE '{pattern}'"), like, a, pattern)


def _casts() -> Iterator[Case]:
    group = "casts"
    whole = [*pool(*TEXTS, *INTS, *BIGS, *TINIES, "d_13", "d_neg", "m_12")]
    for name in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        for a in whole:
            yield _made(group, f"CAST({a.sql} AS {name})", cast, a, name.lower())
    texts = pool("t_null", "t_number", "t_int", "t_exp", "t_tiny", "t_12", "t_abc", "t_spaced")
    numbers = [*texts, *(n for n in NUMBERED if n.sql != "d_nan")]
    for precision, scale in ((10, 2), (38, 18), (5, 0)):
        for a in numbers:
            if a.sql in ("d_huge", "l_big", "l_ms", "i_max", "m_wide") and precision < 38:
                continue
            sql = f"CAST({a.sql} AS DECIMAL({precision},{scale}))"
            yield _made(group, sql, cast, a, "decimal", scale)
    shown = [n for n in NUMBERED if n.sql != "m_0"]
    for a in [*shown, *DAYS, *STAMPS, *CLOCKS, *ZONED, *pool("yes", "no", "t_abc", "m_0")]:
        yield _made(group, f"CAST({a.sql} AS STRING)", cast, a, "string")
    for a in [*pool("t_true", "t_abc", "i_0", "i_1", "i_13", "l_0", "b_5", "d_1", "yes", "t_null")]:
        yield _made(group, f"CAST({a.sql} AS BOOLEAN)", cast, a, "boolean")
    for a in pool("t_number", "t_exp", "t_abc", "i_13", "d_13", "l_big", "d_null"):
        yield _made(group, f"CAST({a.sql} AS DOUBLE)", cast, a, "double")
    for a in [*STAMPS, *ZONED, *pool("i_date", "i_13", "day_leap", "l_ms")]:
        for name in ("DATE", "TIMESTAMP", "TIME"):
            if (a.kind, name) in (("date", "TIME"), ("date", "TIMESTAMP"), ("bigint", "DATE")):
                continue
            if a.kind in ("int", "bigint") and name == (
                "TIME" if a.kind == "bigint" else "TIMESTAMP"
            ):
                continue
            yield _made(group, f"CAST({a.sql} AS {name})", cast, a, name.lower())
    yield _made(group, "CAST(i_clock AS TIME)", cast, POOL["i_clock"], "time")
    for a in pool("t_abc", "i_13", "at_noon", "raw"):
        yield _made(group, f"CAST({a.sql} AS BYTES)", cast, a, "bytes")


UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")


def _moments() -> Iterator[Case]:
    group = "moments"
    with_days, with_clocks = [*DAYS, *STAMPS, *ZONED], [*STAMPS, *CLOCKS, *ZONED]
    names = "YEAR MONTH QUARTER DAY_OF_MONTH DAY_OF_WEEK DAY_OF_YEAR DAYNAME MONTHNAME WEEK"
    yield from each(group, names, with_days)
    yield from each(group, "HOUR MINUTE SECOND", with_clocks)
    for field in (*OF_DAY, *OF_CLOCK, "EPOCH"):
        for a in [*DAYS, *STAMPS[:4], *CLOCKS, *ZONED]:
            yield _made(group, f"EXTRACT({field} FROM {a.sql})", extract, field, a)
    counts = lits(0, 1, -1, 25)
    yield from each(group, "DATEADD", [*DAYS, *STAMPS[:3], *CLOCKS], counts, lits(*UNITS))
    pairs = [STAMPS[1], STAMPS[2], STAMPS[3], STAMPS[4]]
    yield from each(group, "DATEDIFF", pairs, pairs, lits(*UNITS, "DAYTIME"))
    yield from each(group, "DATEDIFF", DAYS, DAYS)
    yield from each(group, "DATEDIFF", DAYS[:3], DAYS[:3], lits("MONTH", "YEAR"))
    yield from each(
        group,
        "DATE_TRUNC",
        [*STAMPS, *ZONED],
        lits("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"),
    )
    patterns = lits("yyyy-MM-dd HH:mm:ss", "yyyyMMddHHmmss", "dd.MM.yy", "EEEE, d MMMM")
    yield from each(group, "FORMATDATETIME TO_CHAR", [*STAMPS, *ZONED], patterns)
    yield from each(group, "TO_CHAR", pool("i_13", "d_13", "t_abc", "yes"))
    said = lits(
        "2021-04-08",
        "2021-02-30",
        "2021-13-01",
        "2021-04-08 10:11:12",
        "10:11:12",
        "x",
        "2021/04/08",
        "2021-04-31",
        "2024-02-29",
    )
    known = lits("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "HH:mm:ss", "yyyy/MM/dd")
    yield from each(group, "IS_DATE", [*said, POOL["t_null"]], [*known, lit("yyyy")])
    yield from each(group, "TO_DATE", [*said[:6], POOL["t_null"]], known[:3])
    yield from each(group, "FROM_UNIXTIME", lits(0, 1687747869, -1), patterns[:2])
    yield from each(
        group, "FROM_UNIXTIME", lits(0, 1687747869), patterns[:1], lits("Asia/Shanghai", "UTC")
    )


def _rest() -> Iterator[Case]:
    group = "rest"
    texts, numbers = pool("t_null", "t_abc", "t_12"), pool("i_null", "i_5", "i_0")
    yield from each(group, "COALESCE IFNULL", texts, texts)
    yield from each(group, "COALESCE IFNULL", texts, numbers)
    yield from each(group, "COALESCE", pool("m_null", "m_7"), pool("d_120", "m_12", "i_13"))
    both = pool("i_5", "i_0", "l_0", "l_7", "d_0", "d_1", "m_7", "m_0", "t_12", "t_null", "b_5")
    yield from each(group, "NULLIF", both, [*both, *lits(0, 5, 7.0, "12")])
    yield from each(group, "ARRAY", texts, texts)
    yield from each(group, "ARRAY_MAX ARRAY_MIN", pool("xs"))


MOST, MOST_FAILING = 36, 5
"""How many expressions of one rule the table has, and how many of them that fail the job."""

MORE = {"arithmetic": 200, "compare": 200, "among": 160, "cast": 300, "extract": 150}


def _evenly(cases: Sequence[Case], most: int) -> Sequence[Case]:
    """Return so many cases, taken from all over the list."""
    if len(cases) <= most:
        return cases
    return [cases[number * len(cases) // most] for number in range(most)]


def all_cases() -> list[Case]:
    """Return the whole table, each expression once."""
    parts = (_text, _regex, _number, _operators, _conditions, _casts, _moments, _rest)
    found = {case.sql: case for part in parts for case in part()}
    by_rule: dict[tuple[str, str], list[Case]] = {}
    for case in found.values():
        by_rule.setdefault((case.group, case.rule), []).append(case)
    kept: list[Case] = []
    for (_, rule), cases in by_rule.items():
        most = MORE.get(rule, MOST)
        kept += _evenly([c for c in cases if c.value is not None], most)
        kept += _evenly(
            [c for c in cases if c.value is None],
            3 * MOST_FAILING if rule == "cast" else MOST_FAILING,
        )
    return kept
