"""Look at values that a column may hold less of than the stream has, before they are sent.

Databases round and cut without a word: 1.005 into numeric(10,2), a moment into a DATE, blanks at
the end of a text.  By docs/values.md a value arrives exact, or its row is refused.  What they
refuse themselves they refuse without its row, so the commonest of that is looked for here, too.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, DecimalException
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connect.rejects import ROW_CHARS_MAX, VALUE_CHARS_MAX, shown
from holdfast.errors import UserError
from holdfast.model.types import Type

BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64}
WHOLE = (*BITS, "year")
PLACES = ("numeric", "decimal", "float", "double")
"""Types that round to the places that stand behind their names."""

FLOATS = ("string", "float", "double")
"""Types that may have a number of any size."""

MOMENTS = ("timestamp", "timestamp_tz")
CLOCKS = ("timestamp", "datetime", "time")
TEXTS = ("character varying", "varchar", "character", "char")
ANY_TEXTS = (*TEXTS, "text", "tinytext", "mediumtext", "longtext")
MICROS = 6

_SHAPE = re.compile(r"([a-z]+(?: precision| varying)?) ?(?:\((\d+)(?:, ?(\d+))?\))?", re.IGNORECASE)
_FRACTION = re.compile(r"(?::\d{1,2}|\d{6})\.(\d+)")
_OFFSET = re.compile(r"\d:\d{2}(?::\d{2}(?:\.\d+)?)? ?(?:Z|[+-]\d{2})", re.IGNORECASE)
_PLAIN_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_PLAIN_DAY = r"^\s*[0-9]+[-/.][0-9]+[-/.][0-9]+\s*$"
_DAY = re.compile(r"\s*(?:\d+([-/.])\d+\1\d+|\d{8})(.*)", re.DOTALL)
_ISO_DAY = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})")
_CLOCK = re.compile(r"\d{1,2}:\d{2}\S*")
_PLAIN_TIME = r"^\s*[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?\s*$"
_DATED = re.compile(r"\d([-/.])\d+\1\d|(?<![.\d])\d{8}")
_MONEY = re.compile(r"[\s$,]")
_NOT_ZERO = re.compile(r"[1-9]")


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a column holds less of: places of a number or of a second, days, characters and so on.

    (A text for bytes is shown as bytes, as PostgreSQL would read escapes in it.)
    """

    what: str
    limit: int = 0
    low: int = 0
    high: int = 0
    """What a number must lie between."""


SAID = {
    "places": ("it has more places than that and would be rounded", "ROUND"),
    "day": ("its time of day would be lost", "CAST ... AS DATE"),
    "time": ("its date would be lost", "CAST ... AS TIME"),
    "clock": ("its fraction of a second would be rounded", "DATE_TRUNC"),
    "zone": ("its offset would be lost", "CAST ... AS TIMESTAMP_TZ"),
    "length": ("it is longer than that", "SUBSTRING"),
    "null": ("the column takes no null", "COALESCE"),
    "number": ("it is no number", "CASE"),
    "range": ("it is out of range", "CASE"),
    "calendar": ("there is no such day", "CASE"),
}
"""What would happen, and which function of Sql says what shall happen instead."""


LOUD = ("null", "number", "range", "calendar", "text")
"""What databases refuse by themselves, without the row, and what is written as text here."""


def changes(kind: Type, target: str) -> bool:
    """Say whether a column of the database may change a value without a word."""
    return any(less.what not in LOUD for less in narrow(kind, target))


def narrow(kind: Type, target: str, required: bool = False) -> tuple[Narrow, ...]:
    """Return what a column of the database holds less of than a type; nothing if it holds all."""
    made = [Narrow("null")] if required else []
    found = _SHAPE.match(target)
    if not found or target.endswith("]"):
        return tuple(made)
    name, first, second = found[1].lower(), found[2], found[3]
    if kind.kind == "string" and name == "bytea":
        return (*made, Narrow("bytes"))
    made += _numbers(kind, target, _places(name, first, second))
    if kind.kind == "string" and name in ("date", "timestamp", "datetime"):
        made.append(Narrow("calendar"))
    if name == "date" and kind.kind in ("string", *MOMENTS):
        made.append(Narrow("day"))
    if name == "time" and kind.kind == "string":
        made.append(Narrow("time"))
    kept = _kept(target, name, first)
    # A text may have more places of a second than any column has.
    if (kind.kind == "string" and name in CLOCKS) or (
        kind.kind in ("time", *MOMENTS) and kept < MICROS
    ):
        made.append(Narrow("clock", kept))
    if kind.kind == "string" and name in ("date", *CLOCKS) and not _zoned(target, name):
        made.append(Narrow("zone"))
    if kind.kind in ("boolean", *MOMENTS) and name in ANY_TEXTS:
        made.append(Narrow("text"))
    if kind.kind == "string" and name in TEXTS and first:
        made.append(Narrow("length", int(first)))
    return tuple(made)


def _numbers(kind: Type, target: str, places: int | None) -> Iterator[Narrow]:
    """Yield what a column holds less of than a number has, or a text of one."""
    found = _SHAPE.match(target)
    assert found
    name = found[1].lower()
    if kind.kind == "string" and (name in (*WHOLE, *PLACES, "real", "double precision", "money")):
        yield Narrow("number")
    fits = places is None or (kind.kind == "decimal" and kind.scale <= places)
    if kind.kind in (*FLOATS, "decimal") and places is not None and not fits:
        yield Narrow("places", places)
    bounds = _bounds(name, found[2], places, "unsigned" in target)
    own = _bounds(kind.kind, str(kind.precision), kind.scale, False)
    if bounds and (kind.kind in FLOATS or (own and (own[0] < bounds[0] or own[1] > bounds[1]))):
        yield Narrow("range", 0, *bounds)


def _bounds(
    name: str, precision: str | None, places: int | None, unsigned: bool
) -> tuple[int, int] | None:
    """Return what numbers of a type lie between, both bounds out of it; None if not known."""
    if name in BITS:
        bits = BITS[name]
        return (-1, 1 << bits) if unsigned else (-(1 << (bits - 1)) - 1, 1 << (bits - 1))
    if name in ("numeric", "decimal") and precision and places is not None:
        most = 10 ** max(int(precision) - places, 0)
        return (-1 if unsigned else -most), most
    return None


def _zoned(target: str, name: str) -> bool:
    """Say whether a type knows what an offset says; MySQL's TIMESTAMP is an instant."""
    return "with time zone" in target or (name == "timestamp" and "time zone" not in target)


def _places(name: str, first: str | None, second: str | None) -> int | None:
    """Return how many places numbers of a type have; None if as many as come."""
    if name in WHOLE:
        return 0
    if name == "money":
        return 2
    if name in PLACES and (second or (first and name in ("numeric", "decimal"))):
        return int(second or 0)
    return None


def _kept(target: str, name: str, first: str | None) -> int:
    """Return how many places of a second a type keeps.  Without a number, PostgreSQL keeps all."""
    if name not in CLOCKS:
        return MICROS
    if first is not None:
        return int(first)
    return MICROS if "time zone" in target else 0


@dataclass(frozen=True, slots=True)
class Exact:
    """Looks at the values of one column.  Plain data, sent to Spark's workers."""

    at: int
    name: str
    table: str
    target: str
    narrow: Narrow

    def sent(self, values: Any, batch: pa.RecordBatch, names: Sequence[str]) -> Any:
        """Return the values of the column as they are sent.

        Raises UserError for the first row with one that the database would change or refuse.
        """
        if self.narrow.what == "bytes":
            return pa.array([_hexadecimal(t) for t in values.to_pylist()], pa.string())
        if self.narrow.what == "text":
            return _as_text(values)
        bad = LOOKS[self.narrow.what](values, self.narrow)
        if bad is not None:
            raise self._refused(batch, bad, names)
        if self.narrow == Narrow("places", 0) and pa.types.is_decimal(values.type):
            return pc.cast(values, pa.decimal128(38, 0))  # 2.000 is no integer to PostgreSQL
        return values

    def _refused(self, batch: pa.RecordBatch, at: int, names: Sequence[str]) -> UserError:
        value = shown(_text(batch.column(self.at)[at]), VALUE_CHARS_MAX)
        rule, remedy = SAID[self.narrow.what]
        return UserError(
            f"Jdbc cannot write column {self.name} of {self.table}: '{value}' does not fit"
            f" {self.target}: {rule}. Row: {row_of(batch, at, names)}. Widen the column, or convert"
            f" the value before (Sql: {remedy}).",
            code="sink.value",
        )


def checks(table: str, columns: Sequence[tuple[str, Type, str, bool]]) -> tuple[Exact, ...]:
    """Return what to look at.

    Columns are given by name, type, type in the database, and whether they take no null there.
    """
    return tuple(
        Exact(at, name, table, to, less)
        for at, (name, kind, to, required) in enumerate(columns)
        for less in narrow(kind, to, required)
    )


def row_of(batch: pa.RecordBatch, at: int, names: Sequence[str]) -> str:
    """Return a row as people should see it."""
    pairs = zip(names, batch.columns, strict=False)
    return shown(", ".join(f"{n} = {_text(c[at])}" for n, c in pairs), ROW_CHARS_MAX)


def _hexadecimal(text: str | None) -> str | None:
    return None if text is None else f"\\x{text.encode().hex()}"


def _as_text(values: Any) -> Any:
    """Return truth values and moments as docs/values.md writes them: servers do it differently."""
    texts = pc.cast(values, pa.string())
    if not pa.types.is_timestamp(values.type):
        return texts
    if values.type.tz:
        texts = pc.replace_substring(texts, " ", "T")
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(texts, r"\.(Z?)$", r"\1")


def _text(value: Any) -> str:
    found = value.as_py()
    return "null" if found is None else str(found)


def _first(bad: Any) -> int | None:
    """Return where the first true value is."""
    at = pc.index(pc.fill_null(bad, False), True).as_py()
    return at if at >= 0 else None


def _one_by_one(values: Any, maybe: Any, is_bad: Callable[[Any], bool]) -> int | None:
    """Return where the first bad value is, of those that may be bad."""
    for at in pc.indices_nonzero(pc.fill_null(maybe, False)).to_pylist():
        if is_bad(values[at].as_py()):
            return int(at)
    return None


def _missing(values: Any, _: Narrow) -> int | None:
    return _first(pc.is_null(values))


def _number(text: str) -> Decimal | None:
    """Return the number in a text; None if there is none."""
    try:
        return Decimal(_MONEY.sub("", text))
    except DecimalException:
        return None


def _no_number(values: Any, _: Narrow) -> int | None:
    maybe = pc.invert(pc.match_substring_regex(values, _PLAIN_NUMBER))
    return _one_by_one(values, maybe, lambda t: _number(t) is None)


def _out_of_range(values: Any, less: Narrow) -> int | None:
    kind = values.type
    if pa.types.is_integer(kind):
        wide = pc.cast(values, pa.decimal128(38, 0))
        low, high = (pa.scalar(Decimal(n), pa.decimal128(38, 0)) for n in (less.low, less.high))
        return _first(pc.or_(pc.less_equal(wide, low), pc.greater_equal(wide, high)))
    if pa.types.is_string(kind):
        sign, digits = "[+]?" if less.low >= -1 else "[+-]?", len(str(less.high)) - 1
        inside = rf"^\s*{sign}[0-9]{{0,{digits}}}(\.[0-9]*)?\s*$"
        maybe = pc.invert(pc.match_substring_regex(values, inside))
    else:
        near = pc.cast(values, pa.float64(), safe=False)  # good enough to tell who may be outside
        low_end, high_end = pa.scalar(less.low * 0.999), pa.scalar(less.high * 0.999)
        maybe = pc.or_(pc.less_equal(near, low_end), pc.greater_equal(near, high_end))

    def is_bad(value: Any) -> bool:
        number = _number(value) if isinstance(value, str) else Decimal(value)
        if number is None or number.is_nan():
            return False  # what it is, others say
        return not less.low < number < less.high

    return _one_by_one(values, maybe, is_bad)


def _no_such_day(values: Any, _: Narrow) -> int | None:
    try:
        pc.cast(pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(values), 0, 10), pa.date32())
    except pa.ArrowInvalid:
        return _one_by_one(values, pc.is_valid(values), _is_no_day)
    return None


def _is_no_day(text: str) -> bool:
    found = _ISO_DAY.match(text)
    if found is None:
        return False  # in another notation: whether it is a day, the database says
    try:
        date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return True
    return False


def _more_places(values: Any, less: Narrow) -> int | None:
    kind, places = values.type, less.limit
    if pa.types.is_decimal(kind):
        if places >= kind.scale:
            return None
        cut = pc.cast(values, pa.decimal128(38, places), safe=False)
        return _first(pc.not_equal(pc.cast(cut, kind, safe=False), values))
    texts = pc.cast(values, pa.string())
    plain = rf"^\s*[+-]?[0-9]*(\.[0-9]{{0,{places}}}0*)?\s*$"
    maybe = pc.invert(pc.match_substring_regex(texts, plain))

    def is_bad(text: str) -> bool:
        number = _number(text)
        if number is None or not number.is_finite():
            return False
        return -int(number.normalize().as_tuple().exponent) > places

    return _one_by_one(texts, maybe, is_bad)


def _with_clock(values: Any, _: Narrow) -> int | None:
    if pa.types.is_timestamp(values.type):
        return _parts_of(values, 86_400 * 10**MICROS)
    maybe = pc.invert(pc.match_substring_regex(values, _PLAIN_DAY))
    return _one_by_one(values, maybe, _has_clock)


def _has_clock(text: str) -> bool:
    """Say whether a text says more than a day and its midnight."""
    if day := _DAY.match(text):
        return _NOT_ZERO.search(day[2]) is not None
    clock = _CLOCK.search(text)
    return clock is not None and _NOT_ZERO.search(clock[0]) is not None


def _with_date(values: Any, _: Narrow) -> int | None:
    maybe = pc.invert(pc.match_substring_regex(values, _PLAIN_TIME))
    return _one_by_one(values, maybe, lambda t: bool(_DATED.search(t)))


def _finer(values: Any, less: Narrow) -> int | None:
    kept = less.limit
    if pa.types.is_timestamp(values.type):
        return _parts_of(values, 10 ** (MICROS - kept))

    def is_bad(text: str) -> bool:
        fraction = _FRACTION.search(text)
        return fraction is not None and len(fraction[1].rstrip("0")) > kept

    return _one_by_one(values, pc.match_substring(values, "."), is_bad)


def _with_zone(values: Any, _: Narrow) -> int | None:
    return _one_by_one(values, pc.match_substring(values, ":"), lambda t: bool(_OFFSET.search(t)))


def _parts_of(values: Any, unit: int) -> int | None:
    micros = pc.cast(pc.cast(values, pa.timestamp("us", values.type.tz)), pa.int64())
    whole = pc.multiply(pc.divide(micros, unit), unit)
    return _first(pc.not_equal(whole, micros))


def _longer(values: Any, less: Narrow) -> int | None:
    return _first(pc.greater(pc.utf8_length(values), pa.scalar(less.limit)))


LOOKS: dict[str, Callable[[Any, Narrow], int | None]] = {
    "null": _missing, "number": _no_number, "range": _out_of_range, "calendar": _no_such_day,
    "places": _more_places, "day": _with_clock, "time": _with_date, "clock": _finer,
    "zone": _with_zone, "length": _longer,
}  # fmt: skip
