"""Spark SQL that turns text into values, and says which text was none.

Every expression here is plain SQL text, so that rows stay in the JVM.  A text that is no value of
its type ends the job with a sentence that names file, column, text and type.
"""

from dataclasses import dataclass

from holdfast.model.types import Type, quote

SEPARATORS = tuple(chr(n) for n in range(1, 9))
"""What stands between the parts of nested values, outermost first."""

DATE, DATETIME, TIME = "yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "HH:mm:ss"

OTHER_DATES = ("yyyy/M/d", "yyyy.M.d", "yyyyMMdd", "yyyy年M月d日")
OTHER_DATETIMES = (
    "yyyy/M/d HH:mm:ss",
    "yyyy.M.d HH:mm:ss",
    "yyyyMMddHHmmss",
    "yyyy年M月d日 HH时mm分ss秒",
    "yyyy/M/d HH:mm",
    "yyyy-M-d HH:mm",
)
"""Ways to write dates and times that are understood without being asked for."""

WHOLE = ("tinyint", "smallint", "int", "bigint")
ARTICLES = {"int": "an int"}


@dataclass(frozen=True, slots=True)
class Style:
    """How a format writes values as text.  `place` is SQL for where a row came from."""

    place: str
    record: str
    separators: tuple[str, ...] = SEPARATORS
    json: bool = False  # arrays and maps are JSON, and rows use the first separator again
    loose_numbers: bool = False  # 33.0 is a whole number, as sheets have it
    keep_blank: bool = False  # blank text is a string of its own
    base64: bool = False  # bytes are base64, not plain text
    null_format: str | None = None
    date_format: str = DATE
    datetime_format: str = DATETIME
    time_format: str = TIME


def literal(text: str) -> str:
    """Return a text as Spark SQL quotes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def split_sql(text: str, separator: str, limit: int = -1) -> str:
    """Return SQL that splits a text at a literal separator."""
    # Java splits at one escaped character without compiling a pattern for each row.
    return f"split({text}, {literal(regex(separator))}, {limit})"


def regex(text: str) -> str:
    """Return a regular expression that matches a text and nothing else."""
    return "".join(f"\\{c}" if c in r"\.[]{}()*+-?^$|&#" else c for c in text)


def named(kind: Type) -> str:
    """Return a type as a sentence names it."""
    return ARTICLES.get(kind.kind, f"a {kind}")


def cleaned(text: str, kind: str, style: Style) -> str:
    """Return SQL for a text in which everything that stands for null is null."""
    nulls = []
    if not (style.keep_blank and kind == "string"):
        nulls.append(f"trim({text}) = ''")
    if style.null_format is not None:
        nulls.append(f"{text} = {literal(style.null_format)}")
    return f"CASE WHEN {' OR '.join(nulls)} THEN NULL ELSE {text} END" if nulls else text


def value_sql(text: str, kind: Type, style: Style, column: str, level: int = 0) -> str:
    """Return SQL for the value of a type that a text stands for; null stays null."""
    match kind.kind:
        case "null":
            return "CAST(NULL AS VOID)"
        case "string":
            return text
        case "bytes":
            return f"unbase64({text})" if style.base64 else f"CAST({text} AS BINARY)"
        case "row":
            return _row(text, kind, style, column, level)
        case "array" | "map" if not style.json:
            separated = _array if kind.kind == "array" else _map
            return separated(text, kind, style, column, level)
        case _ if kind.kind in ("array", "map") or kind.kind.endswith("vector"):
            return _from_json(text, kind, style, column)
    parsed = _scalar(text, kind, style)
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE " + (
        f"coalesce({parsed}, {wrong(text, kind, style, column)}) END"
    )


def retyped(value: str, kind: Type, style: Style, column: str, level: int = 0) -> str:
    """Return SQL for a value whose leaves are text (see `leaves_ddl`) as one of its real type."""
    name = f"r{level}"
    match kind.kind:
        case "array":
            inner = retyped(name, kind.parts[0], style, column, level + 1)
            return f"transform({value}, {name} -> {inner})"
        case "map":
            key = retyped(f"{name}.key", kind.parts[0], style, column, level + 1)
            inner = retyped(f"{name}.value", kind.parts[1], style, column, level + 1)
            entries = f"transform(map_entries({value}), {name} -> struct({key}, {inner}))"
            return f"map_from_entries({entries})"
        case "row":
            fields = ", ".join(
                f"{literal(n)}, {retyped(f'{value}.{quote(n)}', t, style, column, level)}"
                for n, t in kind.fields
            )
            return f"CASE WHEN {value} IS NULL THEN NULL ELSE named_struct({fields}) END"
        case _ if kind.kind.endswith("vector"):
            return f"CAST({value} AS {kind.ddl})"
    return value_sql(value, kind, style, column)


def leaves_ddl(kind: Type) -> str:
    """Return the DDL of a type in which every leaf is text."""
    match kind.kind:
        case "array":
            return f"array<{leaves_ddl(kind.parts[0])}>"
        case "map":
            return f"map<{leaves_ddl(kind.parts[0])},{leaves_ddl(kind.parts[1])}>"
        case "row":
            fields = (f"{quote(n)}:{leaves_ddl(t)}" for n, t in kind.fields)
            return "struct<" + ",".join(fields) + ">"
        case _:
            return kind.ddl if kind.kind.endswith("vector") else "string"


def wrong(text: str, kind: Type, style: Style, column: str) -> str:
    """Return SQL that ends the job because a text is no value of a type."""
    parts = (
        literal("LocalFile cannot read "),
        style.place,
        literal(f": column {column} = '"),
        text,
        literal(f"' is not {named(kind)}. Row: "),
        f"substring({style.record}, 1, 200)",
    )
    return f"raise_error(concat({', '.join(parts)}))"


def _scalar(text: str, kind: Type, style: Style) -> str:
    match kind.kind:
        case "date":
            formats = _first(style.date_format, DATE)
            ways = [f"CAST(try_to_timestamp({text}, {literal(f)}) AS DATE)" for f in formats]
            others = [f"CAST(try_to_timestamp({text}, {literal(f)}) AS DATE)" for f in OTHER_DATES]
            return _coalesce([*ways, f"try_cast({text} AS DATE)", *others])
        case "timestamp":
            formats = _first(style.datetime_format, DATETIME)
            cast = "CAST(try_to_timestamp({}, {}) AS TIMESTAMP_NTZ)"
            ways = [cast.format(text, literal(f)) for f in formats]
            others = [cast.format(text, literal(f)) for f in OTHER_DATETIMES]
            return _coalesce([*ways, f"try_cast({text} AS TIMESTAMP_NTZ)", *others])
        case "time":
            formats = _first(style.time_format, TIME)
            ways = [f"try_to_time({text}, {literal(f)})" for f in formats]
            return _coalesce([*ways, f"try_cast({text} AS TIME(6))"])
        case "boolean":
            return f"CASE lower(trim({text})) WHEN 'true' THEN true WHEN 'false' THEN false END"
    plain = f"try_cast({text} AS {kind.ddl})"
    if style.loose_numbers and kind.kind in WHOLE:
        return _coalesce([plain, f"try_cast(try_cast({text} AS DOUBLE) AS {kind.ddl})"])
    return plain


def _first(asked: str, usual: str) -> list[str]:
    return [] if asked == usual else [asked]


def _coalesce(ways: list[str]) -> str:
    return f"coalesce({', '.join(ways)})" if len(ways) > 1 else ways[0]


def _array(text: str, kind: Type, style: Style, column: str, level: int) -> str:
    name, separator = f"a{level}", style.separators[level + 1]
    element = kind.parts[0]
    inner = value_sql(cleaned(name, "", style), element, style, column, level + 1)
    return f"transform({_trailing(text, separator)}, {name} -> {inner})"


def _map(text: str, kind: Type, style: Style, column: str, level: int) -> str:
    name, between, inside = f"m{level}", style.separators[level + 1], style.separators[level + 2]
    pair = split_sql(name, inside)
    parts = [
        value_sql(cleaned(f"get({pair}, {i})", "", style), part, style, column, level + 1)
        for i, part in enumerate(kind.parts)
    ]
    pairs = f"transform({_trailing(text, between)}, {name} -> struct({parts[0]} k, {parts[1]} v))"
    return f"map_from_entries(filter({pairs}, {name} -> {name}.k IS NOT NULL))"


def _row(text: str, kind: Type, style: Style, column: str, level: int) -> str:
    separator = style.separators[0 if style.json else level + 1]
    # A list of one gives the parts a name, so that they are split once and not for each field.
    name = f"p{level}"
    fields = ", ".join(
        f"{literal(n)}, "
        + value_sql(cleaned(f"get({name}, {i})", t.kind, style), t, style, column, level + 1)
        for i, (n, t) in enumerate(kind.fields)
    )
    made = f"transform(array({split_sql(text, separator)}), {name} -> named_struct({fields}))"
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE get({made}, 0) END"


def _from_json(text: str, kind: Type, style: Style, column: str) -> str:
    read = f"from_json({text}, {literal(leaves_ddl(kind))})"
    checked = f"coalesce({read}, {wrong(text, kind, style, column)})"
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE {retyped(checked, kind, style, column)} END"


def _trailing(text: str, separator: str) -> str:
    """Split a text; empty parts at its end do not count."""
    return split_sql(f"trim(TRAILING {literal(separator)} FROM {text})", separator)
