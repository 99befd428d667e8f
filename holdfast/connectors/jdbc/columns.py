"""How columns of the stream travel to a staging table: as Spark expressions and Arrow columns."""

from typing import TYPE_CHECKING

from holdfast.connectors.json_text import json_ready
from holdfast.model.types import Type, quote

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

HEX = "__hex_"
"""How the names of Arrow columns begin whose text is bytes in hexadecimal."""

COMPOUND = ("array", "map", "row", "sparse_float_vector")
LISTS = ("array", "float_vector", "float16_vector", "bfloat16_vector")
BYTES = ("bytes", "binary_vector")

# A value of a PostgreSQL array in double quotes, which all of its types accept.
_ELEMENT = r"""
transform({}, x -> IF(x IS NULL, 'NULL',
  concat('"', replace(replace(CAST(x AS STRING), '\\', '\\\\'), '"', '\\"'), '"')))
"""
_BYTES_ELEMENT = r"""transform({}, x -> IF(x IS NULL, 'NULL', concat('"\\\\x', hex(x), '"')))"""


def sent(name: str, kind: Type, target: str, postgres: bool) -> "SparkColumn":
    """Return a column in a form that Arrow carries and the database reads as type `target`."""
    from pyspark.sql import functions as F

    column = F.col(quote(name))
    if kind.kind in BYTES:
        return F.concat(F.lit("\\x"), F.hex(column)) if postgres else F.hex(column)
    if kind.kind in LISTS and target.endswith("[]"):
        return F.expr(_array(name, kind))
    if kind.kind in COMPOUND or kind.kind in LISTS:
        return F.to_json(F.expr(json_ready(quote(name), kind)))
    if kind.kind in ("time", "null"):
        return column.cast("string")
    return column


def staged_name(number: int, kind: Type | None, postgres: bool) -> str:
    """Return what the Arrow column is called; MySQL must tell bytes from text."""
    bare = f"c{number}"
    return f"{HEX}{bare}" if not postgres and kind and kind.kind in BYTES else bare


def _array(name: str, kind: Type) -> str:
    bytes_inside = bool(kind.parts) and kind.parts[0].kind in BYTES
    elements = (_BYTES_ELEMENT if bytes_inside else _ELEMENT).format(quote(name))
    joined = f"concat('{{', array_join({elements}, ','), '}}')"
    return f"IF({quote(name)} IS NULL, NULL, {joined})"
