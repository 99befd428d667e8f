"""Excel sheets: rows of cells as text, read from xls or xlsx; workbooks written as xlsx."""

import io
import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import xlsxwriter
from python_calamine import CalamineError, CalamineWorkbook
from xlsxwriter.worksheet import Worksheet

from holdfast.connectors.files.formats.excel_cells import cells_without_values
from holdfast.errors import UserError

EXACT_MAX = 10**15
"""Whole numbers above this lose digits in a sheet."""

TEXT_MAX = 32_767
"""How long the text of a cell may be, in units of UTF-16."""

ENDLESS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def sheet_rows(
    data: bytes, name: str | None, skip: int, place: str
) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the rows of a sheet as text, numbered, without the first `skip` and empty ones."""
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        if name is not None and name not in book.sheet_names:
            good = ", ".join(book.sheet_names)
            raise UserError(
                f"LocalFile cannot read {place}: no sheet '{name}'. Its sheets: {good}."
            )
        title = name or book.sheet_names[0]
        rows = book.get_sheet_by_name(title).to_python(skip_empty_area=False)
    except CalamineError as error:
        raise UserError(f"LocalFile cannot read {place} as an Excel file: {error}.") from error
    without = cells_without_values(data, title)
    rows += [[]] * (max(without, default=0) - len(rows))
    for number, row in enumerate(rows[skip:], skip + 1):
        cells = [cell_text(cell) for cell in row]
        for at, unread in without.get(number, {}).items():
            cells += [None] * (at - len(cells))
            cells[at - 1] = unread
        if any(cell is not None for cell in cells):
            yield number, cells


def cell_text(cell: object) -> str | None:
    """Return a cell as text, from which any column type can be read."""
    match cell:
        case None | "":
            return None
        case bool():
            return "true" if cell else "false"
        case float():
            return _digits(cell)
        case datetime():
            return cell.isoformat(" ")
        case date() | time():
            return cell.isoformat()
        case timedelta():
            return _hours(cell)
        case _:
            return str(cell)


def _digits(number: float) -> str:
    """Return a number with all its digits; whole ones look whole, but for a zero with a sign."""
    whole = number.is_integer() and abs(number) < 1e22 and (number or math.copysign(1, number) > 0)
    return str(int(number)) if whole else repr(number)


def _hours(span: timedelta) -> str:
    """Return a span of time as `[h]:mm:ss` shows it: 30 hours stay 30."""
    seconds, micros = divmod(abs(span) // timedelta(microseconds=1), 1_000_000)
    sign = "-" if span < timedelta() else ""
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}" if micros else text


class Workbook:
    """An xlsx file being written: one row of names, then rows; a new sheet where one is full."""

    def __init__(self, path: Path, names: list[str], sheet: str, rows_max: int) -> None:
        # Without it a text such as =1+1 would become a formula.
        as_they_are = {"strings_to_formulas": False, "strings_to_urls": False}
        self._book = xlsxwriter.Workbook(str(path), {"constant_memory": True} | as_they_are)
        self._names = names
        self._title = sheet
        self._rows_max = rows_max
        self._sheets = 0
        self._new_sheet()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            if self._row == self._rows_max:
                self._new_sheet()
            for at, value in enumerate(row):
                self._cell(at, value)
            self._row += 1

    def close(self) -> None:
        """End the file."""
        self._book.close()

    def _new_sheet(self) -> None:
        self._sheets += 1
        name = self._title if self._sheets == 1 else f"{self._title}_{self._sheets}"
        self._sheet: Any = self._book.add_worksheet(name[:31], worksheet_class=_Sheet)
        for at, column in enumerate(self._names):
            self._sheet.write_string(0, at, column)
        self._row = 1

    def _cell(self, at: int, value: object) -> None:
        if isinstance(value, bool):
            self._sheet.write_boolean(self._row, at, value)
        elif _is_number(value):
            self._sheet.write_number(self._row, at, value)
        elif value is not None:
            # A sheet's numbers have 15 digits: longer ones, and no numbers, are kept as text.
            self._text(at, ENDLESS.get(str(value), str(value)))

    def _text(self, at: int, text: str) -> None:
        if len(text.encode("utf-16-le", "surrogatepass")) > 2 * TEXT_MAX:
            raise UserError(
                f"LocalFile cannot write row {self._row}, column {self._names[at]}: its text of"
                f" {len(text):,} characters, '{text[:50]}...', is longer than the {TEXT_MAX:,} that"
                " a cell of a sheet can have. Cut it (Sql: SUBSTRING), or write another format."
            )
        self._sheet.write_string(self._row, at, text)


class _Sheet(Worksheet):  # type: ignore[misc]
    """A sheet whose numbers have all their digits: the library's own have 16."""

    def _xml_number_element(self, number: float, attributes: Any = ()) -> None:
        shown = "".join(f' {key}="{value}"' for key, value in attributes)
        self.fh.write(f"<c{shown}><v>{number!r}</v></c>")


def _is_number(value: object) -> bool:
    """Say whether a sheet can hold this number without losing any of it."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= EXACT_MAX
