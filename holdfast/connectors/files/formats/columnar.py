"""Parquet and ORC: columns as the files have them, or as the user declares them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from holdfast.connect.arrow_rows import ArrowCounts
from holdfast.connectors.files.casts import CastPlace, cast_sql, folder_sql, wider
from holdfast.connectors.files.format import FileFormat
from holdfast.connectors.files.formats.arrow_files import (
    FILE,
    WRITER,
    described,
    only_arrow_reads,
    read_with_arrow,
    unreadable,
)
from holdfast.errors import UserError
from holdfast.model.types import Type, from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from holdfast.connectors.files.source_options import FileTable


DIGITS_MAX = 38


class SparkReader(Protocol):
    """Reads files with Spark."""

    spark: "SparkSession"
    files: list[str]
    moved: list[ArrowCounts]
    """What counts the rows that Spark does not read itself."""

    def __call__(
        self, kind: str, schema: "StructType | None", options: dict[str, str]
    ) -> "DataFrame":
        """Return the rows of the files; without a schema, with the columns the files have."""

    def of(self, files: Sequence[str]) -> "SparkReader":
        """Return the same reader for some of the files."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Files with the same columns."""

    load: SparkReader
    described: "StructType"
    """The columns as Spark reads them."""

    asked: "StructType"
    """The same with local times where the files have no instants."""

    by_arrow: bool
    """Whether Java reads such files differently from what was meant."""

    @property
    def kinds(self) -> dict[str, Type]:
        return {f.name: from_spark(f.dataType.jsonValue()) for f in self.asked.fields}


def columnar_columns(
    load: SparkReader, table: "FileTable", folders: Sequence[str], stage: str
) -> "DataFrame":
    """Return the columns of Parquet or ORC files, and last those that only folders name.

    Files of several shapes are put together by name: a column that a file lacks is null in its
    rows.  A time is an instant where the file says so, and local elsewhere.
    """
    groups = _groups(load, table, set(folders))
    declared = {c.name: c.type for c in table.schema.table.columns} if table.schema else {}
    kinds = declared or _merged(groups)
    if table.read_columns:
        known = {n.lower(): (n, k) for n, k in kinds.items()}
        kinds = {n: known.get(n.lower(), (n, Type("string")))[1] for n in table.read_columns}
    _check_names(kinds, groups, folders)
    extra = [quote(n) for n in folders if n not in kinds]
    whole: DataFrame | None = None
    for group in groups:
        rows = _rows(group, table.format, kinds, folders, extra, stage)
        whole = rows if whole is None else whole.unionByName(rows)
    assert whole is not None
    return whole


def _rows(
    group: _Group,
    form: FileFormat,
    kinds: dict[str, Type],
    folders: Sequence[str],
    extra: list[str],
    stage: str,
) -> "DataFrame":
    # Parquet's own reader can be asked for local times, which costs nothing; ORC's cannot.
    read = group.asked if form is FileFormat.PARQUET else group.described
    if group.by_arrow:
        carried = read_with_arrow(group.load.spark, form, group.load.files, read, folders)
        group.load.moved.append(carried.moved)
        found = carried.frame()
    else:
        found = group.load(form, read, {})
    own = {name.lower(): name for name in group.kinds} | {name: name for name in group.kinds}
    there = {f.name: from_spark(f.dataType.jsonValue()) for f in group.described.fields}
    file = quote(FILE) if group.by_arrow else "input_file_name()"
    row = tuple(mine for name in kinds if (mine := own.get(name) or own.get(name.lower())))
    columns = []
    for name, kind in kinds.items():
        if name in folders:
            value = folder_sql(name, kind, stage, file)
        elif mine := own.get(name) or own.get(name.lower()):
            here, value, where = group.kinds[mine], quote(mine), CastPlace(stage, name, file, row)
            if form is FileFormat.ORC and there[mine] != here:
                value = cast_sql(value, there[mine], here, where)
            value = cast_sql(value, here, kind, where)
        else:
            value = f"CAST(NULL AS {kind.ddl})"
        columns.append(f"{value} AS {quote(name)}")
    return found.selectExpr(*columns, *extra)


def _groups(load: SparkReader, table: "FileTable", folders: set[str]) -> list[_Group]:
    """Return the files by the columns they have."""
    hidden = [f for f in load.files if f.rsplit("/", 1)[-1].startswith("_")]
    if hidden:
        raise UserError(
            f"LocalFile cannot read {hidden[0]}: Spark reads no {table.format} file whose name"
            " begins with '_'. Rename it, or leave such files out (file_filter_pattern).",
            code="source.hidden_file",
        )
    groups: dict[str, tuple[list[str], pa.Schema | None, bool]] = {}
    for path in load.files:
        key, schema, by_arrow = _footer(path, table.format)
        groups.setdefault(key, ([], schema, by_arrow))[0].append(path)
    made = []
    for files, schema, by_arrow in groups.values():
        some = load.of(files) if len(groups) > 1 else load
        if by_arrow and schema is not None:
            own = _without(described(schema), folders)
            made.append(_Group(some, own, own, True))
            continue
        own = _without(load.of(files[:1])(table.format, None, {}).schema, folders)
        made.append(_Group(some, own, _local_times(own, schema), False))
    return made


def _footer(path: str, form: FileFormat) -> tuple[str, pa.Schema | None, bool]:
    """Return what distinguishes files of several shapes, the columns, and if Arrow must read it."""
    try:
        if form is FileFormat.PARQUET:
            footer = pq.read_metadata(path)
            schema = footer.schema.to_arrow_schema()
            _check_columns(path, schema)
            return str(footer.schema), schema, only_arrow_reads(footer)
        file = orc.ORCFile(path)
        _check_columns(path, file.schema)
        by_arrow = file.writer == WRITER
        return f"{by_arrow} {file.schema}", file.schema, by_arrow
    except pa.ArrowNotImplementedError:
        return path, None, False  # Spark may know it
    except (pa.ArrowException, OSError) as error:
        if not Path(path).exists():
            raise  # it has been moved meanwhile: the next try does not find it in the folder
        raise unreadable(path, error) from error


def _check_columns(path: str, schema: pa.Schema) -> None:
    """Raise UserError for columns that Spark cannot tell apart, or has no type for."""
    names: dict[str, str] = {}
    for field in schema:
        other = names.setdefault(field.name.lower(), field.name)
        if field.name != other or schema.names.count(other) > 1:
            raise UserError(
                f"LocalFile cannot read {path}: its columns {other} and {field.name} differ in no"
                " more than case. Rename one where the file is written.",
                code="source.column_names",
            )
        if wide := _too_wide(field.type):
            raise UserError(
                f"LocalFile cannot read {path}: column {field.name} is {wide}, and a decimal has"
                " at most 38 digits here. Write it as text, or with fewer digits.",
                code="source.column_types",
            )


def _too_wide(kind: Any) -> Any:
    """Return the part of a type that is a decimal of too many digits, or None."""
    if pa.types.is_decimal256(kind):
        return kind if kind.precision > DIGITS_MAX else None
    inside = (_too_wide(kind.field(n).type) for n in range(kind.num_fields))
    return next((found for found in inside if found), None)


def _merged(groups: Sequence[_Group]) -> dict[str, Type]:
    """Return the columns of all files.  Raises UserError for types that have nothing in common."""
    kinds: dict[str, tuple[str, Type, str]] = {}
    for group in groups:
        for name, kind in group.kinds.items():
            file = group.load.files[0]
            if name.lower() not in kinds or len(groups) == 1:
                kinds[name if len(groups) == 1 else name.lower()] = (name, kind, file)
                continue
            first, before, where = kinds[name.lower()]
            both = wider(before, kind)
            if both is None:
                raise UserError(
                    f"LocalFile cannot read column {name}: it is {before} in {where} and {kind} in"
                    f" {file}. Declare it in schema.fields, or read such files apart.",
                    code="source.column_types",
                )
            kinds[name.lower()] = (first, both, where)
    return {name: kind for name, kind, _ in kinds.values()}


def _check_names(kinds: dict[str, Type], groups: Sequence[_Group], folders: Sequence[str]) -> None:
    known = list(dict.fromkeys(n for group in groups for n in group.kinds))
    there = {n.lower() for n in (*known, *folders)}
    for name in kinds:
        if name.lower() not in there:
            raise UserError(
                f"LocalFile cannot read column {name} of {groups[0].load.files[0]}: the file has"
                f" none of that name. Its columns: {', '.join(known)}.",
                code="source.column_missing",
            )


def _without(schema: "StructType", names: set[str]) -> "StructType":
    from pyspark.sql.types import StructType

    return StructType([f for f in schema.fields if f.name not in names])


def _local_times(described: "StructType", schema: pa.Schema | None) -> "StructType":
    """Return columns with local times for instants, but for those that the file has as instants."""
    from pyspark.sql.types import StructType

    whole = described.jsonValue()
    zoned = {f.name for f in schema if _has_zone(f.type)} if schema is not None else set()
    fields = [f if f["name"] in zoned else _swapped(f) for f in whole["fields"]]
    return StructType.fromJson({**whole, "fields": fields})


def _has_zone(kind: Any) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(n).type) for n in range(kind.num_fields))


def _swapped(described: Any) -> Any:
    """Return the JSON of a Spark type with every instant turned into a local time."""
    if described == "timestamp":
        return "timestamp_ntz"
    if isinstance(described, dict):
        types = ("type", "elementType", "keyType", "valueType", "fields")
        return {k: _swapped(v) if k in types else v for k, v in described.items()}
    if isinstance(described, list):
        return [_swapped(item) for item in described]
    return described
