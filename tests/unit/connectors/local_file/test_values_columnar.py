"""Parquet and ORC files say what their columns are; what comes out is that, or a refusal."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.connect.arrow_rows import NotArrowReadable
from holdfast.connect.rows import Rows
from holdfast.errors import UserError
from tests.unit.connectors.local_file.test_values_read import fields, opened, refused, rows

pytestmark = pytest.mark.spark

Make = Callable[..., Any]


def put(path: Path, form: str = "parquet", **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if form == "orc":
        orc.write_table(table, str(path))
    else:
        pq.write_table(table, path)


def kinds(found: Rows) -> dict[str, str]:
    return {c.name: str(c.type) for c in found.table.columns}


def test_v16_columns_of_any_file_are_there(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(tmp_path / "a.parquet", n=pa.array([1], pa.int32()), s=["x"])
    put(tmp_path / "b.parquet", n=pa.array([2**40], pa.int64()), late=[True])
    put(tmp_path / "c.parquet", N=pa.array([2**31], pa.uint32()))
    found = opened(spark, source(path=str(tmp_path), file_format_type="parquet"))
    assert kinds(found) == {"n": "bigint", "s": "string", "late": "boolean"}
    got = sorted(tuple(r) for r in found.frame.collect())
    assert got == [(1, "x", None), (2**31, None, None), (2**40, None, True)]


def test_v16_types_with_nothing_in_common_are_refused(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(tmp_path / "a.parquet", n=[1])
    put(tmp_path / "b.parquet", n=["1"])
    said = refused(spark, source(path=str(tmp_path), file_format_type="parquet"))
    assert "column n: it is bigint in" in said and "a.parquet and string in" in said
    assert "schema.fields" in said


AT = datetime(2024, 1, 31, 10, 20, 30, 500_000)

GOOD = [
    (pa.array([2.0]), "int", 2), (pa.array([7], pa.int64()), "tinyint", 7),
    (pa.array([1.5]), "float", 1.5), (pa.array(["12"]), "int", 12), (pa.array([3]), "string", "3"),
    (pa.array([Decimal("1.50")]), "decimal(10, 1)", Decimal("1.5")),
    (pa.array([7], pa.int32()), "decimal(5, 2)", Decimal("7.00")),
    (pa.array([datetime(2024, 1, 2)]), "date", date(2024, 1, 2)),
    (pa.array([float("inf")]), "float", float("inf")), (pa.array([b"ab"]), "string", "ab"),
    (pa.array([AT], pa.timestamp("us", "UTC")), "string", "2024-01-31T10:20:30.5Z"),
    (pa.array([AT]), "string", "2024-01-31 10:20:30.5"),
]  # fmt: skip

BAD = [
    (pa.array([1.9]), "int", "1.9"), (pa.array([1e300]), "float", "1.0E300"),
    (pa.array([300]), "tinyint", "300"), (pa.array([float("nan")]), "int", "NaN"),
    (pa.array([Decimal("1.55")]), "decimal(10, 1)", "1.55"),
    (pa.array([0.1]), "decimal(10, 2)", None), (pa.array([2**53 + 1]), "decimal(5, 0)", None),
    (pa.array(["12d"]), "double", "12d"), (pa.array(["0x1p3"]), "double", "0x1p3"),
    (pa.array(["19723"]), "date", "19723"), (pa.array(["1e400"]), "double", "1e400"),
    (pa.array(["1.005"]), "decimal(10, 2)", "1.005"), (pa.array([b"\xff"]), "string", None),
    (pa.array([datetime(2024, 1, 2, 3)]), "date", "2024-01-02 03:00:00"),
]  # fmt: skip


def test_v16_values_that_fit_their_declared_type_are_exact(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(tmp_path / "a.parquet", **{f"c{n}": column for n, (column, _, _) in enumerate(GOOD)})
    schema = fields(**{f"c{n}": kind for n, (_, kind, _) in enumerate(GOOD)})
    reading = source(path=str(tmp_path), file_format_type="parquet", schema=schema)
    assert rows(spark, reading) == [tuple(value for _, _, value in GOOD)]


def test_v16_values_that_do_not_fit_are_refused(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    columns = {f"c{n}": column for n, (column, _, _) in enumerate(BAD)}
    put(tmp_path / "a.parquet", id=[7], **columns)
    for number, (column, kind, shown) in enumerate(BAD):
        if column.type == pa.float64() and kind == "decimal(10, 2)":
            continue
        schema = fields(id="bigint", **{f"c{number}": kind})
        said = refused(spark, source(path=str(tmp_path), file_format_type="parquet", schema=schema))
        assert f"a.parquet: column c{number} = '{shown or ''}" in said, (kind, said)
        assert f" Row: id = 7, c{number} = " in said and ("Declare" in said or "declare" in said)


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_refused_value_of_a_file_that_arrow_reads_names_the_file_and_the_row(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    moments = pa.array([NANOS // 1000 * 1000] * 2, pa.timestamp("ns"))
    put(tmp_path / f"a.{form}", form, id=[7, 8], v=[1.0, 1.9], t=moments)
    schema = fields(id="bigint", v="int", t="timestamp")
    said = refused(spark, source(path=str(tmp_path), file_format_type=form, schema=schema))
    place = f"LocalFile cannot read file {tmp_path}/a.{form}: column v = '1.9' is not an int."
    assert place in said and "Row: id = 8, v = 1.9, t = 2024-01-31 " in said


def test_v16_numbers_are_no_days(spark: SparkSession, source: Make, tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", n=[1])
    for kind in ("date", "timestamp", "time", "timestamp_tz", "bytes", "boolean"):
        schema = fields(n=kind)
        said = refused(spark, source(path=str(tmp_path), file_format_type="parquet", schema=schema))
        assert f"cannot read column n as {kind}" in said


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_instants_are_instants_and_local_times_stay_local(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    moment = datetime(1969, 12, 31, 23, 59, 58, 123456)
    put(
        tmp_path / f"a.{form}", form,
        z=pa.array([moment], pa.timestamp("us", "UTC")), t=pa.array([moment], pa.timestamp("us")),
        zs=pa.array([[moment]], pa.list_(pa.timestamp("us", "America/New_York"))),
    )  # fmt: skip
    found = opened(spark, source(path=str(tmp_path), file_format_type=form))
    assert kinds(found) == {"z": "timestamp_tz", "t": "timestamp", "zs": "array<timestamp_tz>"}
    ((z, t, (zs,)),) = (tuple(r) for r in found.frame.collect())
    wanted = moment.replace(tzinfo=UTC).timestamp()
    assert (z.timestamp(), t, zs.timestamp()) == (wanted, moment, wanted)


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_moment_that_is_declared_as_a_time_is_its_time_of_day(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    moments = [AT, datetime(1969, 12, 31, 23, 59, 58), None]
    put(tmp_path / f"a.{form}", form, id=[1, 2, 3], t=pa.array(moments, pa.timestamp("us")))
    schema = fields(id="int", t="time")
    found = rows(spark, source(path=str(tmp_path), file_format_type=form, schema=schema))
    assert sorted(found) == [(1, AT.time()), (2, time(23, 59, 58)), (3, None)]


NANOS = 1_706_696_430_123_456_789


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_nanoseconds_are_read_where_they_are_whole_microseconds(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    whole = [NANOS // 1000 * 1000, None]
    nanos, zoned = pa.timestamp("ns"), pa.timestamp("ns", "UTC")
    put(
        tmp_path / f"a.{form}", form, t=pa.array(whole, nanos), z=pa.array(whole, zoned),
        l=pa.array([whole, None], pa.list_(nanos)), n=[1, 2],
    )  # fmt: skip
    reading = source(path=str(tmp_path), file_format_type=form)
    found = opened(spark, reading)
    assert kinds(found) == {
        "t": "timestamp", "z": "timestamp_tz", "l": "array<timestamp>", "n": "bigint",
    }  # fmt: skip
    (first, second) = found.frame.selectExpr("t", "unix_micros(z)", "l", "n").collect()
    moment = datetime(2024, 1, 31, 10, 20, 30, 123456)
    assert tuple(first) == (moment, NANOS // 1000, [moment, None], 1)
    assert tuple(second) == (None, None, None, 2)
    put(tmp_path / f"a.{form}", form, t=pa.array([NANOS], nanos))
    said = refused(spark, reading)
    assert f"{tmp_path}/a.{form}: column t" in said and str(NANOS) in said


def test_parquet_types_that_only_arrow_knows_are_read(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(
        tmp_path / "a.parquet", h=pa.array([1.5], pa.float16()), u=pa.array([b"x" * 16], pa.uuid()),
        c=pa.array([5], pa.time32("ms")), n=pa.array([2**64 - 1], pa.uint64()),
        s=pa.array(["k"]).dictionary_encode(),
    )  # fmt: skip
    (row,) = rows(spark, source(path=str(tmp_path), file_format_type="parquet"))
    assert row == (1.5, b"x" * 16, time(0, 0, 0, 5000), Decimal(2**64 - 1), "k")


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_damaged_file_is_named_and_not_tried_again(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    (tmp_path / f"a.{form}").write_bytes(b"PAR1xxxxORC")
    said = refused(spark, source(path=str(tmp_path), file_format_type=form))
    assert f"LocalFile cannot read {tmp_path}/a.{form}: " in said


def test_int96_has_no_zone(spark: SparkSession, source: Make, tmp_path: Path) -> None:
    moment = datetime(2024, 1, 31, 16, 0, 48)
    table = pa.table({"t": pa.array([moment], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    found = opened(spark, source(path=str(tmp_path), file_format_type="parquet"))
    assert kinds(found) == {"t": "timestamp"}
    assert [tuple(r) for r in found.frame.collect()] == [(moment,)]


def test_v19_old_days_in_orc_are_those_of_todays_calendar(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(tmp_path / "a.orc", "orc", d=pa.array([date(1500, 1, 2)]))
    assert rows(spark, source(path=str(tmp_path), file_format_type="orc")) == [(date(1500, 1, 2),)]


def test_v04_a_declared_column_has_its_folders_value_in_parquet(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    for text in ("2024-01-01", "2024-01-02"):
        put(tmp_path / f"dt={text}" / "a.parquet", n=[1], dt=["1999-01-01"])
    schema = fields(dt="date", n="bigint")
    found = rows(spark, source(path=str(tmp_path), file_format_type="parquet", schema=schema))
    assert sorted(found) == [(date(2024, 1, 1), 1), (date(2024, 1, 2), 1)]
    plain = rows(spark, source(path=str(tmp_path), file_format_type="parquet"))
    assert sorted(plain) == [(1, "2024-01-01"), (1, "2024-01-02")]
    schema = fields(dt="int", n="bigint")
    said = refused(spark, source(path=str(tmp_path), file_format_type="parquet", schema=schema))
    assert "column dt = '2024-01-0" in said


def test_v06_a_file_that_spark_leaves_out_is_refused(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(tmp_path / "_a.orc", "orc", n=[1])
    with pytest.raises(UserError, match="begins with '_'"):
        rows(spark, source(path=str(tmp_path), file_format_type="orc"))


NO_TEXT = pa.array([b"fine", b"\xff\xfe"]).view(pa.string())


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("nested", [False, True])
def test_v17_bytes_of_a_text_column_that_are_no_text_are_refused(
    spark: SparkSession, source: Make, tmp_path: Path, form: str, nested: bool
) -> None:
    lists = pa.ListArray.from_arrays([0, 1, 2], NO_TEXT)
    put(tmp_path / f"a.{form}", form, id=[7, 8], s=lists if nested else NO_TEXT)
    said = refused(spark, source(path=str(tmp_path), file_format_type=form))
    assert f"{tmp_path}/a.{form}: column s = " in said and " Row: id = 8, s = " in said
    assert "bytes that are not UTF-8: declare the column as bytes" in said
    if not nested:
        schema = fields(id="bigint", s="bytes")
        asked = source(path=str(tmp_path), file_format_type=form, schema=schema)
        assert sorted(rows(spark, asked)) == [(7, b"fine"), (8, b"\xff\xfe")]


def test_v17_arrow_leaves_a_text_that_is_none_to_spark(
    spark: SparkSession, source: Make, tmp_path: Path
) -> None:
    put(tmp_path / "a.parquet", s=NO_TEXT)
    found = opened(spark, source(path=str(tmp_path), file_format_type="parquet")).batches
    assert found is not None
    with pytest.raises(NotArrowReadable, match="UTF"):
        list(found.read(found.splits[0]))


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_columns_that_differ_in_case_alone_are_refused_with_their_file(
    spark: SparkSession, source: Make, tmp_path: Path, form: str
) -> None:
    put(tmp_path / f"a.{form}", form, a=[1], A=[2])
    said = refused(spark, source(path=str(tmp_path), file_format_type=form))
    assert f"cannot read {tmp_path}/a.{form}: its columns a and A differ" in said


@pytest.mark.parametrize("nested", [False, True])
def test_decimals_of_more_digits_are_refused_with_their_file(
    spark: SparkSession, source: Make, tmp_path: Path, nested: bool
) -> None:
    wide = pa.decimal256(70, 2)
    column = pa.array([[None]], pa.list_(wide)) if nested else pa.array([Decimal("1.5")], wide)
    put(tmp_path / "a.parquet", n=column)
    said = refused(spark, source(path=str(tmp_path), file_format_type="parquet"))
    assert f"{tmp_path}/a.parquet: column n is decimal256(70, 2), and a decimal has at most" in said
