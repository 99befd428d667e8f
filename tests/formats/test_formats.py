"""What we write others read as it was, and what others write we do: types x edge values."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitId, Staging
from holdfast.connect.source import Budget, Slice
from holdfast.connectors.files.source import LocalFileSource
from holdfast.connectors.files.writer import LocalFileSink
from tests.formats import outsiders as others
from tests.formats.matrix import KINDS, SPARK, Row, differences, rows

pytestmark = [pytest.mark.spark, pytest.mark.formats]

Make = Callable[..., Any]

FLAT = [n for n in KINDS if n not in ("a", "r", "m")]
ALL = list(KINDS)
EPOCH = datetime(1970, 1, 1)
NOT_IN_TEXT = "\n\r\1"

SINKS: dict[str, tuple[dict[str, Any], list[str], list[others.Read]]] = {
    "parquet": ({}, ALL, [others.arrow_parquet, others.duck_parquet]),
    "orc": ({}, ALL, [others.arrow_orc]),
    "json": ({}, ALL, [others.python_json, others.duck_json]),
    "csv": ({}, FLAT, [others.python_csv, others.duck_csv]),
    "text": ({}, FLAT, [others.python_text]),
    "xml": ({"xml_use_attr_format": False}, FLAT, [others.python_xml]),
    "xml with attributes": ({"xml_use_attr_format": True}, FLAT, [others.python_xml]),
    "excel": ({}, FLAT, [others.python_excel]),
}  # fmt: skip

SOURCES: dict[str, tuple[dict[str, Any], list[str], others.Write]] = {
    "parquet by pyarrow": ({}, ALL, others.write_parquet),
    "parquet by duckdb": ({}, ALL, others.duck_write_parquet),
    "orc by pyarrow": ({}, [n for n in ALL if n != "t"], others.write_orc),
    "json": ({}, ALL, others.write_json),
    "json of plain columns": ({}, FLAT, others.write_json),
    "json with an odd line": ({}, FLAT, others.write_odd_json),
    "csv": ({}, FLAT, others.write_csv),
    "text": ({}, FLAT, others.write_text),
    "xml": ({"xml_row_tag": "RECORD", "xml_use_attr_format": False}, FLAT, others.write_xml),
    "excel by openpyxl": ({}, FLAT, others.write_excel),
}  # fmt: skip


def fitting(form: str, names: list[str]) -> list[Row]:
    """Return the rows that a format can hold; docs/values.md lists the exceptions."""
    made = rows()
    for row in made:
        if form == "orc":
            _in_nanoseconds(row)
        text = row["s"]
        if form in ("csv", "text", "xml", "excel") and text is not None and not text.strip():
            row["s"] = None if form in ("csv", "text", "excel") and not text else text
        for name in ("s", "y"):
            found = row[name]
            if form == "text" and found is not None:
                shown = found if isinstance(found, str) else found.decode()
                if any(c in shown for c in NOT_IN_TEXT):
                    row[name] = "x" if name == "s" else b"x"
            if form in ("csv", "text", "xml", "excel") and name == "y" and found == b"":
                row[name] = None
    return made


def _in_nanoseconds(row: Row) -> None:
    """Keep moments that pyarrow can show: it has ORC's in nanoseconds since 1970."""
    lost = datetime(1969, 12, 31, 23, 59, 59)
    for name, zone in (("ts", None), ("z", UTC)):
        found = row[name]
        near = found and lost.replace(tzinfo=zone) < found < EPOCH.replace(tzinfo=zone)
        if found and (near or not 1700 < found.year < 2250):
            row[name] = EPOCH.replace(tzinfo=zone)
    if row["r"] and row["r"]["x"]:
        moment = row["r"]["x"]
        if lost < moment < EPOCH or not 1700 < moment.year < 2250:
            row["r"] = {**row["r"], "x": EPOCH}


def blanks(form: str, found: list[Row]) -> list[Row]:
    """Take nothing for null where a format cannot tell them apart."""
    if form in ("csv", "text", "xml", "excel"):
        for row in found:
            row |= {n: None for n in ("s", "y") if row.get(n) in ("", b"")}
            if form == "excel" and not (row.get("s") or "").strip():
                row["s"] = None  # openpyxl writes a text of blanks so that it may be left out
            if form == "excel" and not (row.get("y") or b"").strip():
                row["y"] = None
    return found


def frame_of(spark: SparkSession, made: list[Row], names: list[str]) -> DataFrame:
    frame = spark.createDataFrame(others.table(made, [n for n in names if n != "t"]))
    if "t" in names:
        times = [(r["id"], None if r["t"] is None else r["t"].isoformat()) for r in made]
        frame = frame.join(spark.createDataFrame(times, "id bigint, t string"), "id")
    columns = (f"CAST({n} AS {SPARK[n]}) AS {n}" for n in names)
    return frame.selectExpr("id", *columns).coalesce(2)


def write(sink: LocalFileSink, frame: DataFrame) -> list[Path]:
    tables = Tables([Rows.of("db.t", frame)])
    sink.prepare([r.table for r in tables])
    sink.commit(CommitId("r", 1), sink.write(tables, Staging("7", "p1t0", 1, 1)))
    files = (p for p in Path(sink.options.root).rglob("*") if p.is_file())
    return sorted(p for p in files if not any(part.startswith(".") for part in p.parts))


def read(spark: SparkSession, source: LocalFileSource, names: list[str]) -> list[Row]:
    planned = source.plan(None, Budget(None, 0.0))
    assert isinstance(planned, Slice)
    frame = next(iter(source.read(spark, planned.content))).frame
    columns = ("unix_micros(z) AS z" if n == "z" else n for n in ["id", *names])
    found = [row.asDict() for row in frame.selectExpr(*columns).collect()]
    for row in found:
        if row.get("z") is not None:
            row["z"] = others.instant(row["z"])
    return [row for row in found if row["id"] >= 0]


def check(said: list[str]) -> None:
    assert not said, f"{len(said)} differences:\n" + "\n".join(said[:40])


def sunk(spark: SparkSession, sink: Make, folder: Path, case: str) -> list[str]:
    """Return what others say of what the sink has written."""
    options, names, readers = SINKS[case]
    form = case.split()[0]
    made = fitting(form, names)
    target = sink(path=str(folder), file_format_type=form, **options)
    files = write(target, frame_of(spark, made, names))
    said = []
    for reader in readers:
        found = blanks(form, reader(files, names))
        there = [n for n in names if n in found[0]] if found else names
        said += [f"{reader.__name__}: {s}" for s in differences(blanks(form, made), found, there)]
    return said


def drawn(spark: SparkSession, source: Make, folder: Path, case: str) -> list[str]:
    """Return what differs between what another has written and what the source reads."""
    options, names, writer = SOURCES[case]
    form = case.split()[0]
    made = fitting(form, names)
    folder.mkdir(exist_ok=True)
    writer(folder / f"a.{'xlsx' if form == 'excel' else form}", made, names)
    if form not in ("parquet", "orc"):
        kinds = {n: {"x": "timestamp", "y": "string"} if n == "r" else KINDS[n] for n in names}
        options = {**options, "schema": {"fields": {"id": "bigint", **kinds}}}
    found = read(spark, source(path=str(folder), file_format_type=form, **options), names)
    return differences(blanks(form, made), blanks(form, found), names)


@pytest.mark.parametrize("case", SINKS)
def test_others_read_what_we_write(
    spark: SparkSession, sink: Make, tmp_path: Path, case: str
) -> None:
    check(sunk(spark, sink, tmp_path, case))


@pytest.mark.parametrize("case", SOURCES)
def test_we_read_what_others_write(
    spark: SparkSession, source: Make, tmp_path: Path, case: str
) -> None:
    check(drawn(spark, source, tmp_path, case))


def test_copies_of_files_are_their_bytes(
    spark: SparkSession, sink: Make, source: Make, tmp_path: Path
) -> None:
    for name, content in {"a.bin": bytes(range(256)) * 50, "_b": b"", "d/c.txt": b"x\r\n"}.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    reading = source(path=str(tmp_path / "in"), file_format_type="binary")
    planned = reading.plan(None, Budget(None, 0.0))
    frame = next(iter(reading.read(spark, planned.content))).frame
    files = write(sink(path=str(tmp_path / "out"), file_format_type="binary"), frame)
    copied = {str(f.relative_to(tmp_path / "out")): f.read_bytes() for f in files}
    assert copied == {"a.bin": bytes(range(256)) * 50, "_b": b"", "d/c.txt": b"x\r\n"}
