"""Spark SQL that turns values into text, the reverse of `values.py`."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.connectors.local_file.values import DATE, SEPARATORS, literal
from holdfast.model.types import Type, quote


@dataclass(frozen=True, slots=True)
class Writing:
    """How a format writes values as text."""

    separators: tuple[str, ...] = SEPARATORS
    json: bool = False  # arrays and maps are JSON, and rows use the first separator again
    date_format: str = DATE
    datetime_format: str = "yyyy-MM-dd HH:mm:ss"
    time_format: str = "HH:mm:ss"


def text_sql(value: str, kind: Type, style: Writing, level: int = 0) -> str:
    """Return SQL for a value as text; null stays null."""
    match kind.kind:
        case "null":
            return "CAST(NULL AS STRING)"
        case "string":
            return value
        case "date" if style.date_format != DATE:
            return f"date_format({value}, {literal(style.date_format)})"
        case "timestamp":
            return f"date_format({value}, {literal(style.datetime_format)})"
        case "timestamp_tz":
            return f"date_format({value}, \"yyyy-MM-dd'T'HH:mm:ssXXX\")"
        case "time":
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


def json_ready(value: str, kind: Type) -> str:
    """Return SQL for a value in which times are text as ISO 8601 has it, to the microsecond."""
    return mapped(value, kind, _iso)


def storable(value: str, kind: Type) -> str:
    """Return SQL for a value that Parquet and ORC can hold: a column of nulls becomes text."""
    return mapped(value, kind, _no_void)


def mapped(value: str, kind: Type, leaf: Callable[[str, Type], str | None], level: int = 0) -> str:
    """Return SQL for a value with its leaves changed; the value itself where none is."""
    name = f"l{level}"
    match kind.kind:
        case "row":
            fields = [
                (n, f"{value}.{quote(n)}", mapped(f"{value}.{quote(n)}", t, leaf, level))
                for n, t in kind.fields
            ]
            if all(old == new for _, old, new in fields):
                return value
            made = ", ".join(f"{literal(n)}, {new}" for n, _, new in fields)
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({made}) END"
        case "array":
            inner = mapped(name, kind.parts[0], leaf, level + 1)
            return value if inner == name else f"transform({value}, {name} -> {inner})"
        case "map":
            inner = mapped(name, kind.parts[1], leaf, level + 1)
            if inner == name:
                return value
            return f"transform_values({value}, (k{level}, {name}) -> {inner})"
    changed = leaf(value, kind)
    return value if changed is None else changed


def _iso(value: str, kind: Type) -> str | None:
    match kind.kind:
        case "timestamp":
            return f"replace(CAST({value} AS STRING), ' ', 'T')"
        case "timestamp_tz":
            return f"date_format({value}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")"
        case "time":
            return f"CAST({value} AS STRING)"
    return _no_void(value, kind)


def _no_void(value: str, kind: Type) -> str | None:
    return "CAST(NULL AS STRING)" if kind.kind == "null" else None


def _joined(list_of: str, name: str, inner: str, separator: str) -> str:
    return f"array_join(transform({list_of}, {name} -> {inner}), {literal(separator)})"
