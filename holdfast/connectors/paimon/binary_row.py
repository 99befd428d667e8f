"""Paimon's encoding of a row of values: partitions, keys and bounds in manifests are such rows.

A row is the number of its fields (four bytes, the highest first) and then: a byte for the kind of
row, a bit for each field that is null, eight bytes for each field, and what is longer than that.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from holdfast.connectors.paimon.types import PaimonKind, kind_of

WORD = 8
INLINE_MAX = 7
"""Texts up to so many bytes are kept inside their eight."""

EXACT = Context(prec=38)
"""Python keeps 28 digits by default."""

COMPACT_DIGITS_MAX = 18
COMPACT_SECONDS_MAX = 3
LARGE_DECIMAL_BYTES = 16

FIXED = {
    "BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "BIGINT": "<q",
    "FLOAT": "<f", "DOUBLE": "<d",
}  # fmt: skip
EPOCH_DAY = date(1970, 1, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode(values: Sequence[Any], types: Sequence[str]) -> bytes:
    """Return a row of values, each of a Paimon type; None is null."""
    nulls = bytearray(_null_bytes(len(types)))
    fixed = bytearray(WORD * len(types))
    start = len(nulls) + len(fixed)
    rest = bytearray()
    for at, (value, text) in enumerate(zip(values, types, strict=True)):
        if value is None:
            nulls[(at + 8) // 8] |= 1 << (at % 8)
            continue
        word, more = _field(value, kind_of(text), start + len(rest))
        fixed[WORD * at : WORD * at + len(word)] = word
        rest += more
    return struct.pack(">i", len(types)) + bytes(nulls + fixed + rest)


def decode(row: bytes, types: Sequence[str]) -> list[Any]:
    """Return the values of a row, whose types are known; raise ValueError if it has others."""
    if len(row) < 4 or struct.unpack_from(">i", row)[0] != len(types):
        raise ValueError(f"a row of {len(types)} fields was expected")
    body = row[4:]
    start = _null_bytes(len(types))
    found: list[Any] = []
    for at, text in enumerate(types):
        if body[(at + 8) // 8] & (1 << (at % 8)):
            found.append(None)
        else:
            found.append(_value(body, start + WORD * at, kind_of(text)))
    return found


def _null_bytes(fields: int) -> int:
    return (fields + 63 + 8) // 64 * WORD


def _field(value: Any, kind: PaimonKind, at: int) -> tuple[bytes, bytes]:
    """Return the word of a field, and what is at `at` of the row for it."""
    match kind.name:
        case "DATE":
            return struct.pack("<i", (value - EPOCH_DAY).days), b""
        case "DECIMAL":
            return _decimal(value, kind, at)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _moment(value, kind, at)
        case "STRING" | "BYTES":
            return _text(value.encode() if isinstance(value, str) else bytes(value), at)
    return struct.pack(FIXED[kind.name], value), b""


def _decimal(value: Decimal, kind: PaimonKind, at: int) -> tuple[bytes, bytes]:
    whole = int(value.scaleb(kind.scale, EXACT))
    if kind.precision <= COMPACT_DIGITS_MAX:
        return struct.pack("<q", whole), b""
    # Java's way to write a large number: as few bytes as hold it and its sign.
    size = whole.bit_length() // 8 + 1
    data = whole.to_bytes(size, "big", signed=True)
    return struct.pack("<q", at << 32 | size), data.ljust(LARGE_DECIMAL_BYTES, b"\0")


def _moment(value: datetime, kind: PaimonKind, at: int) -> tuple[bytes, bytes]:
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH
    micros = since // timedelta(microseconds=1)
    millis, rest = divmod(micros, 1000)
    if kind.precision <= COMPACT_SECONDS_MAX:
        return struct.pack("<q", millis), b""
    return struct.pack("<q", at << 32 | rest * 1000), struct.pack("<q", millis)


def _text(data: bytes, at: int) -> tuple[bytes, bytes]:
    if len(data) <= INLINE_MAX:
        return data.ljust(INLINE_MAX, b"\0") + bytes([0x80 | len(data)]), b""
    padded = data + bytes(-len(data) % WORD)
    return struct.pack("<q", at << 32 | len(data)), padded


def _value(body: bytes, at: int, kind: PaimonKind) -> Any:
    if kind.name in FIXED:
        return struct.unpack_from(FIXED[kind.name], body, at)[0]
    word = struct.unpack_from("<Q", body, at)[0]
    where, low = word >> 32, word & 0xFFFFFFFF
    match kind.name:
        case "DATE":
            return EPOCH_DAY + timedelta(days=struct.unpack_from("<i", body, at)[0])
        case "DECIMAL":
            small = kind.precision <= COMPACT_DIGITS_MAX
            whole = (
                struct.unpack_from("<q", body, at)[0]
                if small
                else int.from_bytes(body[where : where + low], "big", signed=True)
            )
            return Decimal(whole).scaleb(-kind.scale, EXACT)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _moment_of(body, at, kind)
    short = word >> 56
    data = body[at : at + (short & 0x7F)] if short & 0x80 else body[where : where + low]
    return data.decode() if kind.name == "STRING" else data


def _moment_of(body: bytes, at: int, kind: PaimonKind) -> datetime:
    if kind.precision <= COMPACT_SECONDS_MAX:
        millis, nanos = struct.unpack_from("<q", body, at)[0], 0
    else:
        word = struct.unpack_from("<Q", body, at)[0]
        millis, nanos = struct.unpack_from("<q", body, word >> 32)[0], word & 0xFFFFFFFF
    found = EPOCH + timedelta(milliseconds=millis, microseconds=nanos // 1000)
    return found if kind.name == "TIMESTAMP_LTZ" else found.replace(tzinfo=None)
