"""Number functions.

CEIL, FLOOR and SIGN give an int, MOD the type of its divisor without the errors of doubles, ROUND
the type of its first argument.  What has no result (LN of 0) fails, where Spark would give NULL.
"""

from math import e

from holdfast.connectors.sql.casts import shown
from holdfast.connectors.sql.jvm_functions import REMAINDER, TRIM_SCALE
from holdfast.connectors.sql.values import (
    BROKEN,
    DOUBLE,
    INT,
    NUMBERS,
    STRING,
    WHOLE,
    Function,
    FunctionCall,
    SqlValue,
    literal,
    template,
)
from holdfast.errors import UserError
from holdfast.model.types import MAX_PRECISION, Type

MULTIPLIER, ADDEND, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


def _of_double(name: str) -> Function:
    return template(f"{name}({{0}})", type=DOUBLE)


def _positive(call: FunctionCall, index: int, formula: str) -> str:
    """Return a formula that fails where an argument is not above zero."""
    value = call.sql(index)
    wrong = call.scope.fail(f"'{call.name.upper()}: '", shown(value), "' is not above zero.'")
    return f"if({value} <= 0, cast({wrong} AS double), {formula})"


def _cot(call: FunctionCall) -> SqlValue:
    # Spark gives infinity at zero.
    wrong = f"cast({call.scope.fail(literal('COT: division by zero.'))} AS double)"
    return SqlValue(f"if(tan({call.sql(0)}) = 0D, {wrong}, cot({call.sql(0)}))", DOUBLE)


def _ln(call: FunctionCall) -> SqlValue:
    return SqlValue(_positive(call, 0, f"ln({call.sql(0)})"), DOUBLE)


def _log10(call: FunctionCall) -> SqlValue:
    return SqlValue(_positive(call, 0, f"log10({call.sql(0)})"), DOUBLE)


def _log(call: FunctionCall) -> SqlValue:
    if len(call) == 1:
        return _ln(call)
    base, value = call.sql(0), call.sql(1)
    if call.args[0].literal == 10:
        return SqlValue(_positive(call, 1, f"log10({value})"), DOUBLE)
    # Dividing two logarithms misses the last digit for the two bases Java knows by heart.
    formula = f"CASE {base} WHEN {e!r}D THEN ln({value}) WHEN 10 THEN log10({value})"
    formula = f"{formula} ELSE ln({value}) / ln({base}) END"
    return SqlValue(_positive(call, 0, _positive(call, 1, formula)), DOUBLE)


def remainder(call: FunctionCall) -> SqlValue:
    """Return what is left after division, of the divisor's type and exact in decimal digits."""
    left, right = call.sql(0), call.sql(1)
    kinds, gives = (call.kind(0), call.kind(1)), _rest_type(call.type(0), call.type(1))
    if not all(k in NUMBERS for k in kinds):
        return SqlValue(f"({left} % {right})")
    wrong = "' divided by '", shown(right), "' has a rest that is not known.'"
    said = ("'MOD: '", shown(left), *wrong)
    missing = f"{left} IS NULL OR {right} IS NULL"
    if all(k in (*WHOLE, "decimal") for k in kinds):
        found = f"cast(try_mod({left}, {right}) AS {gives.ddl})"
        return SqlValue(call.scope.checked(found, missing, gives, *said), gives)
    # 13 % 5.4 is 2.1999999999999993 in doubles, and 2.2 by their digits.
    whole = "true" if gives.kind in WHOLE else "false"
    rest = f"{REMAINDER}(cast({left} AS double), cast({right} AS double), {whole})"
    found = f"try_cast({rest} AS {gives.ddl})"
    if gives.kind == "decimal":
        rest = f"{TRIM_SCALE}({rest})"
        digits = f"if(instr({rest}, '.') = 0, 0, length({rest}) - instr({rest}, '.'))"
        found = f"if({digits} <= {gives.scale}, {found}, NULL)"
    return SqlValue(call.scope.checked(found, missing, gives, *said), gives)


def _rest_type(left: Type, right: Type) -> Type:
    """Return the divisor's type; a decimal's has room for the decimals of both sides."""
    if right.kind != "decimal":
        return right
    before = right.precision - right.scale
    if left.kind in BROKEN:
        before = min(before, 20)
        return Type("decimal", MAX_PRECISION, MAX_PRECISION - before)
    if left.kind == "decimal":
        before = min(before, left.precision - left.scale)
    scale = max(left.scale, right.scale)
    return Type("decimal", before + scale or 1, scale)


def _to_whole(call: FunctionCall) -> SqlValue:
    name = "floor" if call.name.upper() == "FLOOR" else "ceil"
    digits = f", {call.sql(1)}" if call.given(1) else ""
    return SqlValue(f"cast({name}({call.sql(0)}{digits}) AS int)", INT)


def _round(call: FunctionCall) -> SqlValue:
    digits = f", {call.sql(1)}" if call.given(1) else ""
    rounded, gives = f"round({call.sql(0)}{digits})", call.type(0)
    # Spark narrows a decimal to the digits left; the column keeps its type.
    if gives.kind == "decimal":
        return SqlValue(f"cast({rounded} AS {gives.ddl})", gives)
    return SqlValue(rounded, gives if gives.kind in NUMBERS else None)


def _sign(call: FunctionCall) -> SqlValue:
    value = f"nanvl({call.sql(0)}, 0)" if call.kind(0) in BROKEN else call.sql(0)
    return SqlValue(f"cast(sign({value}) AS int)", INT)


def _truncate(call: FunctionCall) -> SqlValue:
    """Cut digits off, towards zero."""
    value, digits = call.sql(0), call.sql(1) if call.given(1) else "0"
    cut = f"if({value} < 0, ceil({value}, {digits}), floor({value}, {digits}))"
    if call.kind(0) in (*WHOLE, "decimal"):
        return SqlValue(f"cast({cut} AS {call.type(0).ddl})", call.type(0))
    # Beyond 15 digits a double has no decimals left to cut.
    sql = f"if(abs({value}) >= 1e15D, cast({value} AS double), cast({cut} AS double))"
    return SqlValue(sql, DOUBLE)


def _random(call: FunctionCall) -> SqlValue:
    if not call.given(0):
        return SqlValue("rand()", DOUBLE)
    seed = call.whole(0)
    if seed is None:
        raise UserError(f"{call.name}: the seed must be a whole number, not {call.sql(0)}.")
    return SqlValue(f"{first_random(seed)!r}D", DOUBLE)


def first_random(seed: int) -> float:
    """Return the first double of Java's Random: a seed gives every row the same number."""
    state = (seed ^ MULTIPLIER) & MASK
    bits = []
    for size in (26, 27):
        state = (state * MULTIPLIER + ADDEND) & MASK
        bits.append(state >> (48 - size))
    return float((bits[0] << 27) + bits[1]) * 2.0**-53


def _trim_scale(call: FunctionCall) -> SqlValue:
    """Return a number as text, without zeros at its end and without an exponent."""
    value, plain = call.sql(0), f"cast({call.sql(0)} AS string)"
    if call.kind(0) in WHOLE:
        return SqlValue(plain, STRING)
    if call.kind(0) == "decimal":
        shorter = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {plain}))"
        return SqlValue(f"if(instr({plain}, '.') > 0, {shorter}, {plain})", STRING)
    said = ("'TRIM_SCALE: '", shown(value), "' is no number.'")
    found = call.scope.checked(f"{TRIM_SCALE}({plain})", f"{value} IS NULL", STRING, *said)
    return SqlValue(found, STRING)


NUMBER = {
    "ABS": Function(1, 1, lambda call: SqlValue(f"abs({call.sql(0)})", call.args[0].type)),
    **{
        name: _of_double(name.lower())
        for name in (
            "ACOS", "ASIN", "ATAN", "COS", "COSH", "SIN", "SINH", "TAN", "TANH", "EXP", "RADIANS",
            "SQRT",
        )
    },
    "COT": Function(1, 1, _cot),
    "ATAN2": template("atan2({0}, {1})", 2, DOUBLE),
    "MOD": Function(2, 2, remainder),
    "CEIL": Function(1, 2, _to_whole),
    "CEILING": Function(1, 2, _to_whole),
    "FLOOR": Function(1, 2, _to_whole),
    "LN": Function(1, 1, _ln),
    "LOG": Function(1, 2, _log),
    "LOG10": Function(1, 1, _log10),
    "PI": template("pi()", 0, DOUBLE),
    "POWER": template("power({0}, {1})", 2, DOUBLE),
    "RAND": Function(0, 1, _random),
    "RANDOM": Function(0, 1, _random),
    "ROUND": Function(1, 2, _round),
    "SIGN": Function(1, 1, _sign),
    "TRUNC": Function(1, 2, _truncate),
    "TRUNCATE": Function(1, 2, _truncate),
    "TRIM_SCALE": Function(1, 1, _trim_scale),
}  # fmt: skip
