"""Read csv files with Arrow, inside Spark's Python workers: six times as fast as Spark's parser.

Arrow and Spark agree on plain files and differ at the edges: quotes, blanks around numbers,
`0x1F`, `nan`.  So only files without any of these are read here; whatever else there is makes a
slice NotPlain, and Spark reads it.  `tests/unit/connectors/local_file/test_arrow_csv.py` holds the
two against each other.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from holdfast.connect.batches import Batches, NotPlain, arrow_schema
from holdfast.connectors.local_file.formats import Format
from holdfast.connectors.local_file.splits import divide, parts_of
from holdfast.connectors.local_file.values import DATE, DATETIME
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.connectors.local_file.options import FileTable

BLOCK_BYTES = 4 << 20
LINE_BYTES_MAX = 64 << 20
DIGITS_MAX = 38
LOOK_BYTES = 1 << 16

PACKED = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".lzo", ".zst", ".zstd")
"""Endings of files that Spark unpacks as it reads them."""

DELIMITERS = "\t!#$%&*,/:;<=>?@^_`|~"
"""Characters that are nothing but a delimiter to Spark, too."""

MARK = b"\xef\xbb\xbf"
BLANKS = (0x20, 0x09)
NEIGHBOURS = (0x0A, 0x0D)
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]


def csv_batches(spark: "SparkSession", table: "FileTable", files: Sequence[str]) -> Batches | None:
    """Return csv files as batches; None if only Spark reads such a table."""
    if not _plain(table) or any(f.lower().endswith(PACKED) for f in files):
        return None
    assert table.schema is not None
    columns = table.schema.table.columns
    schema = arrow_schema(columns)
    if schema is None:
        return None
    splits, size = divide(files, spark.sparkContext.defaultParallelism)
    read = CsvReader(schema, table.delimiter, table.quote_char, table.skip_header_row_number == 1)
    return Batches(spark, columns, tuple(splits), read, size)


def _plain(table: "FileTable") -> bool:
    """Say whether a table's options leave nothing that only Spark's parser does."""
    return (
        table.format is Format.CSV
        and table.native
        and table.schema is not None
        # A line of blanks would be a row of a table with one column, and Spark leaves it out.
        and len(table.schema.table.columns) > 1
        and not table.csv_use_header_line
        and not table.read_columns
        and table.row_delimiter == "\n"
        and table.delimiter in DELIMITERS
        and len(table.quote_char.encode()) == 1
        and table.escape_char in (None, table.quote_char)
        and table.null_format is None
        and (table.date_format, table.datetime_format) == (DATE, DATETIME)
    )


@dataclass(frozen=True, slots=True)
class CsvReader:
    """Reads parts of csv files.  A part owns the lines that begin in it."""

    schema: pa.Schema
    delimiter: str
    quote: str
    header: bool

    def __call__(self, split: Plain) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split.  Raises NotPlain for what Spark might read otherwise."""
        for path, first, end in parts_of(split):
            for block in _blocks(Path(path), first, end, self.header):
                yield from self._rows(block, path)

    def _rows(self, block: bytes, path: str) -> list[pa.RecordBatch]:
        if unusual := self._unusual(block):
            raise NotPlain(f"{path} has {unusual}")
        try:
            table = csv.read_csv(
                io.BytesIO(block),
                csv.ReadOptions(
                    use_threads=False, block_size=len(block) + 1, column_names=self.schema.names
                ),
                csv.ParseOptions(delimiter=self.delimiter, quote_char=False),
                csv.ConvertOptions(
                    column_types=_parsed(self.schema), null_values=[""], strings_can_be_null=True,
                    true_values=TRUE, false_values=FALSE,
                ),
            )  # fmt: skip
            if any(map(_odd, table.columns, self.schema.types)):
                raise NotPlain(f"{path} has numbers that are not finite, or too long")
            return table.cast(self.schema).to_batches()
        except pa.ArrowInvalid as error:
            raise NotPlain(f"{path}: {' '.join(str(error).split())[:200]}") from error

    def _unusual(self, block: bytes) -> str:
        """Return what in a block Spark and Arrow may read in two ways; nothing if all is plain."""
        if self.quote.encode() in block:
            return "quotes"
        if b"\0" in block or block.startswith(MARK):
            return "bytes that are no text"
        codes = np.frombuffer(block, np.uint8)
        if _beside(codes, BLANKS, (*NEIGHBOURS, ord(self.delimiter))):
            return "blanks around a value"
        if any(pa.types.is_integer(kind) for kind in self.schema.types) and _has_hex(codes):
            return "numbers like 0x1F"
        return ""


def _parsed(schema: pa.Schema) -> pa.Schema:
    """Return what the parser makes of columns.

    Decimals stay text at first: it would not notice one that is too large for its type.
    """
    return pa.schema(
        [pa.field(f.name, pa.string() if pa.types.is_decimal(f.type) else f.type) for f in schema]
    )


def _odd(column: "pa.ChunkedArray[Any]", kind: Any) -> bool:
    """Say whether a column has a number that Spark might read otherwise."""
    if pa.types.is_floating(kind):
        return not pc.all(pc.is_finite(column)).as_py()
    if not pa.types.is_decimal(kind):
        return False
    # One of more digits could wrap around when it is scaled, and so could 1E30.
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return longest > DIGITS_MAX - kind.scale or any(
        pc.any(pc.match_substring(column, mark)).as_py() for mark in "eE"
    )


def _blocks(path: Path, first: int, end: int, header: bool) -> Iterator[bytes]:
    """Yield the lines that begin between two places of a file, in blocks of whole lines."""
    with path.open("rb", buffering=0) as file:
        at = _line_start(file, first) if first else 0
        stop = _line_start(file, end)
        if header and not first:
            at = _after_header(file, path)
        file.seek(at)
        rest = b""
        while at < stop:
            read = file.read(min(BLOCK_BYTES, stop - at))
            if not read:
                raise NotPlain(f"{path} has become shorter")
            at += len(read)
            cut = len(read) if at == stop else read.rfind(b"\n") + 1
            if cut:
                yield rest + read[:cut]
            rest = read[cut:] if cut else rest + read
            if len(rest) > LINE_BYTES_MAX:
                raise NotPlain(f"{path} has a line of more than {LINE_BYTES_MAX} bytes")


def _after_header(file: BinaryIO, path: Path) -> int:
    """Return where the line begins that follows the first one."""
    end = _line_start(file, 1)
    file.seek(0)
    line = file.read(min(end, LOOK_BYTES)).removesuffix(b"\n").removesuffix(b"\r")
    # Spark passes over lines of control characters before it looks for names.
    if line.startswith(MARK) or b"\r" in line or not any(code > 0x20 for code in line):
        raise NotPlain(f"{path} begins with no plain line of names")
    return end


def _line_start(file: BinaryIO, place: int) -> int:
    """Return where the first line begins that does not begin before a place of a file."""
    at = place - 1
    file.seek(at)
    while read := file.read(LOOK_BYTES):
        found = read.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(read)
    return at


def _beside(codes: "np.ndarray[Any, Any]", wanted: Sequence[int], others: Sequence[int]) -> bool:
    """Say whether one of some bytes stands beside one of others, or first or last."""
    for code in wanted:
        found = np.flatnonzero(codes == code)
        if not len(found):
            continue
        if found[0] == 0 or found[-1] == len(codes) - 1:
            return True
        if np.isin(codes[found - 1], others).any() or np.isin(codes[found + 1], others).any():
            return True
    return False


def _has_hex(codes: "np.ndarray[Any, Any]") -> bool:
    found = np.flatnonzero((codes | 0x20) == ord("x"))
    return bool(len(found) and (found[0] == 0 or (codes[found - 1] == ord("0")).any()))
