"""Read times that a Java pattern such as `dd.MM.yyyy` describes."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from holdfast.errors import UserError

_RUNS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[\[\]]|[^A-Za-z'\[\]]")
_PLACES = {"M": "month", "d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_ZONE = r"(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)"


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern as a regular expression."""

    shape: re.Pattern[str]

    def read(self, text: str) -> datetime | None:
        """Return the moment a text names; None if it does not look like this.

        Raises ValueError if it does and there is no such moment.
        """
        match = self.shape.fullmatch(text)
        if not match:
            return None
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        year = int(found["year"]) if "year" in found else 1970
        if "short" in found:
            year = 2000 + int(found["short"])
        hour = int(found.get("hour", 0))
        if "half" in found:
            half = int(found["half"])
            if not 1 <= half <= 12:
                raise ValueError
            hour = half % 12 + (12 if found.get("noon", "AM").upper() == "PM" else 0)
        return datetime(
            year, _month(found), int(found.get("day", 1)), hour, int(found.get("minute", 0)),
            int(found.get("second", 0)), _micros(found.get("places", "")),
            _zone(found.get("zone")),
        )  # fmt: skip


@lru_cache(64)
def time_pattern(pattern: str) -> TimePattern:
    """Return a Java pattern to read with.  Raises UserError for letters that are not understood."""
    made, at = [], 0
    for run in _RUNS.finditer(pattern):
        if run.start() != at:
            break
        at = run.end()
        made.append(_run(run, pattern))
    if at != len(pattern):
        raise UserError(f"The time pattern '{pattern}' opens a quote and does not close it.")
    try:
        return TimePattern(re.compile("".join(made), re.ASCII | re.IGNORECASE))
    except re.error as error:
        raise UserError(
            f"The time pattern '{pattern}' is not understood: {error}.", code="source.time_pattern"
        ) from error


def _run(run: "re.Match[str]", pattern: str) -> str:
    quoted, letter, count = run[1], run[2], len(run[0])
    if quoted is not None:
        return re.escape(quoted.replace("''", "'") or "'")
    if run[0] == "[":
        return "(?:"
    if run[0] == "]":
        return ")?"
    if not letter:
        return re.escape(run[0])
    match letter:
        case "y" | "u" if count == 2:
            return r"(?P<short>\d{2})"
        case "y" | "u":
            return rf"(?P<year>\d{{{'1,4' if count == 1 else 4}}})"
        case "M" if count == 3:
            return "(?P<name>" + "|".join(m[:3] for m in _MONTHS) + ")"
        case "M" if count > 3:
            return "(?P<name>" + "|".join(_MONTHS) + ")"
        case "S":
            return rf"(?P<places>\d{{{count}}})"
        case "a":
            return "(?P<noon>AM|PM)"
        case "X" | "x" | "Z":
            return _ZONE
        case "E":
            return "[A-Z]+"
        case _ if letter in _PLACES:
            return rf"(?P<{_PLACES[letter]}>\d{{{'1,2' if count == 1 else 2}}})"
    raise UserError(
        f"The time pattern '{pattern}' has the letter '{letter}', which is not understood here."
        " Use y, M, d, H, h, m, s, S, a and X.",
        code="source.time_pattern",
    )


def _month(found: dict[str, str]) -> int:
    if "name" not in found:
        return int(found.get("month", 1))
    return next(n for n, m in enumerate(_MONTHS, 1) if m.lower().startswith(found["name"].lower()))


def _micros(places: str) -> int:
    if places[6:].strip("0"):
        raise ValueError
    return int(places[:6].ljust(6, "0"))


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text.upper() == "Z":
        return timezone(timedelta(0))
    digits = text[1:].replace(":", "").ljust(4, "0")
    shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(shift if text[0] == "+" else -shift)
