"""Turn a value in a job file into a Spark SQL literal of a column's type.

The value is checked here, so that a mistake is reported with its place before Spark runs, and the
SQL that comes out always parses.  Rows and columns are given as SeaTunnel's JSON would give them: a
row is a list or a block, bytes are base64, dates and times are ISO text.
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation

from holdfast.connect.checks import CheckReport
from holdfast.connect.convert import shown
from holdfast.model.tree import Block, Items, Node, Scalar, to_plain
from holdfast.model.types import Type

WHOLE = {
    "tinyint": (-(2**7), 2**7 - 1),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
"""The least and the greatest value of each whole-number type."""

FLOAT_MAX = 3.4028234663852886e38

VECTORS = ("float_vector", "float16_vector", "bfloat16_vector")

_DATE = r"(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})"
_TIME = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_ZONE = r"\s*(Z|[+-]\d{2}:?\d{2})?(?:\[[\w/+-]+\])?"
_MOMENTS = {
    "date": re.compile(_DATE),
    "time": re.compile(_TIME),
    "timestamp": re.compile(rf"{_DATE}(?:[T ]+{_TIME})?"),
    "timestamp_tz": re.compile(rf"{_DATE}(?:[T ]+{_TIME})?{_ZONE}"),
}


@dataclass(frozen=True, slots=True)
class AnyValue:
    """An option that may hold any value; what it means depends on a column's type."""

    node: Node

    type_text = "any"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "AnyValue":
        """Keep the value as it is."""
        return cls(node)


def literal(node: Node, kind: Type, now: datetime | None = None) -> str:
    """Return a Spark SQL expression for a value as a column of this type holds it.

    Raises ValueError with a sentence if the value does not fit.  With `now`, the texts
    CURRENT_DATE, CURRENT_TIME and CURRENT_TIMESTAMP stand for it.
    """
    if kind.kind == "null" or (isinstance(node, Scalar) and node.value is None):
        return f"CAST(NULL AS {kind.ddl})"
    match kind.kind:
        case "array":
            return _array(node, kind, kind.parts[0])
        case "map":
            return _map(node, kind, kind.parts[0], kind.parts[1])
        case "row":
            return _row(node, kind)
        case "sparse_float_vector":
            return _map(node, kind, Type("int"), Type("float"))
        case name if name in VECTORS:
            return _array(node, kind, Type("float"))
        case "string":
            return text_literal(_text(node))
    if not isinstance(node, Scalar):
        raise ValueError(f"{shown(node)} is not a {kind}")
    return _scalar(node, kind, now)


def text_literal(text: str) -> str:
    """Return a text as Spark SQL quotes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def comparable(sql: str, kind: Type, depth: int = 0) -> str:
    """Return an expression that `=` can compare: maps, which it cannot, become sorted entries."""
    if not _has_map(kind):
        return sql
    one = f"m{depth}"
    match kind.kind:
        case "array":
            inner = comparable(one, kind.parts[0], depth + 1)
            return f"transform({sql}, {one} -> {inner})"
        case "row":
            fields = (
                comparable(f"{sql}.`{n.replace('`', '``')}`", t, depth + 1) for n, t in kind.fields
            )
            return f"struct({', '.join(fields)})"
        case "map":
            key, value = (comparable(f"{one}.{p}", t, depth + 1) for p, t in _entry(kind))
            pairs = (
                f"transform(map_entries({sql}), {one} -> struct({key} AS key, {value} AS value))"
            )
            return f"array_sort({pairs})"
        case _:
            return f"array_sort(map_entries({sql}))"


def _entry(kind: Type) -> tuple[tuple[str, Type], ...]:
    return ("key", kind.parts[0]), ("value", kind.parts[1])


def _has_map(kind: Type) -> bool:
    return kind.kind in ("map", "sparse_float_vector") or any(_has_map(p) for p in kind.parts)


def _text(node: Node) -> str:
    """Return a value as text; a list or block becomes the JSON that says the same."""
    if isinstance(node, Scalar):
        return node.text
    return json.dumps(to_plain(node), ensure_ascii=False, separators=(",", ":"))


def _array(node: Node, kind: Type, element: Type) -> str:
    if not isinstance(node, Items):
        raise ValueError(f"{shown(node)} is not a list, which {kind} needs")
    if not node.items:
        return f"CAST(array() AS {kind.ddl})"
    return f"array({', '.join(literal(item, element) for item in node.items)})"


def _map(node: Node, kind: Type, key: Type, value: Type) -> str:
    if not isinstance(node, Block):
        raise ValueError(f"{shown(node)} is not a block {{ ... }}, which {kind} needs")
    # `a.b = 1` is one key of a map with plain values; only the file's syntax nests it.
    plain = value.kind not in ("map", "row", "sparse_float_vector")
    pairs = node.leaves() if plain else ((e.key, e) for e in node.entries)
    parts = [f"{literal(Scalar(k, k, e.place), key)}, {literal(e.node, value)}" for k, e in pairs]
    return f"map({', '.join(parts)})" if parts else f"CAST(map() AS {kind.ddl})"


def _row(node: Node, kind: Type) -> str:
    values = row_values(node, kind.names)
    parts = (
        f"{text_literal(name)}, {literal(value, part)}"
        for (name, part), value in zip(kind.fields, values, strict=True)
    )
    return f"named_struct({', '.join(parts)})"


def row_values(node: Node, names: tuple[str, ...]) -> list[Node]:
    """Return the values of a row's fields in order; a block may leave some out, as nulls."""
    if isinstance(node, Items):
        if len(node.items) != len(names):
            raise ValueError(
                f"the row has {len(node.items)} values for {len(names)} fields ({', '.join(names)})"
            )
        return list(node.items)
    if not isinstance(node, Block):
        raise ValueError(f"{shown(node)} is not a row: give a list of values or a block")
    unknown = [e.key for e in node.entries if e.key not in names]
    if unknown:
        raise ValueError(f"there is no field '{unknown[0]}'. Fields: {', '.join(names)}")
    return [node.get(name) or Scalar(None, "null", node.place) for name in names]


def _scalar(node: Scalar, kind: Type, now: datetime | None) -> str:
    text = node.text.strip()
    if kind.kind in WHOLE:
        return f"CAST('{_whole(text, kind)}' AS {kind.ddl})"
    match kind.kind:
        case "boolean":
            if text.lower() in ("true", "false"):
                return text.upper()
        case "float" | "double":
            return f"CAST('{_float(text, kind)}' AS {kind.ddl})"
        case "decimal":
            return f"CAST('{_decimal(text, kind)}' AS {kind.ddl})"
        case "bytes" | "binary_vector":
            return f"X'{_bytes(text).hex()}'"
        case "date" | "time" | "timestamp" | "timestamp_tz":
            return f"CAST('{_moment(text, kind.kind, now)}' AS {kind.ddl})"
    raise ValueError(f"'{text}' is not a {kind}")


def _whole(text: str, kind: Type) -> int:
    least, greatest = WHOLE[kind.kind]
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"'{text}' is not a whole number, which {kind} needs") from None
    if not number.is_finite() or number != number.to_integral_value():
        raise ValueError(f"'{text}' is not a whole number, which {kind} needs")
    if not least <= number <= greatest:
        raise ValueError(f"{text} does not fit {kind}, which holds {least} to {greatest}")
    return int(number)


def _float(text: str, kind: Type) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a number, which {kind} needs") from None
    if kind.kind == "float" and FLOAT_MAX < abs(number) < float("inf"):
        raise ValueError(f"{text} does not fit float, which holds up to {FLOAT_MAX}")
    return number


def _decimal(text: str, kind: Type) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"'{text}' is not a number, which {kind} needs") from None
    if not number.is_finite():
        raise ValueError(f"'{text}' is not a number, which {kind} needs")
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    after = -exponent
    if after > kind.scale and any(digits[len(digits) - (after - kind.scale) :]):
        raise ValueError(f"{text} has more than {kind.scale} digits after the point of {kind}")
    if number.adjusted() >= kind.precision - kind.scale and any(digits):
        before = kind.precision - kind.scale
        raise ValueError(f"{text} has more than {before} digits before the point of {kind}")
    return f"{number:f}"


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"'{text}' is not base64, which bytes need") from None


def _moment(text: str, kind: str, now: datetime | None) -> str:
    """Return a date or time in the one form that Spark casts without doubt."""
    if now and text.upper() == f"CURRENT_{kind.upper()}".removesuffix("_TZ"):
        day, clock = now.isoformat().split("T")
        text = {"date": day, "time": clock}.get(kind, now.isoformat())
    found = _MOMENTS[kind].fullmatch(text)
    if not found:
        example = {"date": "2023-04-22", "time": "23:20:58"}.get(kind, "2023-04-22T23:20:58")
        raise ValueError(f"'{text}' is not a {kind} such as {example}")
    parts = list(found.groups())
    try:
        match kind:
            case "date":
                return _day(parts)
            case "time":
                return _clock(parts)
            case _:
                return f"{_day(parts)}T{_clock(parts[4:8])}{''.join(p or '' for p in parts[8:])}"
    except ValueError as error:
        raise ValueError(f"'{text}' is not a {kind}: {error}") from None


def _day(parts: list[str | None]) -> str:
    year, _, month, day = parts[:4]
    return date(int(year or 0), int(month or 0), int(day or 0)).isoformat()


def _clock(parts: list[str | None]) -> str:
    hour, minute, second, fraction = parts
    whole = time(int(hour or 0), int(minute or 0), int(second or 0)).isoformat()
    # Spark keeps microseconds.
    return f"{whole}.{fraction[:6]}" if fraction else whole
