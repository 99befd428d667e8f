"""Have Arrow parse whole rows of delimited text."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from holdfast.connectors.files.formats.csv_quotes import Dialect
from holdfast.connectors.files.text_values import FALSE, TRUE


def parse(
    data: bytes, dialect: Dialect, quoted: bool, width: int, wanted: dict[str, Any],
    nulls: list[str],
) -> pa.Table:  # fmt: skip
    """Return columns, each named by its number: those in `wanted`, or else all of them as bytes.

    Raises ArrowInvalid if a row has another number of fields, or a field no value of its type.
    """
    names = [str(n) for n in range(width)]
    types = wanted or dict.fromkeys(names, pa.binary())
    return csv.read_csv(
        io.BytesIO(data),
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=chr(dialect.delimiter),
            quote_char=chr(dialect.quote) if quoted and dialect.quote is not None else False,
            escape_char=chr(dialect.escape) if dialect.escape is not None else False,
        ),
        csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=bool(wanted),
            null_values=nulls if wanted else [], true_values=list(TRUE), false_values=list(FALSE),
        ),
    )  # fmt: skip


def has_hex(data: bytes) -> bool:
    """Say whether there may be a number like 0x1F, which Arrow takes."""
    return b"0x" in data or b"0X" in data
