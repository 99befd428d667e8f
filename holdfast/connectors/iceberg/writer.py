"""The Iceberg sink."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from holdfast.connect.placeholders import stands_for
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
    life_of_user,
    same_texts,
    shown,
)
from holdfast.connectors.iceberg.catalog import (
    check_libraries,
    look_around_warehouse,
    open_catalog,
    open_to_look,
    tables_like,
)
from holdfast.connectors.iceberg.changes import read_shape
from holdfast.connectors.iceberg.committer import check, commit, tag_savepoint, where_of, where_text
from holdfast.connectors.iceberg.locations import place_of
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.staged_files import VERSION, IcebergStaged, file_of
from holdfast.connectors.iceberg.staging import stage_rows
from holdfast.connectors.iceberg.table import NEW_TABLE, IcebergTable
from holdfast.connectors.iceberg.table_properties import refused_wishes
from holdfast.connectors.iceberg.types import to_iceberg
from holdfast.connectors.lake.fit import (
    fit,
    matched,
    refuse_changelog,
    refuse_nulls,
    refuse_unpartitioned,
)
from holdfast.connectors.lake.location import Location, jar_problem, refuse_unwritable
from holdfast.connectors.lake.mark_done import MarkDone, Partition
from holdfast.connectors.lake.partitions import TEXTS
from holdfast.connectors.lake.prepare import (
    TableOrder,
    by_place,
    mark_of,
    mode_of,
    order_of,
)
from holdfast.connectors.lake.staging import HIDDEN, stage_each, sweep
from holdfast.connectors.save_modes import SchemaSaveMode, data_exists
from holdfast.errors import UserError
from holdfast.model.table import Column, Table
from holdfast.model.tree import Plain
from holdfast.model.types import UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IcebergSink(Admitting, Sink[IcebergSinkOptions]):
    """Tables of Iceberg.  Rows are added; a changelog is refused."""

    name = "Iceberg"
    example = """\
iceberg.catalog.config { type = hadoop, warehouse = "lake" }
namespace = "shop"
table = "rows"
"""

    notes = """\
The leader commits: files are added, and the job's number is written down, in one
transaction of the catalog. Snapshots carry `holdfast.user`, `holdfast.number` and, where one is
known, `holdfast.watermark`; the table has a property `holdfast.committed.<user>`. The newest 10
snapshots of this sink are kept (`holdfast.snapshots-to-keep` of the table sets another number), besides
all that have a tag or a branch and all that others have committed. No files are removed with them: let
the table's own maintenance remove orphan files now and then.

Files have the field ids of the table, also inside lists and maps: Spark does not write those, so
the footers of its files get them afterwards (on object stores such a file is written once more).
Tables that are there may be partitioned by columns as they are; those partitioned by days, buckets
or other functions are refused, as are tables of format version 3. A partition value that names no folder
ends the job in words: a NUL character, a text longer than a folder's name, a day or an instant
outside the years 1 to 9999.

Kept of a table's properties: `write.parquet.compression-codec`, `write.metadata.metrics.default`
and `.column.<name>`, `write.object-storage.enabled` and `.partitioned-paths`, and `write.data.path`
below the table. Refused: `write.data.path` elsewhere, `write.location-provider.impl`, and
`write.format.default` of another format, unless `iceberg.table.write-props` says `parquet`. Sort
orders and the sizes of files and row groups are hints, which Spark's files do not follow.

What a row holds in each type, and what is refused: [Values](../values.md#lake-tables).

| `type` of `iceberg.catalog.config` | what it is |
| --- | --- |
| `hadoop` | Folders below `warehouse`, on a disk that masters and workers share, as Iceberg's Hadoop catalog lays them out; other engines read and write them. A commit is a hard link, which only one of many can make; Java's own writers rename instead, so let none commit to the same table at the same time. Object stores have neither and are refused. |
| `rest` | A REST catalog at `uri`. The safest for object stores. |
| `hive`, `glue` | These; install the library's part for them, such as `pyiceberg[hive]`. |
| `sql` | A database that `uri` names, such as `postgresql+psycopg://...`. With SQLite, one committer that stops may hold up all others: take `hadoop` instead. |
"""  # noqa: E501  a row of a table is one line

    def __init__(self, options: IcebergSinkOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._opened: Any = None
        self._located: dict[tuple[str, ...], str] = {}  # where the catalog has tables
        self._keeps: set[str] = set()  # tables whose columns this incarnation may not choose

    @classmethod
    def lacks(cls, options: IcebergSinkOptions, spark: Mapping[str, str]) -> Iterator[str]:
        """Yield what Spark would need to write there."""
        problem = jar_problem(options.warehouse, spark) if options.is_s3 else None
        if problem:
            yield problem

    @classmethod
    def destination(cls, options: IcebergSinkOptions, table: Table) -> str:
        """Name a table and its warehouse."""
        of = f" of {options.warehouse}" if options.warehouse else f" ({options.catalog_type})"
        return f"table {options.named}{of}"

    @classmethod
    def writing(cls, options: IcebergSinkOptions, table: Table) -> WritePreview:
        """Say that rows are added, and how a new table is partitioned."""
        return WritePreview(partitions=tuple(options.partitions), modes=modes_in(options))

    @property  # not cached_property: before Python 3.12 all sinks would share its lock
    def _catalog(self) -> Any:
        if self._opened is None:
            self._opened = open_catalog(self.options)
        return self._opened

    def check_libraries(self) -> None:
        """Raise UserError if a library is not here."""
        check_libraries(self.options.catalog_type)

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        options = self.options_for(table)
        refuse_changelog(self.name, table)
        if not options.schema_save_mode.creates:
            return
        about = f"Iceberg cannot create {options.named}"
        keys = matched(options.identifiers, table, f"{about} (iceberg.table.primary-keys)")
        matched(options.partitions, table, f"{about} (iceberg.table.partition-keys)")
        if UNKNOWN not in [c.type for c in table.columns]:
            to_iceberg(table.columns, keys, about)

    def look(self, tables: Sequence[Table], spark: "SparkSession") -> Iterator[str]:
        """Open each table that is there; else see whether it can be created."""
        around = look_around_warehouse(self.options)
        yield from around
        if around:
            return
        self._opened = open_to_look(self.options)
        for table in tables:
            options = self.options_for(table)
            yield from problems_of(partial(self._prepare, table, options, ANYBODY, make=False))

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Make tables that are missing; raise where rows will not fit."""
        orders = [self._prepare(t, self.options_for(t), opening) for t in tables]
        return [c for c in orders if c]

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Let Spark write each table into a hidden folder of it."""
        write = partial(self._write, mark_of(staging.life))
        return stage_each(tables, staging, write, self.abort)

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Add staged files to their tables."""
        life = life_of_user(identifier.user)
        orders = by_place(self._order(c, life, look=True) for c in committables if c.opening)
        parts: dict[str, list[IcebergStaged]] = {where: [] for where in orders}
        for one in [self._staged(c, life, look=True) for c in committables if not c.opening]:
            parts.setdefault(where_text(one.table, one.location), []).append(one)
        for do in (check, commit):  # look at all tables before the first one shows any
            for where, part in parts.items():
                name, location = where_of(where)
                load = partial(self._loaded, name)
                do(identifier, load, self._place(location), part, orders.get(where))

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove staged files."""
        for one in [self._staged(c, look=True) for c in committables if not c.opening]:
            self._place(one.location).remove(one.folder)

    @property
    def listens(self) -> bool:
        """Whether partitions are to be marked, or savepoints to be tagged."""
        return self.options.mark_done is not None or self.options.savepoint_tag

    def listen(self, commit: CommitEvent, state: Plain) -> Plain:
        """Tag the snapshot of a savepoint, and mark the partitions that are done."""
        if commit.savepoint and self.options.savepoint_tag:
            for name in tables_like(self._catalog, self.options):
                load = partial(self._load, name)
                tag_savepoint(load, commit.identifier, self.context.job_id)
        if self.options.mark_done is None:
            return state
        life = life_of_user(commit.identifier.user)
        heard = [(c.table, self._staged(c, life, look=True)) for c in commit.committables]
        touched = {p: None for table, one in heard for p in _partitions(table, one)}
        return MarkDone(self.options, self._place).after_commit(commit, touched, state)

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove what is staged for a job, or for former attempts of a task of it."""
        if self.options.catalog_type == "hadoop":
            sweep(place_of(self.options.warehouse).below(*self.options.identifier), leftovers)
            return
        for name in tables_like(self._catalog, self.options):
            table = self._load(name)
            if table is not None:
                sweep(table.place, leftovers)

    def _staged(
        self, committable: Committable, life: str | None = None, *, look: bool = False
    ) -> IcebergStaged:
        check = CommittableCheck(self, committable, life)
        staged = check.content(IcebergStaged, VERSION)
        self._check_table_is_ours(check, staged.table, staged.location, look)
        check.folder(staged.folder, HIDDEN)
        check.staged_files(staged.files, staged.folder)
        for file in staged.files:
            inside = file.final.startswith("metadata/")
            check.require(not inside, f"the file name {shown(file.final)} is inside metadata")
        return staged

    def _order(
        self, committable: Committable, life: str | None, *, look: bool = False
    ) -> TableOrder:
        check = CommittableCheck(self, committable, life)
        options = self.options
        order = order_of(check, mode_of(options.schema_save_mode, options.data_save_mode))
        name, location = where_of(order.where)
        self._check_table_is_ours(check, name, location, look)
        with check.sound("columns"):
            if order.shape is not None:
                shape = cast(dict[str, Any], order.shape)
                wished = {**NEW_TABLE, **options.write_props, **options.create_props}
                check.require_option(
                    same_texts(wished, shape["properties"]), "it has other properties"
                )
                read_shape(shape)
        return order

    def _check_table_is_ours(
        self, check: CommittableCheck, name: Sequence[str], location: str, look: bool
    ) -> None:
        """Refuse a table that the options do not name, or a place that is not the table's.

        A catalog of folders says by itself where a table is; with `look`, others are asked, too.
        """
        *spaces, last = name or [""]
        plain = not any(p in ("", ".", "..") or set(p) & set("/\0\n") for p in name)
        ours = stands_for(self.options.namespace, ".".join(spaces)) and stands_for(
            self.options.table, last
        )
        named = shown(".".join(name))
        check.require(plain, f"{named} is no name of a table")
        check.require_option(ours, f"{named} is not the table it writes")
        if self.options.catalog_type == "hadoop" and location.startswith(("/", "file:/")):
            path = f"/{location.removeprefix('file:').lstrip('/')}"
            if path == place_of(self.options.warehouse).below(*name).path:
                return
        if not look:
            return
        known = self._located.get(tuple(name))
        if known != location:
            found = self._load(name)
            known = self._located[tuple(name)] = found.location if found else ""
        check.require(location == known, f"{shown(location)} is not where that table is")

    def _place(self, location: str) -> Location:
        return place_of(location, self.options.s3)

    def _load(self, name: Sequence[str]) -> IcebergTable | None:
        return IcebergTable.load(self._catalog, name, self.options.s3)

    def _loaded(self, name: Sequence[str]) -> IcebergTable:
        found = self._load(name)
        if found is None:
            raise _no_table(".".join(name))
        return found

    def _prepare(
        self, table: Table, options: IcebergSinkOptions, opening: Opening, make: bool = True
    ) -> Committable | None:
        mode = options.schema_save_mode
        refuse_changelog(self.name, table)
        if str(table.path) in opening.earlier or not table.columns:
            self._keeps.add(str(table.path))
        found = self._load(options.identifier)
        if found is None and mode is SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST:
            raise _no_table(options.named)
        if found is None and (not mode.creates or not table.columns):
            return None  # only the rows will tell
        if found is None and not make:
            return None  # `refuse` has said what cannot be created
        if found is not None and not make:
            refuse_unwritable(self.name, found.place)
        if found is None:
            found = self._create(table, options)
        due, mark = mode_of(mode, options.data_save_mode), mark_of(opening.life)
        if due == "empty" and opening.new(table) and not found.is_empty and found.last(mark) < 0:
            raise data_exists(self.name, options.named)
        shape = self._shape(found, table, options, mark)
        where = where_text(found.name, found.location)
        found = found.anew(shape) if shape else found
        refuse_unpartitioned(f"Iceberg cannot write to {options.named}", found.partitions, options)
        if table.columns:
            _check_table(found, table, options)
        if due is None or not opening.new(table):
            return None
        return TableOrder(where, opening.life, due, shape).committable(str(table.path))

    def _create(self, table: Table, options: IcebergSinkOptions) -> IcebergTable:
        if options.catalog_type == "hadoop":
            refuse_unwritable(self.name, place_of(options.warehouse))
        schema, partitions = _columns(table, options)
        properties = {**options.write_props, **options.create_props}
        return IcebergTable.create(
            self._catalog, options.identifier, schema, partitions, properties, options.s3
        )

    def _shape(
        self, found: IcebergTable, table: Table, options: IcebergSinkOptions, mark: str
    ) -> Plain:
        """Return what the first commit will make of the table; None if it is as it stays."""
        anew = options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
        if not anew or str(table.path) in self._keeps or found.last(mark) >= 0:
            return None
        schema, partitions = _columns(table, options)
        properties = {**NEW_TABLE, **options.write_props, **options.create_props}
        return found.shape(schema, partitions, properties)

    def _write(self, mark: str, rows: Rows, folder: str) -> Iterator[Committable]:
        options = self.options_for(rows.table)
        refuse_changelog(self.name, rows.table)
        table = self._load(options.identifier)
        if table is None:
            if not options.schema_save_mode.creates:
                raise _no_table(options.named)
            table = self._create(rows.table, options)
        shape = self._shape(table, rows.table, options, mark)
        table = table.anew(shape) if shape else table
        _check_table(table, rows.table, options)
        place = table.place
        try:
            parts = stage_rows(rows, table, options, place.below(folder))
            refuse_nulls(table.columns, parts, f"Iceberg cannot write to {options.named}")
        except BaseException:
            place.remove(folder)
            raise
        if not parts:
            place.remove(folder)
            return
        staged = IcebergStaged(
            table=table.name,
            location=table.location,
            folder=folder,
            spec=table.spec,
            fields=table.fields(by_name=False),
            numbered=True,
            files=[
                file_of(part, number, folder, table, {**table.properties, **options.write_props})
                for number, part in enumerate(parts)
            ],
            partitions=table.partitions,
        )
        counted, size = sum(p.rows for p in parts), sum(p.bytes for p in parts)
        yield Committable(VERSION, str(rows.table.path), counted, size, staged.to_plain())


def _columns(table: Table, options: IcebergSinkOptions) -> tuple[Any, list[str]]:
    """Return the columns of a new table, and those it is partitioned by."""
    about = f"Iceberg cannot create {options.named}"
    keys = matched(options.identifiers, table, f"{about} (iceberg.table.primary-keys)")
    partitions = matched(options.partitions, table, f"{about} (iceberg.table.partition-keys)")
    return to_iceberg(table.columns, keys, about), partitions


def _partitions(table: str, staged: IcebergStaged) -> Iterator[Partition]:
    """Yield the partition of each file; its folder need not be the file's."""
    for file in staged.files if staged.partitions else ():
        values = tuple(zip(staged.partitions, file.partition, strict=True))
        pairs = (f"{quote(k)}={'null' if v is None else quote(v, safe='')}" for k, v in values)
        folder = "/".join(("data", *pairs))
        yield Partition(table, staged.location, folder, values)


def _no_table(name: str) -> UserError:
    return UserError(
        f"Iceberg cannot write to {name}: there is no table."
        " Create it, or set schema_save_mode = CREATE_SCHEMA_WHEN_NOT_EXIST.",
        code="sink.schema_missing",
    )


def _check_table(table: IcebergTable, rows: Table, options: IcebergSinkOptions) -> None:
    """Raise UserError if rows like these cannot be written to a table."""
    about = f"Iceberg cannot write to {options.named}"
    wishes = {**table.properties, **options.write_props}
    wrong = [*table.refusals(), *refused_wishes(wishes, table.location)]
    if wrong:
        raise UserError(
            f"{about}: the table asks for {', '.join(wrong)}, which this sink does not do."
            " Change the table, or write to another one.",
            code="sink.table_refused",
        )
    columns, there = table.columns, table.partitions
    for column in columns:
        if column.name in there and column.type.kind not in TEXTS:
            raise UserError(
                f"{about}: it is partitioned by {column.name}, which is {column.type}; this sink"
                f" partitions by {', '.join(TEXTS)}.",
                code="sink.table_refused",
            )
    keys = options.partitions
    if keys and [k.lower() for k in keys] != [k.lower() for k in there]:
        raise UserError(
            f"{about}: iceberg.table.partition-keys is {', '.join(keys)}, but the table is"
            f" partitioned by {', '.join(there) or 'nothing'}. Correct it, or leave it out.",
            code="sink.partitions_differ",
        )
    if options.case_sensitive:
        _check_case(columns, rows, about)
    fit(columns, rows.columns, about, there)


def _check_case(columns: Sequence[Column], rows: Table, about: str) -> None:
    known = {c.name.lower(): c.name for c in columns}
    differ = [
        f"{known[n.lower()]} arrives as {n}" for n in rows.names if known.get(n.lower(), n) != n
    ]
    if differ:
        raise UserError(
            f"{about}: {'; '.join(differ)}, and case_sensitive is true. Rename columns with the"
            " transform FieldMapper, or leave case_sensitive out.",
            code="sink.schema_differs",
        )
