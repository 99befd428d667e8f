"""What docs/values.md says of texts and types is so: its own examples are tried."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from holdfast.connectors.files.casts import CastPlace, cast_sql
from holdfast.connectors.files.text_conversion import value_of
from holdfast.errors import UserError
from holdfast.model.types import parse_type

PAGE = Path(__file__).parents[4] / "docs" / "values.md"

NO_EXAMPLES = {"date_format", "time_format", "datetime_format", "s", "p", "T"}

DAY = date(2024, 1, 31)
TWO_HOURS = timezone(timedelta(hours=2))
MOMENT = datetime(2024, 1, 31, 10, 20)
CLOCKS = {
    "10": time(10), "10:20": time(10, 20), "10:20:30": time(10, 20, 30),
    "10:20:30.123456": time(10, 20, 30, 123456),
}  # fmt: skip


def table_rows() -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the table of texts: types, what is read, what is refused."""
    part = PAGE.read_text().split("## Text to a value")[1].split("\n## ")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            yield cells[0], cells[1], cells[2]


def examples(cell: str) -> Iterator[str]:
    """Yield the texts that a cell shows; `10[:20]` is two of them, and … a time of day."""
    for shown in re.findall(r"`([^`]+)`", cell):
        if shown not in NO_EXAMPLES:
            yield from _spelled_out(shown.replace("…", "10:20"))


def _spelled_out(text: str) -> Iterator[str]:
    if "[" not in text:
        yield text
        return
    begin, _, rest = text.partition("[")
    inside, _, end = rest.rpartition("]")
    yield begin + end
    yield from (begin + more + end for more in _spelled_out(inside))


def said(read: bool) -> list[tuple[str, str]]:
    """Return (type, example) of every example of the table."""
    return [
        (kind.replace("(p,s)", "(10,3)"), text)
        for kinds, good, bad in table_rows()
        for kind in re.findall(r"`([^`]+)`", kinds)
        for text in examples(good if read else bad)
    ]


def wanted(kind: str, text: str) -> Any:
    """Return what a text of the page stands for, worked out another way than by our own code."""
    if kind.startswith(("decimal", "float", "double")):
        return Decimal(text) if kind.startswith("decimal") else float(text)
    if kind == "boolean":
        return text == "true"
    if kind.endswith("int"):
        return int(text)
    if kind == "time":
        return CLOCKS[text]
    if kind == "date":
        return DAY
    if text in ("Z", "+02:00"):
        return MOMENT.replace(tzinfo=UTC if text == "Z" else TWO_HOURS)
    if text == "20240131102030":
        return MOMENT.replace(second=30)
    return datetime.combine(DAY, CLOCKS[text.split(" ")[1]])


@pytest.mark.parametrize(("kind", "text"), said(read=True))
def test_what_the_page_reads_is_read(kind: str, text: str) -> None:
    if kind == "timestamp_tz":
        found = value_of(f"2024-01-31 10:20{text}", parse_type(kind))
    else:
        found = value_of(text, parse_type(kind))
    assert repr(found) == repr(wanted(kind, text)) or found == wanted(kind, text)


@pytest.mark.parametrize(("kind", "text"), said(read=False))
def test_what_the_page_refuses_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError):
        value_of(text, parse_type(kind))


def test_the_page_has_examples_of_every_type_of_one_text() -> None:
    kinds = {"boolean", "tinyint", "smallint", "int", "bigint", "decimal(10,3)", "float", "double",
             "date", "time", "timestamp", "timestamp_tz"}  # fmt: skip
    assert {kind for kind, _ in said(read=True)} == kinds
    assert len(said(read=True)) >= 40 and len(said(read=False)) >= 15


NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)")
NO_WAY = [
    *product(NUMBERS, ("date", "time", "timestamp", "timestamp_tz")),
    *product(("date", "timestamp_tz"), ("time",)),
    *product(("time",), ("date", "timestamp", "timestamp_tz")),
]


@pytest.mark.parametrize(("here", "there"), NO_WAY)
def test_types_that_say_nothing_of_each_other_are_refused(here: str, there: str) -> None:
    with pytest.raises(UserError, match="nothing says which"):
        cast_sql("v", parse_type(here), parse_type(there), CastPlace("LocalFile", "v"))
