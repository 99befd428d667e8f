"""Read dates and times as Java patterns write them: what `date_format` and its like mean."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import cache

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FULL_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip

_RUNS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", re.DOTALL)
_OFFSET = r"(?P<zone>Z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)"
_ONE = {"M": "month", "d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}
_STRPTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


@dataclass(frozen=True, slots=True)
class Parts:
    """What a text says; `zone` is in seconds, None where it says none."""

    year: int = 1970
    month: int = 1
    day: int = 1
    hour: int = 0
    minute: int = 0
    second: int = 0
    micro: int = 0
    zone: int | None = None

    def date(self) -> date:
        """Return the day.  Raises ValueError for a day that is none."""
        return date(self.year, self.month, self.day)

    def time(self) -> time:
        """Return the time of day.  Raises ValueError for one that is none."""
        return time(self.hour, self.minute, self.second, self.micro)

    def moment(self) -> datetime:
        """Return the local time."""
        return datetime.combine(self.date(), self.time())

    def instant(self) -> datetime:
        """Return the instant; without an offset, the time is one of UTC.

        Raises ValueError for one that is outside the years 1 to 9999 in UTC.
        """
        zone = timezone(timedelta(seconds=self.zone or 0))
        try:
            return self.moment().replace(tzinfo=zone).astimezone(UTC)
        except OverflowError as error:
            raise ValueError(str(error)) from error


@cache
def pattern_of(java: str) -> re.Pattern[str]:
    """Return what a text of this Java pattern looks like.

    Raises ValueError, with a sentence, for a pattern that cannot be followed.
    """
    made, at = "", 0
    for run in _RUNS.finditer(java):
        if run.start() != at:
            break
        at = run.end()
        made += _piece(run)
    if at != len(java):
        raise ValueError("it opens a quote and does not close it")
    return re.compile(made, re.IGNORECASE)


def parsed(text: str, java: str) -> Parts | None:
    """Return what a text of a pattern says; None if it is not of that pattern."""
    match = pattern_of(java).fullmatch(text)
    return _parts(match.groupdict()) if match else None


@cache
def strptime_of(java: str) -> tuple[str, int] | None:
    """Return a pattern of fixed width for `strptime`, and the width; None if it has none."""
    made = ""
    for run in _RUNS.finditer(java):
        if not run[2]:
            made += (run[1] or run[0]).replace("%", "%%")
        elif run[0] in _STRPTIME:
            made += _STRPTIME[run[0]]
        else:
            return None
    return (made, len(java.replace("'", ""))) if made else None


def _piece(run: re.Match[str]) -> str:
    quoted, letter, text = run[1], run[2], run[0]
    if quoted is not None:
        return re.escape(quoted.replace("''", "'") or "'")
    if not letter:
        return re.escape(text)
    width = len(text)
    if letter in "yu" and width in (1, 2, 4):
        return {1: r"(?P<year>\d{1,4})", 2: r"(?P<short>\d{2})", 4: r"(?P<year>\d{4})"}[width]
    if letter == "M" and width > 2:
        return "(?P<name>" + "|".join(MONTHS if width == 3 else FULL_MONTHS) + ")"
    if letter in _ONE and width <= 2:
        return rf"(?P<{_ONE[letter]}>\d{{{'1,2' if width == 1 else '2'}}})"
    if letter == "S":
        return rf"(?P<fraction>\d{{{width}}})"
    if letter == "a":
        return "(?P<noon>am|pm)"
    if letter in "Xx" and width <= 3:
        return _OFFSET
    raise ValueError(f"'{text}' in it is not supported; supported are y M d H h m s S a X")


def _parts(found: dict[str, str | None]) -> Parts | None:
    def number(name: str, usual: int) -> int:
        text = found.get(name)
        return usual if text is None else int(text)

    year = number("year", 1970)
    if found.get("short") is not None:
        year = 2000 + number("short", 0)
    month = number("month", 1)
    if name := found.get("name"):
        month = MONTHS.index(name[:3].lower()) + 1
    hour = number("hour", 0)
    if found.get("half") is not None:
        hour = number("half", 12)
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if (found.get("noon") or "").lower() == "pm" else 0)
    fraction = (found.get("fraction") or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        return None  # finer than a microsecond
    zone = found.get("zone")
    return Parts(
        year, month, number("day", 1), hour, number("minute", 0), number("second", 0),
        int(fraction[:6]), None if zone is None else _offset_s(zone),
    )  # fmt: skip


def _offset_s(text: str) -> int:
    if text in "Zz":
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if text[0] == "-" else seconds


_DATE = r"(?P<year>\d{4})(?P<a>[-/.])(?P<month>\d{1,2})(?P=a)(?P<day>\d{1,2})"
_COMPACT = r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"
_CHINESE = r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"
_CLOCK = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d+))?)?)?"
)
_CHINESE_CLOCK = r"(?P<hour>\d{1,2})时(?P<minute>\d{1,2})分(?P<second>\d{1,2})秒"
_COMPACT_CLOCK = r"(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})"

USUAL_DATES = tuple(re.compile(p) for p in (_DATE, _COMPACT, _CHINESE))
"""Ways to write dates that are understood without being asked for."""

USUAL_MOMENTS = tuple(
    re.compile(p)
    for p in (
        rf"{_DATE}(?:[ Tt]{_CLOCK} ?{_OFFSET}?)?",
        rf"{_COMPACT}{_COMPACT_CLOCK}",
        rf"{_CHINESE} ?{_CHINESE_CLOCK}",
    )
)
"""Ways to write dates with times that are understood without being asked for."""

USUAL_TIMES = (
    re.compile(
        r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d+))?)?"
    ),
)


def usual(text: str, ways: tuple[re.Pattern[str], ...]) -> Parts | None:
    """Return what a text says in one of some ways; None if it is of none."""
    for way in ways:
        if match := way.fullmatch(text):
            found = match.groupdict()
            found.pop("a", None)
            return _parts(found)
    return None
