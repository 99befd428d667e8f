"""Names of the files and folders a sink makes, from the expressions in a job file."""

import re
from collections.abc import Sequence
from datetime import datetime

from holdfast.errors import UserError

TRANSACTION, UUID = "${transactionId}", "${uuid}"

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_RUNS = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")

_LETTERS = {
    # Java letter: what Python formats of the moment {0}, padded to {1}; day of year, hour, half
    "y": "{0.year:04d}",
    "u": "{0.year:04d}",
    "M": "{0.month:0{1}d}",
    "d": "{0.day:0{1}d}",
    "D": "{2:0{1}d}",
    "H": "{0.hour:0{1}d}",
    "h": "{3:0{1}d}",
    "m": "{0.minute:0{1}d}",
    "s": "{0.second:0{1}d}",
    "a": "{4}",
}


def java_time(pattern: str, moment: datetime) -> str:
    """Return a moment as a Java pattern writes it.  Raises ValueError for letters without sense."""
    out = []
    at = 0
    for run in _RUNS.finditer(pattern):
        if run.start() != at:
            break
        at = run.end()
        out.append(_run(run, moment))
    if at != len(pattern):
        raise ValueError(f"'{pattern}' opens a quote and does not close it")
    return "".join(out)


def file_name(expression: str, transaction: str, unique: str, now: datetime, pattern: str) -> str:
    """Return a file's name without part number and ending."""
    moment = java_time(pattern, now)
    known = {"transactionId": transaction, "uuid": unique, "now": moment, pattern: moment}
    return _VARIABLE.sub(lambda m: known.get(m[1], m[0]), expression)


def partition_folder(expression: str, keys: Sequence[str], values: Sequence[str]) -> str:
    """Return the folder of one partition; `values` are escaped already.

    The usual expression means `key=value/` as many times as there are keys.
    """
    if not expression.strip() or "..." in expression:
        expression = "/".join(f"${{k{i}}}=${{v{i}}}" for i in range(len(keys)))
    known = {f"k{i}": key for i, key in enumerate(keys)}
    known |= {f"v{i}": value for i, value in enumerate(values)}
    parts = [_VARIABLE.sub(lambda m: known.get(m[1], m[0]), p) for p in expression.split("/") if p]
    if not all(parts):
        raise UserError(
            f"LocalFile cannot name a folder by {', '.join(keys)}: a value is empty, and"
            f" partition_dir_expression = '{expression}' has nothing else for it. Put the column's"
            " name into it, as in ${k0}=${v0}.",
            code="sink.partition",
        )
    return "/".join(_harmless(part) for part in parts)


def _harmless(part: str) -> str:
    """Return a folder name that does not lead out of the folder it is in, nor hide itself."""
    if part in (".", ".."):
        return part.replace(".", "%2E")
    return part


def _run(run: re.Match[str], moment: datetime) -> str:
    quoted, letter = run[1], run[2]
    if quoted is not None:
        return quoted or "'"
    if not letter:
        return run[0]
    count = len(run[0])
    if letter == "S":
        return f"{moment.microsecond:06d}".ljust(count, "0")[:count]
    if letter in "yu" and count == 2:
        return f"{moment.year % 100:02d}"
    if letter == "M" and count > 2:
        return moment.strftime("%b" if count == 3 else "%B")
    if letter not in _LETTERS:
        raise ValueError(f"'{letter}' in a time pattern is not understood here")
    hour, half = moment.hour % 12 or 12, "AM" if moment.hour < 12 else "PM"
    return _LETTERS[letter].format(moment, count, moment.timetuple().tm_yday, hour, half)
