"""Columns to JSON text, and JSON text to columns, as Spark expressions."""

from typing import TYPE_CHECKING

from holdfast.model.types import Type, quote

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

READABLE = ("string", "bytes", "array", "map", "row")
"""The kinds of column that hold JSON, or can be shown as it."""

WHOLE = ("tinyint", "smallint", "int", "bigint")
KEEP_NULLS = {"ignoreNullFields": "false"}

# Dates such as 2023/10/29, 2023.10.29 and 20231029, for the part of a text before any time.
_DATE_MARKS = (
    (r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})", "$1-$2-$3"),
    (r"^(\d{4})(\d{2})(\d{2})(?=$|[ T])", "$1-$2-$3"),
)


def json_text(name: str, kind: Type) -> "Expression":
    """Return a column as JSON text; a row becomes the list of its fields, as in SeaTunnel."""
    from pyspark.sql import functions as F

    column = F.col(quote(name))
    match kind.kind:
        case "string":
            return column
        case "bytes":
            return F.make_valid_utf8(column.cast("string"))
        case "row":
            fields = [_item(column.getField(field)) for field in kind.names]
            listed = F.concat(F.lit("["), F.concat_ws(",", *fields), F.lit("]"))
            return F.when(column.isNotNull(), listed)
    return F.to_json(column, KEEP_NULLS)


def typed(text: "Expression", kind: Type, fail: bool) -> "Expression":
    """Return the text as a value of a type; null where it is not of that type.

    `fail`: a part of a list, map or row that is not of its type stops the job, which Spark's own
    error then explains; otherwise that part is null.
    """
    from pyspark.sql import functions as F

    match kind.kind:
        case "string":
            return text
        case "boolean":
            word = F.lower(F.trim(text))
            return F.when(word == "true", True).when(word == "false", False)
        case "bytes":
            return F.try_to_binary(text, F.lit("base64"))
        case "date" | "timestamp" | "timestamp_tz":
            return _dashed(F.trim(text)).try_cast(kind.ddl)
        case "array" | "map" | "row" | "float_vector":
            read = F.from_json(text, _texts(kind))
            return read.cast(kind.ddl) if fail else read.try_cast(kind.ddl)
    return F.trim(text).try_cast(kind.ddl)


def check_type(kind: Type) -> str | None:
    """Return why JSON cannot give this type, or None."""
    if kind.kind == "map" and kind.parts[0].kind != "string":
        return f"{kind}: the keys of a JSON object are text. Use map<string, {kind.parts[1]}>"
    if kind.kind.endswith("_vector") and kind.kind != "float_vector":
        return f"{kind} cannot be read from JSON. Use array<float> or float_vector"
    return next((why for part in kind.parts if (why := check_type(part))), None)


def _item(field: "Expression") -> "Expression":
    """Return any value as JSON; Spark writes only compound ones, so it is put in a list first."""
    from pyspark.sql import functions as F

    listed = F.to_json(F.array(field), KEEP_NULLS)
    return F.substring(listed, F.lit(2), F.length(listed) - 2)


def _dashed(text: "Expression") -> "Expression":
    from pyspark.sql import functions as F

    for pattern, dashes in _DATE_MARKS:
        text = F.regexp_replace(text, pattern, dashes)
    return text


def _texts(kind: Type) -> str:
    """Return the type with text at every leaf, so that "42" and 42 both become numbers."""
    match kind.kind:
        case "float_vector":
            return "array<string>"
        case "array":
            return f"array<{_texts(kind.parts[0])}>"
        case "map":
            return f"map<string,{_texts(kind.parts[1])}>"
        case "row":
            fields = ",".join(f"{quote(n)}:{_texts(t)}" for n, t in kind.fields)
            return f"struct<{fields}>"
    return "string"
