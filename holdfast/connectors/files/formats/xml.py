"""XML rows: the elements of one tag, their columns as attributes or as elements inside."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from holdfast.connect.rejects import ROW_CHARS_MAX, VALUE_CHARS_MAX, shown
from holdfast.connectors.files.format import is_utf8
from holdfast.connectors.files.formats.excel_cells import Unread
from holdfast.errors import UserError

CHUNK = 1 << 20

RETURN = {"\r": "&#13;"}
"""A bare one is read as a line feed."""

NAME = re.compile(r"[^\W\d][\w.\-]*")

NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
"""The attribute that says that an element is null and not empty."""

_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def element_rows(
    stream: IO[bytes], tag: str, attributes: bool, columns: tuple[str, ...], encoding: str,
    place: str,
) -> Iterator[tuple[int, list[str | None]]]:  # fmt: skip
    """Yield the columns of each element with this tag, numbered; one without them is no row."""
    parser: ET.XMLPullParser[Any] = ET.XMLPullParser(["start", "end"])
    depth = number = 0
    try:
        for chunk in _chunks(stream, encoding):
            parser.feed(chunk)
            for found in parser.read_events():
                event, element = cast(tuple[str, ET.Element], found)
                if _name(element) != tag:
                    continue
                depth += 1 if event == "start" else -1
                if event == "end" and depth:
                    raise ET.ParseError(f"a row <{tag}> stands inside another")
                if event == "end":
                    row = _columns(element, attributes)
                    number += 1
                    if any(name in row for name in columns):
                        yield number, [row.get(name) for name in columns]
                    element.clear()
        parser.close()  # says so if the file ends too soon
    except (ET.ParseError, ValueError) as error:
        raise UserError(f"LocalFile cannot read {place} as XML: {_rule(error)}.") from error


def _rule(error: Exception) -> str:
    said = str(error).replace("no element found", "it ends too soon")
    if "multi-byte encodings" in said:
        return "its first line names an encoding of several bytes. Say so: encoding = ..., say GBK"
    return said


def _chunks(stream: IO[bytes], encoding: str) -> Iterator[bytes | str]:
    if not is_utf8(encoding):
        yield stream.read().decode(encoding)
        return
    while chunk := stream.read(CHUNK):
        yield chunk


def _columns(element: ET.Element, attributes: bool) -> dict[str, str | None]:
    """Return the columns of a row; one that is no single text is Unread, and refused as a value."""
    row: dict[str, str | None] = {}
    if attributes:
        for name, text in element.attrib.items():
            bare = name.rsplit("}", 1)[-1]
            row[bare] = Unread(f"{row[bare]}, {text}") if bare in row else text
        return row
    for child in element:
        name = _name(child)
        value = _value(child)
        row[name] = Unread(f"{row[name]}, {value}") if name in row else value
    return row


def _value(element: ET.Element) -> str | None:
    if len(element):
        return Unread(ET.tostring(element, "unicode").strip())
    return None if element.get(NIL) in ("true", "1") else element.text or ""


def _name(element: ET.Element) -> str:
    return element.tag.rsplit("}", 1)[-1]


def check_names(names: Iterable[str]) -> None:
    """Raise UserError for names of columns that no XML element or attribute can have."""
    bad = [name for name in names if not NAME.fullmatch(name) or name.lower().startswith("xml")]
    if bad:
        raise UserError(
            f"LocalFile cannot write column '{bad[0]}' as XML: a name there is letters, digits,"
            " '_', '-' and '.', and begins with a letter or '_'. Rename it (FieldMapper), or leave"
            " it out (sink_columns).",
            code="sink.xml_name",
        )


class Document:
    """An XML file being written: an element for each row."""

    def __init__(
        self, path: Path, names: list[str], root: str, row: str, attributes: bool, encoding: str
    ) -> None:
        self._file = path.open("w", encoding=encoding, errors="xmlcharrefreplace", newline="\n")
        self._names = names
        self._root, self._row, self._attributes = root, row, attributes
        self._file.write(f'<?xml version="1.0" encoding="{encoding}"?>\n\n<{root}>\n')

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows, all of whose columns are text."""
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            self._file.write(self._element([self._allowed(row, at) for at in range(len(row))]))

    def close(self) -> None:
        """End the file."""
        self._file.write(f"</{self._root}>\n")
        self._file.close()

    def _allowed(self, row: tuple[Any, ...], at: int) -> str:
        text = "" if row[at] is None else str(row[at])
        if found := _FORBIDDEN.search(text):
            name, value = self._names[at], shown(text, VALUE_CHARS_MAX)
            whole = ", ".join(f"{n} = {v}" for n, v in zip(self._names, row, strict=True))
            raise UserError(
                f"LocalFile cannot write column {name} as XML: '{value}' has the character"
                f" U+{ord(found[0]):04X}, which XML does not allow. Row:"
                f" {shown(whole, ROW_CHARS_MAX)}. Take it out (Sql: REPLACE), or write another"
                " format. (Between the fields of a row stands field_delimiter: set it.)"
            )
        return text

    def _element(self, texts: list[str]) -> str:
        pairs = zip(self._names, texts, strict=True)
        if self._attributes:
            inside = "".join(f" {name}={quoteattr(text)}" for name, text in pairs)
            return f"\t<{self._row}{inside}/>\n"
        inside = "".join(
            f"\t\t<{name}>{escape(text, RETURN)}</{name}>\n" if text else f"\t\t<{name}/>\n"
            for name, text in pairs
        )
        return f"\t<{self._row}>\n{inside}\t</{self._row}>\n"
