"""Make rows ready for a table with a primary key: sorted files with one row for each key.

A file of such a table is a Parquet file like any other, with two more columns: the kind of each
row, and a number that decides between rows of one key whose sequence field is the same.  All rows
of one bucket are written by one Spark task.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq

from holdfast.connect.rows import Rows, aliased
from holdfast.connectors.lake.footers import ColumnStats, Part, staged_parts
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.partitions import keyed, partition_names
from holdfast.connectors.lake.staging import stage
from holdfast.connectors.paimon.bucket import bucket_sql
from holdfast.connectors.paimon.refusals import SEQUENCE
from holdfast.connectors.paimon.rows import codec_of, column_sql, without_dictionary
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.model.table import SEQUENCE as CHANGE_ORDER
from holdfast.model.types import quote

KIND, NUMBER = "_VALUE_KIND", "_SEQUENCE_NUMBER"
BUCKET = "__holdfast_bucket"
RANK = "__holdfast_rank"
KINDS = {"INSERT": 0, "UPDATE_AFTER": 2, "DELETE": 3}
"""Paimon's numbers of row kinds.  What a row was before is not needed: the last one counts."""

DELETED = 3


def stage_keyed(
    rows: Rows, table: PaimonTable, folder: Location, about: str, number: int
) -> list[Part]:
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


def deletes_in(part: Part, folder: Location) -> int:
    """Return how many rows of a file say that a key is gone."""
    stats = part.columns[KIND]
    if stats.high is not None and stats.high < DELETED:
        return 0
    found = pq.read_table(f"{folder.path}/{part.path}", columns=[KIND], partitioning=None)
    return found[KIND].to_pylist().count(DELETED)


def _sequence(schema: PaimonSchema) -> list[str]:
    return [quote(name.strip()) for name in schema.options[SEQUENCE].split(",")]


def _known(part: Part, folder: Location, keys: Sequence[str]) -> Part:
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
