"""CAST and TRY_CAST as SeaTunnel does them.

A bigint becomes a timestamp as milliseconds, an int a date as yyyymmdd and a time as HHmmss; a
float becomes the double it is written as.  What cannot be cast fails the job, or is NULL with TRY.
"""

from sqlglot import exp

from holdfast.connectors.sql.values import (
    BROKEN,
    NUMBERS,
    WHOLE,
    TypeOf,
    Value,
    as_text,
    type_of,
)
from holdfast.errors import UserError
from holdfast.model.types import MAX_PRECISION, Type, row

TYPES = {
    "TEXT": "string", "VARCHAR": "string", "CHAR": "string", "NCHAR": "string",
    "NVARCHAR": "string", "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint",
    "INT": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "DATE": "date",
    "TIME": "time", "TIMESTAMP": "timestamp", "DATETIME": "timestamp", "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamp_tz", "TIMESTAMPLTZ": "timestamp_tz", "BINARY": "bytes",
    "VARBINARY": "bytes",
}  # fmt: skip

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


def cast(value: Value, to: Type, ask: TypeOf, lenient: bool = False) -> Value:
    """Return a value as another type; lenient gives NULL where that fails."""
    found = type_of(value, ask)
    if found == to:
        return value
    special = _special(value, found, to, lenient)
    if special is not None:
        return Value(special, to)
    return Value(f"{'try_cast' if lenient else 'cast'}({value.sql} AS {to.ddl})", to)


def _special(value: Value, found: Type, to: Type, lenient: bool) -> str | None:
    """Return the text where Spark's own cast would do something else."""
    match found.kind, to.kind:
        case "timestamp" | "time", "string":
            return as_text(value, found.kind)
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
            return f"cast({as_text(value, from_kind)} AS binary)"
        case _, "boolean" if found.kind in (*NUMBERS, "string"):
            return _boolean(value.sql, found.kind, lenient)
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


def _boolean(sql: str, kind: str, lenient: bool) -> str:
    """Only 1 and 0, `true` and `false` are booleans; anything else is a mistake in the data."""
    yes, no, subject = ("'true'", "'false'", f"lower({sql})") if kind == "string" else (1, 0, sql)
    wrong = "NULL"
    if not lenient:
        shown = f"concat('CAST: ', {sql}, ' is not a BOOLEAN: only true, false, 1 and 0 are')"
        wrong = f"if({sql} IS NULL, NULL, cast(raise_error({shown}) AS boolean))"
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
