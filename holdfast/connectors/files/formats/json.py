"""Read JSON files inside Spark's Python workers: plain files in parallel, packed ones whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from holdfast.connectors.files.archives import BROKEN
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.formats.json_rows import JsonRows
from holdfast.connectors.files.partition_folders import with_folders
from holdfast.connectors.files.reasons import why
from holdfast.connectors.files.row_rejects import Judge
from holdfast.connectors.files.unpack import Packing, texts
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain

BLOCK_BYTES = 4 << 20
LOOK_BYTES = 1 << 16

PACKING = Packing(FileFormat.JSON)
"""Files that say by their names whether they are packed."""

Places = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads parts of JSON files.

    A part owns the lines that begin in it; the one that has the begin of a packed file, all of it.
    """

    rows: JsonRows
    folders: tuple[Column, ...]
    """The columns whose values are in the names of folders."""

    names: tuple[str, ...]
    """All columns, in order."""

    judge: Judge

    def __call__(self, split: Plain) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split.  Raises UserError for one that does not fit."""
        number, parts = cast(tuple[int, list[tuple[str, int, int]]], split)
        judge = self.judge.of(number)
        for path, first, end in parts:
            if PACKING.applies(path):
                blocks = _unpacked(path) if first == 0 else iter(())
            else:
                blocks = _blocks(Path(path), first, end)
            for places, block in blocks:
                table = self.rows.block(block, places, judge)
                yield from with_folders(table, path, self.folders, self.names)


@dataclass(frozen=True, slots=True)
class _Places:
    """Says where the lines of a block are; what is before it is counted only then."""

    path: str
    at: int

    def __call__(self, number: int) -> str:
        before = 0
        with Path(self.path).open("rb") as file:
            left = self.at
            while left > 0 and (read := file.read(min(BLOCK_BYTES, left))):
                before += read.count(b"\n")
                left -= len(read)
        return f"file {self.path}, line {before + number + 1}"


@dataclass(frozen=True, slots=True)
class _Counted:
    """Says where the lines of a block are, before which so many were counted."""

    path: str
    before: int

    def __call__(self, number: int) -> str:
        return f"file {self.path}, line {self.before + number + 1}"


def _unpacked(path: str) -> Iterator[tuple[Places, bytes]]:
    """Yield the lines of a packed file, in blocks of whole lines."""
    before, rest = 0, b""
    try:
        for _, chunks in texts(path, PACKING):
            for chunk in chunks:
                rest += chunk
                if cut := rest.rfind(b"\n") + 1:
                    yield _Counted(path, before), rest[:cut]
                    before += rest.count(b"\n", 0, cut)
                    rest = rest[cut:]
    except (*BROKEN, pa.ArrowException) as error:
        raise UserError(f"LocalFile cannot read {path}: {why(error)}.") from error
    if rest:
        yield _Counted(path, before), rest


def _blocks(path: Path, first: int, end: int) -> Iterator[tuple[Places, bytes]]:
    """Yield the lines that begin between two places of a file, in blocks of whole lines."""
    with path.open("rb", buffering=0) as file:
        at = begin = _line_start(file, first)
        stop = _line_start(file, end)
        file.seek(at)
        rest = b""
        while at < stop:
            read = file.read(min(BLOCK_BYTES, stop - at))
            if not read:
                raise UserError(f"LocalFile cannot read {path}: it became shorter while it was.")
            at += len(read)
            rest += read
            cut = len(rest) if at == stop else rest.rfind(b"\n") + 1
            if cut:
                yield _Places(str(path), begin), rest[:cut]
                begin, rest = begin + cut, rest[cut:]


def _line_start(file: BinaryIO, place: int) -> int:
    """Return where the first line begins that does not begin before a place of a file."""
    if not place:
        return 0
    at = place - 1
    file.seek(at)
    while read := file.read(LOOK_BYTES):
        found = read.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(read)
    return at
