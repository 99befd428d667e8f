"""Load rows into a staging table: each Spark task in one transaction, under its own chunk number.

A task that Spark runs twice leaves two chunks; only those that Spark reports are committed.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from holdfast.connect.arrow_rows import ArrowRows, raised_by_tasks
from holdfast.connect.rows import Rows
from holdfast.connectors.jdbc.columns import sent, staged_name
from holdfast.connectors.jdbc.database import STAGE, Database, FoundColumn, Loading, StagedTable
from holdfast.connectors.jdbc.exact import Exact, checks
from holdfast.connectors.jdbc.load_task import RESULT, Chunk, LoadTask
from holdfast.connectors.jdbc.staged_rows import CHUNK, ORDER, PUT
from holdfast.connectors.jdbc.target import Target
from holdfast.model.table import KIND, SEQUENCE, Table
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
APART_MOST = 64
"""How many chunks of a slice may be tables of their own: a commit locks and reads them all."""


STAGED = re.compile(STAGE + "[0-9a-f]{32}")
"""The names of staging tables."""


def stage_name(owner: str, number: int) -> str:
    """Return the name of a staging table; the whole name of its owner does not fit into one."""
    return STAGE + hashlib.sha256(f"{owner}-t{number}".encode()).hexdigest()[:32]


def is_apart(database: Database, rows: Rows, target: Target) -> bool:
    """Say whether each task is to make a table for its chunk."""
    batches = _batches(rows, target) if database.chunks_apart else None
    return batches is not None and len(batches.splits) <= APART_MOST


def stage_columns(
    database: Database, target: Target, table: Table, found: Sequence[FoundColumn], apart: bool
) -> list[str]:
    """Return the columns of a staging table.

    They have the target's own types, so that a value that does not fit fails the task that brings
    it and not the commit.
    """
    by_name = {c.name: c for c in found}
    lines = []
    for number, source in enumerate(target.sources):
        match = by_name.get(_goes_to(target, number, found))
        column = table.column(source)
        assert column is not None
        kind = match.type if match else database.type_of(column, False).removesuffix(" NULL")
        # A delete may bring nothing but its key.
        free = table.changelog and not (match and match.name in target.keys)
        required = match is not None and not match.nullable and not match.filled and not free
        lines.append(f"c{number} {kind} {'NOT NULL' if required else 'NULL'}")
    if target.ordered:
        lines += [f"{ORDER} bigint NOT NULL", f"{PUT} smallint NOT NULL"]
    return lines if apart else [*lines, f"{CHUNK} bigint NOT NULL"]


def load(
    database: Database, staged: StagedTable, target: Target, rows: Rows, columns: Sequence[str],
    batch_rows: int, apart: bool,
) -> list[Chunk]:  # fmt: skip
    """Let Spark load rows; return the chunks that count.  Raises what the tasks have raised."""
    names = [f"c{n}" for n in range(len(target.sources))]
    made_here = SEQUENCE not in rows.hidden
    if target.ordered:
        names += [PUT, ORDER]
    types = {name: kind for name, _, kind in (c.partition(" ") for c in columns)}
    if not apart:
        names.append(CHUNK)
    kinds = tuple(types[n].removesuffix(" NOT NULL").removesuffix(" NULL") for n in names)
    loading = Loading(staged.table, tuple(names), kinds, batch_rows, apart)
    sources, exact = target.sources, _exact(rows, target, columns)
    task = LoadTask(database, loading, target.ordered and made_here, sources, exact, target.shown)
    if batches := _batches(rows, target):
        return [Chunk(*cast(list[int], one)) for one in batches.run(task.load)]
    frame = _frame(rows, target, columns, database.json_type == "jsonb")
    with raised_by_tasks():
        result = frame.mapInArrow(task, RESULT).toArrow()
    listed = zip(*(cast(list[int], c.to_pylist()) for c in result.columns), strict=True)
    return [Chunk(*one) for one in listed]


def _exact(rows: Rows, target: Target, columns: Sequence[str]) -> tuple[Exact, ...]:
    """Return the columns whose values must be looked at before they are sent."""
    listed = []
    for source, staged in zip(target.sources, columns, strict=False):
        column = rows.table.column(source)
        assert column is not None
        required = staged.endswith(" NOT NULL")
        kind = staged.partition(" ")[2].removesuffix(" NOT NULL").removesuffix(" NULL")
        listed.append((source, column.type, kind, required))
    return checks(target.shown, listed)


def _batches(rows: Rows, target: Target) -> ArrowRows | None:
    """Return the rows as tasks load them, where every column goes as it comes."""
    if rows.batches is None or target.ordered:
        return None
    return rows.batches.named({f"c{n}": source for n, source in enumerate(target.sources)})


def _goes_to(target: Target, number: int, found: Sequence[FoundColumn]) -> str:
    """Return the column that a value goes to as it is; nothing if it goes into an expression."""
    if target.insert is None:
        return target.columns[number]
    position = target.insert.places[number]
    columns = target.columns or tuple(c.name for c in found)
    return columns[position] if position is not None and position < len(columns) else ""


def _frame(rows: Rows, target: Target, columns: Sequence[str], postgres: bool) -> "DataFrame":
    """Return the rows as tasks load them: values, then what orders them."""
    from pyspark.sql import functions as F

    wanted = []
    for number, source in enumerate(target.sources):
        column = rows.table.column(source)
        assert column is not None
        target_type = columns[number].removesuffix(" NOT NULL").removesuffix(" NULL")
        made = sent(source, column.type, target_type, postgres)
        wanted.append(made.alias(staged_name(number, column.type, postgres)))
    if target.ordered:
        put = F.lit(1)
        if rows.table.changelog:
            put = F.col(quote(KIND)).isin("INSERT", "UPDATE_AFTER").cast("int")
        wanted.append(put.cast("smallint").alias(PUT))
        if SEQUENCE in rows.hidden:
            wanted.append(F.col(quote(SEQUENCE)).cast("bigint").alias(ORDER))
    return rows.frame.select(*wanted)
