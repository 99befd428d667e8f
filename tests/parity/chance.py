"""Random rows: the same expressions over each, by Holdfast and by the rules."""

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.parity.cases import RULES, lit
from tests.parity.java import J
from tests.parity.moment_rules import extract
from tests.parity.number_rules import among, arithmetic, compare
from tests.parity.other_rules import cast
from tests.parity.ours import over
from tests.parity.table import shown, shown_j

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LETTERS = "abAB ,;.1é\n"
ROW: dict[str, tuple[str, pa.DataType, int]] = {
    "s": ("string", pa.string(), 0), "t": ("string", pa.string(), 0),
    "i": ("int", pa.int32(), 0), "k": ("int", pa.int32(), 0), "l": ("bigint", pa.int64(), 0),
    "d": ("double", pa.float64(), 0), "e": ("double", pa.float64(), 0),
    "m": ("decimal", pa.decimal128(30, 3), 3), "day": ("date", pa.date32(), 0),
    "at": ("timestamp", pa.timestamp("us"), 0), "later": ("timestamp", pa.timestamp("us"), 0),
}  # fmt: skip


def _listed(text: str) -> list[str]:
    return text.split()


CALLS = _listed(
    """
    LENGTH(s) ASCII(s) OCTET_LENGTH(s) UPPER(s) LOWER(t) TRIM(s) LTRIM(s) RTRIM(s) SOUNDEX(s)
    RAWTOHEX(s) TO_BASE64(s) LEFT(s,i) RIGHT(s,i) REPEAT(s,i) LPAD(s,i,t) RPAD(s,i,t)
    CONCAT(s,i,t) CONCAT_WS(t,s,l,d) SUBSTRING(s,i) SUBSTRING(s,i,k) LOCATE(t,s) LOCATE(t,s,i)
    INSTR(s,t,k) INSERT(s,i,k,t) REPLACE(s,t,t) TRANSLATE(s,t,s) CHAR_LENGTH(t) CONCAT(at,day,m)
    TRIM(s,t) ABS(i) ABS(d) ABS(m) SIGN(d) SIGN(l) SIGN(m) TRIM_SCALE(d) TRIM_SCALE(m)
    TRIM_SCALE(l) ROUND(d) ROUND(m) TRUNC(d) TRUNC(m) MOD(d,e) MOD(l,e) NULLIF(i,k)
    NULLIF(l,i) NULLIF(s,t) COALESCE(s,t) COALESCE(s,i) COALESCE(m,d) YEAR(at) MONTH(day)
    DAY_OF_YEAR(day) DAY_OF_WEEK(at) DAYNAME(at) MONTHNAME(day) WEEK(day) WEEK(at) HOUR(at)
    MINUTE(at) SECOND(at) QUARTER(at)
    """
)

LITERALS = _listed(
    """
    ROUND(d,2) ROUND(m,1) ROUND(l,-2) TRUNC(d,3) TRUNC(m,2) MOD(d,0.7) MOD(l,7) MOD(d,3)
    DATEADD(at,k,'DAY') DATEADD(day,k,'MONTH') DATEADD(at,l,'SECOND') DATEADD(at,k,'YEAR')
    DATEDIFF(at,later,'YEAR') DATEDIFF(at,later,'MONTH') DATEDIFF(at,later,'WEEK')
    DATEDIFF(at,later)
    DATEDIFF(at,later,'HOUR') DATEDIFF(at,later,'MINUTE') DATEDIFF(at,later,'SECOND')
    DATE_TRUNC(at,'MONTH') DATE_TRUNC(at,'HOUR') SPLIT(s,',') SPLIT(s,'[ab]') SPLIT(s,'')
    SPLIT(s,'a|ab') SPLIT(s,'b*') REGEXP_LIKE(s,'a.b') REGEXP_LIKE(s,'É','i')
    REGEXP_REPLACE(s,'[ab]+','<') REGEXP_REPLACE(s,'(a)(b)','$2$1') REGEXP_SUBSTR(s,'[AB]+')
    REGEXP_SUBSTR(s,'(a)(b)?',1,1,'i',2) REGEXP_SUBSTR(s,'[ab]',1,2,'c',0)
    FORMATDATETIME(at,'yyyyMMddHHmmss')
    """
)

CONDITIONS = [
    *((a, s, b) for s in ("=", "<>", "<", ">=") for a, b in (("i", "k"), ("d", "e"), ("s", "t"))),
    ("l", ">", "d"), ("d", ">", "i"), ("at", "<=", "later"), ("m", "=", "d"), ("s", "=", "i"),
    ("s", "<>", "i"),
]  # fmt: skip
LISTS = [("i", "k", "l"), ("s", "t", "i"), ("d", "e", "m"), ("l", "i", "k")]
OPERATIONS = [("i", "+", "k"), ("l", "*", "k"), ("d", "/", "e"), ("d", "*", "e"), ("m", "+", "d")]
OPERATIONS += [("m", "*", "m"), ("l", "-", "i"), ("d", "%", "e"), ("m", "-", "l")]
CASTS = [
    ("d", "decimal", 3, 38),
    ("m", "decimal", 1, 12),
    ("m", "string", 0, 0),
    ("d", "string", 0, 0),
]
CASTS += [("at", "string", 0, 0), ("at", "date", 0, 0), ("at", "time", 0, 0), ("d", "bigint", 0, 0)]
FIELDS = ("WEEK", "DOW", "DOY", "ISOYEAR", "MILLISECONDS", "MICROSECONDS", "EPOCH", "CENTURY")

Row = dict[str, J]
Expected = tuple[str, Callable[[Row], J]]


def _argument(word: str) -> Callable[[Row], J]:
    if word in ROW:
        return lambda row: row[word]
    made = lit(word[1:-1]) if word[0] == "'" else lit(float(word) if "." in word else int(word))
    return lambda _: made


def _call(sql: str) -> Expected:
    name, _, rest = sql.partition("(")
    arguments = [_argument(word) for word in _words(rest[:-1])]
    return sql, lambda row: RULES[name](*(a(row) for a in arguments))


def _words(text: str) -> list[str]:
    """Split arguments at commas outside quotes."""
    words, inside = [""], False
    for sign in text:
        inside ^= sign == "'"
        if sign == "," and not inside:
            words.append("")
        else:
            words[-1] += sign
    return words


def _when(sql: str, test: Callable[[Row], bool]) -> Expected:
    return f"CASE WHEN {sql} THEN 1 ELSE 0 END", lambda row: J("int", int(test(row)))


def expectations() -> list[Expected]:
    """Return each expression with the rule that gives its value for a row."""
    made = [_call(sql) for sql in (*CALLS, *LITERALS)]
    for a, sign, b in CONDITIONS:
        made.append(_when(f"{a} {sign} {b}", lambda r, a=a, s=sign, b=b: compare(s, r[a], r[b])))
    for value, *items in LISTS:
        for word in ("IN", "NOT IN"):
            made.append(
                _when(
                    f"{value} {word} ({', '.join(items)})",
                    lambda r, w=word, v=value, i=items: among(w != "IN", r[v], *(r[n] for n in i)),
                )
            )
    for a, sign, b in OPERATIONS:
        made.append((f"{a} {sign} {b}", lambda r, a=a, s=sign, b=b: arithmetic(s, r[a], r[b])))
    for name, kind, scale, digits in CASTS:
        ddl = f"DECIMAL({digits},{scale})" if kind == "decimal" else kind
        sql = f"CAST({name} AS {ddl})"
        made.append((sql, lambda r, n=name, k=kind, s=scale: cast(r[n], k, s)))
    for field in FIELDS:
        made.append((f"EXTRACT({field} FROM at)", lambda r, f=field: extract(f, r["at"])))
    return made


def _value(name: str, chance: random.Random) -> Any:
    if chance.random() < 0.06 and name not in ("t", "i", "k", "l", "e"):
        return None
    match ROW[name][0]:
        case "string":
            return "".join(chance.choice(LETTERS) for _ in range(chance.randint(1, 12)))
        case "int":
            return chance.randint(-4, 9)
        case "bigint":
            return chance.choice([chance.randint(-10, 10), chance.randint(-(10**9), 10**9)])
        case "double":
            number = chance.choice([chance.uniform(-9, 9), round(chance.uniform(-999, 999), 2)])
            return number * 10 ** chance.choice([0, 0, 0, -6, 8]) or 0.5
        case "decimal":
            return Decimal(chance.randint(-(10**8), 10**8) or 1).scaleb(-3)
        case "date":
            return date(1950, 1, 1) + timedelta(days=chance.randint(0, 36_500))
    start = datetime(1960, 1, 1) + timedelta(seconds=chance.randint(0, 2 * 10**9))
    return start + timedelta(microseconds=chance.choice([0, 0, 500_000, 123_456]))


def compared(spark: "SparkSession", seed: int, count: int) -> tuple[int, list[str]]:
    """Return how many values were compared, and what differs."""
    chance = random.Random(seed)
    plain = [{name: _value(name, chance) for name in ROW} for _ in range(count)]
    schema = pa.schema([(name, kind) for name, (_, kind, _) in ROW.items()])
    frame = spark.createDataFrame(pa.Table.from_pylist(plain, schema))
    frame = frame.selectExpr(
        *(f"cast({n} AS timestamp_ntz) AS {n}" if n in ("at", "later") else n for n in ROW)
    )
    expected = expectations()
    rules = [rule for _, rule in expected]
    columns: list[list[str]] = [[] for _ in plain]
    for kinds, rows in over(frame, [sql for sql, _ in expected]):
        for column, row in zip(columns, rows, strict=True):
            column += [shown(k, v) for k, v in zip(kinds, row, strict=True)]
    differing = []
    for row, found in zip(plain, columns, strict=True):
        values = {n: J(kind, row[n], n, scale) for n, (kind, _, scale) in ROW.items()}
        for (sql, _), rule, ours in zip(expected, rules, found, strict=True):
            wanted = shown_j(rule(values))
            if wanted != ours:
                differing.append(f"{sql} over {row}: SeaTunnel gives {wanted}, we give {ours}")
    return len(expected) * count, differing
