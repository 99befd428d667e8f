"""Rules of SeaTunnel's CAST, COALESCE and their like, and LIKE."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from tests.parity.java import BITS, WHOLE, Fails, J, exact, narrowed, rounded, text, wrapped

WHOLE_FROM = {
    "tinyint": ("tinyint", "string"),
    "smallint": ("tinyint", "smallint", "string"),
}


def _to_whole(j: J, kind: str) -> int:
    value = j.value
    if j.kind not in WHOLE_FROM.get(kind, (j.kind,)) and j.kind not in WHOLE:
        raise Fails(j)
    if j.kind == "string":
        if not re.fullmatch(r"[+-]?\d+", value):
            raise Fails(j)
        return _in_range(int(value), kind)
    if kind in ("tinyint", "smallint"):
        return _in_range(value, kind)
    if j.kind == "decimal":
        return wrapped(int(value), kind)
    return narrowed(value, kind) if isinstance(value, float) else wrapped(value, kind)


def _in_range(number: int, kind: str) -> int:
    if wrapped(number, kind) != number:
        raise Fails((number, BITS[kind]))
    return number


def _to_double(j: J) -> float:
    try:
        return float(text(j))
    except ValueError as error:
        raise Fails(j) from error


def _to_decimal(j: J, scale: int) -> Decimal:
    try:
        number = Decimal(j.value) if j.kind == "string" else exact(j)
    except InvalidOperation as error:
        raise Fails(j) from error
    if j.kind == "string" and (j.value != j.value.strip() or not number.is_finite()):
        raise Fails(j)
    return rounded(number, scale)


def _to_boolean(j: J) -> bool:
    if j.kind == "boolean":
        return bool(j.value)
    if j.kind == "string" and j.value.upper() in ("TRUE", "FALSE"):
        return bool(j.value.upper() == "TRUE")
    if j.kind != "string" and int(j.value) in (0, 1):
        return int(j.value) == 1
    raise Fails(j)


def _to_moment(j: J, kind: str) -> Any:
    value = j.value
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None)
        return {"timestamp": plain, "date": plain.date(), "time": plain.time()}[kind]
    if isinstance(value, time) and kind == "time":
        return value
    if isinstance(value, date) and kind == "date":
        return value
    if j.kind == "bigint" and kind == "timestamp":
        return datetime.fromtimestamp(value // 1000, UTC).replace(
            tzinfo=None, microsecond=value % 1000 * 1000
        )
    if j.kind == "int" and kind != "timestamp":
        parts = (value // 10_000, value // 100 % 100, value % 100)
        try:
            return date(*parts) if kind == "date" else time(*parts)
        except ValueError as error:
            raise Fails(j) from error
    raise Fails(j)


def cast(j: J, kind: str, scale: int = 0) -> J:
    """By the text Java prints: digits alone make whole numbers, decimals are rounded up."""
    if j.value is None:
        return J(kind, None, scale=scale)
    made: Any
    if kind == "string":
        made = text(j)
    elif kind in WHOLE:
        made = _to_whole(j, kind)
    elif kind == "double":
        made = _to_double(j)
    elif kind == "decimal":
        made = _to_decimal(j, scale)
    elif kind == "boolean":
        made = _to_boolean(j)
    elif kind == "bytes":
        made = j.value if j.kind == "bytes" else text(j).encode()
    else:
        made = _to_moment(j, kind)
    return J(kind, made, scale=scale)


def coalesce(*args: J) -> J:
    """The first that is not NULL, cast to the type of the first."""
    found = next((a for a in args if a.value is not None), args[0])
    return cast(found, args[0].kind, args[0].scale)


def nullif(a: J, b: J) -> J:
    """NULL where Java's equals holds: of one type, of one scale, of one value."""
    same = a.kind == b.kind and a.scale == b.scale and a.value == b.value
    return J(a.kind, None if same else a.value, scale=a.scale)


def array(*items: J) -> J:
    """The items, as text where they are of several types."""
    kinds = {i.kind for i in items}
    if len(kinds) == 1:
        return J("array", [i.value for i in items])
    return J("array", [None if i.value is None else text(i) for i in items])


def array_max(items: J) -> J:
    """The largest."""
    return J("string", max((i for i in items.value if i is not None), default=None))


def array_min(items: J) -> J:
    """The smallest."""
    return J("string", min((i for i in items.value if i is not None), default=None))


def like(value: J, pattern: str) -> bool:
    """Percent and underscore at the edges are wildcards; all else is a regular expression."""
    if value.value is None:
        return False
    regex = pattern
    for sign, meant in (("%", ".*"), ("_", ".")):
        regex = meant + regex[1:] if regex.startswith(sign) else regex
        regex = regex[:-1] + meant if regex.endswith(sign) else regex
    return re.fullmatch(regex, value.value) is not None


OTHER: dict[str, Callable[..., J]] = {
    "COALESCE": coalesce, "IFNULL": coalesce, "NULLIF": nullif, "ARRAY": array,
    "ARRAY_MAX": array_max, "ARRAY_MIN": array_min,
}  # fmt: skip
