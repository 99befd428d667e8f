"""The one row over which the table's expressions are written: each column a value worth trying."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from holdfast.connectors.sql.values import literal
from tests.parity.java import J

EIGHT = timezone(timedelta(hours=8))
SPARK = {
    "string": "string", "tinyint": "tinyint", "smallint": "smallint", "int": "int",
    "bigint": "bigint", "float": "float", "double": "double", "boolean": "boolean", "date": "date",
    "time": "time(6)", "timestamp": "timestamp_ntz", "timestamp_tz": "timestamp",
    "bytes": "binary", "array": "array<string>",
}  # fmt: skip

TEXTS = {
    "t_null": None, "t_empty": "", "t_abc": "abc", "t_hello": "Hello World", "t_pad": "  padded ",
    "t_list": "a,b,,c,,", "t_german": "ÄÖÜ straße", "t_number": "12.50", "t_int": "-7",
    "t_spaced": " 5 ", "t_date": "2021-04-08", "t_name": "Robert", "t_lines": "one\ntwo\n",
    "t_quote": "O'Brien\\n", "t_x": "x", "t_long": "0123456789" * 9, "t_ab": "ab_cab",
    "t_smile": "a😀b", "t_exp": "1e3", "t_tiny": "0.0000000001", "t_true": "TRUE", "t_12": "12",
}  # fmt: skip
INTS = {"i_null": None, "i_0": 0, "i_1": 1, "i_neg": -3, "i_5": 5, "i_13": 13, "i_max": 2**31 - 1}
BIGS = {"l_0": 0, "l_7": 7, "l_neg": -7, "l_big": 5_000_000_000, "l_ms": 1_687_747_869_032}
TINIES = {"b_5": 5, "b_min": -128}
DOUBLES = {
    "d_null": None, "d_0": 0.0, "d_half": 0.5, "d_neg": -2.5, "d_120": 120.72524, "d_thin": 1e-7,
    "d_huge": 1e20, "d_13": 13.2, "d_pi": 0.1234567890123456, "d_nan": float("nan"), "d_1": 1.0,
}  # fmt: skip
DECIMALS = {
    "m_null": (None, 10, 4), "m_12": ("12.3456", 10, 4), "m_neg": ("-12.3450", 10, 4),
    "m_0": ("0.0000", 10, 4), "m_7": ("7.00", 10, 2), "m_5": ("0.05", 10, 2),
    "m_wide": ("12345678901234567890.123456789012345678", 38, 18), "m_3": ("3", 5, 0),
    "m_small": ("0.0000000100", 20, 10),
}  # fmt: skip
MOMENTS: dict[str, Any] = {
    "day_leap": date(2024, 2, 29), "day_first": date(2021, 1, 1), "day_old": date(1969, 12, 31),
    "at_spring": datetime(2021, 4, 15, 13, 34, 45, 235_000), "at_noon": datetime(2022, 5, 23, 12),
    "at_half": datetime(2024, 1, 1, 0, 0, 0, 500_000), "at_two": datetime(2024, 1, 1, 2),
    "at_old": datetime(1969, 7, 20, 20, 17, 40), "at_last": datetime(2023, 12, 31, 23, 59, 59),
    "clock": time(23, 30, 5, 250_000), "clock_0": time(0, 0),
    "z_night": datetime(2024, 1, 2, 7, 30, tzinfo=EIGHT),
    "z_eve": datetime(2023, 12, 31, 20, 15, 30, 123_456, tzinfo=UTC).astimezone(EIGHT),
}  # fmt: skip
OTHERS: dict[str, Any] = {
    "yes": True, "no": False, "raw": b"Joy\x00\xff", "xs": ["b", "a", None], "none": [],
    "i_date": 20230625, "i_clock": 235109, "day_null": None, "at_null": None,
}  # fmt: skip


def _kind(value: Any, name: str) -> str:
    kinds = (
        (bool, "boolean"), (bytes, "bytes"), (list, "array"), (int, "int"), (time, "time"),
        (datetime, "timestamp"), (date, "date"),
    )  # fmt: skip
    if value is None:
        return "date" if name.startswith("day") else "timestamp"
    if isinstance(value, datetime) and value.tzinfo:
        return "timestamp_tz"
    return next(kind for of, kind in kinds if isinstance(value, of))


def _pool() -> dict[str, J]:
    made = {n: J("string", v, n) for n, v in TEXTS.items()}
    for kind, values in (("int", INTS), ("bigint", BIGS), ("tinyint", TINIES), ("double", DOUBLES)):
        made |= {n: J(kind, v, n) for n, v in values.items()}
    for name, (number, _, scale) in DECIMALS.items():
        value = None if number is None else Decimal(number)
        made[name] = J("decimal", value, name, scale)
    made |= {n: J(_kind(v, n), v, n) for n, v in (MOMENTS | OTHERS).items()}
    return made


POOL = _pool()


def _spark(name: str, j: J) -> str:
    value, ddl = j.value, SPARK.get(j.kind, "")
    if name in DECIMALS:
        number, precision, scale = DECIMALS[name]
        said = "NULL" if number is None else f"'{number}'"
        return f"cast({said} AS decimal({precision},{scale}))"
    if value is None:
        return f"cast(NULL AS {ddl})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, list):
        items = ", ".join("NULL" if v is None else literal(v) for v in value)
        return f"cast(array({items}) AS array<string>)"
    return f"cast({literal(str(value))} AS {ddl})"


def row_sql() -> str:
    """Return the row as a query of Spark's."""
    return "SELECT " + ", ".join(f"{_spark(name, j)} AS {name}" for name, j in POOL.items())
