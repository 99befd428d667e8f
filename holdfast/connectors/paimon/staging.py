"""Let Spark write the rows of one table, and say how each file will be added to it.

Files have all columns of the table, also those it is partitioned by, as Paimon's own writers do.

A table with a primary key gets sorted files with one row for each key.  Such a file is a Parquet
file with two more columns: the kind of each row, and a number that decides between rows of one key
whose sequence field is the same.  All rows of one bucket are written by one Spark task.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq

from holdfast.connect.rows import Rows, aliased
from holdfast.connectors.lake.fit import fit, refuse_nulls
from holdfast.connectors.lake.footers import ColumnStats, ParquetPart, staged_parts
from holdfast.connectors.lake.limits import limited
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.staging import stage, stage_batches
from holdfast.connectors.paimon.bucket import bucket_sql
from holdfast.connectors.paimon.refusals import SEQUENCE
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.staged_files import Facts, PaimonStaged, file_of
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.connectors.paimon.types import lengths
from holdfast.model.table import SEQUENCE as CHANGE_ORDER
from holdfast.model.table import Column
from holdfast.model.types import quote

NUMBERS_A_MS = 1 << 20
"""The number of a row says when it was staged, with room for Java's writers, which count on."""


def stage_table(rows: Rows, table: PaimonTable, folder: str, about: str) -> PaimonStaged:
    """Write rows into a folder below a table; remove it again if there is nothing in it."""
    place, schema = table.place, table.schema
    now_ms = int(time.time() * 1000)
    try:
        if schema.keys:
            number = now_ms * NUMBERS_A_MS
            parts = stage_keyed(rows, table, place.below(folder), about, number)
            refuse_nulls(schema.columns(about), parts, about)
            facts = [_facts(part, place.below(folder), now_ms, number) for part in parts]
        else:
            parts = stage_rows(rows, table, place.below(folder), about)
            refuse_nulls(schema.columns(about), parts, about)
            facts = [Facts(now_ms, 0, part.rows - 1) for part in parts]
    except BaseException:
        place.remove(folder)
        raise
    if not parts:
        place.remove(folder)
    # Spark gives files of one task the same name in every partition, and Paimon every file its own.
    unique = uuid.uuid4()
    files = [
        file_of(part, f"data-{unique}-{at}.parquet", folder, schema, known)
        for at, (part, known) in enumerate(zip(parts, facts, strict=True))
    ]
    # Absolute: the commit may run in another working folder.
    return PaimonStaged(place.plain_url, folder, schema.number, schema.mark, files)


def _facts(part: ParquetPart, folder: Location, now_ms: int, number: int) -> Facts:
    return Facts(now_ms, number, number, deletes_in(part, folder))


KIND, NUMBER = "_VALUE_KIND", "_SEQUENCE_NUMBER"
BUCKET = "__holdfast_bucket"
RANK = "__holdfast_rank"
KINDS = {"INSERT": 0, "UPDATE_AFTER": 2, "DELETE": 3}
"""Paimon's numbers of row kinds.  What a row was before is not needed: the last one counts."""

DELETED = 3


def stage_keyed(
    rows: Rows, table: PaimonTable, folder: Location, about: str, number: int
) -> list[ParquetPart]:
    """Let Spark write the last row of each key into a folder; return its files."""
    schema = table.schema
    names = [*partition_names(schema.partitions), BUCKET]
    kinds = {c.name: c.type.kind for c in schema.columns(about)}
    order = [quote(CHANGE_ORDER)] if CHANGE_ORDER in rows.frame.columns else []
    cases = " ".join(f"WHEN '{name}' THEN {value}" for name, value in KINDS.items())
    frame = rows.frame.filter(f"{rows.kind_sql} <> 'UPDATE_BEFORE'").selectExpr(
        f"CAST({number} AS BIGINT) AS {NUMBER}",
        f"CAST(CASE {rows.kind_sql} {cases} END AS TINYINT) AS {KIND}",
        *aliased(column_sql(rows, table, about)),
        *order,
    )
    frame = keyed(frame, schema.partitions, kinds, about)
    frame = frame.selectExpr("*", f"{bucket_sql(schema)} AS {BUCKET}").repartition(*names)
    within = ", ".join([*names, *map(quote, schema.own_keys)])
    by = ", ".join(f"{one} DESC NULLS LAST" for one in [*_sequence(schema), *order])
    last = f"row_number() OVER (PARTITION BY {within} ORDER BY {by}) AS {RANK}"
    frame = frame.selectExpr("*", last).filter(f"{RANK} = 1").drop(RANK, *(o[1:-1] for o in order))
    frame = frame.sortWithinPartitions(*names, *map(quote, schema.own_keys))
    plain = without_dictionary(schema.columns(about))
    stage(frame, folder, partitions=names, codec=codec_of(schema), plain=plain)
    parts = staged_parts(folder, names)
    return [_known(part, folder, schema.own_keys) for part in parts]


def deletes_in(part: ParquetPart, folder: Location) -> int:
    """Return how many rows of a file say that a key is gone."""
    stats = part.columns[KIND]
    if stats.high is not None and stats.high < DELETED:
        return 0
    found = pq.read_table(f"{folder.path}/{part.path}", columns=[KIND], partitioning=None)
    return found[KIND].to_pylist().count(DELETED)


def _sequence(schema: PaimonSchema) -> list[str]:
    return [quote(name.strip()) for name in schema.options[SEQUENCE].split(",")]


def _known(part: ParquetPart, folder: Location, keys: Sequence[str]) -> ParquetPart:
    """Return a file with the bounds of its keys, also where its footer leaves them out."""
    lacking = [k for k in keys if part.columns[k].low is None and part.columns[k].nulls == 0]
    if not lacking:
        return part
    path = f"{folder.path}/{part.path}"
    found = pq.read_table(path, columns=lacking, partitioning=None)
    columns: dict[str, ColumnStats] = dict(part.columns)
    for key in lacking:
        values: list[Any] = found[key].to_pylist()
        columns[key] = replace(columns[key], low=min(values), high=max(values))
    return replace(part, columns=columns)


LONG_DIGITS = 18
"""So many digits of a decimal are stored as a number."""

CODEC, CODEC_DEFAULT = "file.compression", "zstd"
CODECS = {
    # Paimon's name: Spark's
    "zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4_raw", "none": "none",
    "uncompressed": "none",
}  # fmt: skip


def stage_rows(rows: Rows, table: PaimonTable, folder: Location, about: str) -> list[ParquetPart]:
    """Let Spark write rows into a folder; return its files."""
    schema = table.schema
    names = partition_names(schema.partitions)
    kinds = {c.name: c.type.kind for c in schema.columns(about)}
    ready, codec = rows.projected(column_sql(rows, table, about)), codec_of(schema)
    plain = without_dictionary(schema.columns(about))
    parts = None if names else stage_batches(ready, folder, codec=codec, plain=plain)
    if parts is not None:
        return parts
    frame = keyed(ready.frame, schema.partitions, kinds, about)
    stage(frame, folder, partitions=names, codec=codec, plain=plain)
    return staged_parts(folder, names)


def column_sql(rows: Rows, table: PaimonTable, about: str) -> dict[str, str]:
    """Return what is written to each column of the table, as Spark SQL; null where none arrives."""
    columns = table.schema.columns(about)
    fits = fit(columns, rows.table.columns, about, table.schema.partitions)
    fits = limited(fits, lengths(table.schema.types), about)
    return {c.name: fits.get(c.name, f"CAST(NULL AS {c.type.ddl})") for c in columns}


def without_dictionary(columns: Sequence[Column]) -> list[str]:
    """Return the columns that files must have no dictionary of.

    Paimon's Java looks for a decimal of more than 18 digits by its shortest bytes, which no
    dictionary has: it would skip the rows.
    """
    return [c.name for c in columns if c.type.kind == "decimal" and c.type.precision > LONG_DIGITS]


def codec_of(schema: PaimonSchema) -> str:
    """Return how files of a table are compressed, as Spark calls it."""
    return CODECS.get(schema.options.get(CODEC, CODEC_DEFAULT).lower(), "zstd")
