"""The Delta sink."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.connect.library import need_library
from holdfast.connect.plugin import PluginContext, problems_of
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
from holdfast.connectors.delta.committer import TailLog, Tails, check, commit
from holdfast.connectors.delta.library import DeltaLog, check_library
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.partitions import TEXTS
from holdfast.connectors.delta.staged_files import VERSION, DeltaStaged, file_of
from holdfast.connectors.delta.types import from_delta, lengths, to_delta
from holdfast.connectors.lake.fit import (
    fit,
    fitted,
    refuse_changelog,
    refuse_nulls,
    refuse_unpartitioned,
)
from holdfast.connectors.lake.footers import ParquetPart, staged_parts
from holdfast.connectors.lake.location import (
    Location,
    jar_problem,
    look_around,
    no_table,
    refuse_unwritable,
)
from holdfast.connectors.lake.mark_done import MarkDone, Partition
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.prepare import (
    TableOrder,
    by_place,
    check_staged,
    mark_of,
    mode_of,
    order_of,
)
from holdfast.connectors.lake.staging import stage, stage_batches, stage_each, sweep
from holdfast.connectors.save_modes import SchemaSaveMode, data_exists
from holdfast.errors import UserError
from holdfast.model.table import Column, Table
from holdfast.model.tree import Plain
from holdfast.model.types import UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Anew:
    """A table as it will be once the first commit has recreated it; its partitions stay."""

    schema: str
    partitions: list[str]
    asks: list[str]

    @property
    def columns(self) -> list[Column]:
        """The columns of the table."""
        return from_delta(self.schema)

    def refusals(self) -> list[str]:
        """Return what this table asks of its writers that we cannot do."""
        return self.asks


class DeltaSink(Admitting, Sink[DeltaSinkOptions]):
    """Tables of Delta Lake.  Rows are added; a changelog is refused."""

    name = "Delta"
    example = 'path = "lake/rows"'
    overlaps = True

    notes = """\
The leader commits: files are added, and the job's number is written down, in one
version of the table. Its commit info has `holdfast.user`, `holdfast.number` and, where one is
known, `holdfast.watermark`. Delta has no tags, so savepoints get none: the version of a savepoint
is the one whose `holdfast.number` is the savepoint's checkpoint, or the last one below it.

What a row holds in each type, and what is refused: [Values](../values.md#lake-tables).

Tables may be partitioned by every type but bytes and those with parts. Instants in partitions are
written in UTC with their zone. A partition value that cannot be kept ends the job in words: the
empty text (readers of Delta take it for null), a NUL character, a text longer than a folder's name
may be, a day outside the years 1 to 9999. Columns of type `varchar(n)` and `char(n)` take no longer
texts; a `char` is filled up with blanks. Columns with a NaN have no bounds in the log, so readers
skip no file of theirs.
Refused before the first row, with the name of what the table asks for: checks, column rules,
generated and identity columns, column mapping, row tracking, column defaults, in-commit timestamps,
clustering, type widening, and every other table feature that who adds files must know. Deletion
vectors, the change data feed and append-only tables are written to as they are.
"""

    def __init__(self, options: DeltaSinkOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._tails = Tails()
        self._keeps: set[str] = set()  # tables whose columns this incarnation may not choose

    @classmethod
    def lacks(cls, options: DeltaSinkOptions, spark: Mapping[str, str]) -> Iterator[str]:
        """Yield what Spark would need to write there."""
        problem = jar_problem(options.url, spark)
        if problem:
            yield problem

    @classmethod
    def destination(cls, options: DeltaSinkOptions, table: Table) -> str:
        """Name the folder of a table."""
        return options.place.plain_url

    @classmethod
    def writing(cls, options: DeltaSinkOptions, table: Table) -> WritePreview:
        """Say that rows are added, and how a new table is partitioned."""
        return WritePreview(partitions=tuple(options.partition_keys), modes=modes_in(options))

    def check_libraries(self) -> None:
        """Raise UserError if a library is not here."""
        need_library("deltalake", self.name, "delta")

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        options = self.options_for(table)
        refuse_changelog(self.name, table)
        about = f"Delta cannot create {options.url}"
        _matched(options.partition_keys, table, about)
        if options.schema_save_mode.creates:
            to_delta([c for c in table.columns if c.type != UNKNOWN], about)

    def look(self, tables: Sequence[Table], spark: "SparkSession") -> Iterator[str]:
        """Open each table that is there; else see whether it can be created."""
        for table in tables:
            options = self.options_for(table)
            yield from problems_of(
                partial(refuse_unwritable, self.name, options.place),
                partial(self._prepare, table, options, ANYBODY, make=False),
            )
        if not tables:
            yield from look_around(self.name, self.options.place)

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Make tables that are missing; raise where rows will not fit."""
        check_library()
        orders = [self._prepare(t, self.options_for(t), opening) for t in tables]
        return [c for c in orders if c]

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Let Spark write each table into a hidden folder of it."""
        write = partial(self._write, mark_of(staging.life))
        return stage_each(tables, staging, write, self.abort)

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Add staged files to the logs of their tables."""
        staged, given = self._read(identifier, committables)
        orders = by_place(given)
        urls = dict.fromkeys([*orders, *(s.url for s in staged)])
        tables = {url: [s for s in staged if s.url == url] for url in urls}
        for url, part in tables.items():
            # All tables, before the first one shows any.
            check(identifier, self._place(url), part, self._tails)
        for url, part in tables.items():
            commit(identifier, self._place(url), part, self._tails, orders.get(url))

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove staged files."""
        for one in [self._staged(c) for c in committables if not c.opening]:
            self._place(one.url).remove(one.folder)

    @property
    def listens(self) -> bool:
        """Whether partitions are to be marked."""
        return self.options.mark_done is not None

    def listen(self, commit: CommitEvent, state: Plain) -> Plain:
        """Mark the partitions that are done."""
        touched = {p: None for found in self._heard(commit) for p in _partitions(*found)}
        return MarkDone(self.options, self._place).after_commit(commit, touched, state)

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove what is staged for a job, or for former attempts of a task of it."""
        sweep(self.options.place, leftovers)

    def _staged(self, committable: Committable, life: str | None = None) -> DeltaStaged:
        check = CommittableCheck(self, committable, life)
        staged = check.content(DeltaStaged, VERSION)
        check_staged(check, staged, self.options.place.plain_url)
        with check.sound("columns"):
            dict(json.loads(staged.columns))
            for file in staged.files:
                dict(json.loads(file.stats))
                if set(file.partition) != set(staged.partitions):
                    raise ValueError(f"values of {list(file.partition)}")
        return staged

    def _order(self, committable: Committable, life: str | None) -> TableOrder:
        check = CommittableCheck(self, committable, life)
        options = self.options
        mode = mode_of(options.schema_save_mode, options.data_save_mode)
        order = order_of(check, mode, options.place.plain_url)
        with check.sound("columns"):
            if order.shape is not None:
                from_delta(str(order.shape))
        return order

    def _place(self, url: str) -> Location:
        return Location(url, self.options.s3)

    def _prepare(
        self, table: Table, options: DeltaSinkOptions, opening: Opening, make: bool = True
    ) -> Committable | None:
        place, mode = options.place, options.schema_save_mode
        refuse_changelog(self.name, table)
        if str(table.path) in opening.earlier or not table.columns:
            self._keeps.add(str(table.path))
        log = DeltaLog.load(place)
        if log is None and mode is SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST:
            raise no_table(self.name, place)
        if log is None and (not mode.creates or not table.columns):
            return None  # only the rows will tell
        if log is None and not make:
            return None  # `refuse` has said what cannot be created
        if log is None:
            log = self._create(table, options)
        due, mark = mode_of(mode, options.data_save_mode), mark_of(opening.life)
        if due == "empty" and opening.new(table) and not log.is_empty and log.last(mark) < 0:
            raise data_exists(self.name, place.url)
        found = self._anew(log, table, options, mark) or log
        self._check(found, options)
        if table.columns:
            about = f"Delta cannot write to {place.url}"
            fit(found.columns, table.columns, about, found.partitions)
        if due is None or not opening.new(table):
            return None
        shape = found.schema if due == "anew" and table.columns else None
        return TableOrder(place.plain_url, opening.life, due, shape).committable(str(table.path))

    def _create(self, table: Table, options: DeltaSinkOptions) -> DeltaLog:
        refuse_unwritable(self.name, options.place)
        about = f"Delta cannot create {options.url}"
        keys = _matched(options.partition_keys, table, about)
        schema = to_delta(table.columns, about)
        return DeltaLog.create(options.place, schema, keys, options.table_properties)

    def _anew(
        self, log: DeltaLog | TailLog, table: Table, options: DeltaSinkOptions, mark: str
    ) -> Anew | None:
        """Return the table as the first commit will recreate it; None if it stays as it is."""
        if not _makes_anew(options) or str(table.path) in self._keeps or log.last(mark) >= 0:
            return None
        schema = to_delta(table.columns, f"Delta cannot create {options.url}")
        return Anew(schema, log.partitions, log.refusals())

    def _check(self, log: DeltaLog | TailLog | Anew, options: DeltaSinkOptions) -> None:
        wrong = log.refusals()
        wrong += [
            f"partitions by {column.name}, which is {column.type}"
            for column in log.columns
            if column.name in log.partitions and column.type.kind not in TEXTS
        ]
        if wrong:
            raise UserError(
                f"Delta cannot write to {options.url}: the table asks for {', '.join(wrong)}, which"
                " this sink does not do. Change the table, or write to another one.",
                code="sink.table_refused",
            )
        refuse_unpartitioned(f"Delta cannot write to {options.url}", log.partitions, options)
        keys, there = [k.lower() for k in options.partition_keys], log.partitions
        if keys and keys != [k.lower() for k in there]:
            raise UserError(
                f"Delta cannot write to {options.url}: partition_keys is"
                f" {', '.join(options.partition_keys)}, but the table is partitioned by"
                f" {', '.join(there) or 'nothing'}. Correct partition_keys, or leave it out.",
                code="sink.partitions_differ",
            )

    def _write(self, mark: str, rows: Rows, folder: str) -> Iterator[Committable]:
        options = self.options_for(rows.table)
        place = options.place
        refuse_changelog(self.name, rows.table)
        found = self._tails.find(place, mark if _makes_anew(options) else "")
        if found is None:
            if not options.schema_save_mode.creates:
                raise no_table(self.name, place)
            found = self._create(rows.table, options)
        log = self._anew(found, rows.table, options, mark) or found
        self._check(log, options)
        about = f"Delta cannot write to {place.url}"
        ready = fitted(rows, log.columns, about, log.partitions, lengths(log.schema))
        columns = {c.name: c for c in log.columns}
        kinds = {key: columns[key].type.kind for key in log.partitions}
        try:
            parts = _stage(ready, place.below(folder), kinds, options.rows_per_file, about)
            refuse_nulls(log.columns, parts, about)
        except BaseException:
            place.remove(folder)
            raise
        if not parts:
            place.remove(folder)
            return
        staged = DeltaStaged(
            url=place.plain_url,  # absolute: the commit may run in another working folder
            folder=folder,
            columns=_columns(log, ready.table.names),
            partitions=log.partitions,
            files=[file_of(part, n, folder, kinds) for n, part in enumerate(parts)],
        )
        counted, size = sum(p.rows for p in parts), sum(p.bytes for p in parts)
        yield Committable(VERSION, str(rows.table.path), counted, size, staged.to_plain())


def _makes_anew(options: DeltaSinkOptions) -> bool:
    return options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA


def _stage(
    rows: Rows, folder: Location, kinds: Mapping[str, str], rows_max: int, about: str
) -> list[ParquetPart]:
    """Let Spark write rows into a folder, without the columns of `kinds`, by which it sorts."""
    parts = None if kinds else stage_batches(rows, folder, rows_max=rows_max)
    if parts is None:
        keys = list(kinds)
        frame = keyed(rows.frame, keys, kinds, about, TEXTS, empty=False).drop(*keys)
        names = partition_names(keys)
        stage(frame, folder, partitions=names, rows_max=rows_max)
        parts = staged_parts(folder, names)
    return parts


def _columns(log: DeltaLog | TailLog | Anew, names: Sequence[str]) -> str:
    """Return the types of the columns that files were written with."""
    fields = json.loads(log.schema)["fields"]
    return json.dumps({f["name"]: f["type"] for f in fields if f["name"] in names})


def _matched(keys: Sequence[str], table: Table, about: str) -> list[str]:
    """Return partition columns as the table spells them."""
    known = {n.lower(): n for n in table.names}
    missing = [k for k in keys if k.lower() not in known]
    if missing or (keys and len(keys) == len(table.names)):
        said = "no column would be left"
        if missing:
            said = f"there is no column {' or '.join(missing)}"
        raise UserError(
            f"{about}: {said} (partition_keys). Columns: {', '.join(table.names)}.",
            code="sink.partition_keys",
        )
    return [known[k.lower()] for k in keys]


def _partitions(table: str, staged: DeltaStaged) -> Iterator[Partition]:
    """Yield the partition of each file."""
    for file in staged.files:
        folder = file.final.rpartition("/")[0]
        if folder:
            yield Partition(table, staged.url, folder, tuple(file.partition.items()))
