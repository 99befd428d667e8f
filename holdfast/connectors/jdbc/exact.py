"""Look at values that a column may hold less of than the stream has, before they are sent.

Databases round and cut without a word: 1.005 into numeric(10,2), a moment into a DATE, blanks at
the end of a text.  By docs/values.md a value arrives exact, or its row is refused.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connect.rejects import ROW_CHARS_MAX, VALUE_CHARS_MAX, shown
from holdfast.errors import UserError
from holdfast.model.types import Type

WHOLE = ("int", "integer", "smallint", "bigint", "tinyint", "mediumint", "year")
PLACES = ("numeric", "decimal", "float", "double")
"""Types that round to the places that stand behind their names."""

MOMENTS = ("timestamp", "timestamp_tz")
CLOCKS = ("timestamp", "datetime", "time")
TEXTS = ("character varying", "varchar", "character", "char")
MICROS = 6

_SHAPE = re.compile(r"([a-z]+(?: precision| varying)?) ?(?:\((\d+)(?:, ?(\d+))?\))?", re.IGNORECASE)
_FRACTION = re.compile(r"(?::\d{1,2}|\d{6})\.(\d+)")
_OFFSET = re.compile(r"\d:\d{2}(?::\d{2}(?:\.\d+)?)? ?(?:Z|[+-]\d{2})", re.IGNORECASE)
_PLAIN_DAY = r"^\s*[0-9]+[-/.][0-9]+[-/.][0-9]+\s*$"
_DAY = re.compile(r"\s*(?:\d+([-/.])\d+\1\d+|\d{8})(.*)", re.DOTALL)
_CLOCK = re.compile(r"\d{1,2}:\d{2}\S*")
_PLAIN_TIME = r"^\s*[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?\s*$"
_DATED = re.compile(r"\d([-/.])\d+\1\d|(?<![.\d])\d{8}")
_MONEY = re.compile(r"[\s$,]")
_NOT_ZERO = re.compile(r"[1-9]")


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a column holds less of: places of a number or of a second, days, characters and so on.

    (A text for bytes is told as bytes, as PostgreSQL would read escapes in it.)
    """

    what: str
    limit: int = 0


SAID = {
    "places": ("it has more places than that and would be rounded", "ROUND"),
    "day": ("its time of day would be lost", "CAST ... AS DATE"),
    "time": ("its date would be lost", "CAST ... AS TIME"),
    "clock": ("its fraction of a second would be rounded", "DATE_TRUNC"),
    "zone": ("its offset would be lost", "CAST ... AS TIMESTAMP_TZ"),
    "length": ("it is longer than that", "SUBSTRING"),
}
"""What would happen, and the function that says that it may."""


def narrow(kind: Type, target: str) -> tuple[Narrow, ...]:
    """Return what a column of the database holds less of than a type; nothing if it holds all."""
    found = _SHAPE.match(target)
    if not found or target.endswith("]"):
        return ()
    name, first, second = found[1].lower(), found[2], found[3]
    if kind.kind == "string" and name == "bytea":
        return (Narrow("bytes"),)
    made = []
    if kind.kind in ("string", "decimal", "float", "double"):
        places = _places(name, first, second)
        if places is not None and not (kind.kind == "decimal" and kind.scale <= places):
            made.append(Narrow("places", places))
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
    if kind.kind == "string" and name in TEXTS and first:
        made.append(Narrow("length", int(first)))
    return tuple(made)


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

    def sent(self, batch: pa.RecordBatch, names: Sequence[str]) -> Any:
        """Return the column as it is sent.

        Raises UserError for the first row with a value that the database would change.
        """
        values: Any = batch.column(self.at)
        if self.narrow.what == "bytes":
            return pa.array([_hexadecimal(t) for t in values.to_pylist()], pa.string())
        bad = LOOKS[self.narrow.what](values, self.narrow.limit)
        if bad is not None:
            raise self._refused(batch, bad, names)
        if pa.types.is_decimal(values.type) and not self.narrow.limit:
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


def checks(table: str, columns: Sequence[tuple[str, Type, str]]) -> tuple[Exact, ...]:
    """Return what to look at, for columns given by name, type and type in the database."""
    return tuple(
        Exact(at, name, table, to, less)
        for at, (name, kind, to) in enumerate(columns)
        for less in narrow(kind, to)
    )


def row_of(batch: pa.RecordBatch, at: int, names: Sequence[str]) -> str:
    """Return a row as people should see it."""
    pairs = zip(names, batch.columns, strict=False)
    return shown(", ".join(f"{n} = {_text(c[at])}" for n, c in pairs), ROW_CHARS_MAX)


def _hexadecimal(text: str | None) -> str | None:
    return None if text is None else f"\\x{text.encode().hex()}"


def _text(value: Any) -> str:
    found = value.as_py()
    return "null" if found is None else str(found)


def _first(bad: Any) -> int | None:
    """Return where the first true value stands."""
    at = pc.index(pc.fill_null(bad, False), True).as_py()
    return at if at >= 0 else None


def _one_by_one(values: Any, maybe: Any, is_bad: Callable[[Any], bool]) -> int | None:
    """Return where the first value stands that is bad, of those that may be."""
    for at in pc.indices_nonzero(pc.fill_null(maybe, False)).to_pylist():
        if is_bad(values[at].as_py()):
            return int(at)
    return None


def _more_places(values: Any, places: int) -> int | None:
    kind = values.type
    if pa.types.is_decimal(kind):
        if places >= kind.scale:
            return None
        cut = pc.cast(values, pa.decimal128(38, places), safe=False)
        return _first(pc.not_equal(pc.cast(cut, kind, safe=False), values))
    texts = pc.cast(values, pa.string())
    plain = rf"^\s*[+-]?[0-9]*(\.[0-9]{{0,{places}}}0*)?\s*$"
    maybe = pc.invert(pc.match_substring_regex(texts, plain))

    def is_bad(text: str) -> bool:
        try:
            number = Decimal(_MONEY.sub("", text)).normalize()
        except DecimalException:
            return False  # no number: what it is, the database says
        return number.is_finite() and -int(number.as_tuple().exponent) > places

    return _one_by_one(texts, maybe, is_bad)


def _with_clock(values: Any, _: int) -> int | None:
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


def _with_date(values: Any, _: int) -> int | None:
    maybe = pc.invert(pc.match_substring_regex(values, _PLAIN_TIME))
    return _one_by_one(values, maybe, lambda t: bool(_DATED.search(t)))


def _finer(values: Any, kept: int) -> int | None:
    if pa.types.is_timestamp(values.type):
        return _parts_of(values, 10 ** (MICROS - kept))

    def is_bad(text: str) -> bool:
        fraction = _FRACTION.search(text)
        return fraction is not None and len(fraction[1].rstrip("0")) > kept

    return _one_by_one(values, pc.match_substring(values, "."), is_bad)


def _with_zone(values: Any, _: int) -> int | None:
    return _one_by_one(values, pc.match_substring(values, ":"), lambda t: bool(_OFFSET.search(t)))


def _parts_of(values: Any, unit: int) -> int | None:
    micros = pc.cast(pc.cast(values, pa.timestamp("us", values.type.tz)), pa.int64())
    whole = pc.multiply(pc.divide(micros, unit), unit)
    return _first(pc.not_equal(whole, micros))


def _longer(values: Any, most: int) -> int | None:
    return _first(pc.greater(pc.utf8_length(values), pa.scalar(most)))


LOOKS: dict[str, Callable[[Any, int], int | None]] = {
    "places": _more_places, "day": _with_clock, "time": _with_date, "clock": _finer,
    "zone": _with_zone, "length": _longer,
}  # fmt: skip
