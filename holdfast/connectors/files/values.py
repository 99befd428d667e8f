"""Spark SQL that turns text into values and values into text, and says which text was none.

Every expression here is plain SQL text, so that rows stay in the JVM.  A text that is no value of
its type ends the job with a sentence that names file, column, text and type.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.connect.rejects import VALUE_CHARS_MAX
from holdfast.connectors.json_text import NO_ROW, instant_text, json_ready, text_of_bytes
from holdfast.model.types import Type, quote

SEPARATORS = tuple(chr(n) for n in range(1, 9))
"""The separators of the parts of nested values, outermost first."""

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
    """Return SQL for the value of a text; blank ones are null.

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


TEXTS = ("string", "bytes", "binary_vector")


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a format writes values as text."""

    separators: tuple[str, ...] = SEPARATORS
    json: bool = False  # arrays and maps are JSON, and rows use the first separator again
    date_format: str = DATE
    datetime_format: str = DATETIME
    time_format: str = TIME
    row: str = NO_ROW  # SQL for the row, if one of its values is refused


def text_sql(value: str, kind: Type, style: TextStyle, level: int = 0) -> str:
    """Return SQL for a value as text; null stays null."""
    match kind.kind:
        case "null":
            return "CAST(NULL AS STRING)"
        case "string":
            return value
        case "bytes" | "binary_vector":
            return text_of_bytes(value, style.row)
        case "date" if style.date_format != DATE:
            return f"date_format({value}, {literal(style.date_format)})"
        case "timestamp" if style.datetime_format != DATETIME:
            return f"date_format({value}, {literal(style.datetime_format)})"
        case "timestamp_tz":
            return instant_text(value)
        case "time" if style.time_format != TIME:
            return f"date_format({value}, {literal(style.time_format)})"
        case "row":
            between = style.separators[0 if style.json else level + 1]
            marks = [between] if style.json else style.separators[1 : level + 2]
            fields = (
                _part(f"{value}.{quote(n)}", t, style, level + 1, marks) for n, t in kind.fields
            )
            joined = f"concat_ws({literal(between)}, {', '.join(fields)})"
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE {joined} END"
        case "array" | "map" if style.json:
            return f"to_json({json_ready(value, kind)}, map('ignoreNullFields', 'false'))"
        case "array":
            name = f"a{level}"
            marks = style.separators[1 : level + 2]
            inner = _part(name, kind.parts[0], style, level + 1, marks)
            return _joined(value, name, inner, style.separators[level + 1])
        case "map":
            name = f"m{level}"
            marks = style.separators[1 : level + 3]
            parts = (
                _part(f"{name}.{n}", t, style, level + 1, marks)
                for n, t in zip(("key", "value"), kind.parts, strict=True)
            )
            inner = f"concat_ws({literal(style.separators[level + 2])}, {', '.join(parts)})"
            return _joined(f"map_entries({value})", name, inner, style.separators[level + 1])
        case _ if kind.kind.endswith("vector") and kind.kind != "binary_vector":
            return f"to_json({value})"
    return f"CAST({value} AS STRING)"


def line_sql(columns: list[tuple[str, Type]], style: TextStyle) -> str:
    """Return SQL for a row as one line of text."""
    fields = (f"coalesce({text_sql(quote(n), t, style)}, '')" for n, t in columns)
    return f"concat_ws({literal(style.separators[0])}, {', '.join(fields)})"


@dataclass(frozen=True, slots=True)
class Quoting:
    """How csv rows are put together: a value with any of the `marks` in it is quoted."""

    delimiter: str
    row_delimiter: str
    always: bool

    @property
    def marks(self) -> str:
        """Every character that structures a row, alone or with others."""
        return "".join(sorted({*self.delimiter, *self.row_delimiter, *'"\r\n'}))

    def quoted(self, text: str) -> str:
        """Return a text as a row has it."""
        if self.always or any(mark in text for mark in self.marks):
            return '"' + text.replace('"', '""') + '"'
        return text

    def line_sql(self, columns: list[tuple[str, Type]], style: TextStyle) -> str:
        """Return SQL for a row as a line of csv, for delimiters that Spark's own writer gets wrong.

        It does not quote a delimiter of several characters, and turns a line feed in a value into
        what ends rows.
        """
        # A row of one column would be an empty line, which is no row to any reader.
        nothing = '""' if len(columns) == 1 else ""
        fields = []
        for name, kind in columns:
            value = text_sql(quote(name), kind, style)
            inside = f"concat('\"', replace({value}, '\"', '\"\"'), '\"')"
            marked = f"translate({value}, {literal(self.marks)}, '') <> {value}"
            wrapped = (
                inside if self.always else f"CASE WHEN {marked} THEN {inside} ELSE {value} END"
            )
            fields.append(f"coalesce(nullif({wrapped}, ''), '{nothing}')")
        return f"concat_ws({literal(self.delimiter)}, {', '.join(fields)})"


def _part(value: str, kind: Type, style: TextStyle, level: int, marks: Sequence[str]) -> str:
    """Return SQL for an element of a list, map or row as text; null is the empty text.

    A text that contains one of the `marks`, which separate elements, would be read as several.
    """
    text = text_sql(value, kind, style, level)
    if not style.json and kind.kind not in TEXTS:
        return f"coalesce({text}, '')"
    marked = " OR ".join(f"contains({text}, {literal(mark)})" for mark in marks)
    said = (
        literal("a text in a list, map or row has a character that separates elements: '"),
        f"substring({text}, 1, {VALUE_CHARS_MAX})", literal("'."), style.row,
        literal(" Remove it (Sql: REPLACE), or write json, Parquet or ORC."),
    )  # fmt: skip
    error = f"raise_error(concat({', '.join(said)}))"
    return f"coalesce(CASE WHEN {marked} THEN {error} ELSE {text} END, '')"


def _joined(list_of: str, name: str, inner: str, separator: str) -> str:
    return f"array_join(transform({list_of}, {name} -> {inner}), {literal(separator)})"
