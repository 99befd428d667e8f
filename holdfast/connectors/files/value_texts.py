"""Spark SQL that turns values into text, the reverse of `values.py`."""

from dataclasses import dataclass

from holdfast.connectors.files.values import DATE, DATETIME, SEPARATORS, TIME, literal
from holdfast.connectors.json_text import NO_ROW, instant_text, json_ready, text_of_bytes
from holdfast.model.types import Type, quote


@dataclass(frozen=True, slots=True)
class Writing:
    """How a format writes values as text."""

    separators: tuple[str, ...] = SEPARATORS
    json: bool = False  # arrays and maps are JSON, and rows use the first separator again
    date_format: str = DATE
    datetime_format: str = DATETIME
    time_format: str = TIME
    row: str = NO_ROW  # SQL for the row, if one of its values is refused


def text_sql(value: str, kind: Type, style: Writing, level: int = 0) -> str:
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
            fields = (
                f"coalesce({text_sql(f'{value}.{quote(n)}', t, style, level + 1)}, '')"
                for n, t in kind.fields
            )
            between = style.separators[0 if style.json else level + 1]
            joined = f"concat_ws({literal(between)}, {', '.join(fields)})"
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE {joined} END"
        case "array" | "map" if style.json:
            return f"to_json({json_ready(value, kind)}, map('ignoreNullFields', 'false'))"
        case "array":
            name = f"a{level}"
            inner = f"coalesce({text_sql(name, kind.parts[0], style, level + 1)}, '')"
            return _joined(value, name, inner, style.separators[level + 1])
        case "map":
            name = f"m{level}"
            parts = (
                f"coalesce({text_sql(f'{name}.{n}', t, style, level + 1)}, '')"
                for n, t in zip(("key", "value"), kind.parts, strict=True)
            )
            inner = f"concat_ws({literal(style.separators[level + 2])}, {', '.join(parts)})"
            return _joined(f"map_entries({value})", name, inner, style.separators[level + 1])
        case _ if kind.kind.endswith("vector") and kind.kind != "binary_vector":
            return f"to_json({value})"
    return f"CAST({value} AS STRING)"


def line_sql(columns: list[tuple[str, Type]], style: Writing) -> str:
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
        """Return a text as it stands in a row."""
        if self.always or any(mark in text for mark in self.marks):
            return '"' + text.replace('"', '""') + '"'
        return text


def csv_line_sql(columns: list[tuple[str, Type]], style: Writing, quoting: Quoting) -> str:
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
        marked = f"translate({value}, {literal(quoting.marks)}, '') <> {value}"
        wrapped = inside if quoting.always else f"CASE WHEN {marked} THEN {inside} ELSE {value} END"
        fields.append(f"coalesce(nullif({wrapped}, ''), '{nothing}')")
    return f"concat_ws({literal(quoting.delimiter)}, {', '.join(fields)})"


def _joined(list_of: str, name: str, inner: str, separator: str) -> str:
    return f"array_join(transform({list_of}, {name} -> {inner}), {literal(separator)})"
