"""Which bucket of its partition a row belongs to, as a Spark SQL expression.

Paimon hashes the encoded row of the bucket key (`binary_row.py`) with the function, and the seed,
that Spark's `hash` uses for bytes.  So Spark puts that row together, and no row leaves the JVM.
"""

from collections.abc import Sequence

from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.types import kind_of
from holdfast.model.types import quote

BUCKET_KEY = "bucket-key"
HASHED = ("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE")
"""The types that a table with several buckets may have in its bucket key."""

WORD = 8
INLINE_MAX = 7
WIDTHS = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "DATE": 4, "BIGINT": 8}


def bucket_keys(schema: PaimonSchema) -> list[str]:
    """Return the columns that decide on the bucket."""
    said = [k.strip() for k in schema.options.get(BUCKET_KEY, "").split(",") if k.strip()]
    return said or schema.own_keys


def bucket_sql(schema: PaimonSchema) -> str:
    """Return the number of a row's bucket, as Spark SQL."""
    if schema.buckets == 1:
        return "0"
    keys = bucket_keys(schema)
    row = _row([(quote(k), kind_of(str(schema.types[k])).name) for k in keys])
    # A null in a key is found later, and refused.
    return f"coalesce(abs(hash({row}) % {schema.buckets}), 0)"


def _row(fields: Sequence[tuple[str, str]]) -> str:
    start = (len(fields) + 63 + 8) // 64 * WORD
    words = [f"X'{'00' * start}'"]
    rest: list[str] = []
    at = str(start + WORD * len(fields))
    for value, kind in fields:
        if kind == "STRING":
            data = f"CAST({value} AS BINARY)"
            size = f"octet_length({value})"
            short = f"{size} <= {INLINE_MAX}"
            room = f"CAST(ceil({size} / {WORD}) * {WORD} AS INT)"
            inline = f"concat(rpad({data}, {INLINE_MAX}, X'00'), unhex(hex(128 + {size})))"
            outside = f"concat({_low_first(size, 4)}, {_low_first(at, 4)})"
            words.append(f"if({short}, {inline}, {outside})")
            rest.append(f"if({short}, X'', rpad({data}, {room}, X'00'))")
            at = f"({at} + if({short}, 0, {room}))"
        else:
            number = f"unix_date({value})" if kind == "DATE" else value
            words.append(_low_first(f"CAST({number} AS BIGINT)", WIDTHS[kind]))
            words.append(f"X'{'00' * (WORD - WIDTHS[kind])}'")
    return f"concat({', '.join([*words, *rest])})"


def _low_first(number: str, width: int) -> str:
    """Return the lowest bytes of a number, the lowest first."""
    data = f"unhex(lpad(hex({number}), {2 * WORD}, '0'))"
    return f"concat({', '.join(f'substring({data}, {WORD - at}, 1)' for at in range(width))})"
