"""Look into an xlsx file for cells that have no value: the library reads those as empty ones."""

import io
import re
import xml.etree.ElementTree as ET
import zipfile
from html import unescape

_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CELL = re.compile(
    rb"<(?:\w+:)?c\b([^>]*)>\s*"
    rb"(?:<(?:\w+:)?f\b[^>]*?(?:/>|>([^<]*)</(?:\w+:)?f>)\s*)?"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>([^<]*)</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_PLACE = re.compile(rb'\br="([A-Z]+)(\d+)"')


class Unread(str):
    """What is in a cell that has no value: a formula, or the name of an error."""

    __slots__ = ()


def cells_without_values(data: bytes, title: str) -> dict[int, dict[int, Unread]]:
    """Return the cells of a sheet that are errors or have no result, by row and then by column.

    Both are numbered from 1.  Older files (xls) do not tell.
    """
    if not data.startswith(b"PK"):
        return {}
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        part = _part(packed, title)
        sheet = packed.read(part) if part else b""
    if b't="e"' not in sheet and not re.search(rb"<(?:\w+:)?f\b", sheet):
        return {}
    found: dict[int, dict[int, Unread]] = {}
    for cell in _CELL.finditer(sheet):
        attributes, formula, value = cell.groups()
        place = _PLACE.search(attributes)
        is_error = b't="e"' in attributes
        has_formula = formula is not None or b":f" in cell[0] or b"<f" in cell[0]
        if place and (is_error or (has_formula and not value and b't="str"' not in attributes)):
            text = (value if is_error and value else b"=" + (formula or b"...")).decode()
            found.setdefault(int(place[2]), {})[_number(place[1])] = Unread(unescape(text))
    return found


def _part(packed: zipfile.ZipFile, title: str) -> str | None:
    """Return the name of the file in a workbook that holds a sheet."""
    names = set(packed.namelist())
    if "xl/workbook.xml" not in names:
        return None
    sheets = ET.fromstring(packed.read("xl/workbook.xml")).iter()
    wanted = next(
        (s.get(_ID) for s in sheets if s.tag.endswith("}sheet") and s.get("name") == title), None
    )
    links = ET.fromstring(packed.read("xl/_rels/workbook.xml.rels"))
    target = next((link.get("Target", "") for link in links if link.get("Id") == wanted), "")
    part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return part if part in names else None


def _number(letters: bytes) -> int:
    """Return the number of a column: A is 1, AA is 27."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number
