"""Spark SQL for a value as another type, by the rules of docs/values.md: exact, or refused."""

from dataclasses import dataclass
from functools import partial

from holdfast.connect.rejects import VALUE_CHARS_MAX
from holdfast.connectors.files.values import literal, named, value_sql
from holdfast.connectors.json_text import instant_text, mapped, row_text
from holdfast.errors import UserError
from holdfast.model.types import Type, quote


@dataclass(frozen=True, slots=True)
class CastPlace:
    """Whose value is cast: the stage that reads it, and the column.

    `file` is SQL for the file, and `row` has the columns that tell its row from others.
    """

    stage: str
    column: str
    file: str = "input_file_name()"
    row: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """SQL for the place, as a sentence names it."""
        return f"concat('file ', {self.file})"

    @property
    def shown(self) -> str:
        """SQL for the row, as a sentence of its own."""
        return row_text(self.row)


WHOLE = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
NUMBERS = (*WHOLE, *FLOATS, "decimal")
TIMES = ("date", "time", "timestamp", "timestamp_tz")
DECLARE = "Declare the column with a type that holds it"
BYTES = "It has bytes that are not UTF-8: declare the column as bytes, or correct the file"
SIZES = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""How many digits whole numbers may have."""


def wider(one: Type, other: Type) -> Type | None:
    """Return the type that holds all values of two; None if there is none."""
    if one == other:
        return one
    for kinds in (WHOLE, FLOATS):
        if one.kind in kinds and other.kind in kinds:
            return Type(kinds[max(kinds.index(one.kind), kinds.index(other.kind))])
    if one.kind == other.kind == "decimal":
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        return Type("decimal", digits, scale) if digits <= 38 else None
    return None


def cast_sql(value: str, here: Type, wanted: Type, where: CastPlace, level: int = 0) -> str:
    """Return SQL for a value of one type as another; fields of rows are matched by name.

    Raises UserError for types that say nothing of each other.
    """
    if here == wanted:
        return mapped(value, wanted, partial(_text, where), None, level)
    name = f"c{level}"
    match here.kind, wanted.kind:
        case "row", "row":
            own = {n.lower(): (n, t) for n, t in here.fields}
            fields = ", ".join(
                f"{literal(n)}, {_field(value, own.get(n.lower()), t, where, level)}"
                for n, t in wanted.fields
            )
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({fields}) END"
        case "array", "array":
            inner = cast_sql(name, here.parts[0], wanted.parts[0], where, level + 1)
            return f"transform({value}, {name} -> {inner})"
        case "map", "map":
            key = cast_sql(f"{name}.key", here.parts[0], wanted.parts[0], where, level + 1)
            item = cast_sql(f"{name}.value", here.parts[1], wanted.parts[1], where, level + 1)
            pairs = f"transform(map_entries({value}), {name} -> struct({key}, {item}))"
            return f"map_from_entries({pairs})"
    if here.parts or wanted.parts:
        plain = here.ddl == wanted.ddl
        return value if plain else _impossible(here, wanted, where)
    return _scalar(value, here, wanted, where)


def folder_sql(name: str, kind: Type, stage: str, file: str) -> str:
    """Return SQL for the value of a column that a folder names, by the text that it is there."""
    value = quote(name)
    if kind.kind == "string":
        return value
    return cast_sql(value, Type("string"), kind, CastPlace(stage, name, file))


def _field(
    value: str, own: tuple[str, Type] | None, wanted: Type, where: CastPlace, level: int
) -> str:  # fmt: skip
    if own is None:
        return f"CAST(NULL AS {wanted.ddl})"
    return cast_sql(f"{value}.{quote(own[0])}", own[1], wanted, where, level)


def _scalar(value: str, here: Type, wanted: Type, where: CastPlace) -> str:
    plain = f"CAST({value} AS {wanted.ddl})"
    both = (here.kind in NUMBERS, wanted.kind in NUMBERS)
    match here.kind, wanted.kind:
        case ("null", _) | ("timestamp", "timestamp_tz") | ("timestamp_tz", "timestamp"):
            return plain
        case "date", "timestamp" | "timestamp_tz":
            return plain
        case "timestamp", "time":
            # A file that declares a moment as a time of day asks for that part; SeaTunnel's files
            # do.
            return plain
        case "bytes", "string":
            return _checked(f"is_valid_utf8({plain})", plain, value, wanted, where)
        case "timestamp_tz", "string":
            return instant_text(value)
        case _, "string":
            return plain
        case "string", "bytes":
            return plain
        case "string", _:
            return value_sql(value, wanted, where.place, where.stage, where.column, where.shown)
        case "timestamp" | "timestamp_tz", "date":
            return _same(value, here, wanted, where)
        case _ if here.ddl == wanted.ddl:
            return plain
        case _ if both != (True, True):
            return _impossible(here, wanted, where)
        case "double", "float":
            whole = f"(abs({plain}) <> CAST('Infinity' AS FLOAT) OR isnan({value})"
            return _checked(
                f"{whole} OR abs({value}) = CAST('Infinity' AS DOUBLE))", plain, value, wanted,
                where,
            )  # fmt: skip
        case _, "float" | "double":
            return plain
    return plain if _fits(here, wanted) else _same(value, here, wanted, where)


def _fits(here: Type, wanted: Type) -> bool:
    """Say whether each number of a type is one of another."""
    if here.kind in WHOLE and wanted.kind in WHOLE:
        return WHOLE.index(here.kind) <= WHOLE.index(wanted.kind)
    if here.kind in WHOLE and wanted.kind == "decimal":
        return wanted.precision - wanted.scale >= SIZES[here.kind]
    return here.kind == wanted.kind == "decimal" and wider(here, wanted) == wanted


def _text(where: CastPlace, value: str, kind: Type) -> str | None:
    """Return SQL for a text of a file, which may have bytes that are none."""
    if kind.kind != "string":
        return None
    return _checked(f"is_valid_utf8({value})", value, value, kind, where, BYTES)


def _same(value: str, here: Type, wanted: Type, where: CastPlace) -> str:
    """Return SQL for a value that must be the same when it is turned back."""
    made = f"try_cast({value} AS {wanted.ddl})"
    back = f"try_cast({made} AS {here.ddl})"
    return _checked(f"coalesce({back} = {value}, false)", made, value, wanted, where)


def _checked(
    good: str, made: str, value: str, wanted: Type, where: CastPlace, remedy: str = DECLARE
) -> str:
    parts = (
        literal(f"{where.stage} cannot read "), where.place,
        literal(f": column {where.column} = '"),
        f"substring(CAST({value} AS STRING), 1, {VALUE_CHARS_MAX})",
        literal(f"' is not {named(wanted)}."), where.shown,
        literal(f" {remedy}."),
    )  # fmt: skip
    error = f"raise_error(concat({', '.join(parts)}))"
    return f"CASE WHEN {value} IS NULL THEN NULL WHEN {good} THEN {made} ELSE {error} END"


def _impossible(here: Type, wanted: Type, where: CastPlace) -> str:
    raise UserError(
        f"{where.stage} cannot read column {where.column} as {wanted}: the files have it as {here},"
        f" and nothing says which {wanted} that is. Declare it as {here}, and convert it with Sql.",
        code="source.column_types",
    )
