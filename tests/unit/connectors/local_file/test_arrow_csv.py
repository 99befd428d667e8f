"""Arrow reads a csv file as Spark does, or leaves it to Spark: the two against each other."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.connect.batches import NotPlain
from holdfast.connectors.local_file import arrow_csv, splits
from holdfast.connectors.local_file.arrow_csv import CsvReader, csv_batches
from holdfast.connectors.local_file.options import FileTable
from holdfast.connectors.local_file.read import read_files

pytestmark = pytest.mark.spark

Make = Callable[..., Any]
Cells = list[tuple[str, ...]]

KINDS = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double",
    "decimal(12,2)", "decimal(38,10)", "date", "timestamp",
)  # fmt: skip

NUMBERS = """
    0 5 -5 +5 --5 007 -0 -007 +0 0x1F 0X1f 0xFF -0x10 0xg x1 1x 1_000 1,000 1'000 1L 5l
    127 128 -128 -129 255 32767 32768 -32768 -32769 2147483647 2147483648 -2147483648 -2147483649
    9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
    99999999999999999999999999999999999999999 00000000000000000000000000000000000000007
    1. .5 -.5 +.5 . - + -. 1.0 1.50 1.2300 1.239 1.235 -1.235 1.995 0.005 0.004 00.10 1.2.3 1..2
    1e5 1E3 1E+3 1e-2 1E-3 1e 1e+ e5 1.5E10 1.25E10 -1.25e-10 1e0 1e05 1E400 1e-400 -1e-400 1E38
    9999999999.99 9999999999.994 9999999999.999 10000000000 10000000000.00 -9999999999.99 1E9 1E10
    3.4028235E38 3.4028236E38 1.1754942E-38 1.4E-45 0.7E-45 16777217 33554435 0.1 0.3 123456789
    4.9E-324 2.4E-324 1.7976931348623157E308 1.7976931348623159E308 9007199254740993 1e23
    8.5e-46 7.0064923216240854e-46 1.00000017881393432617187499 1.00000017881393421514957253748
    2.2250738585072011e-308 179769313486231580793728971405301e276 5999999999998E18
    nan NaN NAN -nan +NaN inf Inf -inf +inf Infinity -Infinity infinity 1d 1f 1D 1F 1.5d 1e5f
    0x1p3 0x1.8p1 0x1.fffffep127 1%% $1 1e5.5 ١٢٣ １２３ −5 5− 1\u00a0 \u00a05 5\x0b \x0c5 5\x1f
    true TRUE True tRuE false FALSE fAlSe yes no y t f on off T F null NULL NA N/A n/a None \\N #N/A
    """.split()  # noqa: SIM905

TIMES = """
    2024-01-05 2024-1-5 2024-01-5 2024-1-05 2024-02-30 2024-02-29 2023-02-29 1900-02-29 2000-02-29
    2024 2024-01 2024-13-01 2024-00-01 2024-01-00 2024-01-32 0001-01-01 0000-01-01 1582-10-04
    1582-10-10 1582-10-15 9999-12-31 10000-01-01 +2024-01-05 -2024-01-05 24-01-05 02024-01-05
    20240105 2024/01/05 05.01.2024 2024-01-05Z 2024-01-05T 2024-01-05- 2024-01-05+01:00 1969-12-31
    1970-01-01 2024-01-05T10:11:12 2024-01-05t10:11:12 2024-01-05T10:11:12Z 2024-01-05T10:11:12z
    2024-01-05T10:11:12+01:00 2024-01-05T10:11:12+0100 2024-01-05T10:11:12+01 2024-01-05T10
    2024-01-05T10:11 2024-01-05T101112 20240105T101112 2024-01-05T10:11:12UTC 2024-W01-5 2024-005
    2024-01-05T10:11:12.5Z 2024-01-05T1:2:3 10:11:12 T10:11:12 now today epoch 1704448272 NaT
    2024-01-05T10:11:12,5 290000-01-01 5881580-07-11 5881580-07-12 294247-01-10T04:00:54
    """.split()  # noqa: SIM905

CLOCKS = (
    "10:11:12", "00:00:00", "23:59:59", "23:59:60", "24:00:00", "24:00", "24", "10", "10:", "10:11",
    "1:2:3", "1:02:03", "10:60:00", "10:11:12Z", "10:11:12 UTC", "10:11:12+00:00", "10:11:12-08",
    "10:11:12 +01:00", "10:11:12.", "10:11:12.1", "10:11:12.12", "10:11:12.123", "10:11:12.1234",
    "10:11:12.12345", "10:11:12.123456", "10:11:12.1234567", "10:11:12.12345678",
    "10:11:12.123456789", "10:11:12.000000000", "10:11:12.1234567890", "10:11:12.-1", "10:11:12 AM",
    "10:11:12.5 PM", "10:11:1", "101112", "10-11-12",
)  # fmt: skip

TEXTS = (
    "", " ", "  ", "\t", " 5", "5 ", "\t5", "5\t", " true", "true ", " 2024-01-05", "2024-01-05 ",
    "a b", "a  b", " a", "a ", "\ta", "a\tb", "é", "日本語", "\U0001f600", "e\u0301", "\u2028",
    "a\u0085b", "\u00a0", "\u3000x", "\ufeffx", "x\ufeff", "\x01", "\x1f", "\x7f", "a\x0bb",
    "a\x0cb", "\x1a", '""', '"a"', '"a', 'a"', 'a"b', '"a"b', '"a""b"', '"a,b"', '"', '" "',
    "'", "'a'", "\\", "\\n", '\\"', "a\\,b", "a\\", "#a", "# 1", "=1", "a,b", ",", ",,",
    "x" * 100_000, "a\0b", "\0", "-", "--", "null", "\\N",
)  # fmt: skip

BYTES = (
    b"\xff",
    b"a\xc3",
    b"\xc3(",
    b"\xed\xa0\x80",
    b"\xf8\x88\x80\x80\x80",
    b"\xc0\x80",
    b"5\xff",
)


def field_texts(kind: str) -> list[bytes]:
    """Return texts to stand in a column of this kind: its own edge cases, and the others'."""
    days = ("2024-01-05", "2024-02-30", "0001-01-01", "1582-10-10", "9999-12-31")
    moments = [f"{day} {clock}" for day in days[: 1 if kind == "date" else 5] for clock in CLOCKS]
    texts = [*NUMBERS, *TIMES, *(moments if kind in ("date", "timestamp") else ()), *TEXTS]
    return [*(t.encode().replace(b"%%", b"%") for t in texts), *BYTES]


@pytest.fixture
def table(source: Make, tmp_path: Path) -> Callable[..., FileTable]:
    """Make a table of csv files from its columns."""

    def make(fields: Mapping[str, str], **options: Any) -> FileTable:
        schema = {"fields": dict(fields)}
        given = {"path": str(tmp_path), "file_format_type": "csv", "schema": schema, **options}
        made: FileTable = source(**given).options
        return made

    return make


class Against:
    """Arrow against Spark, for many files of one table."""

    def __init__(self, spark: SparkSession, table: FileTable, folder: Path) -> None:
        self.spark, self.table, self.folder = spark, table, folder
        batches = csv_batches(spark, table, [])
        assert batches is not None
        self.read = batches.read
        self.accepted: dict[str, Cells] = {}
        self.contents: dict[str, bytes] = {}

    def add(self, content: bytes) -> bool:
        """Have Arrow read a file; return whether it did."""
        path = self.folder / f"{len(self.contents)}.csv"
        path.write_bytes(content)
        self.contents[path.name] = content
        try:
            batches = list(self.read([[str(path), 0, len(content)]] if content else []))
        except NotPlain:
            return False
        self.accepted[path.name] = [row for batch in batches for row in cells(batch)]
        return True

    def differences(self) -> list[str]:
        """Return what Spark reads otherwise, or not at all, of what Arrow has read."""
        said = []
        for names, theirs in self._read(sorted(self.accepted)):
            for name in names:
                ours = self.accepted[name]
                if theirs is None or theirs.get(name, []) != ours:
                    found = "an error" if theirs is None else theirs.get(name, [])
                    said.append(f"{self.contents[name][:80]!r}: {ours} by Arrow, {found} by Spark")
        return said

    def _read(self, names: list[str]) -> Iterator[tuple[list[str], dict[str, Cells] | None]]:
        """Read files with Spark, all at once; where that fails, by halves."""
        if not names:
            return
        try:
            yield names, self._by_spark(names)
        except (PySparkException, Py4JError):
            if len(names) == 1:
                yield names, None
                return
            half = len(names) // 2
            yield from self._read(names[:half])
            yield from self._read(names[half:])

    def _by_spark(self, names: Iterable[str]) -> dict[str, Cells]:
        frame = read_files(
            self.spark, self.table, [str(self.folder / name) for name in names], [], careful=False
        )
        read = frame.selectExpr("*", "input_file_name() AS __file").coalesce(1).toArrow()
        files = [Path(str(f)).name for f in read["__file"].to_pylist()]
        rows: dict[str, Cells] = {}
        for name, row in zip(files, cells(read.drop_columns("__file")), strict=True):
            rows.setdefault(name, []).append(row)
        return rows


def cells(rows: Any) -> Cells:
    """Return rows as texts that tell NaN, -0.0, and days that Python has no date for."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = field.type
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            column = column.cast(pa.int32() if pa.types.is_date(kind) else pa.int64())
        columns.append([f"{kind} {value!r}"[:200] for value in column.to_pylist()])
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_is_read_as_spark_reads_it_or_not_at_all(
    spark: SparkSession, table: Callable[..., FileTable], tmp_path: Path, kind: str
) -> None:
    said = []
    for first in (True, False):
        columns = {"v": kind, "id": "int"} if first else {"id": "int", "v": kind}
        folder = tmp_path / str(first)
        folder.mkdir()
        against = Against(spark, table(columns), folder)
        for text in field_texts(kind):
            against.add(text + b",7\n" if first else b"7," + text + b"\n")
        said += against.differences()
    assert not said, "\n".join(said)


SHAPES = (
    b"", b"\n", b"\r\n", b"\r", b"\n\n\n", b"1,a", b"1,a\n", b"1,a\r\n", b"1,a\r", b"1,a\n2,b",
    b"1,a\r\n2,b", b"1,a\r2,b\n3,c\n", b"1,a\r\r\n2,b\n", b"1,a\n\r2,b\n", b"1,a\n\n2,b\n",
    b"\n1,a\n", b"\r\n1,a\r\n", b"\r1,a\n2,b\n", b"1,a\n\n\n", b"1,a\n \n2,b\n", b" \n1,a\n2,b\n",
    b"\t\n1,a\n", b"1,a\n\x01\n2,b\n", b"\x01\n1,a\n2,b\n", b"\x0c\n1,a\n2,b\n", b"\x1a",
    b"1,a\n\x1a", b"\xef\xbb\xbf1,a\n2,b\n", b"\xef\xbb\xbf\n1,a\n2,b\n", b"\xef\xbb\xbf",
    b"1,a\n\xef\xbb\xbf2,b\n", b"\xff\xfe1\0,\0a\0\n\0", b"1\n2,b\n", b"1,a\n2\n", b"1,a,x\n2,b\n",
    b"1,a\n2,b,y\n", b"1,a,\n2,b,\n", b",\n", b",\n,\n", b",,\n", b",a\n1,\n", b"1,a\n,", b"1,",
    b",a", b"a,b\n", b"1,a\nx,b\n", b"1,a\n2,b\0\n", b'"1","a"\n2,b\n', b'1,"a\nb"\n2,c\n',
    b'1,a"b\n2,c\n', b'1,"a""b"\n2,c\n', b'id,"v"\n1,a\n', b"id,v\r1,a\r2,b\r",
    b"id,v\r1,a\n2,b\n", b"id,v\r\r\n1,a\n", b"1,a\\\n2,b\n", b"#1,a\n2,b\n", b"1,\xff\n2,b\n",
    b"id,\xff\n1,a\n2,b\n", b"1," + b"x" * 300_000 + b"\n2,b\n", b"\x01,\x02\n", b",\x01\n",
)  # fmt: skip
"""Whole files of the columns id int and v string."""


@pytest.mark.parametrize("header", [0, 1])
def test_a_file_is_read_as_spark_reads_it_or_not_at_all(
    spark: SparkSession, table: Callable[..., FileTable], tmp_path: Path, header: int
) -> None:
    columns = {"id": "int", "v": "string"}
    against = Against(spark, table(columns, skip_header_row_number=header), tmp_path)
    for content in SHAPES:
        against.add(content)
    said = against.differences()
    assert not said, "\n".join(said)


@pytest.mark.parametrize("header", [0, 1])
@pytest.mark.parametrize("delimiter", [",", "|", "\t", ";"])
def test_a_random_file_is_read_as_spark_reads_it_or_not_at_all(
    spark: SparkSession,
    table: Callable[..., FileTable],
    tmp_path: Path,
    delimiter: str,
    header: int,
) -> None:
    columns = {"id": "int", "v": "string"}
    options = {"delimiter": delimiter, "skip_header_row_number": header}
    against = Against(spark, table(columns, **options), tmp_path)
    dice = random.Random(f"{delimiter}{header}")
    pieces = [
        "1",
        "22",
        "a",
        "é",
        "x y",
        "#",
        "\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "\x01",
        "\ufeff",
    ]
    for _ in range(200):
        some = dice.choices([*pieces, *[delimiter] * 4], k=dice.randrange(14))
        against.add("".join(some).encode())
    said = against.differences()
    assert not said, "\n".join(said[:20])


def test_a_delimiter_that_spark_does_not_take_is_not_taken_by_arrow_either(
    spark: SparkSession, table: Callable[..., FileTable], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("1\\a\n")
    given = table({"id": "int", "v": "string"}, delimiter="\\")
    with pytest.raises((PySparkException, Py4JError)):
        read_files(spark, given, [str(tmp_path / "a.csv")], [], careful=False).collect()
    assert csv_batches(spark, given, [str(tmp_path / "a.csv")]) is None


PLAIN = {
    "string": [
        "a",
        "two words",
        "a  b",
        "é 日本",
        "it's",
        "a\\b",
        "2024-01-05",
        "null",
        "NaN",
    ],
    "boolean": ["true", "false", "TRUE", "False"],
    "tinyint": ["0", "5", "-128", "127", "007"],
    "smallint": ["-32768", "32767"],
    "int": ["2147483647", "-2147483648", "12"],
    "bigint": ["9223372036854775807", "-1", "1704448272000"],
    "float": ["1.25E10", "0.1", "-3", "1e-5"],
    "double": ["1.25E10", "0.1", "-3", "1.7976931348623157E308", "1e-5"],
    "decimal(12,2)": ["1.25", "-9999999999.99", "7", "0.5", "12.00"],
    "date": ["2024-02-29", "1970-01-01", "9999-12-31"],
    "timestamp": ["2024-01-05 10:11:12", "1969-12-31 23:59:59", "2024-01-05 10:11:12.123456"],
}


@pytest.mark.parametrize("kind", PLAIN)
def test_what_is_plain_is_read_by_arrow(
    spark: SparkSession, table: Callable[..., FileTable], tmp_path: Path, kind: str
) -> None:
    against = Against(spark, table({"id": "int", "v": kind, "w": kind}), tmp_path)
    numbers = range(len(PLAIN[kind]))
    lines = [f"{n},{text},{text}" for n, text in zip(numbers, PLAIN[kind], strict=True)]
    for end in ("\n", "\r\n"):
        assert against.add((end.join([*lines, "7,,", ",,"]) + end).encode())
    said = against.differences()
    assert not said, "\n".join(said)
    assert all(rows[-2][1] == rows[-2][2] == rows[-1][1] for rows in against.accepted.values())
    assert all(rows[-1][1].endswith(" None") for rows in against.accepted.values())


FIELD = st.text(st.sampled_from("ab é0-"), max_size=6).map(str.strip)


def division(size: int, cuts: Iterable[int]) -> list[tuple[int, int]]:
    """Return a file of this size as byte ranges between these places."""
    places = [0, *sorted({cut for cut in cuts if 0 < cut < size}), size]
    return list(pairwise(places))


@settings(max_examples=300)
@given(
    st.lists(FIELD, max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(1, 120), max_size=8),
    st.sampled_from([3, 16, 1 << 20]),
)
def test_each_line_is_read_once_whatever_the_splits(
    tmp_path_factory: pytest.TempPathFactory, fields: list[str], end: str, ended: bool,
    header: bool, cuts: list[int], block: int,
) -> None:  # fmt: skip
    rows = list(enumerate(fields))
    lines = [*(["id,v"] if header else []), *(f"{n},{field}" for n, field in rows)]
    content = (end.join(lines) + (end if ended and lines else "")).encode()
    path = tmp_path_factory.mktemp("splits") / "a.csv"
    path.write_bytes(content)
    columns: Any = [("id", pa.int32()), ("v", pa.string())]
    read = CsvReader(pa.schema(columns), ",", '"', header)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_csv, "BLOCK_BYTES", block)
        patch.setattr(arrow_csv, "LOOK_BYTES", block)
        for first, stop in division(len(content), cuts) if content else ():
            found += [r for batch in read([[str(path), first, stop]]) for r in batch.to_pylist()]
    assert [(r["id"], r["v"]) for r in found] == [(n, v or None) for n, v in rows]


@settings(max_examples=100)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.integers(1, 5))
def test_each_byte_of_all_files_is_in_one_split(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], cores: int
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    files = [str(folder / f"{n}.csv") for n in range(len(sizes))]
    for file, size in zip(files, sizes, strict=True):
        Path(file).write_bytes(b"x" * size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "SPLIT_BYTES_MAX", 100)
        patch.setattr(splits, "SPLIT_BYTES_LEAST", 10)
        made, total = splits.divide(files, cores)
    parts = [part for split in made for part in splits.parts_of(split)]
    covered = [(file, at) for file, first, end in parts for at in range(first, end)]
    assert covered == [(f, at) for f, size in zip(files, sizes, strict=True) for at in range(size)]
    assert total == sum(sizes)
    lengths = [sum(end - first for _, first, end in splits.parts_of(split)) for split in made]
    assert max(lengths) <= 100 and max(lengths) - min(lengths) <= 1
    assert len(made) % cores == 0 or total < 10 * cores * max(1, -(-total // (100 * cores)))
