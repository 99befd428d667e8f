"""Turn lines, cells and half-read rows into typed columns: one projection of Spark SQL each.

Spark's own json parser is fast, and strict where SeaTunnel is not.  So files are read on trust at
first.  If Spark meets a row that it cannot read whole, the slice is read again with care:
such a row is looked at as text, which tells a missing field from a wrong one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.connectors.local_file.batches import CELLS, FILE, LINE, VALUE
from holdfast.connectors.local_file.values import (
    DATE,
    DATETIME,
    SEPARATORS,
    Style,
    cleaned,
    leaves_ddl,
    literal,
    retyped,
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


def kept(table: "FileTable") -> list[tuple[int, Column]]:
    """Return the columns to read, each with its place in a row of the file."""
    assert table.schema is not None
    columns = list(enumerate(table.schema.table.columns))
    if not table.read_columns:
        return columns
    named = {c.name: (i, c) for i, c in columns}
    return [named[name] for name in table.read_columns]


def cell_columns(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Return the columns of Excel rows or XML elements, whose cells are text."""
    style = _style(table, PYTHON_PLACE, f"array_join({CELLS}, ' | ')", cells=True)
    return _from_texts(frame, table, style, f"get({CELLS}, {{}})", extra)


def json_trusted(table: "FileTable") -> bool:
    """Say whether Spark's json parser reads every column of this table by itself."""
    return all(_plain_json(c.type) for c in _all(table))


def trusted_columns(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Return the columns of rows that Spark has read whole, or else the job is stopped."""
    wanted = [*(quote(c.name) for _, c in kept(table)), *extra]
    return frame if wanted == [quote(n) for n in frame.columns] else frame.selectExpr(*wanted)


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


def json_ddl(table: "FileTable") -> str:
    """Return the columns as Spark's json parser is to read them, with care."""
    fields = (
        f"{quote(c.name)} {c.type.ddl if _plain_json(c.type) else leaves_ddl(c.type)}"
        for c in _all(table)
    )
    return ", ".join([*fields, f"{CORRUPT} string"])


def from_json(frame: "DataFrame", table: "FileTable", extra: Sequence[str]) -> "DataFrame":
    """Parse JSON lines that Python has read."""
    options = TOLERANT | time_options(table)
    read = f"from_json({VALUE}, {literal(json_ddl(table))}, {_options_sql(options)}) AS {FIELDS}"
    rows = frame.where(f"trim({VALUE}) <> ''").selectExpr(read, FILE, LINE, *extra)
    return rows.selectExpr(f"{FIELDS}.*", FILE, LINE, *extra)


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
