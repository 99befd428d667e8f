"""Rules of SeaTunnel's functions of dates and times; an instant carries its own offset."""

import calendar
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.parity.java import Fails, J, text

MOMENT: dict[str, Callable[..., J]] = {}
DAYS = {"YEAR", "MONTH", "WEEK", "DAY"}
SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
PATTERNS = {
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyy-MM-dd'T'HH:mm:ss": "%Y-%m-%dT%H:%M:%S",
    "yyyy/MM/dd HH:mm:ss": "%Y/%m/%d %H:%M:%S",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "yyyy-MM-dd": "%Y-%m-%d",
    "yyyy/MM/dd": "%Y/%m/%d",
    "yyyyMMdd": "%Y%m%d",
    "HH:mm:ss": "%H:%M:%S",
    "HHmmss": "%H%M%S",
    "dd.MM.yy": "%d.%m.%y",
    "EEEE, d MMMM": "%A, {0.day} %B",
}
"""Patterns of Java's that the rules can follow."""


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, time):
        raise Fails(value)
    return value  # type: ignore[no-any-return]


def _clock(value: Any) -> time:
    if isinstance(value, datetime):
        return value.time()
    if isinstance(value, time):
        return value
    raise Fails(value)


def week_of_year(day: date) -> int:
    """Weeks begin on Monday, the first has four days in the year, days before it are in week 0."""
    first = date(day.year, 1, 1)
    begun = first.weekday()
    monday = first + timedelta(days=-begun if begun <= 3 else 7 - begun)
    return (day - monday).days // 7 + 1 if day >= monday else 0


OF_DAY: dict[str, Callable[[date], int]] = {
    "YEAR": lambda d: d.year,
    "MONTH": lambda d: d.month,
    "DAY": lambda d: d.day,
    "QUARTER": lambda d: (d.month - 1) // 3 + 1,
    "WEEK": week_of_year,
    "ISODOW": date.isoweekday,
    "DOW": lambda d: d.isoweekday() % 7,
    "DAYOFWEEK": date.isoweekday,
    "DOY": lambda d: d.timetuple().tm_yday,
    "DAYOFYEAR": lambda d: d.timetuple().tm_yday,
    "ISOYEAR": lambda d: d.isocalendar()[0],
    "DECADE": lambda d: d.year // 10,
    "CENTURY": lambda d: (d.year - 1) // 100 + 1,
    "MILLENNIUM": lambda d: (d.year - 1) // 1000 + 1,
}
OF_CLOCK: dict[str, Callable[[time], int]] = {
    "HOUR": lambda t: t.hour,
    "MINUTE": lambda t: t.minute,
    "SECOND": lambda t: t.second,
    "MILLISECOND": lambda t: t.microsecond // 1000,
    "MILLISECONDS": lambda t: t.second * 1000 + t.microsecond // 1000,
    "MICROSECOND": lambda t: t.second * 1_000_000 + t.microsecond,
    "MICROSECONDS": lambda t: t.second * 1_000_000 + t.microsecond,
}


def extract(name: str, at: J) -> J:
    """A field of a moment; NULL where its type has none; as 2.3.9 counts."""
    value, kind = at.value, "bigint" if name == "EPOCH" else "int"
    if value is None:
        return J(kind, None)
    if name == "EPOCH":
        if isinstance(value, time):
            return J(kind, None)
        whole = value if isinstance(value, datetime) else datetime.combine(value, time())
        return J(kind, calendar.timegm(whole.utctimetuple()))
    if name in OF_CLOCK:
        plain_day = isinstance(value, date) and not isinstance(value, datetime)
        return J(kind, None if plain_day else OF_CLOCK[name](_clock(value)))
    return J(kind, None if isinstance(value, time) else OF_DAY[name](_day(value)))


def _function(name: str, kind: str, of: Callable[[Any], Any], sentence: str) -> None:
    def call(at: J) -> J:
        return J(kind, None if at.value is None else of(at.value))

    call.__name__, call.__doc__ = name.lower(), sentence
    MOMENT[name] = call


for _name in ("YEAR", "MONTH", "QUARTER"):
    _function(_name, "int", lambda v, f=OF_DAY[_name]: f(_day(v)), f"The {_name.lower()}.")
for _name in ("HOUR", "MINUTE", "SECOND"):
    _function(_name, "int", lambda v, f=OF_CLOCK[_name]: f(_clock(v)), f"The {_name.lower()}.")
_function("DAY_OF_MONTH", "int", lambda v: _day(v).day, "The day of the month.")
_function("DAY_OF_WEEK", "int", lambda v: _day(v).isoweekday(), "1 on Monday to 7 on Sunday.")
_function("DAY_OF_YEAR", "int", lambda v: OF_DAY["DOY"](_day(v)), "The day of the year, from 1.")
_function("DAYNAME", "string", lambda v: f"{_day(v):%A}", "The weekday in English.")
_function("MONTHNAME", "string", lambda v: f"{_day(v):%B}", "The month in English.")
_function("WEEK", "int", lambda v: week_of_year(_day(v)) + 1, "One more than the week (2.3.9).")


def _months(day: date, count: int) -> date:
    months = day.year * 12 + day.month - 1 + count
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def dateadd(at: J, count: J, unit: J | None = None) -> J:
    """So many units later, a month's end kept; a unit that the type lacks changes nothing."""
    value, name = at.value, unit.value.upper() if unit is not None and unit.value else "DAY"
    if value is None:
        return at
    if isinstance(value, time):
        if name in DAYS:
            return at
        step = count.value * (1000 if name == "MILLISECOND" else SECONDS[name] * 1_000_000)
        moved = datetime.combine(date(2000, 1, 1), value) + timedelta(
            microseconds=step % 86_400_000_000 if name != "MILLISECOND" else step
        )
        return J(at.kind, moved.time())
    if name in ("YEAR", "MONTH"):
        day = _months(_day(value), count.value * (12 if name == "YEAR" else 1))
        return J(at.kind, datetime.combine(day, value.timetz()) if hasattr(value, "hour") else day)
    if name in ("WEEK", "DAY"):
        return J(at.kind, value + timedelta(days=count.value * (7 if name == "WEEK" else 1)))
    if not isinstance(value, datetime):
        return at
    if name == "MILLISECOND":
        return J(at.kind, value + timedelta(milliseconds=count.value))
    return J(at.kind, value + timedelta(seconds=count.value * SECONDS[name]))


def _cut(number: int, size: int) -> int:
    return abs(number) // size * (1 if number >= 0 else -1)


def _whole_months(first: date, second: date) -> int:
    months = (second.year - first.year) * 12 + second.month - first.month
    if months > 0 and second.day < first.day:
        months -= 1
    if months < 0 and second.day > first.day:
        months += 1
    return months


def datediff(first: J, second: J, unit: J | None = None) -> J:
    """Whole units from the first to the second, of whole seconds counted down, then cut."""
    a, b, name = first.value, second.value, unit.value.upper() if unit is not None else "DAY"
    if a is None or b is None:
        return J("bigint", None)
    if name in ("YEAR", "MONTH"):
        return J("bigint", _cut(_whole_months(_day(a), _day(b)), 12 if name == "YEAR" else 1))
    if name == "DAY":
        return J("bigint", (_day(b) - _day(a)).days)
    micros = (b - a) // timedelta(microseconds=1)
    if name == "MILLISECOND":
        return J("bigint", _cut(micros, 1000))
    if name == "SECOND":
        return J("bigint", _cut(micros, 1_000_000))
    size = {"WEEK": 604_800, "DAYTIME": 86_400}.get(name) or SECONDS[name]
    return J("bigint", _cut(micros // 1_000_000, size))


def date_trunc(at: J, unit: J | None = None) -> J:
    """The beginning of the unit."""
    value, name = at.value, unit.value.upper() if unit is not None else "DAY"
    if value is None:
        return J("timestamp", None)
    order = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
    fields = [value.year, value.month, value.day, value.hour, value.minute, value.second]
    least = [1, 1, 1, 0, 0, 0]
    kept = order.index(name) + 1
    return J("timestamp", datetime(*fields[:kept], *least[kept:]))


def formatdatetime(at: J, pattern: J) -> J:
    """By Java's letters."""
    if at.value is None:
        return J("string", None)
    return J("string", at.value.strftime(PATTERNS[pattern.value].format(at.value)))


def to_char(value: J, pattern: J | None = None) -> J:
    """A moment by Java's letters, anything else as Java prints it."""
    if value.value is None:
        return J("string", None)
    return formatdatetime(value, pattern) if pattern is not None else J("string", text(value))


def _parsed(s: str, pattern: str) -> datetime | None:
    """Read a text as Java does, which takes the last day of a month for a later one."""
    try:
        return datetime.strptime(s, PATTERNS[pattern])
    except ValueError:
        pass
    if "dd" not in pattern or "yyyy" not in pattern:
        return None
    at = pattern.replace("'", "").index("dd")
    for day in range(28, 31):
        if s[at : at + 2] not in ("29", "30", "31") or int(s[at : at + 2]) <= day:
            continue
        try:
            return datetime.strptime(f"{s[:at]}{day}{s[at + 2 :]}", PATTERNS[pattern])
        except ValueError:
            continue
    return None


def parsedatetime(s: J, pattern: J) -> J:
    """A timestamp, date or time, as the pattern has a date and a time of day; else it fails."""
    letters = pattern.value
    kind = (
        "timestamp" if "H" in letters and "y" in letters else "time" if "H" in letters else "date"
    )
    if s.value is None:
        return J(kind, None)
    found = _parsed(s.value, letters)
    if found is None:
        raise Fails(s)
    return J(
        kind, found if kind == "timestamp" else found.date() if kind == "date" else found.time()
    )


def is_date(s: J, pattern: J) -> J:
    """Whether the text can be read; false for NULL and for a pattern that is not known."""
    known = s.value and pattern.value in PATTERNS
    return J("boolean", bool(known and _parsed(s.value, pattern.value) is not None))


def from_unixtime(seconds: J, pattern: J, zone: J | None = None) -> J:
    """Seconds since 1970 by a pattern, in a zone."""
    if seconds.value is None:
        return J("string", None)
    there = UTC if zone is None else ZoneInfo(zone.value)
    at = datetime.fromtimestamp(seconds.value, there)
    return formatdatetime(J("timestamp", at), pattern)


MOMENT |= {
    "DATEADD": dateadd, "TIMESTAMPADD": dateadd, "DATEDIFF": datediff, "DATE_TRUNC": date_trunc,
    "FORMATDATETIME": formatdatetime, "TO_CHAR": to_char, "PARSEDATETIME": parsedatetime,
    "TO_DATE": parsedatetime, "IS_DATE": is_date, "FROM_UNIXTIME": from_unixtime,
}  # fmt: skip
