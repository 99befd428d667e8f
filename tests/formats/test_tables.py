"""What the Jdbc sink writes, the servers' own drivers read: types x edge values."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from tests.formats.matrix import KINDS, Row, differences, rows, single
from tests.formats.test_formats import check, frame_of
from tests.unit.connectors.jdbc.conftest import Server

pytestmark = [pytest.mark.spark, pytest.mark.formats]

NAMES = [n for n in KINDS if n != "a"]
FIRST = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
LAST = datetime(2038, 1, 19, tzinfo=UTC)


def fitting(kind: str) -> list[Row]:
    """Return the rows that the server can hold."""
    made = rows()
    for row in made:
        if kind == "postgresql":
            continue
        for name in ("f4", "f8"):
            if row[name] is not None and (row[name] != row[name] or abs(row[name]) == float("inf")):
                row[name] = None  # MySQL has no such numbers
            row[name] = 0.0 if row[name] == 0 else row[name]  # nor a zero with a sign
        if row["f4"] is not None and abs(row["f4"]) > 3.4e38:
            row["f4"] = None  # MySQL refuses the greatest float
        if row["z"] is not None and not FIRST <= row["z"] < LAST:
            row["z"] = FIRST
    return made


def as_read(found: tuple[Any, ...]) -> Row:
    row: Row = dict(zip(["id", *NAMES], found, strict=True))
    for name in ("r", "m"):
        if isinstance(row[name], str):
            row[name] = json.loads(row[name])
    if row["r"] is not None:
        moment = row["r"].get("x")
        row["r"] = {"x": moment and datetime.fromisoformat(moment), "y": row["r"].get("y")}
    if isinstance(row["t"], timedelta):
        row["t"] = (datetime.min + row["t"]).time()
    if row["f4"] is not None:
        row["f4"] = single(row["f4"])  # the drivers give its shortest text as a double
    if row["b"] is not None:
        row["b"] = bool(row["b"])
    if row["z"] is not None and row["z"].tzinfo is None:
        row["z"] = row["z"].replace(tzinfo=UTC)
    return row


def test_servers_have_what_we_write(server: Server, spark: SparkSession) -> None:
    made = fitting(server.kind)
    target = server.sink(table="formats")
    tables = Tables([Rows.of("db.formats", frame_of(spark, made, NAMES))])
    target.prepare([r.table for r in tables])
    target.commit(CommitId("r", 1), target.write(tables, Staging("1", "t", 1, 1, "i")))
    if server.kind == "postgresql":
        found = server.run(f"SELECT id, {', '.join(NAMES)} FROM formats")
    else:
        # It shows six digits of a float, and instants in the session's zone.
        other = {"z": "convert_tz(z, @@time_zone, '+00:00')", "f4": "CAST(f4 AS DOUBLE)"}
        shown = ", ".join(other.get(n, n) for n in NAMES)
        found = server.run(f"SELECT id, {shown} FROM formats")
    check(differences(made, [as_read(one) for one in found], NAMES))
