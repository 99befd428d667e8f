"""Operators whose result depends on the types of both sides.

Whole numbers stay whole (7 / 2 is 3), a float or double makes doubles, a decimal makes a decimal
of the larger precision and scale.  `<>` is true where one side is NULL, as in SeaTunnel.
"""

from collections.abc import Sequence

from holdfast.connectors.sql.casts import shown, widest
from holdfast.connectors.sql.values import (
    BIGINT,
    BOOLEAN,
    BROKEN,
    DOUBLE,
    INT,
    NULL,
    NUMBERS,
    WHOLE,
    Scope,
    SqlValue,
    literal,
    type_of,
)
from holdfast.errors import UserError
from holdfast.model.types import MAX_PRECISION, Type

MOVABLE = ("date", "time", "timestamp", "timestamp_tz", "string", "")


def arithmetic(sign: str, left: SqlValue, right: SqlValue, scope: Scope) -> SqlValue:
    """Return `left sign right` in the type SeaTunnel would give it."""
    types = (type_of(left, scope), type_of(right, scope))
    kinds = [t.kind for t in types]
    if "" in kinds or "null" in kinds:
        return SqlValue(f"({left.sql} {sign} {right.sql})")
    if all(k in WHOLE for k in kinds):
        return _whole(sign, left, right, scope, BIGINT if "bigint" in kinds else INT)
    if all(k in NUMBERS for k in kinds):
        if "decimal" in kinds:
            return _decimal(sign, left, right, types, scope)
        return _double(sign, left, right, types)
    if sign in "+-" and all(k in MOVABLE for k in kinds) and set(kinds) != {"string"}:
        return SqlValue(f"({left.sql} {sign} {right.sql})")
    raise UserError(
        f"'{sign}' needs two numbers, but {left.sql} is {types[0]} and {right.sql} is {types[1]}."
        " Cast them first, or use || to join texts."
    )


def _whole(sign: str, left: SqlValue, right: SqlValue, scope: Scope, gives: Type) -> SqlValue:
    right = _nonzero(sign, left, right, gives, scope)
    if sign == "/":
        return SqlValue(f"cast({left.sql} div {right.sql} AS {gives.ddl})", gives)
    # Spark would keep tinyint + tinyint a tinyint, which overflows at 127.
    return SqlValue(f"(cast({left.sql} AS {gives.ddl}) {sign} {right.sql})", gives)


def _nonzero(sign: str, left: SqlValue, right: SqlValue, type: Type, scope: Scope) -> SqlValue:
    """Return a divisor that stops the job where it is zero, in words that name the division."""
    if sign not in "/%" or right.literal not in (None, 0):
        return right
    said = literal(f"{left.sql} {sign} {right.sql}: ")
    stop = scope.fail(said, f"coalesce({shown(left.sql)}, 'NULL')", "' divided by zero.'")
    checked = f"if({right.sql} = 0, cast({stop} AS {type.ddl}), {right.sql})"
    return SqlValue(checked, right.type, right.literal, right.written)


def _double(sign: str, left: SqlValue, right: SqlValue, types: tuple[Type, Type]) -> SqlValue:
    a, b = (
        v.sql if t == DOUBLE else f"cast({v.sql} AS double)"
        for v, t in zip((left, right), types, strict=True)
    )
    plain = f"({a} {sign} {b})"
    if sign not in "/%" or right.literal not in (None, 0):
        return SqlValue(plain, DOUBLE)
    # Spark fails on zero; doubles know infinity and not-a-number.
    edge = "Infinity" if sign == "/" else "NaN"
    return SqlValue(f"if({b} = 0D, {a} * double('{edge}'), {plain})", DOUBLE)


def _decimal(
    sign: str, left: SqlValue, right: SqlValue, types: tuple[Type, Type], scope: Scope
) -> SqlValue:
    gives = widest(list(types))
    assert gives is not None  # both are numbers
    # A double next to a decimal is read by its digits, so that 0.1 is a tenth.
    digits = f"decimal({MAX_PRECISION},18)"
    a, b = (
        f"cast({v.sql} AS {digits})" if t.kind in BROKEN else v.sql
        for v, t in zip((left, right), types, strict=True)
    )
    b = _nonzero(sign, left, SqlValue(b, types[1], right.literal), types[1], scope).sql
    return SqlValue(f"cast({a} {sign} {b} AS {gives.ddl})", gives)


def comparison(sign: str, left: SqlValue, right: SqlValue, scope: Scope) -> SqlValue:
    """Return a comparison, as Java would compare.

    A text and a number are never equal; which of them is larger is decided by the number in the
    text.  Nothing is equal to, below or above what is not a number (NaN).
    """
    kinds = (type_of(left, scope).kind, type_of(right, scope).kind)
    if _are_apart(*kinds):
        if sign in ("=", "<>", "<=>"):
            return _never_equal(sign, left.sql, right.sql)
        left, right = (
            _number(v, scope) if kind == "string" else v
            for v, kind in zip((left, right), kinds, strict=True)
        )
        kinds = (type_of(left, scope).kind, type_of(right, scope).kind)
    a, b, guard = left.sql, right.sql, _not_nan(sign, (left, right), kinds)
    if sign == "<>":
        return SqlValue(f"(NOT ({a} <=> {b}){f' OR isnan({guard})' if guard else ''})", BOOLEAN)
    return SqlValue(f"({a} {sign} {b}{f' AND NOT isnan({guard})' if guard else ''})", BOOLEAN)


def _never_equal(sign: str, a: str, b: str) -> SqlValue:
    if sign == "=":
        return SqlValue(f"if({a} IS NULL OR {b} IS NULL, NULL, false)", BOOLEAN)
    both = f"({a} IS NULL AND {b} IS NULL)"
    return SqlValue(both if sign == "<=>" else f"(NOT {both})", BOOLEAN)


def _number(value: SqlValue, scope: Scope) -> SqlValue:
    """Return a text as the number it says, for a comparison; a text that says none is a mistake."""
    sql = value.sql
    said = literal(f"{sql} is compared with a number: ")
    rule = literal(" is no number. CAST one side so that both are of one type.")
    missing = f"{sql} IS NULL"
    checked = scope.checked(f"try_cast({sql} AS double)", missing, DOUBLE, said, shown(sql), rule)
    return SqlValue(checked, DOUBLE)


def _not_nan(sign: str, sides: tuple[SqlValue, SqlValue], kinds: tuple[str, str]) -> str:
    """Return the side whose NaN Spark would let pass: for Spark it is the largest number."""
    if sign == "<=>":
        return ""
    if sign in ("=", "<>"):
        both = all(k in BROKEN for k in kinds) and not any(v.written for v in sides)
        return sides[0].sql if both else ""
    at = 1 if sign in ("<", "<=") else 0
    return sides[at].sql if kinds[at] in BROKEN and not sides[at].written else ""


def among(value: SqlValue, items: Sequence[SqlValue], scope: Scope) -> SqlValue:
    """Return an IN.  NULL in the list never matches, and does not make NOT IN unknown."""
    kind = type_of(value, scope).kind
    kinds = [type_of(v, scope).kind for v in items]
    apart = [v for v, k in zip(items, kinds, strict=True) if not _are_apart(kind, k)]
    known = [v for v in apart if v != NULL]
    if not known:
        return SqlValue(f"({value.sql} IS NULL AND NULL)", BOOLEAN)
    written = all(v.written for v in known)
    alike = {kind, *(type_of(v, scope).kind for v in known)} == {kind}
    if alike and (written or kind not in BROKEN):
        found = f"{value.sql} IN ({', '.join(v.sql for v in known)})"
    else:
        found = " OR ".join(comparison("=", value, v, scope).sql for v in known)
    if written:
        return SqlValue(f"({found})", BOOLEAN)
    return SqlValue(f"if({value.sql} IS NULL, NULL, coalesce({found}, false))", BOOLEAN)


def _are_apart(one: str, other: str) -> bool:
    """Say whether two kinds are a text and a number, which are never equal."""
    return (one == "string" and other in NUMBERS) or (other == "string" and one in NUMBERS)


def like(sign: str, left: SqlValue, right: SqlValue, escape: str = "") -> SqlValue:
    """Return a LIKE.  A backslash escapes %, _ and itself; before anything else it is a letter."""
    pattern = right.sql
    if isinstance(right.literal, str) and not escape and "RLIKE" not in sign:
        pattern = _like_pattern(right.literal)
    return SqlValue(f"({left.sql} {sign} {pattern}{escape})", BOOLEAN)


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
