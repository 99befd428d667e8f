"""What a database would change of a value is found before the value is sent."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from holdfast.connectors.jdbc.exact import changes, checks
from holdfast.errors import UserError
from holdfast.model.types import parse_type

DAY = dt.datetime(2024, 1, 31)
SECOND = dt.datetime(1960, 1, 31, 10, 20, 30)
PART = SECOND.replace(microsecond=120_000)
EXACT = "12345678901234567890.123456789012345678"

FITS: list[tuple[str, str, list[Any]]] = [
    ("decimal(38,18)", "numeric(10,2)", [Decimal("1.250000"), Decimal("-0.01"), None]),
    ("decimal(38,18)", "numeric", [Decimal(EXACT)]),
    ("double", "numeric(30,2)", [0.25, -1e3, 1e22, float("nan"), None]),
    ("double", "real", [0.1, 1 / 3]),
    ("double", "bigint(20)", [2.0, -0.0, 1e15]),
    ("string", "decimal(10,2)", ["1.50", " 7 ", "1.500", "+1", "1e3", "15e-1", ".5", None]),
    ("string", "bigint(20) unsigned", ["12", "12.0", "18446744073709551615"]),
    ("bigint", "smallint", [32767, -32768, None]),
    ("bigint", "int(10) unsigned", [0, 4294967295]),
    ("double", "int", [2147483647.0, -2147483648.0, float("nan")]),
    ("decimal(38,0)", "numeric(20,0)", [Decimal("99999999999999999999")]),
    ("string", "integer", ["2147483647", "-2147483648", "+0", "NaN"]),
    ("string", "double precision", ["1e300", "NaN", "-inf", "Infinity"]),
    ("int", "integer NOT NULL", [0]),
    ("timestamp", "date", [DAY, None]),
    ("timestamp", "timestamp without time zone", [PART]),
    ("timestamp", "datetime(2)", [PART, SECOND, None]),
    ("timestamp", "datetime", [SECOND]),
    ("timestamp_tz", "timestamp(6)", [PART]),
    ("double", "year(4)", [2024.0]),
    ("string", "money", ["$1,234.50", "-$7"]),
    (
        "string",
        "date",
        ["2024-01-31", "2024-01-31 00:00:00", "31.1.2024", "20240131", "May 1, 2024", "x", None],
    ),
    ("string", "time with time zone", ["10:20:30.123456-05", "10:20:30.5+05:30"]),
    ("string", "timestamp(6)", ["2024-01-31 10:20:30.123456+02:00"]),
    ("string", "timestamp without time zone", ["2024-01-31 10:20:30.1234560", "20240131T102030"]),
    ("string", "timestamp with time zone", ["2024-01-31T10:20:30+02:00"]),
    ("string", "datetime(6)", ["2024-01-31 10:20:30.5"]),
    ("string", "time", ["10:20:30", "10:20:30.000"]),
    ("time", "time without time zone", ["10:20:30.123456"]),
    ("string", "varchar(3)", ["äöü", "", None]),
    ("string", "character varying", ["x" * 1000]),
    ("string", "text", ["x" * 1000]),
]

CHANGED: list[tuple[str, str, Any, str]] = [
    ("decimal(38,18)", "numeric(10,2)", Decimal("1.005"), "places"),
    ("decimal(38,18)", "bigint", Decimal(EXACT), "places"),
    ("decimal(10,1)", "decimal(10,0)", Decimal("0.5"), "places"),
    ("double", "numeric(10,2)", 0.125, "places"),
    ("float", "numeric(10,2)", 1e-7, "places"),
    ("double", "int(11)", 2.5, "places"),
    ("double", "double(7,2)", 2.555, "places"),
    ("double", "money", 2.555, "places"),
    ("string", "decimal(10,2)", "1.005", "places"),
    ("string", "int", "1e-3", "places"),
    ("string", "integer", "12abc", "no number"),
    ("string", "double precision", "", "no number"),
    ("string", "integer", "2147483648", "out of range"),
    ("string", "integer", "-2147483649", "out of range"),
    ("string", "int(10) unsigned", "-1", "out of range"),
    ("string", "numeric(5,2)", "1000.00", "out of range"),
    ("bigint", "smallint", 32768, "out of range"),
    ("bigint", "bigint(20) unsigned", -1, "out of range"),
    ("double", "integer", 2147483648.0, "out of range"),
    ("double", "integer", float("-inf"), "out of range"),
    ("decimal(38,18)", "numeric(20,18)", Decimal("-100.0"), "out of range"),
    ("decimal(38,0)", "bigint", Decimal("9223372036854775808"), "out of range"),
    ("int", "integer NOT NULL", None, "takes no null"),
    ("string", "date", "2024-02-30", "no such day"),
    ("string", "timestamp with time zone", "2024-13-01 10:20:30", "no such day"),
    ("timestamp", "date", SECOND, "time of day"),
    ("timestamp_tz", "date", DAY.replace(hour=1), "time of day"),
    ("string", "date", "2024-01-31T10:20:30", "time of day"),
    ("string", "date", "20240131T101112", "time of day"),
    ("string", "date", "2024-01-31 10.11.12", "time of day"),
    ("string", "date", "20240131101112", "time of day"),
    ("string", "date", "May 1, 2024 10:11", "time of day"),
    ("string", "time", "2024-01-31 10:20:30", "date"),
    ("string", "time", "20240131102030", "date"),
    ("string", "time without time zone", "10:20:30+02", "offset"),
    ("string", "timestamp without time zone", "2024-01-31 10:20:30.1234567", "fraction"),
    ("string", "timestamp with time zone", "20240131T102030.1234567Z", "fraction"),
    ("string", "money", "$1.005", "places"),
    ("double", "year", 2024.5, "places"),
    ("timestamp", "datetime", PART, "fraction"),
    ("timestamp", "timestamp(1) without time zone", PART, "fraction"),
    ("timestamp_tz", "timestamp(0) with time zone", PART, "fraction"),
    ("time", "time", "10:20:30.5", "fraction"),
    ("string", "time(0)", "10:20:30.5", "fraction"),
    ("string", "datetime", "2024-01-31 10:20:30.5", "fraction"),
    ("string", "timestamp without time zone", "2024-01-31T10:20:30+02:00", "offset"),
    ("string", "datetime(6)", "2024-01-31 10:20:30.5Z", "offset"),
    ("string", "character varying(3)", "abc ", "longer"),
    ("string", "char(3) CHARACTER SET utf8mb4", "abcd", "longer"),
]


def batch_of(kind: str, values: list[Any]) -> pa.RecordBatch:
    parsed = parse_type(kind)
    arrow: dict[str, Any] = {
        "double": pa.float64(), "float": pa.float32(), "timestamp": pa.timestamp("us"),
        "timestamp_tz": pa.timestamp("us", "UTC"), "int": pa.int32(), "bigint": pa.int64(),
    }  # fmt: skip
    made = arrow.get(parsed.kind, pa.string())
    if parsed.kind == "decimal":
        made = pa.decimal128(parsed.precision, parsed.scale)
    ids = pa.array(range(len(values)), pa.int64())
    return pa.RecordBatch.from_arrays([ids, pa.array(values, made)], names=["c0", "c1"])


def sent(kind: str, target: str, values: list[Any]) -> Any:
    columns = [
        ("id", parse_type("bigint"), "bigint", True),
        ("v", parse_type(kind), target.removesuffix(" NOT NULL"), target.endswith(" NOT NULL")),
    ]
    batch = batch_of(kind, values)
    found = batch.column(1)
    for one in checks("shop.t", columns):
        if one.at == 1:
            found = one.sent(found, batch, ["id", "v"])
    return found


@pytest.mark.parametrize(("kind", "target", "values"), FITS)
def test_values_that_fit_are_sent_as_they_are(kind: str, target: str, values: list[Any]) -> None:
    found = sent(kind, target, values).to_pylist()
    wanted = batch_of(kind, values).column(1).to_pylist()
    assert repr(found) == repr(wanted)


@pytest.mark.parametrize(("kind", "target", "value", "said"), CHANGED)
def test_a_value_that_would_be_changed_is_refused_with_its_row(
    kind: str, target: str, value: Any, said: str
) -> None:
    good = {
        "double": 1.0, "float": 1.0, "int": 1, "bigint": 1, "timestamp": DAY, "timestamp_tz": DAY,
    }.get(kind)  # fmt: skip
    with pytest.raises(UserError) as refused:
        sent(kind, target, [good, value, value])
    message = str(refused.value)
    assert f"does not fit {target.removesuffix(' NOT NULL')}: " in message and said in message
    assert message.startswith("Jdbc cannot write column v of shop.t: '")
    assert "Row: id = 1, v = " in message and "Widen the column, or convert" in message


def test_whole_decimals_are_sent_as_whole_numbers() -> None:
    found = sent("decimal(10,3)", "integer", [Decimal("2.000"), None])
    assert found.cast(pa.string()).to_pylist() == ["2", None]


def test_a_text_for_bytes_is_its_bytes() -> None:
    found = sent("string", "bytea", ["\\x41", "é", "", None])
    assert found.to_pylist() == ["\\x5c783431", "\\xc3a9", "\\x", None]


def test_what_databases_change_is_told_from_what_they_refuse() -> None:
    """A list whose parts a database may change is refused whole; one that it refuses is not."""
    for kind, target in (("bigint", "integer"), ("string", "double precision"), ("string", "text")):
        assert not changes(parse_type(kind), target)
    for kind, target in (("double", "integer"), ("string", "bytea"), ("timestamp", "date")):
        assert changes(parse_type(kind), target)


def test_moments_and_truth_values_for_texts_are_written_as_elsewhere() -> None:
    whole = SECOND.replace(second=0)
    for target in ("text", "longtext CHARACTER SET utf8mb4", "character varying(40)"):
        found = sent("timestamp", target, [PART, whole, None]).to_pylist()
        assert found == ["1960-01-31 10:20:30.12", "1960-01-31 10:20:00", None]
        found = sent("timestamp_tz", target, [PART, whole, None]).to_pylist()
        assert found == ["1960-01-31T10:20:30.12Z", "1960-01-31T10:20:00Z", None]
    columns = [("v", parse_type("boolean"), "longtext", False)]
    batch = pa.RecordBatch.from_arrays([pa.array([True, False, None])], names=["c0"])
    (one,) = checks("t", columns)
    assert one.sent(batch.column(0), batch, ["v"]).to_pylist() == ["true", "false", None]
