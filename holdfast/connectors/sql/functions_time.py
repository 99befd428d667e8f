"""Date and time functions.

The value comes first and the unit last, as a text; patterns are Java's, which Spark's nearly are.
A moment has no zone: CURRENT_TIMESTAMP and NOW tell the time of the session's zone.  An instant is
read as the clock shows it in the zone of choice.
"""

import re

from holdfast.connectors.sql.casts import as_text, local
from holdfast.connectors.sql.values import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    MOMENTS,
    NUMBERS,
    STRING,
    TIME,
    TIMESTAMP,
    Function,
    FunctionCall,
    Scope,
    SqlValue,
    literal,
    template,
    type_of,
)
from holdfast.errors import UserError
from holdfast.model.types import Type

DAYS = ("YEAR", "MONTH", "WEEK", "DAY")
MICROS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000}
TRUNCATIONS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
IN_SECONDS = {"WEEK": 604_800, "DAYTIME": 86_400, "HOUR": 3_600, "MINUTE": 60}
DIFFERENCES = (*DAYS, "DAYTIME", *MICROS)

# Weeks start on Monday and the first has four days in the year; days before it are in week 0.
WEEK_OF_YEAR = "cast((dayofyear({0}) - weekday({0}) + 9) div 7 AS int)"

FIELDS = {
    # field: (what it is, whether a time of day has it)
    "YEAR": ("year({0})", False),
    "MONTH": ("month({0})", False),
    "DAY": ("day({0})", False),
    "HOUR": ("hour({0})", True),
    "MINUTE": ("minute({0})", True),
    "SECOND": ("second({0})", True),
    "MILLISECOND": ("cast(date_format({0}, 'SSS') AS int)", True),
    "MILLISECONDS": ("(second({0}) * 1000 + cast(date_format({0}, 'SSS') AS int))", True),
    "MICROSECOND": ("(second({0}) * 1000000 + cast(date_format({0}, 'SSSSSS') AS int))", True),
    "MICROSECONDS": ("(second({0}) * 1000000 + cast(date_format({0}, 'SSSSSS') AS int))", True),
    "QUARTER": ("quarter({0})", False),
    "WEEK": (WEEK_OF_YEAR, False),
    "DAYOFWEEK": ("(weekday({0}) + 1)", False),
    "ISODOW": ("(weekday({0}) + 1)", False),
    "DOW": ("((weekday({0}) + 1) % 7)", False),
    "DAYOFYEAR": ("dayofyear({0})", False),
    "DOY": ("dayofyear({0})", False),
    "ISOYEAR": ("extract(YEAROFWEEK FROM {0})", False),
    "DECADE": ("cast(year({0}) div 10 AS int)", False),
    "CENTURY": ("cast((year({0}) - 1) div 100 + 1 AS int)", False),
    "MILLENNIUM": ("cast((year({0}) - 1) div 1000 + 1 AS int)", False),
    "EPOCH": ("unix_seconds(cast(cast({0} AS timestamp_ntz) AS timestamp))", False),
}


def extract(field: str, value: SqlValue, scope: Scope) -> SqlValue:
    """Return one field of a moment; NULL where its type has no such field."""
    name = field.upper()
    if name not in FIELDS:
        raise UserError(f"EXTRACT: '{field}' is not a field. Fields: {', '.join(FIELDS)}.")
    kind = type_of(value, scope).kind
    formula, of_time = FIELDS[name]
    if name == "DAYOFWEEK" and scope.weeks == "newer":
        formula, of_time = FIELDS["DOW"]
    gives = BIGINT if name == "EPOCH" else INT
    if (kind == "time" and not of_time) or (kind == "date" and of_time):
        return SqlValue(f"cast(NULL AS {gives.ddl})", gives)
    if name == "EPOCH" and kind == "timestamp_tz":
        return SqlValue(f"unix_seconds({value.sql})", gives)
    return SqlValue(formula.format(local(value.sql, kind, scope)), gives)


def _field(formula: str, type: Type) -> Function:
    """Return a function of one moment, which reads an instant in the zone of choice."""
    return Function(1, 1, lambda call: SqlValue(formula.format(_clock(call, 0)), type))


def _clock(call: FunctionCall, index: int) -> str:
    """Return a moment as a clock shows it."""
    return local(call.sql(index), call.kind(index), call.scope)


def _week(call: FunctionCall) -> SqlValue:
    # SeaTunnel 2.3.9 counts the week of the year from one more than its Java call does.
    more = "" if call.scope.weeks == "newer" else " + 1"
    return SqlValue(f"({WEEK_OF_YEAR.format(_clock(call, 0))}{more})", INT)


def java_pattern(call: FunctionCall, index: int) -> str:
    """Return a pattern as Spark wants it; one it cannot follow is refused here, by letter."""
    value = call.args[index]
    if not isinstance(value.literal, str):
        return value.sql
    parts = re.split(r"('[^']*')", value.literal)
    for part in parts[::2]:
        wrong = re.search(r"[YWwecABnNp]", part)
        if wrong:
            hint = " Write yyyy for the year." if wrong[0] == "Y" else ""
            raise UserError(
                f"{call.name}: letter '{wrong[0]}' of pattern '{value.literal}' is not supported."
                f"{hint} Letters: G y u M L d E a h H k K m s S V z O X x Z Q q D F."
            )
    return literal("".join(p if i % 2 else p.replace("u", "y") for i, p in enumerate(parts)))


def _unit(call: FunctionCall, index: int, good: tuple[str, ...]) -> str:
    if not call.given(index):
        return "DAY"
    unit = call.word(index, "the unit").upper()
    if unit not in good:
        raise UserError(f"{call.name}: '{unit}' is not a unit. Units: {', '.join(good)}.")
    return unit


def _dateadd(call: FunctionCall) -> SqlValue:
    """Add units; a unit that the type does not have changes nothing, as in SeaTunnel."""
    value, count, unit = call.sql(0), call.sql(1), _unit(call, 2, (*DAYS, *MICROS))
    match call.kind(0):
        case "date":
            if unit in MICROS:
                return call.args[0]
            if unit in ("YEAR", "MONTH"):
                months = f"cast({count} * {12 if unit == 'YEAR' else 1} AS int)"
                return SqlValue(f"add_months({value}, {months})", DATE)
            days = f"cast({count} * {7 if unit == 'WEEK' else 1} AS int)"
            return SqlValue(f"date_add({value}, {days})", DATE)
        case "time":
            if unit in DAYS:
                return call.args[0]
            micros = f"time_to_micros({value}) + cast({count} AS bigint) * {MICROS[unit]}"
            # The clock goes round; Spark's own addition fails at midnight.
            return SqlValue(f"time_from_micros(pmod({micros}, 86400000000))", TIME)
        case _:
            sql = f"timestampadd({unit}, {count}, {_moment(call, 0)})"
            return SqlValue(sql, call.type(0) if call.kind(0) in MOMENTS else None)


def _moment(call: FunctionCall, index: int) -> str:
    if call.kind(index) in ("date", "string"):
        return f"cast({call.sql(index)} AS timestamp_ntz)"
    return call.sql(index)


def _seconds(first: str, second: str) -> str:
    """Return the whole seconds between two moments, never more than have passed, as Java counts."""
    micros = f"timestampdiff(MICROSECOND, {first}, {second})"
    return f"cast(floor({micros} / 1000000BD) AS bigint)"


def _datediff(call: FunctionCall) -> SqlValue:
    """Return how many whole units lie between, counted from the first to the second."""
    unit = _unit(call, 2, DIFFERENCES)
    if unit in ("YEAR", "MONTH", "DAY"):
        sides = [f"cast(cast({_clock(call, i)} AS date) AS timestamp_ntz)" for i in (0, 1)]
        step, size = ("MONTH", 12) if unit == "YEAR" else (unit, 1)
        found = f"timestampdiff({step}, {sides[0]}, {sides[1]})"
        return SqlValue(f"({found} div {size})" if size > 1 else found, BIGINT)
    first, second = (_moment(call, i) for i in (0, 1))
    if unit in IN_SECONDS:
        return SqlValue(f"({_seconds(first, second)} div {IN_SECONDS[unit]})", BIGINT)
    return SqlValue(f"timestampdiff({unit}, {first}, {second})", BIGINT)


def _date_trunc(call: FunctionCall) -> SqlValue:
    unit = _unit(call, 1, TRUNCATIONS)
    return SqlValue(f"cast(date_trunc('{unit}', {_clock(call, 0)}) AS timestamp_ntz)", TIMESTAMP)


def _format(call: FunctionCall) -> SqlValue:
    return SqlValue(f"date_format({_clock(call, 0)}, {java_pattern(call, 1)})", STRING)


def to_char(call: FunctionCall) -> SqlValue:
    """Return a moment by a pattern, anything else as it is printed."""
    kind = call.kind(0)
    if call.given(1) and kind not in (*NUMBERS, "string", "boolean", "bytes"):
        return _format(call)
    return SqlValue(as_text(call.args[0], kind, call.scope), STRING)


def _parsed(call: FunctionCall) -> tuple[str, Type]:
    """Return Spark's name for what a pattern yields, and its type: both, a date, or a time."""
    pattern = call.word(1, "the pattern")
    years, minutes = "yy" in pattern or "uu" in pattern, "mm" in pattern
    if years and minutes:
        return "timestamp", TIMESTAMP
    if years:
        return "date", DATE
    if minutes:
        return "time", TIME
    raise UserError(
        f"{call.name}: pattern '{pattern}' has neither a year nor minutes."
        " Give one such as yyyy-MM-dd HH:mm:ss, yyyy-MM-dd or HH:mm:ss."
    )


def _parse(call: FunctionCall) -> SqlValue:
    name, gives = _parsed(call)
    function = "to_timestamp_ntz" if name == "timestamp" else f"to_{name}"
    return SqlValue(f"{function}({call.sql(0)}, {java_pattern(call, 1)})", gives)


def _is_date(call: FunctionCall) -> SqlValue:
    """Say whether a text is one; a pattern without month and day makes no date."""
    name, _ = _parsed(call)
    letters = re.sub(r"'[^']*'", "", call.word(1, "the pattern"))
    whole = "D" in letters or ("d" in letters and ("M" in letters or "L" in letters))
    if name != "time" and not whole:
        return SqlValue("false", BOOLEAN)
    return SqlValue(f"(try_to_{name}({call.sql(0)}, {java_pattern(call, 1)}) IS NOT NULL)", BOOLEAN)


def _from_unixtime(call: FunctionCall) -> SqlValue:
    moment = f"cast(timestamp_seconds({call.sql(0)}) AS timestamp_ntz)"
    if call.given(2):
        moment = f"convert_timezone({call.sql(2)}, {moment})"
    pattern = java_pattern(call, 1) if call.given(1) else "'yyyy-MM-dd HH:mm:ss'"
    return SqlValue(f"date_format({moment}, {pattern})", STRING)


_now = template("localtimestamp()", 0, TIMESTAMP)
_add, _parser = Function(2, 3, _dateadd), Function(2, 2, _parse)

MOMENT = {
    "CURRENT_DATE": template("current_date()", 0, DATE),
    "CURRENT_TIME": template("current_time()", 0, TIME),
    "CURRENT_TIMESTAMP": _now,
    "NOW": _now,
    "DATEADD": _add,
    "TIMESTAMPADD": _add,
    "DATEDIFF": Function(2, 3, _datediff),
    "DATE_TRUNC": Function(1, 2, _date_trunc),
    "DAYNAME": _field("date_format({0}, 'EEEE')", STRING),
    "MONTHNAME": _field("date_format({0}, 'MMMM')", STRING),
    "DAY_OF_MONTH": _field("day({0})", INT),
    "DAY_OF_WEEK": _field("(weekday({0}) + 1)", INT),
    "DAY_OF_YEAR": _field("dayofyear({0})", INT),
    "FORMATDATETIME": Function(2, 2, _format),
    "HOUR": _field("hour({0})", INT),
    "MINUTE": _field("minute({0})", INT),
    "SECOND": _field("second({0})", INT),
    "MONTH": _field("month({0})", INT),
    "QUARTER": _field("quarter({0})", INT),
    "YEAR": _field("year({0})", INT),
    "WEEK": Function(1, 1, _week),
    "PARSEDATETIME": _parser,
    "TO_DATE": _parser,
    "IS_DATE": Function(2, 2, _is_date),
    "TO_CHAR": Function(1, 2, to_char),
    "FROM_UNIXTIME": Function(1, 3, _from_unixtime),
}
