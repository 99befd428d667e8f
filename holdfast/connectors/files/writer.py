"""The LocalFile sink, and what its folder must be like before the first row."""

import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.connect.plugin import problems_of
from holdfast.connect.rights import may_not
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import (
    ANYBODY,
    CommitEvent,
    CommitId,
    Committable,
    Leftovers,
    Opening,
    Sink,
    Staging,
    WritePreview,
    modes_in,
)
from holdfast.connectors.committables import Admitting, CommittableCheck
from holdfast.connectors.files.committer import VERSION, StagedFiles, abort, commit
from holdfast.connectors.files.discovery import partitions_of
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.names import file_name
from holdfast.connectors.files.opening import HIDDEN, FolderOrder, Mode, OpenedFolder, has_data
from holdfast.connectors.files.opening import VERSION as ORDER_VERSION
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.staged import FilePart, folder_of, prepend, staged_parts
from holdfast.connectors.files.sweep import remove_tree, safe, sweep
from holdfast.connectors.files.writing import (
    PartitionedColumns,
    csv_by_spark,
    header_of,
    layout_of,
    stage,
)
from holdfast.connectors.lake.location import Location, look_around, refuse_unwritable
from holdfast.connectors.lake.mark_done import MarkDone, Partition
from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode, data_exists
from holdfast.errors import UserError
from holdfast.model.table import Table
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LocalFileSink(Admitting, Sink[LocalFileSinkOptions]):
    """Files on this machine.  Rows of a changelog are all written; their kinds are not."""

    name = "LocalFile"
    notes = """
What is written of a value in each format, and what is refused: [Values](../values.md).
"""
    example = """\
path = "out/rows"
file_format_type = parquet
"""
    overlaps = True

    @classmethod
    def destination(cls, options: LocalFileSinkOptions, table: Table) -> str:
        """Name the folder of a table's files."""
        return options.root

    @classmethod
    def writing(cls, options: LocalFileSinkOptions, table: Table) -> WritePreview:
        """Say that files are added, and into which folders."""
        return WritePreview(partitions=tuple(options.partition_by or ()), modes=modes_in(options))

    def target(self, table: Table) -> str:
        """Name the folder."""
        return f"{self.name}:{Path(self.options_for(table).root).absolute()}"

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        options = self.options_for(table)
        if table.columns and options.file_format_type is not FileFormat.BINARY:
            layout_of(options, table.names, table)

    def look(self, tables: Sequence[Table], spark: "SparkSession") -> Iterator[str]:
        """See whether folders can be created and written, and what the save modes say of them."""
        for options in {o.root: o for o in map(self.options_for, tables)}.values():
            yield from look_at_folder(options)
        if not tables:
            yield from look_around(self.name, Location(self.options.root))

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Make the folder of each table, and look whether it can be written."""
        orders: dict[str, Committable] = {}
        known = {self.options_for(t).root for t in tables if not opening.new(t)}
        for table in tables:
            self.refuse(table)
        for table in tables:
            options = self.options_for(table)
            mode = mode_of(options)
            if options.root in orders:
                continue
            new = options.root not in known
            prepare_folder(options, opening.life, new)
            if mode and new:
                order = FolderOrder(options.root, opening.life, mode)
                orders[options.root] = order.committable(str(table.path))
        return list(orders.values())

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Write each table into a hidden folder inside its path."""
        committables: list[Committable] = []
        parts: dict[str, int] = {}
        try:
            for number, rows in enumerate(tables):
                one = self._write(rows, staging, number, parts)
                if one:
                    committables.append(one)
        except BaseException:
            self.abort(committables)  # no checkpoint will name them
            raise
        return committables

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Move staged files to where readers see them."""
        commit(identifier, *self._read(identifier, committables))

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove staged files."""
        abort([self._staged(c) for c in committables if not c.opening])

    @property
    def listens(self) -> bool:
        """Whether partitions are to be marked."""
        return self.options.mark_done is not None

    def listen(self, commit: CommitEvent, state: Plain) -> Plain:
        """Mark the partitions that are done."""
        keys = self.options.partition_by or ()
        touched = {p: None for found in self._heard(commit) for p in _partitions(*found, keys)}
        return MarkDone(self.options, Location).after_commit(commit, touched, state)

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove what is staged for a job, or for former attempts of a task of it."""
        sweep(self.options.root, leftovers)

    def _staged(self, committable: Committable, life: str | None = None) -> StagedFiles:
        check = CommittableCheck(self, committable, life)
        staged = check.content(StagedFiles, VERSION)
        place = (staged.root, self.options.root)
        check.staged_in(place, staged.folder, HIDDEN, staged.files)
        replaces = self.options.file_format_type is FileFormat.BINARY
        check.require_option(staged.replace == replaces, "only copies of files replace files")
        return staged

    def _order(self, committable: Committable, life: str | None) -> FolderOrder:
        check = CommittableCheck(self, committable, life)
        order = check.content(FolderOrder, ORDER_VERSION)
        check.place(order.root, self.options.root)
        check.of_life(order.life)
        check.mode(order.mode, mode_of(self.options))
        return order

    def _write(
        self, rows: Rows, staging: Staging, number: int, taken: dict[str, int]
    ) -> Committable | None:
        options = self.options_for(rows.table)
        below = f"{HIDDEN}/{safe(staging.name)}-t{number}"
        try:
            return self._stage(rows, options, staging, below, taken)
        except BaseException:
            remove_tree(Path(options.root) / below)
            raise

    def _stage(
        self, rows: Rows, options: LocalFileSinkOptions, staging: Staging, below: str,
        taken: dict[str, int],
    ) -> Committable | None:  # fmt: skip
        layout = layout_of(options, rows.table.names, rows.table)
        folder = Path(options.root) / below
        header = header_of(options, layout) if options.enable_header_write else b""
        counted = stage(rows, options, layout, str(folder))
        parts = staged_parts(folder, options, counted, header)
        if not parts:
            remove_tree(folder)
            return None
        if options.enable_header_write and not _has_header(options):
            for part in parts:
                prepend(folder / part.path, header, options.codec)
        first = taken.get(options.root, 0)
        taken[options.root] = first + len(parts)
        files = _renames(parts, options, layout, staging, first)
        staged = StagedFiles(
            options.root,
            below,
            tuple((f"{below}/{source}", target) for source, target in files),
            options.file_format_type is FileFormat.BINARY,
        )
        known = -1 if any(p.rows < 0 for p in parts) else sum(p.rows for p in parts)
        size = sum(p.bytes for p in parts)
        return Committable(VERSION, str(rows.table.path), known, size, staged.to_plain())


def _renames(
    parts: list[FilePart],
    options: LocalFileSinkOptions,
    layout: PartitionedColumns,
    staging: Staging,
    first: int,
) -> list[tuple[str, str]]:
    """Return (staged, final) paths; part numbers continue where another table's ended."""
    if options.file_format_type is FileFormat.BINARY:
        return [(p.path, p.path) for p in parts]
    transaction = "_".join(
        safe(text)
        for text in ("T", staging.job_id, staging.task, str(staging.attempt), str(staging.number))
    )
    name = file_name(
        options.file_name_expression, transaction, str(uuid.uuid4()),
        datetime.now().astimezone(), options.filename_time_format,
    )  # fmt: skip
    alone = options.single_file_mode and len(parts) == 1 and not first
    renames = []
    for number, part in enumerate(parts, first):
        final = f"{name}{'' if alone else f'_{number}'}{options.ending}"
        folder = folder_of(part, options, layout.partitions)
        renames.append((part.path, f"{folder}/{final}" if folder else final))
    return renames


def _has_header(options: LocalFileSinkOptions) -> bool:
    """Say whether Spark's writer has put the column names in, or none belong there."""
    if options.file_format_type is FileFormat.CSV:
        return options.plain_text and csv_by_spark(options)
    return options.file_format_type is not FileFormat.TEXT


def _partitions(table: str, staged: StagedFiles, keys: Sequence[str]) -> Iterator[Partition]:
    """Yield the partition of each file; folders without names have their values in order."""
    for _, target in staged.files:
        folder = target.rpartition("/")[0]
        values = partitions_of(target)
        if folder and not values:
            values = dict(zip(keys, folder.split("/"), strict=False))
        if folder:
            yield Partition(table, staged.root, folder, tuple(values.items()))


TRIES = 3


def mode_of(options: LocalFileSinkOptions) -> Mode | None:
    """Return what the first commit does to the folder; None if it only adds files."""
    if options.data_save_mode is DataSaveMode.ERROR_WHEN_DATA_EXISTS:
        return "empty"
    anew = options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
    return "clear" if anew or options.data_save_mode is DataSaveMode.DROP_DATA else None


def prepare_folder(options: LocalFileSinkOptions, life: str, new: bool) -> None:
    """Make sure that the folder can be written, and make it if it is missing.

    What the save modes forbid is looked for if the folder is `new` to the job.  Nothing in it is
    changed.  Raises UserError where the job cannot run.
    """
    root = Path(options.root)
    _refuse_root(root, options)
    try:
        if new:
            _check_modes(root, options, life)
        root.mkdir(parents=True, exist_ok=True)
        _try_to_write(root)
    except OSError as error:
        raise UserError(
            f"LocalFile cannot write to {root}: {_why(error, root)}", code="sink.path_unwritable"
        ) from error


def _why(error: OSError, root: Path) -> str:
    if not isinstance(error, PermissionError):
        return f"{error.strerror or error}. Check option path."
    asked = Path(error.filename or root)
    there = next(p for p in (asked, *asked.parents) if os.path.lexists(p))
    return f"{may_not('write to', there)}. Give that user the right, or give another path."


def look_at_folder(options: LocalFileSinkOptions) -> Iterator[str]:
    """Yield why the folder cannot be created or written; nothing is created."""
    root = Path(options.root)
    yield from problems_of(
        partial(_refuse_root, root, options),
        partial(_check_readable, root, options),
        partial(refuse_unwritable, "LocalFile", Location(str(root))),
    )


def _check_readable(root: Path, options: LocalFileSinkOptions) -> None:
    """Raise UserError for what the save modes forbid, or if the folder cannot be listed."""
    try:
        _check_modes(root, options, "")
    except OSError as error:
        raise UserError(
            f"LocalFile cannot list {root}: {error.strerror or error}. Check who may read it.",
            code="sink.path_unwritable",
        ) from error


def _refuse_root(root: Path, options: LocalFileSinkOptions) -> None:
    if root.resolve() == Path(root.anchor):
        raise UserError(
            f"LocalFile will not write to {options.path}: that is the whole machine."
            " Name a folder for this sink alone.",
            code="sink.path_refused",
        )


def _check_modes(root: Path, options: LocalFileSinkOptions, life: str) -> None:
    if options.schema_save_mode is SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST and not root.is_dir():
        raise UserError(
            f"LocalFile cannot write to {root}: the folder does not exist, and schema_save_mode"
            " is ERROR_WHEN_SCHEMA_NOT_EXIST. Create it, or choose another mode.",
            code="sink.schema_missing",
        )
    # What is there may come from another sink of this incarnation: look in that order.
    if mode_of(options) == "empty" and has_data(root) and OpenedFolder.find(root, life) is None:
        raise data_exists("LocalFile", root, "files")


def _try_to_write(root: Path) -> None:
    hidden = root / HIDDEN
    for left in reversed(range(TRIES)):
        hidden.mkdir(exist_ok=True)
        try:
            with tempfile.TemporaryFile(dir=hidden):
                return
        except FileNotFoundError:
            # Another job has just swept up and removed the folder because it was empty.
            if not left:
                raise
