"""Spark: any format that Spark can read or write, with its own options.

A sink with a path on this machine's files stages each slice in a hidden folder inside the path
and moves the files into sight at commit, so every row arrives once.  Anything else - a table, a
format without a path, an object store, which a commit without Spark cannot reach - is written at
once, and a slice that is tried again may arrive twice.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from holdfast.connect.options import nearest, option, options
from holdfast.connect.placeholders import has_placeholder
from holdfast.connect.plugin import PluginContext, problems_of
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.schema import Schema
from holdfast.connect.sink import (
    ANYBODY,
    CommitId,
    Committable,
    Leftovers,
    Opening,
    Sink,
    Staging,
    WritePreview,
    modes_in,
)
from holdfast.connect.source import Budget, NoSlice, Slice, Source
from holdfast.connectors.committables import Admitting, CommittableCheck, life_of_user, shown
from holdfast.connectors.files.committer import StagedFiles, commit, unfinished
from holdfast.connectors.files.opening import VERSION as ORDER_VERSION
from holdfast.connectors.files.opening import FolderOrder, Mode, OpenedFolder, files_in, look
from holdfast.connectors.files.sweep import folders_like, remove_tree, safe, safe_leftovers
from holdfast.connectors.lake.location import Location, refuse_unwritable
from holdfast.connectors.spark_formats import (
    FOR_SINKS,
    FOR_SOURCES,
    SparkTarget,
    SparkWriterSettings,
    look_at,
)
from holdfast.errors import UserError, UserErrors
from holdfast.model.job import Guarantee
from holdfast.model.job import Mode as JobMode
from holdfast.model.table import Table, TablePath
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

DEFAULT_PATH = "default.default.default"
GLOB = re.compile(r"[*?\[{,]")
"""What makes a path one of many, to Spark."""

STAGED = ".holdfast-"
_TRY = re.compile(re.escape(STAGED) + r"(.+?-a\d+-s\d+)-.+")

MODES: dict[str, Mode] = {
    "overwrite": "clear", "ignore": "ignore", "errorifexists": "empty", "error": "empty",
}  # fmt: skip

Problem = tuple[str, str]


def local_folder(path: str) -> Path | None:
    """Return the local folder that a path or file: URL names, or None if it is elsewhere."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(path)


def same_path(path: str) -> str:
    """Return a path as all that mean the same folder are written."""
    folder = local_folder(path)
    return path.rstrip("/") if folder is None else str(folder.absolute())


@options
class SparkSourceOptions:
    """What Spark reads."""

    #: The Spark format, such as parquet, csv, jdbc or delta.
    format: str | None = option(None, identity=True)
    #: The file or folder to read, for formats that have one.
    path: str | None = option(None, identity=same_path)
    #: The table to read from Spark's catalogs, instead of a format.
    table: str | None = option(None, identity=True)
    #: A Spark SQL query to read, instead of a format.
    query: str | None = option(None, identity=True)
    #: The columns to read; without it, the data says.
    schema: Schema | None = None
    #: Options of the format, passed on to Spark as they are.
    options: SparkWriterSettings = option(
        SparkWriterSettings({}, {}), identity=SparkWriterSettings.identity
    )

    def problems(self) -> Iterator[Problem]:
        """Yield what no single option can see is wrong."""
        given = [n for n in ("format", "table", "query") if getattr(self, n) is not None]
        if not given:
            yield "", "required option 'format' is missing. Give it, or 'table' or 'query'."
        if {"table", "query"} <= set(given):
            yield "query", "give either 'table' or 'query', not both."
        if self.path is not None and self.format is None:
            yield "path", "'path' needs a 'format'."


class SparkSource(Source[SparkSourceOptions]):
    """Read whatever Spark can read, in one go.

    The table's path is `schema.table`, else `table`, else `plugin_output`.
    """

    name = "Spark"
    stands_in = FOR_SOURCES
    example = """\
format = parquet
path = "in/rows"
"""

    @classmethod
    def basis(
        cls, options: SparkSourceOptions, mode: JobMode, parallelism: int
    ) -> Mapping[str, Plain]:
        """Return nothing: it is read whole, or not at all."""
        return {}

    def tables(self) -> tuple[Table, ...] | None:
        """Return the table if its schema is declared."""
        schema = self.options.schema
        if schema is None or not schema.table.columns:
            return None
        return (schema.table_at(self._default_path, self.name),)

    def plan(self, position: Plain, budget: Budget) -> Slice | NoSlice:
        """Return the one slice.  Raises UserError where a file of this machine is not there."""
        path = self.options.path
        folder = local_folder(path) if position is None and path else None
        if folder is not None and not GLOB.search(str(folder)) and not folder.exists():
            raise UserError(
                f"Spark cannot read {folder.absolute()}: there is no such file or folder."
                " Check option path.",
                code="source.path_missing",
            )
        return super().plan(position, budget)

    def read(self, spark: "SparkSession", content: Plain) -> Tables:
        """Return the rows as Spark reads them."""
        table = Table(TablePath.parse(self._default_path), catalog=self.name)
        if self.options.schema:
            table = self.options.schema.table_at(self._default_path, self.name)
        return Tables([Rows.of(table, self._frame(spark, table))])

    def _frame(self, spark: "SparkSession", table: Table) -> "DataFrame":
        given = self.options
        if given.query:
            # Inside a sub-query nothing but a query parses: no DROP, no SET, no INSERT.
            return spark.sql(f"SELECT * FROM (\n{given.query.strip().rstrip(';')}\n)")
        reader = spark.read.options(**given.options.for_spark())
        if given.format:
            reader = reader.format(given.format)
        if table.columns:
            reader = reader.schema(table.ddl)
        return reader.table(given.table) if given.table else reader.load(given.path)

    @property
    def _default_path(self) -> str:
        return self.options.table or self.context.output or DEFAULT_PATH


@options
class SparkSinkOptions:
    """What Spark writes."""

    #: The Spark format, such as parquet, csv, jdbc or noop.
    format: str = option(identity=True)
    #: The folder to write, for formats that have one.
    path: str | None = option(None, identity=same_path)
    #: The table of Spark's catalogs to write, instead of a path.
    table: str | None = option(None, identity=True)
    #: What to do with data that is there: append to it, overwrite it, fail (errorifexists), or
    #: leave it and write nothing (ignore). For files on this machine the job's first commit does
    #: that. What is written at once has its mode at the first write of each attempt: a worker that
    #: was taken for dead and wakes may overwrite once more.
    mode: Literal["append", "overwrite", "errorifexists", "error", "ignore"] = "append"
    #: Columns whose values name the folders that rows go to.
    partition_by: list[str] = option([], aliases=("partitionBy",))
    #: Options of the format, passed on to Spark as they are.
    options: SparkWriterSettings = option(
        SparkWriterSettings({}, {}), identity=SparkWriterSettings.identity
    )

    def problems(self) -> Iterator[Problem]:
        """Yield what no single option can see is wrong."""
        if self.path is not None and self.table is not None:
            yield "table", "give either 'path' or 'table', not both."

    @property
    def folder(self) -> Path | None:
        """Where files are staged and appear, or None where they are written at once."""
        return local_folder(self.path) if self.path is not None else None


class SparkSink(Admitting, Sink[SparkSinkOptions]):
    """Write whatever Spark can write: exactly once into local files, else at least once."""

    name = "Spark"
    stands_in = FOR_SINKS
    example = """\
format = parquet
path = "out/rows"
"""
    guarantee: ClassVar[Guarantee] = Guarantee.AT_LEAST_ONCE
    because = "Spark's own writers show rows as they write them"

    @classmethod
    def destination(cls, options: SparkSinkOptions, table: Table) -> str:
        """Name the path or the table, as far as the options say it."""
        if options.folder is not None:
            return str(options.folder)
        named = options.path or (f"table {options.table}" if options.table else "")
        return named or f"Spark's format {options.format}"

    @classmethod
    def writing(cls, options: SparkSinkOptions, table: Table) -> WritePreview:
        """Say what is done to data that is there, and how rows are put into folders."""
        return WritePreview(
            partitions=tuple(options.partition_by), modes=modes_in(options, ["mode"])
        )

    @classmethod
    def promise(cls, options: SparkSinkOptions) -> Guarantee:
        """Return what it promises: files on this machine are staged."""
        return Guarantee.AT_LEAST_ONCE if options.folder is None else Guarantee.EXACTLY_ONCE

    def __init__(self, options: SparkSinkOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        if options.folder is not None:
            # Only the options tell, so this sink's promise is its own, not its class's.
            self.guarantee = Guarantee.EXACTLY_ONCE  # type: ignore[misc]
        self._fresh: set[str] = set()

    def target(self, table: Table) -> str:
        """Name the folder, from the root on, or the table."""
        filled = self.options_for(table)
        return f"{self.name}:{filled.folder.absolute()}" if filled.folder else super().target(table)

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        known = [name.lower() for name in table.names]
        wrong = [
            f"{self.context.stage}: table {table.path} has no column '{name}', by which"
            f" partition_by makes folders.{nearest(name, list(table.names))}"
            f" Its columns are {', '.join(table.names)}."
            for name in self.options_for(table).partition_by
            if name.lower() not in known
        ]
        if wrong:
            raise UserErrors(wrong, code="sink.no_column")

    def look(self, tables: Sequence[Table], spark: "SparkSession") -> Iterator[str]:
        """Open a folder of this machine, or what Spark's writer opens."""
        for table in tables:
            yield from self._look_at(self.options_for(table), table, spark)
        if not tables and not has_placeholder(self.options.path or self.options.table or ""):
            yield from self._look_at(self.options, None, spark)

    def _look_at(
        self, filled: SparkSinkOptions, table: Table | None, spark: "SparkSession"
    ) -> Iterator[str]:
        refuses, settings = MODES.get(filled.mode) == "empty", filled.options.for_spark(table)
        if filled.folder is None:
            where = SparkTarget(filled.format, filled.path, filled.table, settings, refuses)
            yield from look_at(where, spark)
            return
        yield from problems_of(partial(refuse_unwritable, self.name, Location(str(filled.folder))))
        if refuses and _has_data(filled.folder):
            yield str(_exists(filled.folder))

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Look at folders; what is written at once does what `mode` says when it is."""
        orders: dict[Path, Committable] = {}
        for table in filter(opening.new, tables):
            folder = self.options_for(table).folder
            mode = MODES.get(self.options.mode)
            if folder is None:
                self._fresh.add(str(table.path))
            elif mode and folder not in orders:
                if (
                    mode == "empty"
                    and _has_data(folder)
                    and OpenedFolder.find(folder, opening.life) is None
                ):
                    raise _exists(folder)
                order = FolderOrder(str(folder), opening.life, mode)
                orders[folder] = order.committable(str(table.path))
        return list(orders.values())

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Stage each table in a hidden folder, or write it at once where there is none."""
        made: list[Committable] = []
        try:
            for rows in tables:
                made += self._write(rows, staging)
        except BaseException:
            self.abort(made)  # no checkpoint will name them
            raise
        return made

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Move staged files into sight, as the sink LocalFile does."""
        life = life_of_user(identifier.user)
        orders = [self._order(c, life) for c in committables if c.opening]
        contents = [self._staged(c, life) for c in committables if not c.opening]
        looked = partial(look, refuse=_exists, is_data=_counts)
        for order in (o for o in orders if o.mode == "ignore"):
            looked(order)  # it decides on what was staged, too
        commit(identifier, [_to_move(one) for one in contents if one], orders, looked)

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove staged files."""
        for one in [self._staged(c) for c in committables if not c.opening]:
            if one:
                shutil.rmtree(one.staged, ignore_errors=True)

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove what is staged for a job, or for former attempts of a task of it."""
        if self.options.folder is None:
            return
        ours = safe_leftovers(leftovers)
        for folder in folders_like(str(self.options.folder)):
            needed = unfinished(folder)
            for path in list(folder.glob(f"{STAGED}*")):
                staged = _TRY.fullmatch(path.name)
                found = path.name not in needed and path.is_dir() and not path.is_symlink()
                if staged and ours.include(staged[1]) and found:
                    remove_tree(path)

    def _staged(self, committable: Committable, life: str | None = None) -> "StagedBySpark | None":
        """Return what was staged; None for rows that were written at once."""
        check = CommittableCheck(self, committable, life)
        if committable.content is None:
            return None
        one = check.content(StagedBySpark, 1)
        check.place(one.folder, str(self.options.folder or ""))
        found = _TRY.fullmatch(one.name)
        if found is None or one.staged != f"{one.folder}/{one.name}":
            raise check.refusal(f"{shown(one.staged)} is no staging folder in {one.folder}")
        check.attempt(found[1])
        if one.life:
            check.of_life(one.life)
        check.files([(f"{one.name}/{file}", file) for file in one.files], one.name)
        return one

    def _order(self, committable: Committable, life: str | None) -> FolderOrder:
        check = CommittableCheck(self, committable, life)
        order = check.content(FolderOrder, ORDER_VERSION)
        check.place(order.root, str(self.options.folder or ""))
        check.of_life(order.life)
        check.mode(order.mode, MODES.get(self.options.mode))
        return order

    def _write(self, rows: Rows, staging: Staging) -> Iterator[Committable]:
        path, filled = str(rows.table.path), self.options_for(rows.table)
        if filled.folder is None:
            self._write_at_once(rows, filled)
            yield Committable(1, path, -1, 0, None)
        else:
            staged = filled.folder / f"{STAGED}{safe(staging.name)}-{safe(path)}"
            try:
                self._writer(rows, filled).mode("overwrite").save(staged.absolute().as_uri())
            except BaseException:
                remove_tree(staged)
                raise
            files = sorted(p for p in staged.rglob("*") if p.is_file() and _is_data(p))
            content: Plain = {
                "staged": str(staged),
                "folder": str(filled.folder),
                "life": staging.life,
                "files": [str(f.relative_to(staged)) for f in files],
            }
            yield Committable(1, path, -1, sum(f.stat().st_size for f in files), content)

    def _write_at_once(self, rows: Rows, filled: SparkSinkOptions) -> None:
        path = str(rows.table.path)
        mode = filled.mode if path in self._fresh else "append"
        writer = self._writer(rows, filled).mode(mode)
        if filled.table:
            writer.saveAsTable(filled.table)
        else:
            writer.save(filled.path)
        self._fresh.discard(path)

    def _writer(self, rows: Rows, filled: SparkSinkOptions) -> "DataFrameWriter":
        settings = filled.options.for_spark(rows.table)
        writer = rows.visible.write.format(filled.format).options(**settings)
        return writer.partitionBy(*filled.partition_by) if filled.partition_by else writer


def _has_data(folder: Path) -> bool:
    return any(_counts(name) for name, *_ in files_in(folder))


def _counts(name: str) -> bool:
    """Say whether readers look at a file below a folder."""
    return _is_data(Path(name)) and _is_data(Path(Path(name).parts[0]))


def _exists(folder: Path) -> UserError:
    return UserError(
        f"Sink Spark cannot write to {folder}: it holds data already, and mode = errorifexists."
        " Choose another path, or set mode = append or overwrite.",
        code="sink.data_exists",
    )


@dataclass(frozen=True)
class StagedBySpark:
    """What one write left out of sight; `files` are below `staged`."""

    staged: str
    folder: str
    files: tuple[str, ...]
    life: str = ""

    @property
    def name(self) -> str:
        """The staging folder, below the folder that rows go to."""
        return Path(self.staged).name


def _is_ignored(one: StagedBySpark) -> bool:
    """Say whether an incarnation has found data in the folder, and so leaves it as it is."""
    found = OpenedFolder.find(Path(one.folder), one.life)
    return found is not None and found.ignored


def _to_move(one: StagedBySpark) -> StagedFiles:
    """Return what was staged as the sink LocalFile knows it; nothing of what is not to show."""
    pairs = tuple((f"{one.name}/{file}", file) for file in one.files)
    return StagedFiles(one.folder, one.name, () if _is_ignored(one) else pairs)


def _is_data(path: Path) -> bool:
    """Say whether readers look at a file: those with a hidden name are checksums and ours."""
    return not path.name.startswith((".", "_"))
