"""Rows loaded in PostgreSQL's own format are the rows loaded as text."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.connectors.jdbc.database import Database, Loading
from holdfast.connectors.jdbc.dialects import postgres as module
from holdfast.connectors.jdbc.dialects.postgres import is_natural
from holdfast.errors import UserError
from tests.unit.connectors.jdbc.conftest import Server

TYPES = {
    "a": ("bigint", pa.int64()),
    "b": ("integer", pa.int32()),
    "c": ("smallint", pa.int16()),
    "d": ("smallint", pa.int8()),
    "e": ("real", pa.float32()),
    "f": ("double precision", pa.float64()),
    "g": ("boolean", pa.bool_()),
    "h": ("date", pa.date32()),
    "i": ("timestamp(3) without time zone", pa.timestamp("us")),
    "j": ("timestamp with time zone", pa.timestamp("us", "UTC")),
    "k": ("numeric(38,6)", pa.decimal128(38, 6)),
    "l": ("numeric", pa.decimal128(10, 2)),
    "m": ("numeric(12,1)", pa.decimal128(12, 4)),
    "n": ("text", pa.string()),
    "o": ("character varying(6000)", pa.string()),
    "p": ("character(4)", pa.string()),
}
EDGES = [
    [2**63 - 1, 2**31 - 1, 2**15 - 1, 127, 1e-45, 5e-324, True, date(1, 1, 1),
     datetime(1900, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999),
     Decimal("99999999999999999999999999999999.999999"), Decimal("0.01"), Decimal("0.0500"),
     "", "it's \"x\" \\N \\. ,\n\t\r", "ab"],
    [-(2**63), -(2**31), -(2**15), -128, float("inf"), float("-inf"), False, date(9999, 12, 31),
     datetime(2024, 2, 29, 1, 2, 3, 456789), datetime(1, 1, 1),
     Decimal("-99999999999999999999999999999999.999999"), Decimal("-10000.00"), Decimal("-1.2500"),
     "Grüße 漢字 🦆", "x" * 5000, ""],
    [0, 0, 0, 0, float("nan"), -0.0, None, date(1970, 1, 1), datetime(1970, 1, 1),
     datetime(2000, 1, 1), Decimal("0.000000"), Decimal("100.00"), Decimal("10000.0000"), "NULL",
     "0", "abcd"],
    [None] * len(TYPES),
]  # fmt: skip


def edges() -> pa.RecordBatch:
    values = zip(*EDGES, strict=True)
    arrays = [pa.array(v, kind) for v, (_, kind) in zip(values, TYPES.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(TYPES))


def drawn(seed: int, rows: int = 500) -> pa.RecordBatch:
    draw = np.random.default_rng(seed)
    long = draw.integers(-(2**63), 2**63 - 1, rows)
    kinds = [kind for _, kind in TYPES.values()]
    columns: list[Any] = [
        long, long >> 32, long >> 48, long >> 56, draw.normal(size=rows).astype("f4"),
        draw.normal(size=rows) * 10.0 ** draw.integers(-300, 300, rows), long > 0,
        draw.integers(-700_000, 2_900_000, rows).astype("i4"),
        draw.integers(-(2**55), 2**57, rows), draw.integers(-(2**55), 2**57, rows),
        *([Decimal(int(n)).scaleb(-places) for n in long % limit]
          for places, limit in ((6, 10**18), (2, 10**10), (4, 10**11))),
        [str(n) for n in long], [chr(33 + n % 90) * (n % 50) for n in long],
        [str(n % 9999) for n in long],
    ]  # fmt: skip
    made = [pa.array(v, k, from_pandas=False) for v, k in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(made, names=list(TYPES))


def into(table: str) -> Loading:
    return Loading(table, tuple(TYPES), tuple(name for name, _ in TYPES.values()), 1000)


@pytest.fixture
def database(postgres: Server) -> Database:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    for table in ("by_text", "by_binary"):
        postgres.run(f"DROP TABLE IF EXISTS {table}")
        postgres.run(f"CREATE TABLE {table} ({columns})")
    return postgres.sink(table="by_text").database


def test_both_ways_load_the_same_rows(
    postgres: Server, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [edges(), drawn(1), drawn(2)]
    database.load(into("by_binary"), iter(batches))
    with monkeypatch.context() as patched:
        patched.setattr(module, "BinaryCopy", None)  # so that its use would fail
        patched.setattr(module, "is_natural", lambda *_: False)
        database.load(into("by_text"), iter(batches))
    assert postgres.run("SELECT count(*) FROM by_binary") == [(1004,)]
    for one, other in (("by_text", "by_binary"), ("by_binary", "by_text")):
        assert postgres.run(f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}") == []


@pytest.mark.parametrize(
    ("digits", "places"),
    [(38, 0), (38, 10), (38, 38), (18, 6), (18, 8), (17, 14), (12, 10), (12, 2), (5, 5), (4, 2)],
)
def test_every_digit_of_a_decimal_arrives(postgres: Server, digits: int, places: int) -> None:
    """Libraries have lost groups of four zeros on either side of the point, without an error."""
    ones = [10**n for n in range(digits)]
    unscaled = [
        0,
        10**digits - 1,
        *ones,
        *(5 * one for one in ones),
        *(one + 1 for one in ones[1:]),
    ]
    unscaled += [ones[-1] + one for one in ones] + [sum(ones[::n]) for n in range(2, 9)]
    with localcontext(prec=60):
        values = [Decimal(sign * n).scaleb(-places) for n in unscaled for sign in (1, -1)]
    kind = f"numeric({digits},{places})"
    postgres.run("DROP TABLE IF EXISTS decimals")
    postgres.run(f"CREATE TABLE decimals (n integer, d {kind})")
    numbers = pa.array(range(len(values)), pa.int32())
    batch = pa.record_batch([numbers, pa.array(values, pa.decimal128(digits, places))], ["n", "d"])
    database = postgres.sink(table="decimals").database
    loading = Loading("decimals", ("n", "d"), ("integer", kind), 1000)
    assert is_natural(batch.schema, loading.types)
    database.load(loading, iter([batch]))
    assert [d for (d,) in postgres.run("SELECT d FROM decimals ORDER BY n")] == values


@pytest.mark.parametrize(
    ("column", "kind"),
    [("integer", pa.int64()), ("bigint", pa.int32()), ("uuid", pa.string()),
     ("jsonb", pa.string()), ("bigint", pa.decimal128(10, 0)), ("numeric", pa.int64()),
     ("timestamp", pa.timestamp("us", "UTC")), ("text[]", pa.string()),
     ("time(6) without time zone", pa.string())],
)  # fmt: skip
def test_other_types_go_as_text(column: str, kind: pa.DataType) -> None:
    assert not is_natural(pa.schema([("x", kind)]), [column])


def test_what_breaks_while_rows_are_made_is_raised_as_it_is(
    postgres: Server, database: Database
) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield edges()
        yield edges()
        raise LookupError("the source is gone")

    with pytest.raises(LookupError, match="the source is gone"):
        database.load(into("by_binary"), broken())
    assert postgres.run("SELECT count(*) FROM by_binary") == [(0,)]


def test_a_value_that_does_not_fit_is_the_users_fault(postgres: Server, database: Database) -> None:
    postgres.run("ALTER TABLE by_binary ALTER o TYPE varchar(9)")
    with pytest.raises(UserError, match="too long") as raised:
        database.load(into("by_binary"), iter([edges(), edges()]))
    assert raised.value.about["sqlstate"] == "22001"
    assert postgres.run("SELECT count(*) FROM by_binary") == [(0,)]
