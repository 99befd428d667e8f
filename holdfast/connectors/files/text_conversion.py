"""Turn text into values by the rules of docs/values.md: exact, or refused.

`value_of` converts one text, `column_of` a whole column: with Arrow where each of its texts is
plain, and one by one where not.  Both give the same values; a test holds them against each other.
"""

import base64
import binascii
import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connectors.files.time_patterns import time_pattern
from holdfast.connectors.files.values import DATE, DATETIME, TIME
from holdfast.model.types import Type

WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}

SIMPLE: dict[str, Any] = {
    "string": pa.string(), "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(),
    "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "null": pa.null(), "bytes": pa.binary(), "date": pa.date32(), "time": pa.time64("ns"),
    "timestamp": pa.timestamp("us"), "timestamp_tz": pa.timestamp("us", "UTC"),
    "binary_vector": pa.binary(), "sparse_float_vector": pa.map_(pa.int32(), pa.float32()),
    "float_vector": pa.list_(pa.float32()), "float16_vector": pa.list_(pa.float32()),
    "bfloat16_vector": pa.list_(pa.float32()),
}  # fmt: skip

BLANKS = " \t\r\n\x0b\x0c"

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DIGITS = re.compile(r"[+-]?\d+", re.ASCII)
_ENDLESS = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)

_DAYS = tuple(
    re.compile(p, re.ASCII)
    for p in (
        r"(\d{4})-(\d{1,2})-(\d{1,2})", r"(\d{4})/(\d{1,2})/(\d{1,2})",
        r"(\d{4})\.(\d{1,2})\.(\d{1,2})", r"(\d{4})年(\d{1,2})月(\d{1,2})日",
    )
)  # fmt: skip
_COMPACT_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})", re.ASCII)
_COMPACT_MOMENT = re.compile(r"(\d{8})(\d{2})(\d{2})(\d{2})", re.ASCII)
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?|(\d{1,2})时(\d{1,2})分(\d{1,2})秒", re.ASCII
)
_HOUR = re.compile(r"\d{2}", re.ASCII)
_OFFSET = re.compile(r" ?(?:(Z)|([+-])(\d{2}):?(\d{2})?)$")
_BETWEEN = re.compile(r"^(.*?\d日?)(?: +|T)(\d.*)$", re.DOTALL)

_PLAIN_DAY = r"^\d{4}-\d{2}-\d{2}$"
_PLAIN_MOMENT = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?$"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the texts of a table are written."""

    date_format: str = DATE
    datetime_format: str = DATETIME
    time_format: str = TIME
    base64: bool = False


USUAL = Spelling()


def arrow_type(kind: Type) -> Any:
    """Return what values of a type are in Arrow, as Spark takes them."""
    match kind.kind:
        case "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        case "array":
            return pa.list_(arrow_type(kind.parts[0]))
        case "map":
            return pa.map_(arrow_type(kind.parts[0]), arrow_type(kind.parts[1]))
        case "row":
            return pa.struct([pa.field(n, arrow_type(t)) for n, t in kind.fields])
    return SIMPLE[kind.kind]


def column_of(texts: Any, kind: Type, spelling: Spelling) -> Any:
    """Return a column of texts as values; blank ones are null, except as strings and bytes.

    Raises ValueError if one of them is no value of the type; `value_of` says which.
    """
    if kind.kind == "string":
        return texts
    if (made := _at_once(texts, kind, spelling)) is not None:
        return made
    values = [value_of(text, kind, spelling) for text in texts.to_pylist()]
    return pa.array(values, arrow_type(kind))


def value_of(text: str | None, kind: Type, spelling: Spelling = USUAL) -> Any:
    """Return the value of a text.  Raises ValueError if it is none of its type."""
    if text is None or kind.kind == "null":
        return None
    if kind.kind == "string":
        return text
    if kind.kind in ("bytes", "binary_vector"):
        return _bytes(text, spelling)
    bare = text.strip(BLANKS)
    if not bare:
        return None
    match kind.kind:
        case "boolean":
            return _boolean(bare)
        case "decimal":
            return _decimal(bare, kind)
        case "float" | "double":
            return _float(bare, kind)
        case "date":
            return _date(bare, spelling)
        case "time":
            return _time(bare, spelling)
        case "timestamp" | "timestamp_tz":
            return _moment(bare, spelling, kind.kind == "timestamp_tz")
    return _whole(bare, kind)


def _at_once(texts: Any, kind: Type, spelling: Spelling) -> Any:
    """Return texts as values where Arrow reads them all by our rules; None where it may not."""
    wanted: Any = SIMPLE.get(kind.kind)
    try:
        match kind.kind:
            case "tinyint" | "smallint" | "int" | "bigint":
                if _any(pc.match_substring(texts, "x", ignore_case=True)):
                    return None
                return pc.cast(texts, wanted)
            case "float" | "double":
                made: Any = pc.cast(texts, wanted)
                return None if _any(pc.invert(pc.is_finite(made))) else made
            case "decimal":
                # One of more digits could wrap around when it is scaled, and so could 1E30.
                if (pc.max(pc.binary_length(texts)).as_py() or 0) > 37 - kind.scale:
                    return None
                if _any(pc.match_substring(texts, "e", ignore_case=True)):
                    return None
                made = pc.cast(texts, arrow_type(kind))
                made.validate(full=True)
                return made
            case "date" if spelling.date_format == DATE and _all(texts, _PLAIN_DAY):
                return pc.cast(texts, wanted)
            case "timestamp" if spelling.datetime_format == DATETIME and _all(texts, _PLAIN_MOMENT):
                return pc.cast(texts, wanted)
    except pa.ArrowInvalid:
        return None
    return None


def _any(found: Any) -> bool:
    return bool(pc.any(found).as_py())


def _all(texts: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False)


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError


def _whole(text: str, kind: Type) -> int:
    # Python refuses to read thousands of digits, which are beyond every range.
    if not _DIGITS.fullmatch(text) or len(text) > 100:
        raise ValueError
    value, limit = int(text), 1 << (WHOLE[kind.kind] - 1)
    if not -limit <= value < limit:
        raise ValueError
    return value


def _decimal(text: str, kind: Type) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return exact_decimal(Decimal(text), kind)


def exact_decimal(value: Decimal, kind: Type) -> Decimal:
    """Return a number with the places of a decimal type.  Raises ValueError if it does not fit."""
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation, Overflow])
    try:
        return value.quantize(Decimal((0, (1,), -kind.scale)), context=exact)
    except DecimalException as error:
        raise ValueError from error


def _float(text: str, kind: Type) -> float:
    if _ENDLESS.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError
    # By way of a double, a text between two floats would be rounded twice.
    value = float(pa.scalar(text).cast(SIMPLE[kind.kind]).as_py())
    if math.isinf(value):
        raise ValueError
    return value


def _bytes(text: str, spelling: Spelling) -> bytes:
    if not spelling.base64:
        return text.encode()
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise ValueError from error


def _date(text: str, spelling: Spelling) -> date:
    if spelling.date_format != DATE:
        found = time_pattern(spelling.date_format).read(text)
        if found:
            return found.date()
    shapes = _DAYS if spelling.date_format != DATE else (*_DAYS, _COMPACT_DAY)
    if any(shape.fullmatch(text) for shape in shapes):
        return _day(text, shapes)
    moment = _usual_moment(text, spelling)  # a midnight behind the day says nothing more
    if moment.time() != time() or moment.tzinfo:
        raise ValueError
    return moment.date()


def _time(text: str, spelling: Spelling) -> time:
    if spelling.time_format != TIME:
        found = time_pattern(spelling.time_format).read(text)
        if found:
            return found.time()
    return _clock(text)


def _clock(text: str) -> time:
    found = _CLOCK.fullmatch(text)
    if not found:
        raise ValueError
    hour, minute, second, places, *other = found.groups()
    if hour is None:
        hour, minute, second = other
    return time(int(hour), int(minute), int(second or 0), _micros(places or ""))


def _micros(places: str) -> int:
    if places[6:].strip("0"):
        raise ValueError
    return int(places[:6].ljust(6, "0"))


def _moment(text: str, spelling: Spelling, zoned: bool) -> datetime:
    found = None
    if spelling.datetime_format != DATETIME:
        found = time_pattern(spelling.datetime_format).read(text)
    if found is None:
        found = _usual_moment(text, spelling)
    if not zoned:
        if found.tzinfo is not None:
            raise ValueError  # the column has no zone to keep it
        return found
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError from error


def _usual_moment(text: str, spelling: Spelling) -> datetime:
    shift: timedelta | None = None
    parts = _BETWEEN.match(text)
    if parts and (offset := _OFFSET.search(parts[2])):
        shift = _shift(offset)
        parts = _BETWEEN.match(text[: -len(offset[0])])
    if parts:
        clock = f"{parts[2]}:00" if _HOUR.fullmatch(parts[2]) else parts[2]
        made = datetime.combine(_day(parts[1]), _clock(clock))
        return made if shift is None else made.replace(tzinfo=timezone(shift))
    compact = _COMPACT_MOMENT.fullmatch(text)
    if compact and spelling.datetime_format == DATETIME:
        hour, minute, second = (int(compact[n]) for n in (2, 3, 4))
        return datetime.combine(_day(compact[1]), time(hour, minute, second))
    return datetime.combine(_day(text, _DAYS[:3]), time())


def _day(text: str, shapes: "tuple[re.Pattern[str], ...]" = (*_DAYS, _COMPACT_DAY)) -> date:
    for shape in shapes:
        if day := shape.fullmatch(text):
            return date(int(day[1]), int(day[2]), int(day[3]))
    raise ValueError


def _shift(offset: "re.Match[str]") -> timedelta:
    if offset[1]:
        return timedelta(0)
    hours, minutes = int(offset[3]), int(offset[4] or 0)
    if hours > 18 or minutes > 59:
        raise ValueError
    whole = timedelta(hours=hours, minutes=minutes)
    return whole if offset[2] == "+" else -whole
