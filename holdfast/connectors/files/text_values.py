"""Values that texts stand for, as columns of Arrow: the one rule of csv and text files.

A column of texts is converted at once where Arrow's own casts follow the rule.  Where one refuses,
or may be laxer than the rule, each text of that column is looked at on its own, and those that are
no values are told by their numbers.
"""

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connect.arrow_types import ARROW
from holdfast.connectors.files.text_conversion import exact_decimal
from holdfast.connectors.files.times import (
    USUAL_DATES,
    USUAL_MOMENTS,
    USUAL_TIMES,
    Parts,
    parsed,
    strptime_of,
    usual,
)
from holdfast.connectors.files.values import DATE, DATETIME, TIME
from holdfast.model.types import Type

WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
BLANKS = " \t\r\n\x0b\x0c"

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_DIGITS_MAX = 38
_DAYS_LEAST = -719_162
"""The first day of the year 1: Python has no date before it."""


@dataclass(frozen=True, slots=True)
class TextNotation:
    """How texts stand for values.

    `separators` stand between the parts of nested values, outermost first.
    """

    separators: tuple[str, ...]
    padding: bool = False  # parts that a row inside a column lacks are null
    strict: bool = True  # a row inside a column has no more parts than its type
    null_format: str | None = None
    date_format: str = DATE
    datetime_format: str = DATETIME
    time_format: str = TIME

    @property
    def nulls(self) -> list[str]:
        """The texts that stand for null."""
        return ["", *([self.null_format] if self.null_format else [])]

    @property
    def usual(self) -> bool:
        """Whether dates and timestamps are written as Arrow reads them, too."""
        return (self.date_format, self.datetime_format) == (DATE, DATETIME)


def arrow_type(kind: Type) -> Any:
    """Return what a type is in Arrow, on its way into Spark."""
    match kind.kind:
        case "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        case "timestamp_tz":
            return pa.timestamp("us", "UTC")
        case "time":
            return pa.time64("ns")
        case "bytes":
            return pa.binary()
        case "null":
            return pa.null()
        case "array":
            return pa.list_(arrow_type(kind.parts[0]))
        case "map":
            return pa.map_(arrow_type(kind.parts[0]), arrow_type(kind.parts[1]))
        case "row":
            return pa.struct([pa.field(n, arrow_type(t)) for n, t in kind.fields])
        case "binary_vector":
            return pa.binary()
        case "sparse_float_vector":
            return pa.map_(pa.int32(), pa.float32())
        case _ if kind.kind.endswith("vector"):
            return pa.list_(pa.float32())
    return ARROW[kind.kind]


def parser_type(kind: Type, writing: TextNotation) -> Any:
    """Return the type that Arrow's csv parser gives a column of this type at first: often text."""
    timed = kind.kind in ("date", "timestamp")
    plain = kind.kind in ARROW and (not timed or writing.usual)
    return ARROW[kind.kind] if plain else pa.string()


def doubtful(column: Any, kind: Type) -> bool:
    """Say whether the parser may have read a value of this column by a laxer rule than ours."""
    if kind.kind in ("float", "double"):
        return pc.all(pc.is_finite(column)).as_py() is False
    if kind.kind == "date":
        least = pc.min(column.cast(pa.int32())).as_py()
        return least is not None and least < _DAYS_LEAST
    if kind.kind == "timestamp":
        least = pc.min(column.cast(pa.int64())).as_py()
        return least is not None and least < _DAYS_LEAST * 86_400_000_000
    return False


def converted(
    texts: Any, kind: Type, writing: TextNotation, nulled: bool = False
) -> tuple[Any, list[int]]:
    """Return the values of a column of texts, and the numbers of those that stand for none.

    `nulled`: empty ones, and those that `null_format` says, are null already.
    """
    if nulled and (values := _at_once(texts, kind, writing)) is not None:
        return values, []
    texts = _with_nulls(texts, kind, writing)
    if (values := _at_once(texts, kind, writing)) is not None:
        return values, []
    read = _reader(kind, writing)
    made: list[Any] = []
    wrong: list[int] = []
    for number, text in enumerate(texts.to_pylist()):
        try:
            made.append(None if text is None else read(text))
        except ValueError:
            wrong.append(number)
            made.append(None)
    return pa.array(made, arrow_type(kind)), wrong


def _with_nulls(texts: Any, kind: Type, writing: TextNotation) -> Any:
    """Turn texts that stand for null into nulls."""
    blank = kind.kind not in ("string", "bytes")
    nothing, null_format = pa.scalar(""), writing.null_format
    empty = pc.equal(pc.ascii_trim_whitespace(texts) if blank else texts, nothing)
    if null_format is not None:
        empty = pc.or_(empty, pc.equal(texts, pa.scalar(null_format)))
    return pc.if_else(empty, pa.scalar(None, texts.type), texts)


def _at_once(texts: Any, kind: Type, writing: TextNotation) -> Any:
    """Return the values if Arrow is sure to follow the rule; None if it is not."""
    wanted = arrow_type(kind)
    try:
        match kind.kind:
            case "string":
                return texts
            case "bytes":
                return texts.cast(pa.binary())
            case "null":
                return pa.nulls(len(texts))
            case "decimal":
                return texts.cast(wanted) if _plain_decimals(texts, kind) else None
            case "date" | "timestamp" if writing.usual:
                values = texts.cast(wanted)
                return None if doubtful(values, kind) else values
            case "date" | "timestamp":
                java = writing.date_format if kind.kind == "date" else writing.datetime_format
                return _by_strptime(texts, java, wanted)
            case "double" | "float":
                values = texts.cast(wanted)
                return None if doubtful(values, kind) else values
            case _ if kind.kind in WHOLE:
                return None if _any(texts, "x") or _any(texts, "X") else texts.cast(wanted)
    except pa.ArrowInvalid:
        return None
    return None


def _any(texts: Any, part: str) -> bool:
    return bool(pc.any(pc.match_substring(texts, part)).as_py())


def _plain_decimals(texts: Any, kind: Type) -> bool:
    """Say whether Arrow's cast is exact: it would not notice a number that is too large."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    return longest <= _DIGITS_MAX - kind.scale and not _any(texts, "e") and not _any(texts, "E")


def _by_strptime(texts: Any, java: str, wanted: Any) -> Any:
    found = strptime_of(java)
    if found is None:
        return None
    pattern, _ = found
    moments = pc.strptime(texts, format=pattern, unit="us", error_is_null=True)
    # It takes the 30th of February and single digits; what it writes tells.
    written = pc.strftime(moments.cast(pa.timestamp("s")), format=pattern)
    same = pc.all(pc.equal(written, texts), skip_nulls=True).as_py()
    if moments.null_count != texts.null_count or not (same or len(texts) == texts.null_count):
        return None
    return moments.cast(wanted)


def _reader(kind: Type, writing: TextNotation, level: int = 0) -> Callable[[str], Any]:
    """Return what reads one text of a type; it raises ValueError for one that is no value."""
    match kind.kind:
        case "string":
            return str
        case "bytes":
            return str.encode
        case "null":
            return lambda _: None
        case "array":
            return _array(kind, writing, level)
        case "map":
            return _map(kind, writing, level)
        case "row":
            return _row(kind, writing, level)
        case "binary_vector":
            return str.encode
        case _ if kind.kind.endswith("vector"):
            return _sparse if kind.kind.startswith("sparse") else _dense
    read = _SCALARS[kind.kind if kind.kind not in WHOLE else "whole"]
    return lambda text: read(text.strip(BLANKS), kind, writing)


def _part(kind: Type, writing: TextNotation, level: int) -> Callable[[str], Any]:
    """Return what reads a part of a nested value: blank is null."""
    read = _reader(kind, writing, level)

    def part(text: str) -> Any:
        return None if not text.strip(" ") or text == writing.null_format else read(text)

    return part


def _array(kind: Type, writing: TextNotation, level: int) -> Callable[[str], Any]:
    separator = writing.separators[level + 1]
    part = _part(kind.parts[0], writing, level + 1)
    return lambda text: [part(t) for t in text.split(separator)]


def _map(kind: Type, writing: TextNotation, level: int) -> Callable[[str], Any]:
    between, inside = writing.separators[level + 1 : level + 3]
    key, value = (_part(p, writing, level + 1) for p in kind.parts)

    def read(text: str) -> Any:
        found = []
        for pair in text.rstrip(between).split(between):
            name, _, rest = pair.partition(inside)
            if (known := key(name)) is not None:
                found.append((known, value(rest)))
            elif pair:
                raise ValueError("a value has no key")
        if len({str(k) for k, _ in found}) < len(found):
            raise ValueError("a key is there twice")
        return found

    return read


def _row(kind: Type, writing: TextNotation, level: int) -> Callable[[str], Any]:
    separator = writing.separators[level + 1]
    parts = [(name, _part(part, writing, level + 1)) for name, part in kind.fields]

    def read(text: str) -> Any:
        texts = text.split(separator)
        if len(texts) < len(parts) and not writing.padding:
            raise ValueError("parts are missing")
        if len(texts) > len(parts) and writing.strict:
            raise ValueError("there are more parts than the row has")
        texts += [""] * (len(parts) - len(texts))
        return {name: part(t) for (name, part), t in zip(parts, texts, strict=False)}

    return read


def _dense(text: str) -> list[float]:
    found = _json(text)
    if not isinstance(found, list):
        raise ValueError(text)
    return [_element(n) for n in found]


def _sparse(text: str) -> list[tuple[int, float]]:
    found = _json(text)
    if not isinstance(found, dict):
        raise ValueError(text)
    return [(_whole(place, Type("int")), _element(n)) for place, n in found.items()]


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_float=_finite)
    except RecursionError as error:
        raise ValueError(text) from error


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(text)
    return value


def _element(number: Any) -> float:
    """Return an element of a vector: it must fit a float, which `pack` finds out."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(str(number))
    try:
        struct.pack("<f", float(number))
    except OverflowError as error:
        raise ValueError(str(number)) from error
    return float(number)


def _boolean(text: str, _kind: Type, _writing: TextNotation) -> bool:
    if (low := text.lower()) in ("true", "false"):
        return low == "true"
    raise ValueError(text)


def _whole(text: str, kind: Type, _writing: TextNotation | None = None) -> int:
    if not _WHOLE.fullmatch(text) or len(text) > 100:
        raise ValueError(text)
    value, limit = int(text), 1 << (WHOLE[kind.kind] - 1)
    if not -limit <= value < limit:
        raise ValueError(text)
    return value


def _floating(text: str, kind: Type, _writing: TextNotation) -> float:
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    wanted = pa.float32() if kind.kind == "float" else pa.float64()
    value = float(pa.scalar(text.removeprefix("+")).cast(wanted).as_py())
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _decimal(text: str, kind: Type, _writing: TextNotation) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return exact_decimal(Decimal(text), kind)


def _timed(
    text: str, java: str, own: str, ways: tuple[re.Pattern[str], ...]
) -> Parts:  # fmt: skip
    found = (parsed(text, java) if java != own else None) or usual(text, ways)
    if found is None:
        raise ValueError(text)
    return found


def _date(text: str, kind: Type, writing: TextNotation) -> Any:
    try:
        return _timed(text, writing.date_format, DATE, USUAL_DATES).date()
    except ValueError:
        moment = _timestamp(text, kind, writing)  # a midnight behind the day says nothing more
        if moment.time() != time():
            raise
        return moment.date()


def _timestamp(text: str, _kind: Type, writing: TextNotation) -> datetime:
    found = _timed(text, writing.datetime_format, DATETIME, USUAL_MOMENTS)
    if found.zone is not None and "X" not in writing.datetime_format.upper():
        raise ValueError(text)
    return found.moment()


def _instant(text: str, _kind: Type, writing: TextNotation) -> datetime:
    return _timed(text, writing.datetime_format, DATETIME, USUAL_MOMENTS).instant()


def _time(text: str, _kind: Type, writing: TextNotation) -> int:
    """Return nanoseconds: what Arrow makes of Python's times has no more than microseconds."""
    found = _timed(text, writing.time_format, TIME, USUAL_TIMES).time()
    seconds = (found.hour * 60 + found.minute) * 60 + found.second
    return (seconds * 1_000_000 + found.microsecond) * 1000


_SCALARS: dict[str, Callable[[str, Type, TextNotation], Any]] = {
    "boolean": _boolean,
    "whole": _whole,
    "float": _floating,
    "double": _floating,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_tz": _instant,
    "time": _time,
}
