"""Turn rows of cells, as Excel sheets and XML elements have them, into Arrow tables."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.connect.rejects import Misfit, wrong_value
from holdfast.connectors.files.formats.excel_cells import Unread
from holdfast.connectors.files.formats.json_rows import DECODER, Wrong, json_value
from holdfast.connectors.files.text_conversion import (
    BLANKS,
    Spelling,
    arrow_type,
    column_of,
    value_of,
)
from holdfast.connectors.files.values import named
from holdfast.model.table import Column
from holdfast.model.types import Type

TEXTS = ("string", "bytes")

Cells = Sequence[str | None]
Place = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class CellRows:
    """Reads rows of texts as rows of some columns.  Plain data, sent to Spark's workers."""

    columns: tuple[Column, ...]
    places: tuple[int, ...]
    """Which cell of a row each column is in."""

    spelling: Spelling
    null_format: str | None
    separator: str

    def table(
        self, rows: Sequence[tuple[int, Cells]], place: Place, reject: Callable[[Misfit], None]
    ) -> pa.Table:
        """Return rows, each with its number, as a table; one that is no row goes to `reject`."""
        bad: dict[int, Misfit] = {}
        arrays = []
        for column, at in zip(self.columns, self.places, strict=True):
            texts = [self._clean(cells, at) for _, cells in rows]
            try:
                arrays.append(self._column(texts, column.type))
            except ValueError:
                arrays.append(self._one_by_one(texts, column, rows, place, bad))
        for number in sorted(bad):
            reject(bad[number])
        made = pa.Table.from_arrays(arrays, names=[c.name for c in self.columns])
        if bad:
            made = made.filter(pa.array([n not in bad for n in range(len(rows))]))
        return made

    def _clean(self, cells: Cells, at: int) -> str | None:
        text = cells[at] if at < len(cells) else None
        return None if text == self.null_format else text

    def _column(self, texts: list[str | None], kind: Type) -> Any:
        if any(isinstance(text, Unread) for text in texts):
            raise ValueError
        if kind.parts or kind.kind.endswith("vector"):
            return pa.array([self._value(t, kind) for t in texts], arrow_type(kind))
        return column_of(pa.array(texts, pa.string()), kind, self.spelling)

    def _one_by_one(
        self,
        texts: list[str | None],
        column: Column,
        rows: Sequence[tuple[int, Cells]],
        place: Place,
        bad: dict[int, Misfit],
    ) -> Any:
        values: list[Any] = []
        for at, text in enumerate(texts):
            try:
                values.append(self._value(text, column.type))
            except ValueError as error:
                text, kind = (error.text, error.kind) if isinstance(error, Wrong) else (
                    text, column.type,
                )  # fmt: skip
                wanted = "a value" if isinstance(text, Unread) else named(kind)
                rule = wrong_value(column.name, str(text), wanted)
                number, cells = rows[at]
                row = " | ".join(c or "" for c in cells)
                bad.setdefault(at, Misfit(place(number), rule, row))
                values.append(None)
        return pa.array(values, arrow_type(column.type))

    def _value(self, text: str | None, kind: Type) -> Any:
        if text is None or (kind.kind not in TEXTS and not text.strip(BLANKS)):
            return None
        if isinstance(text, Unread):
            raise ValueError
        if kind.kind == "row":
            parts = text.split(self.separator)
            if len(parts) > len(kind.fields):
                raise ValueError("there are more parts than the row has")
            return {
                name: self._value(self._clean(parts, at), part)
                for at, (name, part) in enumerate(kind.fields)
            }
        if kind.parts or (kind.kind.endswith("vector") and kind.kind != "binary_vector"):
            try:
                found = DECODER.decode(text)
            except json.JSONDecodeError as error:
                raise ValueError from error
            return json_value(found, kind, JSON_PARTS)
        return value_of(text, kind, self.spelling)


JSON_PARTS = Spelling(base64=True)
