"""The Paimon sink."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

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
from holdfast.connectors.committables import (
    Admitting,
    CommittableCheck,
    same_texts,
    shown,
)
from holdfast.connectors.lake.fit import fit, matched, refuse_unpartitioned
from holdfast.connectors.lake.location import Location, look_around, no_table, refuse_unwritable
from holdfast.connectors.lake.mark_done import MarkDone, Partition
from holdfast.connectors.lake.prepare import (
    TableOrder,
    by_place,
    check_staged,
    mark_of,
    mode_of,
    order_of,
)
from holdfast.connectors.lake.staging import stage_each, sweep, tables_like
from holdfast.connectors.paimon.committer import check, commit, tag_savepoint
from holdfast.connectors.paimon.manifests import ADD, check_entry, check_library
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.refusals import check_schema
from holdfast.connectors.paimon.schema import PaimonSchema, new_schema
from holdfast.connectors.paimon.staged_files import VERSION, PaimonStaged, in_bucket
from holdfast.connectors.paimon.staging import stage_table
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.connectors.save_modes import SchemaSaveMode, data_exists
from holdfast.errors import UserError
from holdfast.model.table import Table
from holdfast.model.tree import Plain
from holdfast.model.types import UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEW_TABLE = {"file.format": "parquet"}


class PaimonSink(Admitting, Sink[PaimonSinkOptions]):
    """Tables of Paimon.  Rows are added or, where the table has a primary key, replaced by it."""

    name = "Paimon"
    example = """\
warehouse = "lake"
database = "shop"
table = "rows"
"""

    notes = """\
The leader commits: files are moved to where the table's files are, and a new snapshot
names them, this job's number and the watermark. Snapshots carry the property `holdfast.committed`.
A snapshot gets its number by a hard link, which only one of many can make, so the warehouse must
be on a disk that masters and workers share; object stores and HDFS are refused. Java's own writers
rename instead on such a disk: let none commit to the same table at the same time.

Manifests are merged as the table's `manifest.merge-min-count` says. Snapshots of this sink expire
as its `snapshot.num-retained.min`, `snapshot.num-retained.max` and `snapshot.time-retained` say,
unless it is `write-only`; what a tag, a consumer or a branch needs stays, and snapshots that others
have committed are theirs to expire.

A table with a primary key needs `bucket` (a fixed number; 1 for each GB of a partition) and
`sequence.field` among its options: a column that grows with each change of a row, such as the time
of the change. Rows are staged before those of the checkpoint before are committed, so that only
their own values tell which of two rows of a key is the later one. Of rows with the same value, the
one that was staged later counts. Changelogs are applied: a DELETE removes the row of its key. Key
columns are not repeated in files, as Paimon's Rust writer does not repeat them (Java calls it
`data-file.thin-mode`). Files are not compacted here: let Paimon's own compaction run now and then,
or readers slow down.
Refused, as they would not be kept: `changelog-producer`, `deletion-vectors.enabled`, every
`merge-engine` but `deduplicate`, dynamic buckets, keys without the partition columns, manifests in
another format than Avro (`manifest.format`).

What a row holds in each type, and what is refused: [Values](../values.md#lake-tables).

Columns of type VARCHAR(n), CHAR(n), VARBINARY(n) and BINARY(n) take no longer values, which end the
job in words; a CHAR is filled up with blanks, a BINARY must have its length. Such types inside
others are refused. Columns with a NaN have no bounds in manifests.

Partitions may be of type STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT or DATE. A value that
names no folder ends the job in words: a NUL character, a text longer than a folder's name, a day
outside the years 1 to 9999. The options that
mark partitions as done, and `sink.savepoint.auto-tag`, may also stand among the options of the
table (`paimon.table.write-props`), where Paimon has them.
"""

    def __init__(self, options: PaimonSinkOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._keeps: set[str] = set()  # tables whose columns this incarnation may not choose

    @classmethod
    def keyed(cls, options: PaimonSinkOptions) -> bool:
        """Say whether rows go by key: the last of a key counts, by `sequence.field`."""
        return bool(options.keys)

    @classmethod
    def destination(cls, options: PaimonSinkOptions, table: Table) -> str:
        """Name the folder of a table."""
        return options.place.path

    @classmethod
    def writing(cls, options: PaimonSinkOptions, table: Table) -> WritePreview:
        """Say by which key rows are replaced, and how a new table is partitioned."""
        parts = tuple(options.partitions)
        return WritePreview(tuple(options.keys), parts, modes_in(options))

    def check_libraries(self) -> None:
        """Raise UserError if a library is not here."""
        need_library("fastavro", self.name, "paimon")

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        options = self.options_for(table)
        about = f"Paimon cannot create {options.url}"
        keys = matched(options.keys, table, f"{about} (paimon.table.primary-keys)")
        matched(options.partitions, table, f"{about} (paimon.table.partition-keys)")
        if options.schema_save_mode.creates:
            self._refuse(table, keys)
            if UNKNOWN not in [c.type for c in table.columns]:
                self._schema(table, options)

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
        """Name staged files in the next snapshots of their tables."""
        staged, given = self._read(identifier, committables)
        orders = by_place(given)
        urls = dict.fromkeys([*orders, *(s.url for s in staged)])
        tables = {url: [s for s in staged if s.url == url] for url in urls}
        for url, part in tables.items():
            check(identifier, Location(url), part)  # all tables, before the first one shows any
        for url, part in tables.items():
            commit(identifier, Location(url), part, orders.get(url))

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove staged files."""
        for one in [self._staged(c) for c in committables if not c.opening]:
            Location(one.url).remove(one.folder)

    @property
    def listens(self) -> bool:
        """Whether partitions are to be marked, or savepoints to be tagged."""
        return self.options.marks.mark_done is not None or self.options.tags_savepoints

    def listen(self, commit: CommitEvent, state: Plain) -> Plain:
        """Tag the snapshot of a savepoint, and mark the partitions that are done."""
        if commit.savepoint and self.options.tags_savepoints:
            for place in tables_like(self.options.place):
                tag_savepoint(place, commit.identifier, self.context.job_id)
        if self.options.marks.mark_done is None:
            return state
        touched = {p: None for found in self._heard(commit) for p in _partitions(*found)}
        return MarkDone(self.options.marks, Location).after_commit(commit, touched, state)

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove what is staged for a job, or for former attempts of a task of it."""
        sweep(self.options.place, leftovers)

    def _staged(self, committable: Committable, life: str | None = None) -> PaimonStaged:
        check = CommittableCheck(self, committable, life)
        staged = check.content(PaimonStaged, VERSION)
        check_staged(check, staged, self.options.place.plain_url)
        for file in staged.files:
            check.require(in_bucket(file), f"{shown(file.final)} is no file of its bucket")
            with check.sound(f"manifest entry of {shown(file.final)}"):
                check_entry(file.entry(ADD))
        return staged

    def _order(self, committable: Committable, life: str | None) -> TableOrder:
        check = CommittableCheck(self, committable, life)
        options = self.options
        mode = mode_of(options.schema_save_mode, options.data_save_mode)
        wished = {"bucket": "-1", **NEW_TABLE, **options.write_props}
        order = order_of(check, mode, options.place.plain_url)
        with check.sound("columns"):
            if order.shape is not None:
                schema = PaimonSchema(cast(dict[str, Any], order.shape))
                check_schema(schema, "it")
                check.require_option(same_texts(wished, schema.options), "it has other options")
                json.dumps([schema.mark, schema.is_left_by(schema)])
        return order

    def _prepare(
        self, table: Table, options: PaimonSinkOptions, opening: Opening, make: bool = True
    ) -> Committable | None:
        place, mode = options.place, options.schema_save_mode
        if str(table.path) in opening.earlier or not table.columns:
            self._keeps.add(str(table.path))
        found = PaimonTable.load(place)
        if found is None and mode is SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST:
            raise no_table(self.name, place)
        if found is None and (not mode.creates or not table.columns):
            self._refuse(table, options.keys)
            return None  # only the rows will tell
        if found is None:
            self._refuse(table, options.keys)
            if not make:
                return None  # `refuse` has said what cannot be created
            refuse_unwritable(self.name, place)
            found = PaimonTable.create(place, self._schema(table, options))
        due, mark = mode_of(mode, options.data_save_mode), mark_of(opening.life)
        if due == "empty" and opening.new(table) and not (found.is_empty or found.is_marked(mark)):
            raise data_exists(self.name, place.url)
        anew = self._anew(found, table, options, mark)
        found = found.anew(anew) if anew else found
        self._refuse(table, found.schema.keys)
        if table.columns:
            _check_table(found, table, options)
        about = f"Paimon cannot write to {place.url}"
        refuse_unpartitioned(about, found.schema.partitions, options.marks)
        if due is None or not opening.new(table):
            return None
        shape = dict(anew.content) if anew else None
        return TableOrder(place.plain_url, opening.life, due, shape).committable(str(table.path))

    def _schema(
        self, table: Table, options: PaimonSinkOptions, old: PaimonSchema | None = None
    ) -> PaimonSchema:
        about = f"Paimon cannot create {options.url}"
        keys = matched(options.keys, table, f"{about} (paimon.table.primary-keys)")
        parts = matched(options.partitions, table, f"{about} (paimon.table.partition-keys)")
        said = {"bucket": "-1", **NEW_TABLE, **options.write_props}
        schema = new_schema(table.columns, parts, keys, said, table.comment, about, old)
        check_schema(schema, about)
        return schema

    def _anew(
        self, found: PaimonTable, table: Table, options: PaimonSinkOptions, mark: str
    ) -> PaimonSchema | None:
        """Return the columns that the first commit gives the table; None if they are as they stay.

        Raises UserError where files that are there could not be distinguished from new ones.
        """
        wanted = options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
        if not wanted or str(table.path) in self._keeps or found.is_marked(mark):
            return None
        made, old = self._schema(table, options, found.schema), found.schema
        about = f"Paimon cannot recreate {options.url}"
        if made.is_like(old, about):
            return None
        keyed = (made.keys, made.partitions, made.types_of(made.partitions), made.buckets)
        if keyed != (old.keys, old.partitions, old.types_of(old.partitions), old.buckets):
            raise UserError(
                f"{about}: it has other keys, partitions or buckets, and Paimon can change these"
                " in no table that has files. Remove the table, or write to another one.",
                code="sink.table_refused",
            )
        return made

    def _write(self, mark: str, rows: Rows, folder: str) -> Iterator[Committable]:
        options = self.options_for(rows.table)
        table = PaimonTable.load(options.place)
        if table is None:
            if not options.schema_save_mode.creates:
                raise no_table(self.name, options.place)
            self._refuse(rows.table, options.keys)
            table = PaimonTable.create(options.place, self._schema(rows.table, options))
        anew = self._anew(table, rows.table, options, mark)
        table = table.anew(anew) if anew else table
        self._refuse(rows.table, table.schema.keys)
        _check_table(table, rows.table, options)
        staged = stage_table(rows, table, folder, f"Paimon cannot write to {options.url}")
        if staged.files:
            counted = sum(file.meta["_ROW_COUNT"] for file in staged.files)
            size = sum(file.meta["_FILE_SIZE"] for file in staged.files)
            yield Committable(VERSION, str(rows.table.path), counted, size, staged.to_plain())

    def _refuse(self, table: Table, keys: Sequence[str]) -> None:
        """Raise UserError for updates and deletes where no key says of which row."""
        if table.changelog and not keys:
            raise UserError(
                f"Paimon cannot apply the updates and deletes of {table.path} to a table without a"
                " primary key. Give paimon.table.primary-keys, with bucket and sequence.field in"
                " paimon.table.write-props, or keep inserts alone with the transform"
                " FilterRowKind.",
                code="sink.changelog",
            )


def _partitions(table: str, staged: PaimonStaged) -> Iterator[Partition]:
    """Yield the partition of each file."""
    for file in staged.files:
        where = file.final.rpartition("/bucket-")[0]
        if file.values:
            yield Partition(table, staged.url, where, tuple(file.values.items()))


def _check_table(table: PaimonTable, rows: Table, options: PaimonSinkOptions) -> None:
    """Raise UserError if rows like these cannot be written to a table."""
    about = f"Paimon cannot write to {options.url}"
    schema = table.schema
    check_schema(schema, about)
    _same(options.partitions, schema.partitions, "paimon.table.partition-keys", about)
    _same(options.keys, schema.keys, "paimon.table.primary-keys", about)
    fit(schema.columns(about), rows.columns, about, schema.partitions)


def _same(said: Sequence[str], there: Sequence[str], option: str, about: str) -> None:
    if said and [k.lower() for k in said] != [k.lower() for k in there]:
        raise UserError(
            f"{about}: {option} is {', '.join(said)}, but the table has"
            f" {', '.join(there) or 'none'}. Correct it, or leave it out.",
            code="sink.partitions_differ" if "partition" in option else "sink.keys_differ",
        )
