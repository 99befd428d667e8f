"""Read delimited text (csv, and text files) into Arrow, inside Spark's Python workers.

A text is cut into blocks of whole rows (`csv_blocks.py`). Arrow parses a block at once, and as long
as it finds nothing wrong that is all. Where it does, or where its rules are not ours, the block is
read with care: rows that do not fit are sorted out (`csv_sifting.py`) and every value is looked at
(`text_values.py`). Both ways give the same values; a test compares them.
"""

import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from holdfast.connect.rejects import Misfit, RejectCounter, RowErrors, wrong_value
from holdfast.connectors.files.archives import BROKEN
from holdfast.connectors.files.discovery import partitions_of
from holdfast.connectors.files.formats.csv_blocks import RowBlock, blocks
from holdfast.connectors.files.formats.csv_quotes import Dialect
from holdfast.connectors.files.formats.csv_sifting import (
    CORRECT,
    Misfitting,
    RowRules,
    sift,
    surplus_is_empty,
    too_long,
    width_of,
)
from holdfast.connectors.files.reasons import why
from holdfast.connectors.files.splits import numbered
from holdfast.connectors.files.text_part import Chunks, Recoding, TextPart, part_of, texts_in
from holdfast.connectors.files.text_values import (
    FALSE,
    TRUE,
    WHOLE,
    TextNotation,
    arrow_type,
    converted,
    doubtful,
    parser_type,
)
from holdfast.connectors.files.unpack import Packing
from holdfast.connectors.files.values import named
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How many fields a row has, and for each column of the table which one it is, if any."""

    width: int
    fields: tuple[int | None, ...]


def _layout_of(
    columns: Sequence[Column], in_path: Collection[str], width: int | None = None,
    header: Sequence[str] | None = None, place: str = "",
) -> RowLayout:  # fmt: skip
    """Return how a file's rows are laid out.

    `in_path` are columns that the file's path has a value for, and that counts; rows may have a
    field for each of them, too, as `width` says, or none.  `header` is the file's first row.
    """
    if header is not None:
        found = _by_name(columns, header, place)
        pairs = zip(columns, found.fields, strict=True)
        return RowLayout(found.width, tuple(None if c.name in in_path else f for c, f in pairs))
    own = [n for n, column in enumerate(columns) if column.name not in in_path]
    if not in_path or width == len(columns):
        return RowLayout(len(columns), tuple(n if n in own else None for n in range(len(columns))))
    places = {n: place for place, n in enumerate(own)}
    return RowLayout(len(own), tuple(places.get(n) for n in range(len(columns))))


def _by_name(columns: Sequence[Column], header: Sequence[str], place: str) -> RowLayout:
    names = [name.strip().lower() for name in header]
    twice = [c.name for c in columns if names.count(c.name.lower()) > 1]
    known = {name: number for number, name in enumerate(names)}
    fields = tuple(known.get(c.name.lower()) for c in columns)
    if twice or all(field is None for field in fields):
        wrong = f"column {twice[0]} twice" if twice else "none of the columns in schema"
        raise UserError(
            f"LocalFile cannot read {place}: csv_use_header_line takes its first row for names of"
            f" columns, and it names {wrong}. It has: {', '.join(header)[:200]}."
        )
    return RowLayout(len(names), fields)


@dataclass(frozen=True, slots=True)
class Delimited:
    """How the files of one table are read; plain data, sent to Spark's workers.

    `columns` are those of the files, `kept` the numbers of the ones to yield, and `partitions` the
    names of the columns that a file's path adds.  `by_name`: each file's first row names its
    columns.
    """

    stage: str
    packing: Packing
    recoding: Recoding
    dialect: Dialect
    writing: TextNotation
    rules: RowRules
    columns: tuple[Column, ...]
    kept: tuple[int, ...]
    partitions: tuple[str, ...]
    skip: int
    by_name: bool
    encoding: str
    way: RowErrors
    rejects: RejectCounter | None = None

    def counting(self, rejects: RejectCounter | None) -> "Delimited":
        """Return the same reader, which counts the rows that it leaves out."""
        return replace(self, rejects=rejects)

    def whole(self, path: str) -> bool:
        """Say whether a file can only be read from its begin."""
        return not self.recoding.in_place or self.packing.applies(path)

    def __call__(self, split: Plain) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""
        number, parts = numbered(split)
        rejected = 0
        for path, first, end in parts:
            try:
                for text in self._texts(path, first, end):
                    reading = _Reading(self, text)
                    for table in reading.tables():
                        yield from table.to_batches()
                        if self.rejects and rejected + reading.rejected:
                            self.rejects.add(number, rejected + reading.rejected)
                    rejected += reading.rejected
            except BROKEN as error:
                raise UserError(f"{self.stage} cannot read {path}: {why(error)}.") from error
        if self.rejects and rejected:
            self.rejects.add(number, rejected)

    def _texts(self, path: str, first: int, end: int) -> Iterator[TextPart]:
        if self.whole(path):
            yield from texts_in(path, self.packing, self.recoding)
        else:
            yield part_of(path, first, end, self.recoding)


class _Reading:
    """Reads one text, or a part of one."""

    def __init__(self, reader: Delimited, text: TextPart) -> None:
        self.reader = reader
        self.text = text
        self.rejected = 0
        self._surplus = False
        self._layout = _layout_of(reader.columns, [])

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows that fit."""
        reader = self.reader
        self._layout = self._look()
        skip = 0 if self.text.first else max(reader.skip, int(reader.by_name))
        for found in self._blocks():
            block = found
            if skip > 0:
                block, skip = block.without(skip)
            if block.too_long and block.data:
                self._reject(block, [too_long(0, reader.rules.row_bytes_max, block.lines)])
            elif block.data:
                table = self._parsed(block)
                if table.num_rows:
                    yield self._finished(table)

    def _blocks(self) -> Iterator[RowBlock]:
        return blocks(self.text.chunks(), self.reader.dialect, self.reader.rules.row_bytes_max)

    def _look(self) -> RowLayout:
        """Return which field of a row is which column; some files tell in their first row."""
        reader, text = self.reader, self.text
        own = partitions_of(text.path)
        shared = [c.name for c in reader.columns if c.name in own and c.name in reader.partitions]
        if not reader.by_name and not shared:
            return self._layout
        row = self._first_row(text.begin())
        if reader.by_name:
            return _layout_of(reader.columns, shared, header=row, place=text.place)
        return _layout_of(reader.columns, shared, width=len(row) if row else None)

    def _first_row(self, chunks: Chunks) -> list[str]:
        """Return the fields of the first row, or of the first one behind those to skip."""
        reader = self.reader
        skip = 0 if reader.by_name else reader.skip
        for found in blocks(chunks, reader.dialect, reader.rules.row_bytes_max):
            block, skip = found.without(skip) if skip > 0 else (found, 0)
            if block.too_long or not block.data or not len(block.rows.starts):
                continue
            row = block.data[block.rows.starts[0] : block.rows.stops[0]] + b"\n"
            table = _parse(row, reader.dialect, True, width_of(block, reader.dialect), {}, [])
            cells = [reader.recoding.restore(c.combine_chunks())[0].as_py() for c in table.columns]
            return [bytes(cell or b"").decode("utf-8", "replace") for cell in cells]
        return []

    def _hard(self, block: RowBlock) -> bool:
        """Say whether a block must be read with care from the start."""
        reader = self.reader
        return (
            bool(len(block.early) and reader.rules.strict)
            or block.unclosed
            or len(block.data) > reader.rules.row_bytes_max
            or not reader.recoding.plain
        )

    def _parsed(self, block: RowBlock) -> pa.Table:
        table = None if self._hard(block) else self._fast(block)
        return self._careful(block) if table is None else table

    def _fast(self, block: RowBlock) -> pa.Table | None:
        """Return the rows of a block if all fit and Arrow reads them as we do."""
        layout, reader = self._layout, self.reader
        columns = [reader.columns[n] for n in reader.kept if layout.fields[n] is not None]
        places = [layout.fields[n] for n in reader.kept if layout.fields[n] is not None]
        if not places or (any(c.type.kind in WHOLE for c in columns) and _has_hex(block.data)):
            return None
        wanted: dict[str, Any] = {
            str(place): parser_type(column.type, reader.writing)
            for place, column in zip(places, columns, strict=True)
        }
        found = None if self._surplus else self._try(block, wanted, layout.width)
        if found is None and len(block.rows.starts):
            # A delimiter at each row's end makes one field more, with nothing in it.
            self._surplus = surplus_is_empty(block, layout.width, reader.dialect)
            found = self._try(block, wanted, layout.width + 1) if self._surplus else None
        return None if found is None else self._sure(found, places, columns)

    def _try(self, block: RowBlock, wanted: dict[str, Any], width: int) -> pa.Table | None:
        dialect, nulls = self.reader.dialect, self.reader.writing.nulls
        try:
            return _parse(block.data, dialect, bool(len(block.turns)), width, wanted, nulls)
        except pa.ArrowInvalid:
            return None

    def _sure(self, found: pa.Table, places: list[Any], columns: list[Column]) -> pa.Table | None:
        """Return columns whose values Arrow has surely read by our rules; else None."""
        reader = self.reader
        made: dict[str, Any] = {}
        for place, column in zip(places, columns, strict=True):
            values = found[str(place)]
            if values.type != arrow_type(column.type):
                values, wrong = converted(
                    values.combine_chunks(), column.type, reader.writing, True
                )
                if wrong:
                    return None
            elif doubtful(values, column.type):
                return None
            made[column.name] = values
        return _table(made, found.num_rows)

    def _careful(self, block: RowBlock) -> pa.Table:
        """Return the rows of a block that fit; the others are rejected."""
        layout, reader = self._layout, self.reader
        if not len(block.rows.starts):
            return _table({}, 0)
        sifted = sift(block, layout.width, reader.dialect, reader.rules)
        misfits = {m.number: m for m in sifted.misfits}
        made: dict[str, Any] = {}
        if len(sifted.numbers):
            found = _parse(
                sifted.data, reader.dialect, bool(len(block.turns)), layout.width, {}, []
            )
            assert found.num_rows == len(sifted.numbers)
            for n in reader.kept:
                place = layout.fields[n]
                if place is None:
                    continue
                column = reader.columns[n]
                values, wrong = self._values(found[str(place)].combine_chunks(), column)
                made[column.name] = values
                for number, rule, remedy in wrong:
                    own = int(sifted.numbers[number])
                    misfits.setdefault(own, Misfitting(own, rule, remedy))
        if misfits:
            self._reject(block, [misfits[n] for n in sorted(misfits)])
        table = _table(made, len(sifted.numbers))
        late = np.isin(sifted.numbers, list(misfits))
        return table.filter(pa.array(~late)) if late.any() else table

    def _values(self, cells: Any, column: Column) -> tuple[Any, list[tuple[int, str, str]]]:
        """Return the values of a column's cells, and what is wrong with those that are none."""
        reader = self.reader
        cells = reader.recoding.restore(cells)
        try:
            texts, undecoded = cells.cast(pa.string()), list[int]()
        except pa.ArrowInvalid:
            texts, undecoded = _decoded(cells)
        values, wrong = converted(texts, column.type, reader.writing)
        said = [
            (n, wrong_value(column.name, texts[n].as_py(), named(column.type)), CORRECT)
            for n in wrong
        ]
        rule = f"column {column.name} has bytes that are not {reader.encoding}"
        return values, [*said, *((n, rule, "Check option encoding") for n in undecoded)]

    def _reject(self, block: RowBlock, misfits: list[Misfitting]) -> None:
        reader = self.reader
        if reader.way is RowErrors.SKIP:
            self.rejected += sum(m.lines for m in misfits)
            return
        first = misfits[0]
        if block.too_long:
            start, row = 0, block.data
        else:
            start, stop = (int(p[first.number]) for p in (block.rows.starts, block.rows.stops))
            row = block.data[start:stop]
        line = self.text.line(block.at + start)
        place = f"{self.text.place}, line {line:,}"
        raise Misfit(place, first.rule, reader.recoding.shown(row), first.remedy).error(
            reader.stage
        )

    def _finished(self, table: pa.Table) -> pa.Table:
        """Return the columns in order, with those that the file has not and its path adds."""
        reader, count = self.reader, table.num_rows
        own = partitions_of(self.text.path) if reader.partitions else {}
        made: dict[str, Any] = {}
        for n in reader.kept:
            column = reader.columns[n]
            if self._layout.fields[n] is not None:
                made[column.name] = table[column.name]
            else:
                text = own.get(column.name) if column.name in reader.partitions else None
                made[column.name] = _constant(text, column, count, reader, self.text.path)
        for name in reader.partitions:
            if name not in made:
                made[name] = pa.repeat(pa.scalar(own.get(name), pa.string()), count)
        return pa.table(made)


def _table(columns: dict[str, Any], count: int) -> pa.Table:
    """Return a table that has rows though it may have no columns."""
    return pa.table(columns) if columns else pa.table({"": pa.nulls(count)})


def _decoded(cells: Any) -> tuple[Any, list[int]]:
    """Return bytes as texts, and the numbers of those that are none."""
    made: list[str | None] = []
    wrong: list[int] = []
    for number, cell in enumerate(cells.to_pylist()):
        try:
            made.append(cell.decode("utf-8"))
        except UnicodeDecodeError:
            made.append(None)
            wrong.append(number)
    return pa.array(made, pa.string()), wrong


def _constant(text: str | None, column: Column, count: int, reader: Delimited, path: str) -> Any:
    """Return a column that has one value: null, or what a file's path says."""
    if text is None:
        return pa.nulls(count, arrow_type(column.type))
    if column.type.kind == "string":
        return pa.repeat(pa.scalar(text), count)
    values, wrong = converted(pa.array([text]), column.type, reader.writing)
    if wrong:
        rule = wrong_value(column.name, text, named(column.type))
        raise UserError(f"{reader.stage} cannot read {path}: in its path, {rule}.")
    places: Any = pa.array([0] * count, pa.int64())
    return pc.take(values, places)


def _parse(
    data: bytes, dialect: Dialect, quoted: bool, width: int, wanted: dict[str, Any],
    nulls: list[str],
) -> pa.Table:  # fmt: skip
    """Return columns, each named by its number: those in `wanted`, or else all of them as bytes.

    Raises ArrowInvalid if a row has another number of fields, or a field no value of its type.
    """
    names = [str(n) for n in range(width)]
    types = wanted or dict.fromkeys(names, pa.binary())
    return csv.read_csv(
        io.BytesIO(data),
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=chr(dialect.delimiter),
            quote_char=chr(dialect.quote) if quoted and dialect.quote is not None else False,
            escape_char=chr(dialect.escape) if dialect.escape is not None else False,
        ),
        csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=bool(wanted),
            null_values=nulls if wanted else [], true_values=list(TRUE), false_values=list(FALSE),
        ),
    )  # fmt: skip


def _has_hex(data: bytes) -> bool:
    """Say whether there may be a number like 0x1F, which Arrow takes."""
    return b"0x" in data or b"0X" in data
