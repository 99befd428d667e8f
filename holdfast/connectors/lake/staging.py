"""Let Spark write rows as Parquet files into a folder that no reader looks at."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import Committable, Leftovers, Staging
from holdfast.connectors.files.sweep import folders_like, safe, safe_leftovers
from holdfast.connectors.lake.footers import ParquetPart, staged_parts
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.parquet import write_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HIDDEN = "_holdfast"
"""The folder in a table that staged files are in: cleaners of lake tables leave `_...` alone."""

_TRY = re.compile(r"(.+)-t\d+")


def staging_folder(staging: Staging, number: int) -> str:
    """Return the folder, below a table, of the `number`-th table of one try."""
    return f"{HIDDEN}/{safe(staging.name)}-t{number}"


def stage_each(
    tables: Tables,
    staging: Staging,
    write: Callable[[Rows, str], Iterable[Committable]],
    abort: Callable[[Sequence[Committable]], None],
) -> list[Committable]:
    """Stage each table in a folder of its own; nothing stays if one fails."""
    made: list[Committable] = []
    try:
        for number, rows in enumerate(tables):
            made += write(rows, staging_folder(staging, number))
    except BaseException:
        abort(made)  # no checkpoint will name them
        raise
    return made


def stage(
    frame: "DataFrame",
    folder: Location,
    *,
    partitions: Sequence[str] = (),
    rows_max: int = 0,
    codec: str = "snappy",
    plain: Collection[str] = (),
) -> None:
    """Write all rows into a new folder, in folders `name=value` for each partition.

    `plain` are columns that get no dictionary.
    """
    # Settings of an object store travel with the write, not with the session others use, too.
    writer = frame.write.format("parquet").options(**folder.s3).option("compression", codec)
    for name in plain:
        writer = writer.option(f"parquet.enable.dictionary#{name}", "false")
    if rows_max:
        writer = writer.option("maxRecordsPerFile", rows_max)
    if partitions:
        writer = writer.partitionBy(*partitions)
    writer.mode("errorifexists").save(folder.spark_url)


def stage_batches(
    rows: Rows,
    folder: Location,
    *,
    rows_max: int = 0,
    codec: str = "snappy",
    field_ids: Mapping[str, int] | None = None,
    plain: Collection[str] = (),
) -> list[ParquetPart] | None:
    """Have tasks write rows without Spark's engine into a new folder; None if that cannot be.

    `field_ids`: the number of each column in the table, for formats that find columns by it;
    `plain` are columns that get no dictionary.
    """
    if rows.batches is None or not folder.is_local:
        return None
    made = write_batches(
        rows.batches, folder, codec=codec, rows_max=rows_max, field_ids=field_ids, plain=plain
    )  # fmt: skip
    return staged_parts(folder, only=made)


def sweep(place: Location, leftovers: Leftovers) -> None:
    """Remove what was staged for leftovers in every table that a path with placeholders names."""
    ours = safe_leftovers(leftovers)
    for table in tables_like(place):
        staged = table.listed(HIDDEN)
        for entry in staged:
            found = _TRY.fullmatch(entry.base_name)
            if found and ours.include(found[1]):
                table.remove(f"{HIDDEN}/{entry.base_name}")


def tables_like(place: Location) -> list[Location]:
    """Return the folders that exist for a path, whatever its placeholders stand for."""
    if place.is_local:
        return [Location(str(folder), place.s3) for folder in folders_like(place.path)]
    return [place] if "${" not in place.url else []
