"""No way through the engine gives another value than another: at once, one by one, and in SQL."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from holdfast.connect.rejects import Misfit
from holdfast.connectors.files.formats.json_rows import JsonRows
from holdfast.connectors.files.text_conversion import (
    USUAL,
    Spelling,
    arrow_type,
    column_of,
    value_of,
)
from holdfast.connectors.files.text_values import TextNotation, converted
from holdfast.connectors.files.values import scalar_sql
from holdfast.model.table import Column
from holdfast.model.types import parse_type

KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)",
    "decimal(38,18)", "decimal(5,0)", "date", "time", "timestamp", "timestamp_tz",
)  # fmt: skip

FIRST = datetime(1970, 1, 1, tzinfo=UTC)

EDGES = (
    "", " ", "0", "-0", "+7", "007", " 42 ", "33.0", "33.7", "12d", "0x1F", "0X1f", "0x1p3",
    "1_000",
    "127", "128", "-128", "-129", "32768", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "1e2", "1E-3", "1e400", "-1e400", "1e39",
    "3.4028235e38", "3.4028236e38", "1.7976931348623157e308", "5e-324", "1e-400", "NaN", "nan",
    "Infinity", "-Infinity", "inf", ".5", "1.", "1.005", "1.50", "1.500000", "99999999.99",
    "100000000", "12345678901234567890.123456789012345678", "1e30", "true", "FALSE", "True", "t",
    "yes", "2024-01-31", "2024-1-5", "2024/1/31", "2024.1.31", "20240131", "240131", "19723",
    "2024年1月31日", "2024-02-30", "2023-02-29", "0001-01-01", "9999-12-31", "10000-01-01",
    "2024-01-31T00:00:00", "2024-01-31 10:20", "2024-01-31 10:20:30", "2024-01-31T10:20:30.5",
    "2024-01-31 10:20:30.123456", "2024-01-31 10:20:30.1234567", "2024-01-31 10:20:30.1234560",
    "2024-01-31 24:00:00", "2024-01-31 10", "2024-01-31 1020", "2024-01-31T10:20:30Z",
    "2024-01-31T10:20:30+02:00", "2024-01-31 10:20:30 +02:00", "2024-01-31T10:20:30-0500",
    "2024-01-31Tgarbage", "2024-01-31 10:20:30 Europe/Berlin", "20240131102030", "1704067200000",
    "10:20", "10:20:30", "10:20:30.5", "1:02:03", "24:00", "10:60", "noon", "null", "ÄÖ", "1 2",
)  # fmt: skip

NUMBERS = st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
MOMENTS = st.from_regex(
    r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,8})?)?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?",
    fullmatch=True,
)
TEXTS = st.one_of(st.sampled_from(EDGES), NUMBERS, MOMENTS, st.text(max_size=12))


def one_by_one(text: str | None, kind: str) -> tuple[str, Any]:
    try:
        return "value", comparable(value_of(text, parse_type(kind)))
    except ValueError:
        return "refused", None


def comparable(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


@given(texts=st.lists(TEXTS, max_size=6), kind=st.sampled_from(KINDS))
def test_a_column_at_once_is_its_texts_one_by_one(texts: list[str], kind: str) -> None:
    wanted = [one_by_one(t, kind) for t in texts]
    column = pa.array(texts, pa.string())
    try:
        found = column_of(column, parse_type(kind), USUAL)
    except ValueError:
        assert ("refused", None) in wanted
        return
    assert found.type == arrow_type(parse_type(kind))
    through = pa.array([value_of(t, parse_type(kind)) for t in texts], found.type)
    assert list(map(comparable, found.to_pylist())) == list(map(comparable, through.to_pylist()))
    assert ("refused", None) not in wanted


@given(texts=st.lists(TEXTS, max_size=6), kind=st.sampled_from(KINDS))
def test_csv_and_text_read_texts_as_the_other_formats_do(texts: list[str], kind: str) -> None:
    values, wrong = converted(pa.array(texts, pa.string()), parse_type(kind), TextNotation((",",)))
    for number, text in enumerate(texts):
        how, wanted = one_by_one(text, kind)
        assert (how == "refused") == (number in wrong), text
        if how == "value":
            assert comparable(values[number].as_py()) == wanted, text


def test_csv_and_text_read_edges_as_the_other_formats_do() -> None:
    for kind in KINDS:
        values, wrong = converted(pa.array(EDGES), parse_type(kind), TextNotation((",",)))
        for number, text in enumerate(EDGES):
            found = "refused" if number in wrong else comparable(values[number].as_py())
            how, wanted = one_by_one(text, kind)
            assert found == (wanted if how == "value" else how), (kind, text)


JSON_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS.map(str),
    st.lists(st.integers(), max_size=2), st.just({"x": 1.10}),
)  # fmt: skip


@given(
    values=st.lists(st.tuples(JSON_VALUES, NUMBERS), max_size=4),
    kind=st.sampled_from((*KINDS, "string", "bytes")),
    end=st.sampled_from(("\n", "\r\n", "\r")),
    gap=st.sampled_from(("", "\t", "\r")),
)
def test_a_block_of_json_at_once_is_its_lines_one_by_one(
    values: list[tuple[Any, str]], kind: str, end: str, gap: str
) -> None:
    rows = JsonRows((Column("v", parse_type(kind)),), Spelling(base64=True))
    lines = []
    for value, number in values:
        lines += [json.dumps({"v": value}), f'{{"v":{gap}{number}}}', json.dumps({"other": value})]
    block = "".join(line + end for line in lines).encode()
    misfits: list[Misfit] = []
    slow = rows.lines(enumerate(block.splitlines()), str, misfits.append)
    also: list[Misfit] = []
    fast = rows.block(block, str, also.append)
    assert [m.place for m in also] == [m.place for m in misfits]
    assert repr(fast.column("v").to_pylist()) == repr(slow.column("v").to_pylist())


@pytest.mark.spark
def test_sql_reads_texts_as_python_does(spark: SparkSession) -> None:
    """Thousands of texts, in one job: edges, and numbers and times made from a seed."""
    dice = random.Random(20)
    texts = [*EDGES]
    for _ in range(1500):
        number = f"{dice.choice(['', '-', '+'])}{dice.randrange(10 ** dice.randrange(1, 22))}"
        if dice.random() < 0.6:
            number += f".{dice.randrange(10 ** dice.randrange(1, 20))}"
        if dice.random() < 0.2:
            number += f"e{dice.randrange(-40, 40)}"
        day = f"{dice.randrange(10000):04d}-{dice.randrange(14):02d}-{dice.randrange(33):02d}"
        clock = f"{dice.randrange(26):02d}:{dice.randrange(62):02d}:{dice.randrange(62):02d}"
        zone = dice.choice(["", "", "Z", "+05:30", "-11:00"])
        texts += [number, day, f"{day} {clock}", f"{day}T{clock}.{dice.randrange(10**6)}{zone}"]
    kinds = [k for k in KINDS if k != "timestamp_tz"]
    frame = spark.createDataFrame([(t,) for t in texts], "t string")
    sql = [f"{scalar_sql('t', parse_type(k))} AS c{n}" for n, k in enumerate(kinds)]
    instants = f"unix_micros({scalar_sql('t', parse_type('timestamp_tz'))}) AS z"
    wrong = []
    for row in frame.selectExpr("t", *sql, instants).collect():
        for number, kind in enumerate((*kinds, "timestamp_tz")):
            how, wanted = one_by_one(row.t, kind)
            if kind == "timestamp_tz" and wanted is not None:
                wanted = (wanted - FIRST) // timedelta(microseconds=1)
            found = comparable(row[number + 1])
            if kind.startswith("decimal") and "e" in row.t.lower() and found is None:
                continue  # SQL refuses decimals with an exponent
            if found != wanted and not (how == "refused" and found is None):
                wrong.append((row.t, kind, wanted, found))
    assert not wrong, wrong[:20]
