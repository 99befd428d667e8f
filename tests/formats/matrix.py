"""The values that travel: edges of each type, and more from a seed.  One column for each type."""

import math
import random
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

ROWS = 300

KINDS = {
    "s": "string", "b": "boolean", "i1": "tinyint", "i2": "smallint", "i4": "int", "i8": "bigint",
    "f4": "float", "f8": "double", "n10": "decimal(10,2)", "n38": "decimal(38,18)",
    "n0": "decimal(38,0)", "d": "date", "t": "time", "ts": "timestamp", "z": "timestamp_tz",
    "y": "bytes", "a": "array<decimal(38,18)>", "r": "row", "m": "map<string, bigint>",
}  # fmt: skip
"""The columns; `r` is a row of a timestamp and a text."""

SPARK = {
    "s": "string", "b": "boolean", "i1": "tinyint", "i2": "smallint", "i4": "int", "i8": "bigint",
    "f4": "float", "f8": "double", "n10": "decimal(10,2)", "n38": "decimal(38,18)",
    "n0": "decimal(38,0)", "d": "date", "t": "time(6)", "ts": "timestamp_ntz", "z": "timestamp",
    "y": "binary", "a": "array<decimal(38,18)>", "r": "struct<x:timestamp_ntz,y:string>",
    "m": "map<string,bigint>",
}  # fmt: skip

Row = dict[str, Any]


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


EDGES: dict[str, list[Any]] = {
    "s": [
        "", " ", "  two  ", 'say "x"', "it's", "a,b", "a;b", "tab\there", "line\nbreak", "\r\n",
        "\r",
        "back\\slash", "\\N", "NULL", "null", "NaN", "=1+1", "'", "Grüße 漢字 🦆", "\u200b",
        "<&>]]>",
        "_x0041_", "x" * 30_000, "#DIV/0!", "0012", "1e5", "true", "%s", "--", "${x}", "\ufeff",
    ],
    "b": [True, False],
    "i1": [0, 1, -1, 127, -128],
    "i2": [0, 32767, -32768],
    "i4": [0, 2**31 - 1, -(2**31)],
    "i8": [0, 2**63 - 1, -(2**63), 10**15, 10**15 + 1, 2**53 + 1],
    "f4": [0.0, -0.0, single(0.1), single(3.4028235e38), 1.401298464324817e-45, math.inf,
        math.nan],
    "f8": [0.0, -0.0, 0.1 + 0.2, 1.7976931348623157e308, 5e-324, -math.inf, math.nan, 1e16, 1e-7],
    "n10": [Decimal(n) for n in ("0.00", "0.01", "-99999999.99", "99999999.99", "1.50")],
    "n38": [
        Decimal(n)
        for n in (
            "0.000000000000000001", "99999999999999999999.999999999999999999",
            "-12345678901234567890.123456789012345678", "1.000000000000000000",
        )
    ],
    "n0": [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)],
    "d": [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1969, 12, 31), date(9999,
        12, 31)],
    "t": [time(0), time(23, 59, 59, 999999), time(10, 20), time(1, 2, 3, 4)],
    "ts": [
        datetime(1, 1, 1), datetime(1500, 1, 2, 3, 4, 5, 6), datetime(1969, 12, 31, 23, 59, 59,
        999999),
        datetime(2024, 3, 10, 2, 30), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024,
        1, 1),
    ],
    "z": [
        datetime(1900, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(2024, 11, 3, 6, 30, 0, 1, UTC), datetime(2200, 1, 1, tzinfo=UTC),
    ],
    "y": [b"", b"raw", "ünï".encode()],
    "a": [[], [None], [Decimal("0.000000000000000001"), None, Decimal("1.500000000000000000")]],
    "r": [
        {"x": datetime(2024, 1, 1, 0, 0, 0, 123456), "y": 'a"b'}, {"x": None, "y": None},
        {"x": datetime(1969, 12, 31, 23, 59, 59, 1), "y": ""},
    ],
    "m": [{}, {"k": 1}, {"": 2**63 - 1, "a b": None}],
}  # fmt: skip


def rows(count: int = ROWS, seed: int = 20) -> list[Row]:
    """Return rows of all columns: edges first, then values made from a seed, and nulls."""
    dice = random.Random(seed)
    made: list[Row] = [{"id": number} for number in range(count)]
    for name, edges in EDGES.items():
        for number, row in enumerate(made):
            if number < len(edges):
                row[name] = edges[number]
            else:
                row[name] = None if dice.random() < 0.1 else MADE[name](dice)
    return made


def _text(dice: random.Random) -> str:
    letters = "abcXYZ019 ,;|\"'\\\t\n<>&=%äß漢🦆"
    return "".join(dice.choice(letters) for _ in range(dice.randrange(1, 20)))


def _moment(dice: random.Random) -> datetime:
    return datetime(1, 1, 1) + timedelta(microseconds=dice.randrange(315_537_897_600 * 10**6))


def _number(dice: random.Random, precision: int, scale: int) -> Decimal:
    digits = dice.randrange(10 ** dice.randrange(1, precision + 1)) * dice.choice([1, -1])
    made = Decimal(digits).as_tuple()
    return Decimal((made.sign, made.digits, -scale))


MADE: dict[str, Callable[[random.Random], Any]] = {
    "s": _text,
    "b": lambda d: d.random() < 0.5,
    "i1": lambda d: d.randrange(-128, 128),
    "i2": lambda d: d.randrange(-(2**15), 2**15),
    "i4": lambda d: d.randrange(-(2**31), 2**31),
    "i8": lambda d: d.randrange(-(2**63), 2**63),
    "f4": lambda d: single(d.uniform(-1, 1) * 10 ** d.randrange(-30, 30)),
    "f8": lambda d: d.uniform(-1, 1) * 10 ** d.randrange(-300, 300),
    "n10": lambda d: _number(d, 10, 2),
    "n38": lambda d: _number(d, 38, 18),
    "n0": lambda d: _number(d, 38, 0),
    "d": lambda d: _moment(d).date(),
    "t": lambda d: _moment(d).time(),
    "ts": _moment,
    "z": lambda d: datetime(1950, 1, 1, tzinfo=UTC) + timedelta(microseconds=d.randrange(10**16)),
    "y": lambda d: _text(d).encode(),
    "a": lambda d: [_number(d, 38, 18) for _ in range(d.randrange(3))],
    "r": lambda d: {"x": _moment(d), "y": _text(d)},
    "m": lambda d: {_text(d): d.randrange(-(2**63), 2**63) for _ in range(d.randrange(3))},
}


def shown(value: Any) -> Any:
    """Return a value so that it compares: with all its digits, and its zone."""
    match value:
        case bool() | None | str() | int():
            return value
        case float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
        case date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case list() | tuple() if not hasattr(value, "asDict"):
            return [shown(v) for v in value]
    pairs = value.items() if isinstance(value, dict) else value.asDict().items()
    return {k: shown(v) for k, v in pairs}


def differences(wanted: list[Row], found: list[Row], names: list[str]) -> list[str]:
    """Return what differs, in sentences; rows are told apart by `id`."""
    said = []
    if len(wanted) != len(found):
        said.append(f"{len(wanted)} rows went in and {len(found)} came out")
    there = {int(row["id"]): row for row in found}
    for row in wanted:
        other = there.get(row["id"])
        if other is None:
            said.append(f"row {row['id']} is missing")
            continue
        for name in names:
            one, two = shown(row[name]), shown(other[name])
            if one != two:
                said.append(f"row {row['id']}, {name}: {one!r:.80} became {two!r:.80}")
    return said
