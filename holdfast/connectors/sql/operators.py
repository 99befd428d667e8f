"""Operators whose result depends on the types of both sides.

Whole numbers stay whole (7 / 2 is 3), a float or double makes doubles, a decimal makes a decimal
of the larger precision and scale.  `<>` is true where one side is NULL, as in SeaTunnel.
"""

from holdfast.connectors.sql.casts import widest
from holdfast.connectors.sql.values import (
    BIGINT,
    BOOLEAN,
    BROKEN,
    DOUBLE,
    INT,
    NUMBERS,
    WHOLE,
    TypeOf,
    Value,
    literal,
    type_of,
)
from holdfast.errors import UserError
from holdfast.model.types import MAX_PRECISION, Type

MOVABLE = ("date", "time", "timestamp", "timestamp_tz", "string", "")


def arithmetic(sign: str, left: Value, right: Value, ask: TypeOf) -> Value:
    """Return `left sign right` in the type SeaTunnel would give it."""
    types = (type_of(left, ask), type_of(right, ask))
    kinds = [t.kind for t in types]
    if "" in kinds or "null" in kinds:
        return Value(f"({left.sql} {sign} {right.sql})")
    if all(k in WHOLE for k in kinds):
        return _whole(sign, left, right, BIGINT if "bigint" in kinds else INT)
    if all(k in NUMBERS for k in kinds):
        if "decimal" in kinds:
            return _decimal(sign, left, right, types)
        return _double(sign, left, right, types)
    if sign in "+-" and all(k in MOVABLE for k in kinds) and set(kinds) != {"string"}:
        return Value(f"({left.sql} {sign} {right.sql})")
    raise UserError(
        f"'{sign}' needs two numbers, but {left.sql} is {types[0]} and {right.sql} is {types[1]}."
        " Cast them first, or use || to join texts."
    )


def _whole(sign: str, left: Value, right: Value, gives: Type) -> Value:
    if sign == "/":
        return Value(f"cast({left.sql} div {right.sql} AS {gives.ddl})", gives)
    # Spark would keep tinyint + tinyint a tinyint, which overflows at 127.
    return Value(f"(cast({left.sql} AS {gives.ddl}) {sign} {right.sql})", gives)


def _double(sign: str, left: Value, right: Value, types: tuple[Type, Type]) -> Value:
    a, b = (
        v.sql if t == DOUBLE else f"cast({v.sql} AS double)"
        for v, t in zip((left, right), types, strict=True)
    )
    plain = f"({a} {sign} {b})"
    if sign not in "/%" or right.literal not in (None, 0):
        return Value(plain, DOUBLE)
    # Spark fails on zero; doubles know infinity and not-a-number.
    edge = "Infinity" if sign == "/" else "NaN"
    return Value(f"if({b} = 0D, {a} * double('{edge}'), {plain})", DOUBLE)


def _decimal(sign: str, left: Value, right: Value, types: tuple[Type, Type]) -> Value:
    gives = widest(list(types))
    assert gives is not None  # both are numbers
    # A double beside a decimal is read by its digits, so that 0.1 is a tenth.
    digits = f"decimal({MAX_PRECISION},18)"
    a, b = (
        f"cast({v.sql} AS {digits})" if t.kind in BROKEN else v.sql
        for v, t in zip((left, right), types, strict=True)
    )
    return Value(f"cast({a} {sign} {b} AS {gives.ddl})", gives)


def comparison(sign: str, left: Value, right: Value, ask: TypeOf) -> Value:
    """Return a comparison.  A text beside a number is compared as a number if it is one."""
    a, b = left.sql, right.sql
    kinds = (type_of(left, ask).kind, type_of(right, ask).kind)
    if kinds[0] == "string" and kinds[1] in NUMBERS:
        a = f"try_cast({a} AS double)"
    if kinds[1] == "string" and kinds[0] in NUMBERS:
        b = f"try_cast({b} AS double)"
    if sign == "<>":
        return Value(f"(NOT ({a} <=> {b}))", BOOLEAN)
    return Value(f"({a} {sign} {b})", BOOLEAN)


def like(sign: str, left: Value, right: Value, escape: str = "") -> Value:
    """Return a LIKE.  A backslash escapes %, _ and itself; before anything else it is a letter."""
    pattern = right.sql
    if isinstance(right.literal, str) and not escape and "RLIKE" not in sign:
        pattern = _like_pattern(right.literal)
    return Value(f"({left.sql} {sign} {pattern}{escape})", BOOLEAN)


def _like_pattern(pattern: str) -> str:
    made, at = "", 0
    while at < len(pattern):
        pair = pattern[at : at + 2]
        if pair[0] != "\\":
            made += pair[0]
        elif pair in ("\\%", "\\_", "\\\\"):
            made += pair
            at += 1
        else:
            made += "\\\\"
        at += 1
    return literal(made)
