"""Turn lines, cells and half-read rows into typed columns: one projection of Spark SQL each.

Spark's own csv and json parsers are fast, and strict where SeaTunnel is not.  So files are read on
trust at first.  If Spark meets a row that it cannot read whole, the slice is read again with care:
such a row is looked at as text, which tells a missing field from a wrong one.
"""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.connect.schema import Schema
from holdfast.connectors.local_file.batches import CELLS, FILE, LINE, VALUE
from holdfast.connectors.local_file.formats import Format
from holdfast.connectors.local_file.values import (
    DATE,
    DATETIME,
    SEPARATORS,
    Style,
    cleaned,
    leaves_ddl,
    literal,
    named,
    regex,
    retyped,
    split_sql,
    value_sql,
    wrong,
)
from holdfast.model.table import Column
from holdfast.model.types import Type, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from holdfast.connectors.local_file.options import FileTable

CORRUPT, FIELDS, BAD = "__corrupt", "__fields", "__bad"

STRICT = {"mode": "FAILFAST"}
TOLERANT = {"columnNameOfCorruptRecord": CORRUPT}

NATIVE_PLACE = "concat('file ', input_file_name())"
PYTHON_PLACE = f"concat('file ', {FILE}, ', row ', {LINE})"

CSV_KINDS = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal",
    "date", "timestamp", "timestamp_tz",
)  # fmt: skip
"""Types that Spark's csv parser reads by itself."""


def kept(table: "FileTable") -> list[tuple[int, Column]]:
    """Return the columns to read, each with its place in a row of the file."""
    assert table.schema is not None
    columns = list(enumerate(table.schema.table.columns))
    if not table.read_columns:
        return columns
    named = {c.name: (i, c) for i, c in columns}
    return [named[name] for name in table.read_columns]


def text_columns(
    frame: "DataFrame", table: "FileTable", extra: Sequence[str], place: str
) -> "DataFrame":
    """Return the columns of text lines: fields between literal delimiters."""
    lines = frame.where(f"{VALUE} <> ''")
    if not table.declared:
        return lines.selectExpr(f"{VALUE} AS content", *extra)
    style = _style(table, place, VALUE)
    parts = split_sql(VALUE, table.delimiter)
    cut = lines.selectExpr(f"{parts} AS {FIELDS}", VALUE, *_carried(place), *extra)
    return _from_texts(cut, table, style, f"get({FIELDS}, {{}})", extra)


def cell_columns(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Return the columns of Excel rows or XML elements, whose cells are text."""
    style = _style(table, PYTHON_PLACE, f"array_join({CELLS}, ' | ')", cells=True)
    return _from_texts(frame, table, style, f"get({CELLS}, {{}})", extra)


def csv_trusted(table: "FileTable") -> bool:
    """Say whether Spark's csv parser reads every column of this table by itself."""
    return all(c.type.kind in CSV_KINDS for c in _all(table))


def json_trusted(table: "FileTable") -> bool:
    """Say whether Spark's json parser reads every column of this table by itself."""
    return all(_plain_json(c.type) for c in _all(table))


def trusted_columns(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Return the columns of rows that Spark has read whole, or else the job is stopped."""
    style = _style(table, NATIVE_PLACE, "''")
    column = _csv_column if table.format is Format.CSV else _json_as_read
    wanted = [*(column(c, style) for _, c in kept(table)), *extra]
    return frame if wanted == [quote(n) for n in frame.columns] else frame.selectExpr(*wanted)


def csv_columns(
    frame: "DataFrame", table: "FileTable", extra: Sequence[str], place: str
) -> "DataFrame":
    """Return the columns of csv rows that Spark has parsed with `csv_ddl`.

    A row that Spark could not read whole is looked at once more: missing and surplus fields are
    fine, a wrong value ends the job.
    """
    style = _style(table, place, CORRUPT)
    right = frame.where(
        f"CASE WHEN {CORRUPT} IS NULL THEN true ELSE {_csv_check(table, style)} END"
    )
    return right.selectExpr(*(_csv_column(c, style) for _, c in kept(table)), *extra)


def json_columns(
    frame: "DataFrame", table: "FileTable", extra: Sequence[str], place: str
) -> "DataFrame":
    """Return the columns of JSON rows that Spark has parsed with `json_ddl`."""
    assert table.schema is not None
    columns = table.schema.table.columns
    leaves = ", ".join(f"{quote(c.name)} {leaves_ddl(c.type)}" for c in columns)
    ddl = literal(f"{leaves}, {BAD} string")
    options = _options_sql({"columnNameOfCorruptRecord": BAD})
    again = f"CASE WHEN {CORRUPT} IS NOT NULL THEN from_json({CORRUPT}, {ddl}, {options}) END"
    names = [quote(c.name) for _, c in kept(table)]
    twice = frame.selectExpr(*names, CORRUPT, f"{again} AS {FIELDS}", *_carried(place), *extra)
    style = _style(table, place, CORRUPT, base64=True)
    return twice.selectExpr(*(_json_column(c, style) for _, c in kept(table)), *extra)


def plain_ddl(table: "FileTable") -> str:
    """Return the columns as they are, for a parser that reads them all by itself."""
    return ", ".join(f"{quote(c.name)} {c.type.ddl}" for c in _all(table))


def csv_ddl(table: "FileTable") -> str:
    """Return the columns as Spark's csv parser is to read them, with care."""
    fields = (
        f"{quote(c.name)} {c.type.ddl if c.type.kind in CSV_KINDS else 'string'}"
        for c in _all(table)
    )
    return ", ".join([*fields, f"{CORRUPT} string"])


def json_ddl(table: "FileTable") -> str:
    """Return the columns as Spark's json parser is to read them, with care."""
    fields = (
        f"{quote(c.name)} {c.type.ddl if _plain_json(c.type) else leaves_ddl(c.type)}"
        for c in _all(table)
    )
    return ", ".join([*fields, f"{CORRUPT} string"])


def from_csv(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Parse csv lines that Python has read."""
    options = _options_sql(csv_options(table) | TOLERANT)
    read = f"from_csv({VALUE}, {literal(csv_ddl(table))}, {options}) AS {FIELDS}"
    rows = frame.where(f"trim({VALUE}) <> ''").selectExpr(read, FILE, LINE, *extra)
    return rows.selectExpr(f"{FIELDS}.*", FILE, LINE, *extra)


def from_json(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Parse JSON lines that Python has read."""
    options = TOLERANT | time_options(table)
    read = f"from_json({VALUE}, {literal(json_ddl(table))}, {_options_sql(options)}) AS {FIELDS}"
    rows = frame.where(f"trim({VALUE}) <> ''").selectExpr(read, FILE, LINE, *extra)
    return rows.selectExpr(f"{FIELDS}.*", FILE, LINE, *extra)


def header_names(path: str, table: "FileTable") -> tuple[str, ...]:
    """Return the names in the first line of a csv file."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        line = file.readline().rstrip("\r\n")
    if len(table.delimiter) > 1:
        return tuple(name.strip(table.quote_char) for name in line.split(table.delimiter))
    row = next(csv.reader([line], delimiter=table.delimiter, quotechar=table.quote_char), [])
    return tuple(row)


def reordered(table: "FileTable", header: tuple[str, ...]) -> "FileTable":
    """Return a table whose columns stand as a file's first line has them."""
    assert table.schema is not None
    declared = {c.name.lower(): c for c in table.schema.table.columns}
    columns = tuple(declared.get(n.lower(), Column(n, Type("string"))) for n in header)
    names = [c.name for _, c in kept(table) if c in columns]
    schema = Schema(replace(table.schema.table, columns=columns))
    return replace(table, schema=schema, read_columns=names)


def csv_options(table: "FileTable") -> dict[str, str]:
    """Return what Spark's csv parser must know, apart from the columns."""
    options = {
        "sep": table.delimiter,
        "quote": table.quote_char,
        "escape": table.escape_char or table.quote_char,
    }
    if table.null_format is not None:
        options["nullValue"] = table.null_format
    return options | time_options(table)


def time_options(table: "FileTable") -> dict[str, str]:
    """Return the formats of dates and timestamps where they are not the usual ones."""
    options = {}
    if table.date_format != DATE:
        options["dateFormat"] = table.date_format
    if table.datetime_format != DATETIME:
        options["timestampNTZFormat"] = table.datetime_format
        options["timestampFormat"] = table.datetime_format
    return options


def _from_texts(
    frame: "DataFrame", table: "FileTable", style: Style, found: str, extra: Sequence[str]
) -> "DataFrame":
    """Name each field's text first, so that the value's expression can repeat it for nothing."""
    columns = kept(table)
    texts = [f"{cleaned(found.format(i), c.type.kind, style)} AS __t{i}" for i, c in columns]
    record = f"{style.record} AS {VALUE}" if style.record != VALUE else VALUE
    place = [FILE, LINE] if style.place == PYTHON_PLACE else []
    named = frame.selectExpr(*texts, record, *place, *extra)
    final = _style(table, style.place, VALUE, cells=style.json)
    values = (
        f"{value_sql(f'__t{i}', c.type, final, c.name)} AS {quote(c.name)}" for i, c in columns
    )
    return named.selectExpr(*values, *extra)


def _csv_check(table: "FileTable", style: Style) -> str:
    """Return SQL that is true for a row without wrong values, and ends the job otherwise.

    It costs a few bytes of code for each column: Java compiles no method of more than 8000, and
    this stands in the one that every row goes through.
    """
    read = {c.name for _, c in kept(table) if c.type.kind in CSV_KINDS and c.type.kind != "string"}
    columns = _all(table)
    labels = ", ".join(literal(f"column {c.name} = '\x00' is not {named(c.type)}") for c in columns)
    nulls = ", ".join(f"{quote(c.name)} IS NULL" if c.name in read else "false" for c in columns)
    empty = ["''"] if table.null_format is None else ["''", literal(table.null_format)]
    tokens = f"regexp_extract_all({CORRUPT}, {literal(_csv_token(table))}, 0)"
    texts = f"transform({tokens}, t -> trim(trim(BOTH {literal(table.quote_char)} FROM t)))"
    is_wrong = f"n AND t NOT IN ({', '.join(empty)})"
    wrongs = f"zip_with(array({nulls}), {texts}, (n, t) -> CASE WHEN {is_wrong} THEN t END)"
    told = f"zip_with(array({labels}), {wrongs}, (l, t) -> replace(l, '\x00', t))"
    first = f"get(filter({told}, l -> l IS NOT NULL), 0)"
    parts = (literal("LocalFile cannot read "), style.place, "': '", first, literal(". Row: "))
    error = f"raise_error(concat({', '.join(parts)}, substring({CORRUPT}, 1, 200)))"
    return f"CASE WHEN {first} IS NULL THEN true ELSE {error} END"


def _csv_token(table: "FileTable") -> str:
    """Return a pattern for one field of a csv line, with its quotes."""
    mark, between = regex(table.quote_char), regex(table.delimiter)
    return f"(?<=^|{between})(?:{mark}(?:[^{mark}]|{mark}{mark})*{mark}|(?:(?!{between}).)*)"


def _csv_column(column: Column, style: Style) -> str:
    name, kind = quote(column.name), column.type
    if kind.kind not in CSV_KINDS:
        value = value_sql(cleaned(name, kind.kind, style), kind, style, column.name)
        return f"{value} AS {name}"
    if kind.kind == "string" and style.null_format is not None:
        return f"nullif({name}, '') AS {name}"
    return name


def _json_as_read(column: Column, _: Style) -> str:
    return quote(column.name)


def _all(table: "FileTable") -> tuple[Column, ...]:
    assert table.schema is not None
    return table.schema.table.columns


def _json_column(column: Column, style: Style) -> str:
    name, kind = quote(column.name), column.type
    fast = name if _plain_json(kind) else retyped(name, kind, style, column.name)
    slow = retyped(f"{FIELDS}.{name}", kind, style, column.name)
    no_json = wrong("'...'", Type("json line"), style, column.name)
    return (
        f"CASE WHEN {CORRUPT} IS NULL THEN {fast} WHEN {FIELDS}.{BAD} IS NOT NULL THEN {no_json}"
        f" ELSE {slow} END AS {name}"
    )


def _plain_json(kind: Type) -> bool:
    """Say whether Spark's json parser reads this type by itself."""
    return kind.kind not in ("time", "null") and all(_plain_json(p) for p in kind.parts)


def _carried(place: str) -> list[str]:
    """Return the columns that say where a row stands, if a Python reader has put them in."""
    return [FILE, LINE] if place == PYTHON_PLACE else []


def _style(
    table: "FileTable", place: str, record: str, cells: bool = False, base64: bool = False
) -> Style:
    return Style(
        place=place,
        record=record,
        separators=(table.delimiter, *SEPARATORS[1:]),
        json=cells,
        loose_numbers=cells,
        keep_blank=cells or base64,
        base64=base64,
        null_format=table.null_format,
        date_format=table.date_format,
        datetime_format=table.datetime_format,
        time_format=table.time_format,
    )


def _options_sql(options: dict[str, str]) -> str:
    pairs = ", ".join(f"{literal(k)}, {literal(v)}" for k, v in options.items())
    return f"map({pairs})"
