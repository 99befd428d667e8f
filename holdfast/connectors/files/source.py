"""The LocalFile source."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.connect.arrow_rows import ArrowCounts, ArrowRows
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.source import Budget, NoSlice, Slice, Source
from holdfast.connectors.files.declared_columns import kept
from holdfast.connectors.files.discovery import (
    FoundFile,
    came_whole,
    find_files,
    local_path,
    partition_names,
)
from holdfast.connectors.files.format import COLUMNAR, FileFormat
from holdfast.connectors.files.formats.parquet import parquet_batches
from holdfast.connectors.files.reading import (
    BINARY_COLUMNS,
    DELIMITED,
    delimited_rows,
    read_files,
)
from holdfast.connectors.files.reasons import why
from holdfast.connectors.files.slices import as_they_come, once
from holdfast.connectors.files.source_options import FileTable, LocalFileSourceOptions
from holdfast.connectors.files.typed import TYPED, read_typed
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.table import Column, Table
from holdfast.model.tree import Plain
from holdfast.model.types import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHOOSING = (
    "read_partitions", "file_filter_pattern", "filename_extension",
    "file_filter_modified_start", "file_filter_modified_end",
)  # fmt: skip
"""The options that say which files of a folder are read."""


class LocalFileSource(Source[LocalFileSourceOptions]):
    """Rows of files on this machine.

    A bounded job reads the files it finds; a streaming one continues to look for new ones.  One
    that was moved into place is read at once, one that was written there after a second without a
    write.
    """

    name = "LocalFile"
    notes = """
How texts, numbers and times become values, what is refused, and where a format differs:
[Values](../values.md).
"""
    example = """\
path = "in/people.csv"
file_format_type = csv
skip_header_row_number = 1
schema { fields { id = bigint, name = string } }
"""

    settle_ns = 1_000_000_000
    """How long a file that is written in its place must lie untouched before a stream reads it.

    One that is moved there is whole, and is read at once.
    """

    _by_arrow = True
    _found: list[list[FoundFile]] | None = None

    @classmethod
    def basis(
        cls, options: LocalFileSourceOptions, mode: Mode, parallelism: int
    ) -> Mapping[str, Plain]:
        """Return which files there are to read, and whether by name or by age.

        A position knows tables by their place in the job file, and files by path or age.  A file
        that a filter left out before would count as read.
        """
        looks, paths = _looks(options.discovery_mode, mode), [t.path for t in options.tables]
        chosen = {n: [getattr(table, n) for table in options.tables] for n in CHOOSING}
        return {"discovery_mode": looks, "path": [local_path(p) for p in paths], **chosen}

    def tables(self) -> tuple[Table, ...] | None:
        """Return each table's columns, or None if only the files can tell."""
        known = [self._known(table) for table in self.options.tables]
        return None if None in known else tuple(t for t in known if t)

    def plan(self, position: Plain, budget: Budget) -> Slice | NoSlice:
        """Return the files to read next.  Raises UserError if a path does not exist."""
        if not self._continuous:
            return self._bounded(position, budget)
        before_ns = time.time_ns() - self.settle_ns
        listing = self._look()
        young = [[f for f in files if f.changed_ns >= before_ns] for files in listing]
        earlier = [[f for f in files if came_whole(f)] for files in young]
        if any(earlier):
            listing = self._look()
        names = self._names(listing)
        return as_they_come(listing, names, position, budget.rows, before_ns, earlier)

    def look(self, spark: "SparkSession") -> Iterator[str]:
        """Open each file that would be read."""
        for path in (Path(f.path) for files in self._look() for f in files):
            try:
                if path.is_file():  # to open a pipe would be to wait for who writes to it
                    path.open("rb").close()
            except OSError as error:
                yield f"LocalFile cannot read {path}: {why(error)}."

    def _bounded(self, position: Plain, budget: Budget) -> Slice | NoSlice:
        """Return which of the files come next that were there when this attempt began."""
        if self._found is None:
            self._found = self._look()
        names = self._names(self._found)
        return once(self._found, names, position, budget.rows, self.context.checkpointing)

    def _names(self, listing: list[list[FoundFile]]) -> list[list[str]]:
        tables = self.options.tables
        return [partition_names(t, found) for t, found in zip(tables, listing, strict=True)]

    def read(self, spark: "SparkSession", content: Plain) -> Tables:
        """Return the rows of the files of a slice."""
        assert isinstance(content, list)
        return Tables(
            self._read(spark, table, part)
            for table, part in zip(self.options.tables, content, strict=True)
        )

    def read_carefully(self) -> bool:
        """Leave Parquet files to Spark from now on."""
        if not self._by_arrow:
            return False
        self._by_arrow = False
        return True

    def _look(self) -> list[list[FoundFile]]:
        return [find_files(table) for table in self.options.tables]

    @property
    def _continuous(self) -> bool:
        return _looks(self.options.discovery_mode, self.context.mode) == "continuous"

    def _read(self, spark: "SparkSession", table: FileTable, part: Plain) -> Rows:
        assert isinstance(part, dict)
        assert isinstance(part["files"], list) and isinstance(part["partitions"], list)
        files, names = [str(f) for f in part["files"]], [str(n) for n in part["partitions"]]
        stage, travel = self.context.stage, self.context.batches
        if files and table.format in DELIMITED:
            return delimited_rows(spark, table, files, names, stage, travel)
        if table.format in TYPED:
            return read_typed(spark, table, files, names, stage, travel)
        if batches := self._batches(spark, table, files, names):
            columns = table.table().with_columns(batches.columns)
            # Spark reads all columns that can be batches by itself, and counts them.
            return Rows(columns, lambda: read_files(spark, table, files, names, stage, []), batches)
        moved: list[ArrowCounts] = []
        frame = read_files(spark, table, files, names, stage, moved)
        return Rows(Rows.of(table.table(), frame).table, frame, None, None, moved)

    def _batches(
        self, spark: "SparkSession", table: FileTable, files: list[str], names: list[str]
    ) -> ArrowRows | None:
        """Return the files as Arrow reads them, where it reads them as Spark does."""
        if not self.context.batches or not self._by_arrow or names or not files:
            return None
        return parquet_batches(spark, table, files)

    def _known(self, options: FileTable) -> Table | None:
        table = options.table()
        if options.format is FileFormat.BINARY:
            columns = BINARY_COLUMNS
        elif options.declared:
            columns = tuple(c for _, c in kept(options))
        elif options.format in COLUMNAR:
            return None
        else:
            columns = (Column("content", Type("string")),)
        try:
            names = partition_names(options, find_files(options))
        except UserError:
            names = []  # a check need not see the files; the run will
        own = {c.name for c in columns}
        extra = tuple(Column(n, Type("string")) for n in names if n not in own)
        return table.with_columns(columns + extra)


def _looks(given: str | None, mode: Mode) -> str:
    """Return whether files are read once, or looked for without end."""
    return "continuous" if mode is Mode.STREAMING and given != "once" else "once"
