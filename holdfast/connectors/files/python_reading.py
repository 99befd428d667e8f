"""Turn files into Arrow batches, inside Spark's Python workers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from holdfast.connect.arrow_rows import ArrowRows
from holdfast.connectors.files.archives import BROKEN, lines, members, text_of, uncompressed
from holdfast.connectors.files.format import Archive, Codec, FileFormat
from holdfast.connectors.files.formats.cell_rows import CellRows
from holdfast.connectors.files.formats.excel import sheet_rows
from holdfast.connectors.files.formats.json_rows import JsonRows
from holdfast.connectors.files.formats.xml import element_rows
from holdfast.connectors.files.partition_folders import with_folders
from holdfast.connectors.files.reasons import why
from holdfast.connectors.files.row_rejects import Judge, SplitJudge
from holdfast.connectors.files.splits import by_file
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain
from holdfast.model.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_MAX = 4096
BYTES_MAX = 4 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """All a Python reader must know; plain data, sent to Spark's workers."""

    files: tuple[str, ...]
    root: str
    format: FileFormat
    archive: Archive
    codec: Codec
    encoding: str
    row_delimiter: str
    skip: int
    columns: tuple[str, ...]
    partition_names: tuple[str, ...]
    partitions: tuple[tuple[str | None, ...], ...]
    sheet: str | None
    xml_row_tag: str
    xml_attributes: bool
    chunk: int | None
    typed: "Typed | None" = None
    """How rows become typed columns, where that happens right here."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Turns the rows of JSON, Excel and XML files into typed columns."""

    rows: JsonRows | CellRows
    folders: tuple[Column, ...]
    """The columns whose values are in the names of folders."""

    names: tuple[str, ...]
    """All columns, in order."""

    judge: Judge


def read_in_python(spark: "SparkSession", reading: Reading, columns: Sequence[Column]) -> ArrowRows:
    """Return the rows of files, read by Python: `columns` and then the partition columns."""
    named = (Column(n, Type("string")) for n in reading.partition_names)
    splits, size = by_file(reading.files)
    return ArrowRows(spark, (*columns, *named), splits, _Reader(reading), size)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The function that Spark's Python workers call."""

    reading: Reading

    def __call__(self, split: Plain) -> Iterator[pa.RecordBatch]:
        for number in cast(list[int], split):
            judge = self.reading.typed.judge.of(number) if self.reading.typed else None
            try:
                yield from _file(self.reading, number, judge)
            except BROKEN as error:
                path = self.reading.files[number]
                raise UserError(f"LocalFile cannot read {path}: {why(error)}.") from error


def _file(reading: Reading, number: int, judge: SplitJudge | None) -> Iterator[pa.RecordBatch]:
    path = reading.files[number]
    found = reading.partitions[number] if reading.partitions else ()
    values = dict(zip(reading.partition_names, found, strict=True))
    for name, stream in members(path, reading.archive, reading.format):
        place = path if reading.archive in (Archive.NONE, Archive.GZ) else f"{path}!{name}"
        data = uncompressed(stream, reading.codec, place)
        if reading.format is FileFormat.BINARY:
            rows = _binary(reading, data, _relative(reading, path, name))
            yield from _batches(rows, ("data", "relativePath", "partIndex"), _BINARY, values)
            continue
        assert reading.typed is not None and judge is not None
        yield from _typed(reading.typed, _numbered(reading, data, place), path, place, judge)


_BINARY = (pa.binary(), pa.string(), pa.int64())


def _lines(reading: Reading, data: Any, place: str) -> Iterator[tuple[int, str]]:
    text = text_of(data, reading.encoding, reading.row_delimiter)
    try:
        for number, line in enumerate(lines(text, reading.row_delimiter), 1):
            if number > reading.skip:
                yield number, line
    except UnicodeDecodeError as error:
        raise UserError(
            f"LocalFile cannot read {place}: byte {error.object[error.start]:#x} is no"
            f" {reading.encoding}. Check option encoding."
        ) from error


def _numbered(reading: Reading, data: Any, place: str) -> Iterator[tuple[int, Any]]:
    """Yield rows of a file with their numbers."""
    if reading.format is FileFormat.EXCEL:
        return sheet_rows(data.read(), reading.sheet, reading.skip, place)
    if reading.format is FileFormat.XML:
        return element_rows(
            data, reading.xml_row_tag, reading.xml_attributes, reading.columns,
            reading.encoding, place,
        )  # fmt: skip
    return _lines(reading, data, place)


def _typed(
    typed: Typed, rows: Iterator[tuple[int, Any]], path: str, place: str, judge: SplitJudge
) -> Iterator[pa.RecordBatch]:
    """Gather rows into typed batches, with the values that folders' names have."""
    what = "line" if isinstance(typed.rows, JsonRows) else "row"

    def where(number: int) -> str:
        return f"file {place}, {what} {number}"

    while held := _some(rows):
        if isinstance(typed.rows, JsonRows):
            table = typed.rows.lines(iter(held), where, judge)
        else:
            table = typed.rows.table(held, where, judge)
        yield from with_folders(table, path, typed.folders, typed.names)


def _some(rows: Iterator[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Return the next rows, about as many as a batch may have."""
    held: list[tuple[int, Any]] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[1])
        if len(held) >= ROWS_MAX or size >= BYTES_MAX:
            break
    return held


def _binary(reading: Reading, data: Any, name: str) -> Iterator[tuple[Any, ...]]:
    part = 0
    while (chunk := data.read(reading.chunk or -1)) or not part:  # an empty file is one part
        yield chunk, name, part
        part += 1


def _relative(reading: Reading, path: str, member: str) -> str:
    """Return where a file is below the folder that is read; `member` is in an archive there."""
    below = path.removeprefix(reading.root).lstrip("/") or path.rsplit("/", 1)[-1]
    if reading.archive is Archive.NONE:
        return below
    if reading.archive is Archive.GZ:
        return below.removesuffix(".gz")
    folder = below.rpartition("/")[0]
    return f"{folder}/{member}" if folder else member


def _batches(
    rows: Iterator[tuple[Any, ...]],
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    values: dict[str, str | None],
) -> Iterator[pa.RecordBatch]:
    """Gather rows into batches of bounded size; partition values are the same in every row."""
    held: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[0])
        if len(held) >= ROWS_MAX or size >= BYTES_MAX:
            yield _batch(held, names, types, values)
            held, size = [], 0
    if held:
        yield _batch(held, names, types, values)


def _batch(
    rows: list[tuple[Any, ...]],
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    values: dict[str, str | None],
) -> pa.RecordBatch:
    arrays: list[pa.Array[Any]] = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)
    ]
    arrays += [pa.array([value] * len(rows), pa.string()) for value in values.values()]
    return pa.RecordBatch.from_arrays(arrays, names=[*names, *values])
