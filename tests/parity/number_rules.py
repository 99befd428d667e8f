"""Rules of SeaTunnel's number functions, operators and comparisons."""

import math
import operator as operator_
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from tests.parity.java import NUMBERS, WHOLE, WIDE, Fails, J, exact, narrowed, rounded, wrapped

NUMBER: dict[str, Callable[..., J]] = {}
COMPARED = {
    ">": operator_.gt, ">=": operator_.ge, "<": operator_.lt, "<=": operator_.le,
}  # fmt: skip


def _plain(j: J) -> float:
    return float(j.value)


def _double(name: str, function: Callable[..., float], sentence: str) -> None:
    def call(*args: J) -> J:
        if any(a.value is None for a in args):
            return J("double", None)
        try:
            return J("double", function(*map(_plain, args)))
        except OverflowError:
            return J("double", math.inf)
        except ValueError:
            return J("double", math.nan)

    call.__name__, call.__doc__ = name.lower(), sentence
    NUMBER[name] = call


for _name in ("acos", "asin", "atan", "cos", "sin", "tan", "tanh", "cosh", "sinh", "exp", "sqrt"):
    _double(_name.upper(), getattr(math, _name), f"Java's {_name} of the number as a double.")
_double("RADIANS", lambda x: x / 180 * math.pi, "Degrees as radians.")
_double("ATAN2", math.atan2, "The angle of two numbers as doubles.")
_double("POWER", math.pow, "One double to the power of another.")


def cot(x: J) -> J:
    """One by the tangent; where that is zero the job fails."""
    if x.value is None:
        return J("double", None)
    if math.tan(x.value) == 0:
        raise Fails(x)
    return J("double", 1 / math.tan(x.value))


def _positive(*args: J) -> bool:
    if any(a.value is None for a in args):
        return False
    if any(a.value <= 0 for a in args):
        raise Fails(args)
    return True


def ln(x: J) -> J:
    """The natural logarithm; fails at zero and below."""
    return J("double", math.log(x.value) if _positive(x) else None)


def log10(x: J) -> J:
    """The logarithm to 10; fails at zero and below."""
    return J("double", math.log10(x.value) if _positive(x) else None)


def log(base: J, x: J) -> J:
    """The logarithm to a base, the base first; fails where one is not above zero."""
    if not _positive(base) or not _positive(x):
        return J("double", None)
    if base.value == 10:
        return J("double", math.log10(x.value))
    return J("double", math.log(x.value) / math.log(base.value))


def absolute(x: J) -> J:
    """Without the sign, of the same type."""
    return J(x.kind, None if x.value is None else abs(x.value), scale=x.scale)


def mod(a: J, b: J) -> J:
    """What is left after dividing by digits, with the sign of the first, as the second's type."""
    if a.value is None or b.value is None:
        return J(b.kind, None)
    if exact(b) == 0:
        raise Fails(b)
    rest = WIDE.remainder(exact(a), exact(b)) or Decimal(0)
    return J(b.kind, _as(rest, b), scale=b.scale)


def _as(number: Decimal, like: J) -> Any:
    if like.kind in WHOLE:
        return wrapped(int(number), like.kind)
    return number if like.kind == "decimal" else float(number)


def _round(x: J, digits: J | None, way: str) -> J:
    if x.value is None:
        return x
    scale = digits.value if digits is not None and digits.value is not None else 0
    if x.kind in WHOLE and scale >= 0:
        return x
    if x.kind == "double" and (math.isnan(x.value) or math.isinf(x.value)):
        return x
    return J(x.kind, _as(rounded(exact(x), scale, way), x), scale=x.scale)


def round_(x: J, digits: J | None = None) -> J:
    """Half away from zero, of the same type."""
    return _round(x, digits, ROUND_HALF_UP)


def trunc(x: J, digits: J | None = None) -> J:
    """Towards zero, of the same type."""
    return _round(x, digits, ROUND_DOWN)


def _int(x: J) -> J:
    if x.value is None:
        return J("int", None)
    if x.kind in WHOLE:
        return J("int", wrapped(x.value, "int"))
    return J("int", narrowed(float(x.value), "int"))


def ceil(x: J, digits: J | None = None) -> J:
    """Up to a whole number, or to digits; then as an int (2.3.9)."""
    return _int(_round(x, digits, ROUND_CEILING))


def floor(x: J, digits: J | None = None) -> J:
    """Down to a whole number, or to digits; then as an int (2.3.9)."""
    return _int(_round(x, digits, ROUND_FLOOR))


def sign(x: J) -> J:
    """-1, 0 or 1; 0 for what is no number."""
    if x.value is None:
        return J("int", None)
    return J("int", (x.value > 0) - (x.value < 0))


def trim_scale(x: J) -> J:
    """All digits as text, without zeros at the end and without an exponent."""
    if x.value is None:
        return J("string", None)
    plain = f"{exact(x):f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return J("string", "0" if plain in ("-0", "") else plain)


def _wide(kinds: tuple[str, str]) -> str:
    if "decimal" in kinds:
        return "decimal"
    if "double" in kinds or "float" in kinds:
        return "double"
    return "bigint" if "bigint" in kinds else "int"


def arithmetic(operator: str, a: J, b: J) -> J:
    """In the wider type: whole numbers wrap and are cut, decimals are rounded half up."""
    kind, scale = _wide((a.kind, b.kind)), max(a.scale, b.scale)
    if a.value is None or b.value is None:
        return J(kind, None)
    if kind == "double":
        return J(kind, _on_doubles(operator, float(a.value), float(b.value)))
    left, right = exact(a), exact(b)
    if operator in "/%" and right == 0:
        raise Fails(operator)
    if kind == "decimal":
        found = {
            "+": WIDE.add, "-": WIDE.subtract, "*": WIDE.multiply, "/": WIDE.divide,
            "%": WIDE.remainder,
        }[operator](left, right)  # fmt: skip
        return J(kind, rounded(found, scale, ROUND_HALF_UP), scale=scale)
    one, two = int(a.value), int(b.value)
    cut = abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1) if operator in "/%" else 0
    found_whole = {
        "+": one + two, "-": one - two, "*": one * two, "/": cut, "%": one - cut * two
    }[operator]  # fmt: skip
    return J(kind, wrapped(found_whole, kind))


def _on_doubles(operator: str, a: float, b: float) -> float:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            if b == 0:
                return (
                    math.nan
                    if a == 0 or a != a
                    else math.copysign(math.inf, a) * (math.copysign(1, b))
                )
            return a / b
    return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)


def _equal(a: J, b: J) -> bool:
    if a.kind in NUMBERS and b.kind in NUMBERS:
        return bool(a.value == b.value)
    return a.kind == b.kind and bool(a.value == b.value)


def compare(operator: str, a: J, b: J) -> bool:
    """Numbers by value, others within their type; `<>` holds where one side is NULL, no other."""
    if operator == "<>":
        if a.value is None:
            return b.value is not None
        return b.value is None or not _equal(a, b)
    if a.value is None or b.value is None:
        return False
    if operator == "=":
        return _equal(a, b)
    both = a.kind in NUMBERS and b.kind in NUMBERS
    if not both and a.kind != b.kind:
        raise Fails(operator)
    # NaN beside a decimal: Java compares doubles, and so nothing holds.
    one, other = (float(x.value) if x.kind in NUMBERS else x.value for x in (a, b))
    return bool(COMPARED[operator](one, other))


def among(negated: bool, value: J, *items: J) -> bool:
    """The first item that is equal decides; a NULL value is in no list that begins with another."""
    for item in items:
        if value.value is None:
            return item.value is None
        if item.value is not None and _equal(value, item):
            return not negated
    return negated


NUMBER |= {
    "COT": cot, "LN": ln, "LOG": log, "LOG10": log10, "ABS": absolute, "MOD": mod, "ROUND": round_,
    "TRUNC": trunc, "TRUNCATE": trunc, "CEIL": ceil, "CEILING": ceil, "FLOOR": floor, "SIGN": sign,
    "TRIM_SCALE": trim_scale,
}  # fmt: skip
