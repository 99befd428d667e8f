"""Functions that are about no one type, and the table of all functions."""

from holdfast.connectors.sql.casts import cast, widest
from holdfast.connectors.sql.functions_number import NUMBER
from holdfast.connectors.sql.functions_spark import AGGREGATES, PASSED, WINDOWS
from holdfast.connectors.sql.functions_text import TEXT
from holdfast.connectors.sql.functions_time import MOMENT
from holdfast.connectors.sql.values import (
    BOOLEAN,
    STRING,
    Function,
    FunctionCall,
    SqlValue,
    template,
)
from holdfast.errors import UserError
from holdfast.model.types import Type

_NO_DES = (
    "Spark has no DES, which has long been broken. Use a Python transform in its place:"
    " docs/sql-functions.md#des has one that reads and writes what SeaTunnel's does."
)
REFUSED = {"DES_ENCRYPT": _NO_DES, "DES_DECRYPT": _NO_DES}


def _coalesce(call: FunctionCall) -> SqlValue:
    """Return the first that is not NULL, in the type of the first argument."""
    known = [call.type(i) for i in range(len(call))]
    to = next((t for t in known if t.kind != "null"), None)
    if to is None or not to.kind:
        return SqlValue(f"coalesce({', '.join(a.sql for a in call.args)})")
    parts = (cast(a, to, call.scope).sql for a in call.args)
    return SqlValue(f"coalesce({', '.join(parts)})", to)


def _nullif(call: FunctionCall) -> SqlValue:
    """Return NULL for two values that are equal to Java: of one type, too."""
    types = (call.type(0), call.type(1))
    known = all(t.kind not in ("", "null") for t in types)
    apart = types[0].kind != types[1].kind or types[0].scale != types[1].scale
    if known and apart:
        return SqlValue(call.sql(0), types[0])
    return SqlValue(f"nullif({call.sql(0)}, {call.sql(1)})", call.args[0].type)


def _array(call: FunctionCall) -> SqlValue:
    if not len(call):
        return SqlValue("cast(array() AS array<string>)", Type("array", parts=(STRING,)))
    items, element = alike(call)
    made = Type("array", parts=(element,)) if element else None
    return SqlValue(f"array({', '.join(items)})", made)


def alike(call: FunctionCall) -> tuple[list[str], Type | None]:
    """Return the arguments as one type, and that type; as they are where none is known."""
    to = widest([call.type(i) for i in range(len(call))])
    if to is None:
        return [a.sql for a in call.args], None
    return [cast(a, to, call.scope).sql for a in call.args], to


def _multi_if(call: FunctionCall) -> SqlValue:
    if len(call) % 2 == 0:
        raise UserError("MULTI_IF: give pairs of condition and value, then a value for the rest.")
    values = FunctionCall(call.name, (*call.args[1::2], call.args[-1]), call.scope)
    sqls, gives = alike(values)
    whens = " ".join(f"WHEN {c.sql} THEN {v}" for c, v in zip(call.args[:-1:2], sqls, strict=False))
    return SqlValue(f"CASE {whens} ELSE {sqls[-1]} END", gives)


def _cast_to(kind: str) -> Function:
    return Function(1, 1, lambda call: cast(call.args[0], Type(kind), call.scope))


def _passed(call: FunctionCall) -> str:
    return f"{call.name.lower()}({', '.join(a.sql for a in call.args)})"


FUNCTIONS: dict[str, Function] = {
    **{name: Function(0, None, _passed) for name in sorted(PASSED | AGGREGATES | WINDOWS)},
    **TEXT,
    **NUMBER,
    **MOMENT,
    "COALESCE": Function(1, None, _coalesce),
    "IFNULL": Function(2, 2, _coalesce),
    "NULLIF": Function(2, 2, _nullif),
    "MULTI_IF": Function(3, None, _multi_if),
    "UUID": template("uuid()", 0, STRING),
    "ARRAY": Function(0, None, _array),
    "ARRAY_MAX": template("array_max({0})"),
    "ARRAY_MIN": template("array_min({0})"),
    "BINARY": _cast_to("bytes"),
    "BYTE": _cast_to("tinyint"),
    "ISNULL": template("({0} IS NULL)", type=BOOLEAN),
}
"""Every function a query may call, by its name in capitals."""
