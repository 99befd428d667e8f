"""Spark SQL that turns text into values, and says which text was none.

Every expression here is plain SQL text, so that rows stay in the JVM.  A text that is no value of
its type ends the job with a sentence that names file, column, text and type.
"""

from holdfast.connect.rejects import VALUE_CHARS_MAX
from holdfast.connectors.json_text import NO_ROW
from holdfast.model.types import Type

SEPARATORS = tuple(chr(n) for n in range(1, 9))
"""What stands between the parts of nested values, outermost first."""

DATE, DATETIME, TIME = "yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "HH:mm:ss"

OTHER_DAY = r"^([0-9]{4})([/.])([0-9]{1,2})\2([0-9]{1,2})"
HOUR_SHAPE = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{2}$"
NUMBER_SHAPE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
DAY_SHAPE = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$"
CLOCK_SHAPE = r"^[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?$"
_DAY, _CLOCK = DAY_SHAPE[:-1], r"[ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?"
MOMENT_SHAPE = rf"{_DAY}({_CLOCK})?$"
MIDNIGHT_SHAPE = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T]00?:00(:00(\.0+)?)?$"
INSTANT_SHAPE = rf"{_DAY}({_CLOCK}( ?(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?))?)?$"
"""What texts look like that Spark may cast: it would also take `12d` and `19723`."""

ARTICLES = {"int": "an int"}


def literal(text: str) -> str:
    """Return a text as Spark SQL quotes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def named(kind: Type) -> str:
    """Return a type as a sentence names it."""
    return ARTICLES.get(kind.kind, f"a {kind}")


def value_sql(text: str, kind: Type, place: str, stage: str, column: str, row: str = NO_ROW) -> str:
    """Return SQL for the value that a text stands for; blank ones are null.

    One that is no value ends the job; `place` is SQL for where it is, `row` for its row.
    """
    parts = (
        literal(f"{stage} cannot read "), place, literal(f": column {column} = '"),
        f"substring({text}, 1, {VALUE_CHARS_MAX})", literal(f"' is not {named(kind)}."), row,
        literal(" Correct the file, or declare the column as a string."),
    )  # fmt: skip
    error = f"raise_error(concat({', '.join(parts)}))"
    found = f"coalesce({scalar_sql(text, kind)}, {error})"
    return f"CASE WHEN {text} IS NULL OR trim({text}) = '' THEN NULL ELSE {found} END"


def scalar_sql(text: str, kind: Type) -> str:
    """Return SQL for the value of a text; null if it has none: `text_conversion.py` in the JVM."""
    bare = f"trim({text})"
    iso = f"regexp_replace({bare}, {literal(OTHER_DAY)}, '$1-$3-$4')"
    # Spark wants a colon in an offset, and no blank before it.
    offset = r"(:[0-9]{2}(\.[0-9]+)?) ?([+-][0-9]{2}):?([0-9]{2})?$"
    colon = f"regexp_replace({iso}, {literal(offset)}, '$1$3:$4')"
    colon = f"regexp_replace(regexp_replace({colon}, ':$', ':00'), ' Z$', 'Z')"
    match kind.kind:
        case "date":
            midnight = _where(iso, MIDNIGHT_SHAPE, f"try_cast(split({iso}, '[ T]')[0] AS DATE)")
            plain = _where(iso, DAY_SHAPE, f"try_cast({iso} AS DATE)")
            compact = _where(bare, "^[0-9]{8}$", f"try_to_timestamp({bare}, 'yyyyMMdd')")
            written = _where(bare, "^[0-9]{4}年", f"try_to_timestamp({bare}, 'yyyy年M月d日')")
            return _coalesce([plain, midnight, f"CAST(coalesce({compact}, {written}) AS DATE)"])
        case "timestamp":
            plain = _where(iso, MOMENT_SHAPE, f"try_cast({iso} AS TIMESTAMP_NTZ)")
            hour = _where(iso, HOUR_SHAPE, f"try_cast(concat({iso}, ':00') AS TIMESTAMP_NTZ)")
            compact = _where(bare, "^[0-9]{14}$", f"try_to_timestamp({bare}, 'yyyyMMddHHmmss')")
            return _coalesce([plain, hour, f"CAST({compact} AS TIMESTAMP_NTZ)"])
        case "timestamp_tz":
            plain = _where(iso, INSTANT_SHAPE, f"try_cast({colon} AS TIMESTAMP)")
            hour = _where(iso, HOUR_SHAPE, f"try_cast(concat({iso}, ':00') AS TIMESTAMP)")
            compact = _where(bare, "^[0-9]{14}$", f"try_to_timestamp({bare}, 'yyyyMMddHHmmss')")
            return _coalesce([plain, hour, compact])
        case "time":
            return _where(bare, CLOCK_SHAPE, f"try_cast({bare} AS TIME(6))")
        case "boolean":
            return f"CASE lower({bare}) WHEN 'true' THEN true WHEN 'false' THEN false END"
        case "float" | "double":
            value = f"try_cast({bare} AS {kind.ddl})"
            finite = f"nullif(nullif({value}, CAST('Infinity' AS {kind.ddl})),"
            finite = f"{finite} CAST('-Infinity' AS {kind.ddl}))"
            endless = _where(f"lower({bare})", "^[+-]?(nan|inf|infinity)$", value)
            return _coalesce([endless, _where(bare, NUMBER_SHAPE, finite)])
        case "decimal":
            # A cast rounds: only texts without more places are cast, and none with an exponent.
            fraction = rf"\.[0-9]{{0,{kind.scale}}}0*"
            shape = rf"^[+-]?([0-9]+({fraction})?|{fraction})$"
            return _where(bare, shape, f"try_cast({bare} AS {kind.ddl})")
    return _where(bare, "^[+-]?[0-9]+$", f"try_cast({bare} AS {kind.ddl})")


def _where(text: str, shape: str, value: str) -> str:
    return f"CASE WHEN {text} RLIKE {literal(shape)} THEN {value} END"


def _coalesce(ways: list[str]) -> str:
    return f"coalesce({', '.join(ways)})" if len(ways) > 1 else ways[0]
