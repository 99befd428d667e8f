"""Text files: lines as they are, or fields between delimiters, with quotes where a job says so."""

import bz2
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.errors import UserError
from tests.unit.connectors.local_file.test_torture import read

Make = Callable[..., Any]
FIELDS = {"fields": {"id": "int", "v": "string"}}


def given(source: Make, path: Path, **options: Any) -> Any:
    return source(path=str(path), **{"file_format_type": "text", **options}).options


def test_lines_are_rows_as_they_are_wherever_the_file_is_cut(source: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    lines = ['a "b', "", "  ", "\x1f,\0\\", "é", 'c"', "\x01"]
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    table = given(source, path)
    wanted = ([(line,) for line in lines if line], 0)
    for cut in range(path.stat().st_size):
        assert read(table, path, [cut]) == wanted


def test_quotes_of_text_files_are_characters_unless_a_job_names_them(
    source: Make, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text('1\x01"a\n2\x01b"\n')
    assert read(given(source, path, schema=FIELDS), path) == ([(1, '"a'), (2, 'b"')], 0)
    path.write_text('1\x01"a\n\x01b"\n2\x01c\n')
    quoted = given(source, path, schema=FIELDS, quote_char='"')
    for cut in range(path.stat().st_size):
        assert read(quoted, path, [cut]) == ([(1, "a\n\x01b"), (2, "c")], 0)


def test_a_line_that_does_not_fit_is_named(source: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"1|a\n2\n")
    table = given(source, path, schema=FIELDS, delimiter="|")
    with pytest.raises(UserError, match=r"a\.txt, line 2: it has 1 field, and the table has 2\."):
        read(table, path)
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(UserError, match=r"a\.txt, line 2: column content has bytes that are not"):
        read(given(source, path), path)


def snappy(data: bytes) -> bytes:
    """Return a block as Hadoop packs it, in two parts."""
    return hadoop(data, pa.Codec("snappy"))


def lz4(data: bytes) -> bytes:
    """Return a block as Hadoop packs it, in two parts."""
    return hadoop(data, pa.Codec("lz4_raw"))


def hadoop(data: bytes, codec: Any) -> bytes:
    made = len(data).to_bytes(4, "big")
    for part in (data[:7], data[7:]):
        packed = codec.compress(part, asbytes=True)
        made += len(packed).to_bytes(4, "big") + packed
    return made


@pytest.mark.parametrize(
    ("ending", "pack"),
    [(".bz2", bz2.compress), (".deflate", zlib.compress), (".snappy", snappy), (".lz4", lz4),
     (".zst", lambda data: pa.Codec("zstd").compress(data, asbytes=True))],
)  # fmt: skip
def test_a_files_ending_says_how_it_is_packed(
    source: Make, tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.csv{ending}"
    path.write_bytes(pack(b'1,"a\nb"\n' + b"2,aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 500))
    table = given(source, path, file_format_type="csv", schema=FIELDS)
    rows, rejected = read(table, path, [3])
    assert rows == [(1, "a\nb"), *[(2, "a" * 28)] * 500] and not rejected


def test_a_packed_file_that_is_cut_short_is_named(source: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.snappy"
    path.write_bytes(snappy(b"1,a\n2,b\n3,c\n")[:-2])
    with pytest.raises(UserError, match=r"a\.csv\.snappy: it ends too soon"):
        read(given(source, path, file_format_type="csv", schema=FIELDS), path)
