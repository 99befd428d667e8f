"""Csv files that readers get wrong: each is read as outsiders read it, or refused by line.

Wherever a file is cut, however it is chunked, packed or streamed, the rows are the same.
"""

import csv
import gzip
import io
import random
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from holdfast.connectors.files import splits, text_part
from holdfast.connectors.files.reading import reader_of
from holdfast.connectors.files.source_options import FileTable
from holdfast.connectors.files.splits import at_rows
from holdfast.errors import UserError
from tests.unit.connectors.local_file.torture import CASES, Case, Row

Make = Callable[..., Any]
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
WHOLE_MAX = 3000
"""Files up to this size are cut at each byte."""


class Counted:
    """Counts rejected rows as Spark's tasks do."""

    def __init__(self) -> None:
        self.splits: dict[int, int] = {}

    def add(self, split: int, rows: int) -> None:
        self.splits[split] = max(rows, self.splits.get(split, 0))


@pytest.fixture
def table(source: Make, tmp_path: Path) -> Callable[[Case], tuple[FileTable, Path]]:
    """Write a case's file, and return its table and path."""

    def make(case: Case, **more: Any) -> tuple[FileTable, Path]:
        path = tmp_path / case.file
        path.write_bytes(case.content)
        options = {
            "path": str(path), "file_format_type": "csv", "schema": {"fields": {**case.columns}},
            **case.options, **more,
        }  # fmt: skip
        made: FileTable = source(**options).options
        return made, path

    return make


def read(table: FileTable, path: Path, cuts: Iterable[int] = ()) -> tuple[list[Row], int]:
    """Return the rows of a file that is divided at these places, and how many were rejected."""
    reader = reader_of(table, [], "Source[0]-LocalFile")
    counted: Any = Counted()
    if table.row_error_handle_way.value == "SKIP":
        reader = reader.counting(counted)
    size = path.stat().st_size
    places = [0, *sorted({cut for cut in cuts if 0 < cut < size}), size]
    parts: list[Any] = [[[str(path), first, end]] for first, end in pairwise(places)]
    whole = [str(path)] if reader.whole(str(path)) else []
    rows = [
        tuple(row.values())
        for split in at_rows(parts, reader.dialect, whole, reader.skip)
        for batch in reader(split)
        for row in batch.to_pylist()
    ]
    return rows, sum(counted.splits.values())


@EACH
def test_a_file_is_read_or_refused_with_its_line(case: Case, table: Make) -> None:
    made, path = table(case)
    if not case.rule:
        assert read(made, path) == (list(case.rows), 0)
        return
    with pytest.raises(UserError) as refused:
        read(made, path)
    said = str(refused.value)
    place = f"{path}!in.csv" if path.suffix == ".zip" else str(path)
    assert said.startswith(f"Source[0]-LocalFile cannot read {place}, line {case.line}: ")
    assert case.rule in said and "row_error_handle_way = SKIP" in said and "\n" not in said


@EACH
def test_what_does_not_fit_is_left_out_and_counted(case: Case, table: Make) -> None:
    made, path = table(case, row_error_handle_way="SKIP")
    assert read(made, path) == (list(case.rows), case.rejected if case.rule else 0)


@EACH
def test_the_rows_are_the_same_wherever_a_file_is_cut(case: Case, table: Make) -> None:
    made, path = table(case, row_error_handle_way="SKIP")
    wanted = (list(case.rows), case.rejected if case.rule else 0)
    size = len(case.content)
    dice = random.Random(case.name)
    if size <= WHOLE_MAX and not reader_of(made, [], "").whole(str(path)):
        places: Iterable[int] = range(1, size)
    else:
        places = sorted(dice.sample(range(1, size), 3))
    for place in places:
        assert read(made, path, [place]) == wanted, place
    if size <= WHOLE_MAX:
        assert read(made, path, range(size)) == wanted, "a split for each byte"


@EACH
@pytest.mark.parametrize("chunk", [1, 2, 7])
def test_the_rows_are_the_same_however_a_file_is_chunked(
    case: Case, table: Make, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = table(case, row_error_handle_way="SKIP")
    if len(case.content) > WHOLE_MAX:
        chunk *= 10_000
    monkeypatch.setattr(text_part, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(splits, "CHUNK_BYTES", chunk)
    wanted = (list(case.rows), case.rejected if case.rule else 0)
    assert read(made, path, [len(case.content) // 2]) == wanted


@EACH
def test_the_rows_are_the_same_in_a_packed_file(case: Case, table: Make) -> None:
    made, path = table(case, row_error_handle_way="SKIP")
    if path.suffix != ".csv":
        return
    packed = path.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(case.content))
    assert read(made, packed) == (list(case.rows), case.rejected if case.rule else 0)


@EACH
def test_pythons_reader_agrees(case: Case) -> None:
    if "python" not in case.outsiders:
        return
    asked = case.options
    text = case.content.decode(asked.get("encoding", "utf-8-sig"))
    csv.field_size_limit(1 << 30)
    escape = asked.get("escape_char")
    found = csv.reader(
        io.StringIO(text, newline=""), delimiter=asked.get("delimiter", ","),
        quotechar=asked.get("quote_char", '"'), escapechar=escape,
    )  # fmt: skip
    rows = [row for row in found if row][asked.get("skip_header_row_number", 0) :]
    assert [typed(row, case) for row in rows] == list(case.rows)


@EACH
def test_duckdb_agrees(case: Case, tmp_path: Path) -> None:
    if "duckdb" not in case.outsiders:
        return
    path = tmp_path / case.file
    path.write_bytes(case.content)
    asked = case.options
    quote = asked.get("quote_char", '"')
    header = bool(asked.get("skip_header_row_number"))
    options = {
        "auto_detect": "false", "header": str(header), "parallel": "false",
        "delim": literal(asked.get("delimiter", ",")), "quote": literal(quote),
        "escape": literal(asked.get("escape_char", quote)),
        "null_padding": str(asked.get("null_padding", False)),
        "columns": "{" + ", ".join(f"{literal(c)}: 'VARCHAR'" for c in case.columns) + "}",
    }  # fmt: skip
    if b"\r" in case.content and b"\r\n" not in case.content and case.content.endswith(b"\n"):
        options["new_line"] = literal("\\n")
    told = ", ".join(f"{key} = {value}" for key, value in options.items())
    rows = duckdb.sql(f"select * from read_csv('{path}', {told})").fetchall()
    assert [typed(row, case) for row in rows] == list(case.rows)


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def typed(texts: Iterable[str | None], case: Case) -> Row:
    """Return what texts stand for, by Python's own conversions."""
    makers: dict[str, Callable[[str], Any]] = {"int": int, "string": str, "double": float}
    kinds = case.columns.values()
    return tuple(makers[k](t) if t else None for k, t in zip(kinds, texts, strict=True))


def test_there_are_enough_files() -> None:
    assert len(CASES) >= 60 and len({case.name for case in CASES}) == len(CASES)
    agreed = [case for case in CASES if case.outsiders]
    assert len(agreed) >= 50
