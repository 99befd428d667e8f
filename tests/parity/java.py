"""What SeaTunnel's functions work on: values of Java, with their types."""

import struct
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

WIDE = Context(prec=700)
"""Room for every digit of a double and of a decimal."""

WHOLE = ("tinyint", "smallint", "int", "bigint")
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
NUMBERS = (*WHOLE, "float", "double", "decimal")


class Fails(Exception):
    """SeaTunnel stops the job here."""


@dataclass(frozen=True)
class J:
    """A value: its type, what it is (None: NULL), and how a query says it."""

    kind: str
    value: Any
    sql: str = ""
    scale: int = 0


def wrapped(number: int, kind: str) -> int:
    """Return a whole number as Java narrows it: the lower bits."""
    bits = BITS[kind]
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def narrowed(number: float, kind: str) -> int:
    """Return a double as Java casts it to a whole number: 0 for NaN, the nearest end outside."""
    if number != number:
        return 0
    limit = 1 << (BITS[kind] - 1)
    return -limit if number <= -limit else limit - 1 if number >= limit - 1 else int(number)


def exact(j: J) -> Decimal:
    """Return a number by the digits it is written with."""
    if j.kind in ("float", "double"):
        if j.value != j.value or j.value in (float("inf"), float("-inf")):
            raise Fails(j)
        return Decimal(repr(j.value))
    return Decimal(j.value)


def rounded(number: Decimal, scale: int, way: str = ROUND_CEILING) -> Decimal:
    """Return a number with so many decimals."""
    return number.quantize(Decimal(1).scaleb(-scale), rounding=way, context=WIDE)


def units(text: str) -> str:
    """Return a text as Java counts it: one character for each unit of UTF-16."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(raw) // 2}H", raw)))


def characters(text: str) -> str:
    """Return Java's text as a sink writes it: half a character is a question mark."""
    raw = b"".join(struct.pack("<H", ord(c)) for c in text)
    return raw.decode("utf-16-le", "replace").replace("\ufffd", "?")


def double_text(number: float) -> str:
    """Return a double as Java prints it."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    minus, point = "-" if sign or str(number)[0] == "-" else "", len(digits) + exponent
    written = "".join(map(str, digits))
    if number == 0:
        return minus + "0.0"
    if 1e-3 <= abs(number) < 1e7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{written}"
        whole = written[:point].ljust(point, "0")
        return f"{minus}{whole}.{written[point:] or '0'}"
    return f"{minus}{written[0]}.{written[1:] or '0'}E{point - 1}"


def _fraction(micros: int) -> str:
    if not micros:
        return ""
    return f".{micros // 1000:03}" if micros % 1000 == 0 else f".{micros:06}"


def clock_text(at: time | datetime) -> str:
    """Return a time of day as Java prints it: no seconds where they are zero."""
    seconds = f":{at.second:02}{_fraction(at.microsecond)}"
    return f"{at.hour:02}:{at.minute:02}{seconds if at.second or at.microsecond else ''}"


def text(j: J) -> str:
    """Return any value as Java's toString."""
    value = j.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, datetime):
        offset = value.strftime("%z")
        zone = "Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:]}" if offset else ""
        return f"{value:%Y-%m-%d}T{clock_text(value)}{zone}"
    if isinstance(value, time):
        return clock_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
