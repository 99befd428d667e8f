"""Read JSON files inside Spark's Python workers: plain files in parallel, others one to a task."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import pyarrow as pa

from holdfast.connectors.local_file.folders import with_folders
from holdfast.connectors.local_file.json_rows import JsonRows
from holdfast.connectors.local_file.judge import Judge
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain

BLOCK_BYTES = 4 << 20
LOOK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads parts of JSON files.  A part owns the lines that begin in it."""

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
            for at, block in _blocks(Path(path), first, end):
                table = self.rows.block(block, _Places(path, at, block), judge)
                yield from with_folders(table, path, self.folders, self.names)


@dataclass(frozen=True, slots=True)
class _Places:
    """Says where the lines of a block are; what is before it is counted only then."""

    path: str
    at: int
    block: bytes

    def __call__(self, number: int) -> str:
        before = 0
        with Path(self.path).open("rb") as file:
            left = self.at
            while left > 0 and (read := file.read(min(BLOCK_BYTES, left))):
                before += read.count(b"\n")
                left -= len(read)
        return f"file {self.path}, line {before + number + 1}"


def _blocks(path: Path, first: int, end: int) -> Iterator[tuple[int, bytes]]:
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
                yield begin, rest[:cut]
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


@dataclass(frozen=True, slots=True)
class UnpackedLines:
    """Turns lines with the file that each is from into rows."""

    read: JsonReader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        judge = self.read.judge.of(task.partitionId())
        line = 0
        for batch in batches:
            for path, run in _by_file(batch):
                rows = self.read.rows.lines(enumerate(run, line), _InPack(path), judge)
                line += len(run)
                yield from with_folders(rows, path, self.read.folders, self.read.names)


@dataclass(frozen=True, slots=True)
class _InPack:
    path: str

    def __call__(self, number: int) -> str:
        return f"file {self.path}"


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, list[Any]]]:
    lines: list[Any] = batch.column(0).to_pylist()
    paths: list[Any] = batch.column(1).to_pylist()
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or paths[at] != paths[start]:
            yield unquote(paths[start].removeprefix("file://")), lines[start:at]
            start = at
