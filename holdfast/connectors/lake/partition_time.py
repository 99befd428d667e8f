"""When a partition begins: its values tell, as Paimon's options describe them."""

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

USUAL = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")

_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_RUNS = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")
_NAMED = re.compile(r"\$(\w+)")


def to_strptime(pattern: str) -> str:
    """Return a Java pattern as Python reads it.  Raises ValueError for one that is not plain."""
    out, at = [], 0
    for run in _RUNS.finditer(pattern):
        if run.start() != at:
            break
        at = run.end()
        if run[1] is not None:
            out.append(run[1].replace("%", "%%") or "'")
        elif run[2]:
            if run[0] not in _LETTERS:
                raise ValueError(f"'{run[0]}' is not one of {', '.join(_LETTERS)}")
            out.append(_LETTERS[run[0]])
        else:
            out.append(run[0].replace("%", "%%"))
    if at != len(pattern):
        raise ValueError(f"'{pattern}' opens a quote and does not close it")
    return "".join(out)


def partition_time_ms(
    values: Mapping[str, str | None], pattern: str | None, formatter: str | None, zone: str | None
) -> int | None:
    """Return when a partition begins, in milliseconds since 1970; None if its values do not tell.

    A partition of null, or of a word among dates, has no time.
    """
    known = {name: value for name, value in values.items() if value is not None}
    if pattern is None:
        text = next(iter(values.values()), None)
    else:
        named = _NAMED.findall(pattern)
        filled = _NAMED.sub(lambda m: known.get(m[1], ""), pattern)
        text = filled if all(name in known for name in named) else None
    if text is None:
        return None
    for form in (to_strptime(formatter),) if formatter else USUAL:
        try:
            moment = datetime.strptime(text.strip(), form)
        except ValueError:
            continue
        placed = moment.replace(tzinfo=ZoneInfo(zone)) if zone else moment.astimezone()
        return round(placed.timestamp() * 1000)
    return None
