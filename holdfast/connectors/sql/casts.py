"""CAST and TRY_CAST as SeaTunnel does them.

A bigint becomes a timestamp as milliseconds, an int a date as yyyymmdd and a time as HHmmss; a
float becomes the double it is written as; what has too many decimals for a DECIMAL becomes the next
larger one that fits.  What cannot be cast fails the job, or is NULL with TRY.
"""

from sqlglot import exp

from holdfast.connectors.sql.jvm_functions import CEILING
from holdfast.connectors.sql.values import (
    BROKEN,
    MOMENTS,
    NUMBERS,
    WHOLE,
    Scope,
    SqlValue,
    literal,
    type_of,
)
from holdfast.errors import UserError
from holdfast.model.types import MAX_PRECISION, Type, row

SHOWN = 60
"""How much of a value an error shows, in characters."""

TYPES = {
    "TEXT": "string", "VARCHAR": "string", "CHAR": "string", "NCHAR": "string",
    "NVARCHAR": "string", "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint",
    "INT": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "DATE": "date",
    "TIME": "time", "TIMESTAMP": "timestamp", "DATETIME": "timestamp", "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamp_tz", "TIMESTAMPLTZ": "timestamp_tz", "BINARY": "bytes",
    "VARBINARY": "bytes",
}  # fmt: skip

TIMES = ("date", "time", *MOMENTS)

GOOD = (
    "STRING, VARCHAR, BOOLEAN, TINYINT, BYTE, SMALLINT, INT, BIGINT, LONG, FLOAT, DOUBLE,"
    " DECIMAL(p,s), DATE, TIME, TIMESTAMP, DATETIME, BYTES, BINARY, ARRAY<..>, MAP<..>"
)


def read_type(node: exp.DataType) -> Type:
    """Return the type a query names, or raise UserError with the good ones."""
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    parts = tuple(node.expressions)
    if name == "DECIMAL":
        return _decimal([int(p.this.name) for p in parts])
    if name in ("ARRAY", "LIST") and parts:
        return Type("array", parts=(read_type(parts[0]),))
    if name == "MAP" and len(parts) == 2:
        return Type("map", parts=(read_type(parts[0]), read_type(parts[1])))
    if name == "STRUCT" and parts:
        return row({p.name: read_type(p.args["kind"]) for p in parts})
    if name in TYPES:
        return Type(TYPES[name])
    raise UserError(f"'{node.sql()}' is not a type that CAST knows. Types: {GOOD}.")


def _decimal(numbers: list[int]) -> Type:
    precision, scale = (*numbers, 0)[:2] if numbers else (MAX_PRECISION, 18)
    if not 0 < precision <= MAX_PRECISION or scale > precision:
        raise UserError(
            f"DECIMAL({precision},{scale}) does not fit: give at most {MAX_PRECISION} digits, and"
            " no more of them after the point than in all."
        )
    return Type("decimal", precision, scale)


def cast(
    value: SqlValue, to: Type, scope: Scope, lenient: bool = False, said: str = ""
) -> SqlValue:
    """Return a value as another type; lenient gives NULL where that fails.

    `said` is the expression as the query has it, for an error.
    """
    found = type_of(value, scope)
    if found == to:
        return value
    _check(found, to, said)
    special = _special(value, found, to, scope, lenient)
    if special is not None:
        return SqlValue(special, to)
    if lenient:
        return SqlValue(_tried(value.sql, found, to), to)
    if _always_fits(found, to):
        return SqlValue(f"cast({value.sql} AS {to.ddl})", to)
    said = literal(f"{said or f'a value of {found} as {to}'}: ")
    rule = literal(f" is no {to}{_rule(found, to)}.")
    checked = scope.checked(
        _tried(value.sql, found, to), f"{value.sql} IS NULL", to, said, shown(value.sql), rule
    )
    return SqlValue(checked, to)


def _check(found: Type, to: Type, said: str) -> None:
    """Refuse what SeaTunnel refuses and what could only lose digits."""
    if found.kind in (*BROKEN, "decimal") and to.kind in ("tinyint", "smallint"):
        raise UserError(
            f"{said or 'CAST'}: a {found} cannot become a {to}: its decimals would be lost."
            " CAST it to INT first, which cuts them off."
        )


def _tried(sql: str, found: Type, to: Type) -> str:
    """Return a value as another type in Spark SQL, NULL where it is none."""
    if found.kind == "string" and to.kind in WHOLE:
        # Spark would forgive spaces; Java does not.
        digits = f"left({sql}, 1) BETWEEN '+' AND '9' AND right({sql}, 1) BETWEEN '0' AND '9'"
        return f"if({digits}, try_cast({sql} AS {to.ddl}), NULL)"
    if to.kind == "decimal" and found.kind in ("string", *BROKEN):
        text = sql if found.kind == "string" else f"cast({sql} AS string)"
        sql = f"{CEILING}({text}, {to.scale})"
    elif to.kind == "decimal" and found.kind == "decimal" and found.scale > to.scale:
        sql = f"ceil({sql}, {to.scale})"
    return f"try_cast({sql} AS {to.ddl})"


def _always_fits(found: Type, to: Type) -> bool:
    """Say whether no value of a type can fail to become another, so that no check is needed."""
    order = (*WHOLE, *BROKEN)
    if found.kind in order and to.kind in order:
        return order.index(found.kind) <= order.index(to.kind)
    return not (found.kind in (*NUMBERS, "string") and to.kind in (*NUMBERS, *TIMES))


def _rule(found: Type, to: Type) -> str:
    if found.kind == "string" and to.kind in WHOLE:
        return ": only digits, after a + or - or nothing, in its range"
    if to.kind == "decimal":
        return f": a number with at most {to.precision - to.scale} digits before the point"
    return ""


def _special(value: SqlValue, found: Type, to: Type, scope: Scope, lenient: bool) -> str | None:
    """Return the text where Spark's own cast would do something else."""
    match found.kind, to.kind:
        case "timestamp" | "timestamp_tz" | "time", "string":
            return as_text(value, found.kind, scope)
        case "timestamp_tz", "timestamp" | "date" | "time":
            return f"cast({local(value.sql, found.kind, scope)} AS {to.ddl})"
        case "bigint", "timestamp":
            return f"cast(timestamp_millis({value.sql}) AS timestamp_ntz)"
        case (("int" | "smallint" | "tinyint"), "date"):
            return _date_of_number(value.sql, lenient)
        case (("int" | "smallint" | "tinyint"), "time"):
            return _time_of_number(value.sql, lenient)
        case "date", "time":
            return f"if({value.sql} IS NULL, NULL, make_time(0, 0, 0))"
        case "float", "double":
            return f"cast(cast({value.sql} AS string) AS double)"
        case from_kind, "bytes" if from_kind not in ("bytes", "string", ""):
            return f"cast({as_text(value, from_kind, scope)} AS binary)"
        case _, "boolean" if found.kind in (*NUMBERS, "string"):
            return _boolean(value.sql, found.kind, scope, lenient)
    return None


def _date_of_number(sql: str, lenient: bool) -> str:
    if lenient:
        return f"try_to_date(lpad(cast({sql} AS string), 8, '0'), 'yyyyMMdd')"
    parts = f"cast({sql} div 10000 AS int), cast({sql} div 100 % 100 AS int), {sql} % 100"
    return f"make_date({parts})"


def _time_of_number(sql: str, lenient: bool) -> str:
    if lenient:
        return f"try_to_time(lpad(cast({sql} AS string), 6, '0'), 'HHmmss')"
    parts = f"cast({sql} div 10000 AS int), cast({sql} div 100 % 100 AS int), {sql} % 100"
    return f"make_time({parts})"


def _boolean(sql: str, kind: str, scope: Scope, lenient: bool) -> str:
    """Only 1 and 0, `true` and `false` are booleans; anything else is a mistake in the data."""
    yes, no, subject = ("'true'", "'false'", f"lower({sql})") if kind == "string" else (1, 0, sql)
    wrong = "NULL"
    if not lenient:
        rule = literal(" is no boolean: only true, false, 1 and 0 are.")
        stop = scope.fail(literal("CAST AS BOOLEAN: "), shown(sql), rule)
        wrong = f"if({sql} IS NULL, NULL, cast({stop} AS boolean))"
    return f"CASE {subject} WHEN {yes} THEN true WHEN {no} THEN false ELSE {wrong} END"


def widest(types: list[Type]) -> Type | None:
    """Return the one type for branches of a CASE or items of an ARRAY; None: leave it to Spark.

    Numbers meet in the widest of them and decimals in one that holds both; text takes all.
    """
    known = [t for t in types if t.kind != "null"]
    if not known or any(not t.kind for t in known):
        return None
    if all(t == known[0] for t in known):
        return known[0]
    if all(t.kind in NUMBERS for t in known):
        return _widest_number(known)
    return Type("string") if any(t.kind == "string" for t in known) else None


def _widest_number(types: list[Type]) -> Type:
    decimals = [t for t in types if t.kind == "decimal"]
    if decimals:
        return Type("decimal", max(t.precision for t in decimals), max(t.scale for t in decimals))
    order = (*WHOLE, *BROKEN)
    return max(types, key=lambda t: order.index(t.kind))


def shown(sql: str) -> str:
    """Return a value as an error shows it."""
    return f"concat('\\'', left(cast({sql} AS string), {SHOWN}), '\\'')"


def as_text(value: SqlValue, kind: str, scope: Scope | None = None) -> str:
    """Return a value as Java would print it, which is how SeaTunnel joins and casts to text.

    That differs from Spark for moments: `T` in between, no seconds where they are zero, and the
    offset after an instant.
    """
    match kind:
        case "string":
            return value.sql
        case "timestamp":
            return _trimmed(f"date_format({value.sql}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")")
        case "timestamp_tz":
            there = local(value.sql, kind, scope)
            text = as_text(SqlValue(there), "timestamp")
            return f"concat({text}, {_offset(value.sql, there)})"
        case "time":
            return _trimmed(f"date_format({value.sql}, 'HH:mm:ss.SSSSSS')")
        case _:
            return f"cast({value.sql} AS string)"


def local(sql: str, kind: str, scope: Scope | None) -> str:
    """Return an instant as the clock shows it in the zone of choice; anything else as it is."""
    if kind != "timestamp_tz":
        return sql
    plain = f"cast({sql} AS timestamp_ntz)"
    if scope is None or not scope.zone:
        return plain
    return f"convert_timezone(current_timezone(), {literal(scope.zone)}, {plain})"


def _offset(instant: str, there: str) -> str:
    """Return how far a clock is from UTC, as Java prints it: Z or +05:30."""
    here = f"convert_timezone(current_timezone(), 'UTC', cast({instant} AS timestamp_ntz))"
    minutes = f"timestampdiff(MINUTE, {here}, {there})"
    sign = f"if({minutes} < 0, '-', '+')"
    parts = [f"lpad(cast(abs({minutes}) {part} AS string), 2, '0')" for part in ("div 60", "% 60")]
    return f"if({minutes} = 0, 'Z', concat({sign}, {parts[0]}, ':', {parts[1]}))"


def _trimmed(formatted: str) -> str:
    return f"regexp_replace({formatted}, '(:00)?[.]000000$|000$', '')"
