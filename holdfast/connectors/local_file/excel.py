"""Excel sheets: rows of cells as text, read from xls or xlsx; workbooks written as xlsx."""

import io
import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import xlsxwriter
from python_calamine import CalamineError, CalamineWorkbook

from holdfast.errors import UserError

EXACT_MAX = 10**15
"""Whole numbers above this lose digits in a sheet."""


def sheet_rows(data: bytes, name: str | None, skip: int, place: str) -> Iterator[list[str | None]]:
    """Yield the rows of a sheet as text, without the first `skip` and without empty ones."""
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        if name is not None and name not in book.sheet_names:
            good = ", ".join(book.sheet_names)
            raise UserError(
                f"LocalFile cannot read {place}: no sheet '{name}'. Its sheets: {good}."
            )
        sheet = book.get_sheet_by_name(name) if name else book.get_sheet_by_index(0)
        rows = sheet.to_python(skip_empty_area=False)
    except CalamineError as error:
        raise UserError(f"LocalFile cannot read {place} as an Excel file: {error}.") from error
    for row in rows[skip:]:
        cells = [cell_text(cell) for cell in row]
        if any(cell is not None for cell in cells):
            yield cells


def cell_text(cell: object) -> str | None:
    """Return a cell as text, from which any column type can be read."""
    match cell:
        case None | "":
            return None
        case bool():
            return "true" if cell else "false"
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
        case datetime():
            return cell.isoformat(" ")
        case date() | time():
            return cell.isoformat()
        case timedelta():
            return str(time.fromisoformat("00:00") if not cell else (datetime.min + cell).time())
        case _:
            return str(cell)


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
        self._sheet = self._book.add_worksheet(name[:31])
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
            self._sheet.write_string(self._row, at, str(value))


def _is_number(value: object) -> bool:
    """Say whether a sheet can hold this number without losing any of it."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= EXACT_MAX
