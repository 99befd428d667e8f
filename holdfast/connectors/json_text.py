"""Spark SQL that brings values into a form which files and databases take without loss."""

from collections.abc import Callable, Sequence

from holdfast.connect.literals import text_literal
from holdfast.connect.rejects import ROW_CHARS_MAX
from holdfast.model.types import Type, quote

Leaf = Callable[[str, Type], str | None]


ROW_COLUMNS_MAX = 8
"""How many columns of a row are shown: its key is among the first."""

NO_ROW = "''"
"""SQL for nothing said of a row."""


def row_text(names: Sequence[str]) -> str:
    """Return SQL for a row as a sentence of its own.  It is worked out for refused rows only."""
    if not names:
        return NO_ROW
    pairs = (
        f"concat({text_literal(f'{name} = ')}, coalesce(CAST({quote(name)} AS STRING), 'null'))"
        for name in names[:ROW_COLUMNS_MAX]
    )
    row = f"substring(concat_ws(', ', {', '.join(pairs)}), 1, {ROW_CHARS_MAX})"
    return f"concat(' Row: ', {row}, '.')"


def json_ready(value: str, kind: Type) -> str:
    """Return SQL for a value that Spark writes as JSON without loss.

    Times are text as ISO 8601 has it, to the microsecond; keys are text, bytes in them base64.
    """
    return mapped(value, kind, _iso, _json_key)


def storable(value: str, kind: Type) -> str:
    """Return SQL for a value that Parquet can hold: a column of nulls becomes text."""
    return mapped(value, kind, _no_void)


def storable_in_orc(value: str, kind: Type, row: str = NO_ROW) -> str:
    """Return SQL for a value that ORC can hold: local times, which Spark would write as numbers.

    `row` is SQL for its row.
    """
    return mapped(value, kind, lambda leaf, its: _orc(leaf, its, row))


def mapped(value: str, kind: Type, leaf: Leaf, key: Leaf | None = None, level: int = 0) -> str:
    """Return SQL for a value with its leaves changed; the value itself where none is."""
    name = f"l{level}"
    match kind.kind:
        case "row":
            fields = [
                (n, f"{value}.{quote(n)}", mapped(f"{value}.{quote(n)}", t, leaf, key, level))
                for n, t in kind.fields
            ]
            if all(old == new for _, old, new in fields):
                return value
            made = ", ".join(f"{text_literal(n)}, {new}" for n, _, new in fields)
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({made}) END"
        case "array":
            inner = mapped(name, kind.parts[0], leaf, key, level + 1)
            return value if inner == name else f"transform({value}, {name} -> {inner})"
        case "map":
            old = (f"{name}.key", f"{name}.value")
            new = (
                mapped(old[0], kind.parts[0], key or leaf, key, level + 1),
                mapped(old[1], kind.parts[1], leaf, key, level + 1),
            )
            if old == new:
                return value
            pairs = f"transform(map_entries({value}), {name} -> struct({', '.join(new)}))"
            return f"map_from_entries({pairs})"
    changed = leaf(value, kind)
    return value if changed is None else changed


def instant_text(value: str) -> str:
    """Return SQL for an instant as ISO 8601 has it, in UTC, which is the zone of the session."""
    return f"concat(replace(CAST({value} AS STRING), ' ', 'T'), 'Z')"


def text_of_bytes(value: str, row: str = NO_ROW) -> str:
    """Return SQL for bytes as the text that they are; bytes that are none end the job.

    `row` is SQL for their row.
    """
    text = f"CAST({value} AS STRING)"
    parts = (
        text_literal(f"column {value.replace('`', '')} has bytes that are no UTF-8 text: "),
        f"substring(hex({value}), 1, 100)",
        text_literal(" (in hexadecimal)."), row,
        text_literal(" Write another format, or convert them with Sql: TO_BASE64."),
    )  # fmt: skip
    error = f"raise_error(concat({', '.join(parts)}))"
    return f"CASE WHEN is_valid_utf8({text}) OR {value} IS NULL THEN {text} ELSE {error} END"


def _iso(value: str, kind: Type) -> str | None:
    match kind.kind:
        case "timestamp":
            return f"replace(CAST({value} AS STRING), ' ', 'T')"
        case "timestamp_tz":
            return f"date_format({value}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")"
        case "time":
            return f"CAST({value} AS STRING)"
    return _no_void(value, kind)


def _json_key(value: str, kind: Type) -> str | None:
    match kind.kind:
        case "bytes":
            return f"base64({value})"
        case "date":
            return f"CAST({value} AS STRING)"
    return _iso(value, kind)


def _orc(value: str, kind: Type, row: str) -> str | None:
    match kind.kind:
        case "timestamp" | "timestamp_tz":
            return _told_apart(value, row)
        case "time":
            return f"CAST({value} AS STRING)"
    return _no_void(value, kind)


def _told_apart(value: str, row: str) -> str:
    """Return SQL for a moment that ORC keeps: it takes the second before 1970 for the one after."""
    begin, end = "1969-12-31 23:59:59", "1970-01-01 00:00:00"
    moment = f"CAST({value} AS TIMESTAMP)"
    parts = (
        text_literal(f"column {value.replace('`', '')} has the time "),
        f"CAST({value} AS STRING)",
        text_literal(
            ", and ORC cannot tell a part of the last second before 1970 from one of the second"
            " after."
        ), row, text_literal(" Write Parquet, or cut the fraction off (Sql: DATE_TRUNC)."),
    )  # fmt: skip
    is_lost = f"{moment} > TIMESTAMP'{begin}Z' AND {moment} < TIMESTAMP'{end}Z'"
    return f"CASE WHEN {is_lost} THEN raise_error(concat({', '.join(parts)})) ELSE {moment} END"


def _no_void(value: str, kind: Type) -> str | None:
    return "CAST(NULL AS STRING)" if kind.kind == "null" else None
