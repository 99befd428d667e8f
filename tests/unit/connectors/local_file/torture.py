"""Csv files that readers get wrong, and what stands in each.

A case is bytes of a file with the columns `id int, v string, x double` unless it says otherwise.
`rows` is what is read; where `rule` says something, the file has a row that is refused, on `line`,
and `rows` are the others.  `outsiders` are those of Python's csv and DuckDB that agree.
"""

import gzip
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

COLUMNS = {"id": "int", "v": "string", "x": "double"}
BOTH = ("python", "duckdb")
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One file."""

    name: str
    content: bytes
    rows: tuple[Row, ...]
    rule: str = ""
    line: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    outsiders: tuple[str, ...] = BOTH
    rejected: int = 1
    file: str = "a.csv"


def good(name: str, content: str | bytes, *rows: Row, **more: Any) -> Case:
    """A file that is read whole."""
    data = content.encode() if isinstance(content, str) else content
    return Case(name, data, rows, **more)


def bad(name: str, content: str | bytes, rule: str, line: int, *rows: Row, **more: Any) -> Case:
    """A file with a row that does not fit."""
    data = content.encode() if isinstance(content, str) else content
    more.setdefault("outsiders", ())
    return Case(name, data, rows, rule, line, **more)


def zipped(content: bytes) -> bytes:
    """Return a zip archive with one csv file."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("in.csv", content)
    return made.getvalue()


A, B, C = (1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)
LINES = "1,a,1.0\n2,b,2.0\n3,c,3.0\n"
LF_IN = '1,"a\nb",1.0\n2,b,2.0\n'
HEAD = {"skip_header_row_number": 1}
NAMES = {"csv_use_header_line": True}
PY = ("python",)

CASES = (
    good("plain", LINES, A, B, C),
    good("quoted", '"1","a","1.0"\n"2","b","2.0"\n', A, B),
    good("quoted_lf", LF_IN, (1, "a\nb", 1.0), B),
    good("quoted_crlf", '1,"a\r\nb",1.0\r\n2,b,2.0\r\n', (1, "a\r\nb", 1.0), B),
    good("quoted_cr", '1,"a\rb",1.0\n2,b,2.0\n', (1, "a\rb", 1.0), B),
    good("many_line_breaks", '1,"\n\n\n",1.0\n2,"\n",2.0\n', (1, "\n\n\n", 1.0), (2, "\n", 2.0)),
    good("like_a_row_inside", '1,"x\n2,b,2.0\ny",1.0\n3,c,3.0\n', (1, "x\n2,b,2.0\ny", 1.0), C),
    good("like_quotes_inside", '1,"x\n"",""\ny",1.0\n2,b,2.0\n', (1, 'x\n","\ny', 1.0), B),
    good("rows_end_cr", "1,a,1.0\r2,b,2.0\r", A, B, outsiders=("duckdb",)),
    good("rows_end_cr_quoted", '1,"a\rb",1.0\r2,b,2.0\r', (1, "a\rb", 1.0), B, outsiders=()),
    good("rows_end_crlf", "1,a,1.0\r\n2,b,2.0\r\n", A, B),
    good("mixed_ends", "1,a,1.0\r\n2,b,2.0\n3,c,3.0\r\n", A, B, C, outsiders=PY),
    good("quote_doubled", '1,"a""b",1.0\n2,b,2.0\n', (1, 'a"b', 1.0), B),
    good("quote_doubled_lf", '1,"a""\n""b",1.0\n2,b,2.0\n', (1, 'a"\n"b', 1.0), B),
    good("only_doubled", '1,"""",1.0\n2,"""""",2.0\n', (1, '"', 1.0), (2, '""', 2.0)),
    good("quote_escaped", '1,"a\\"b",1.0\n2,b,2.0\n', (1, 'a"b', 1.0), B,
         options={"escape_char": "\\"}),
    good("quote_escaped_lf", '1,"a\\"\nb",1.0\n2,b,2.0\n', (1, 'a"\nb', 1.0), B,
         options={"escape_char": "\\"}),
    good("escape_escaped", '1,"a\\\\",1.0\n2,b,2.0\n', (1, "a\\", 1.0), B,
         options={"escape_char": "\\"}),
    good("backslash_end_quoted", '1,"a\\",1.0\n2,b,2.0\n', (1, "a\\", 1.0), B),
    good("backslashes", "1,a\\nb,1.0\n2,\\,2.0\n", (1, "a\\nb", 1.0), (2, "\\", 2.0)),
    good("mid_quote_pair", '1,a "q" b,1.0\n2,b,2.0\n', (1, 'a "q" b', 1.0), B),
    good("mid_quote_odd", '1,5" pipe,1.0\n2,b,2.0\n', (1, '5" pipe', 1.0), B),
    good("mid_quote_odd_2rows", '1,5" pipe,1.0\n2,7" pipe,2.0\n3,"c\nd",3.0\n',
         (1, '5" pipe', 1.0), (2, '7" pipe', 2.0), (3, "c\nd", 3.0)),
    good("mid_quote_then_lf", '1,a"\n2,b"c,2.0\n'.replace('a"\n', 'a",1.0\n'),
         (1, 'a"', 1.0), (2, 'b"c', 2.0)),
    good("blank_before_quote", '1, "a",1.0\n2,b,2.0\n', (1, ' "a"', 1.0), B, outsiders=PY),
    good("single_quotes", "1,'a,1.0\n2,'b',2.0\n", (1, "'a", 1.0), (2, "'b'", 2.0)),
    good("other_quote", "1,'a\n''b',1.0\n2,b,2.0\n", (1, "a\n'b", 1.0), B,
         options={"quote_char": "'"}),
    good("blank_lines", "1,a,1.0\n\n\r\n2,b,2.0\n\n", A, B, outsiders=PY),
    good("first_line_blank", "\n1,a,1.0\n", A, outsiders=PY),
    good("only_commas", ",,\n1,a,1.0\n,,\n", (None,) * 3, A, (None,) * 3),
    good("bom", b"\xef\xbb\xbf1,a,1.0\n2,b,2.0\n", A, B),
    good("bom_header", b"\xef\xbb\xbfid,v,x\n1,a,1.0\n", A, options=HEAD),
    good("bom_quoted", b'\xef\xbb\xbf"1","a\nb","1.0"\n2,b,2.0\n', (1, "a\nb", 1.0), B),
    good("nul_in_value", "1,a\0b,1.0\n2,b,2.0\n", (1, "a\0b", 1.0), B),
    good("nul_in_quoted", '1,"a\0\nb",1.0\n2,b,2.0\n', (1, "a\0\nb", 1.0), B),
    good("empty_is_null", '1,,1.0\n2,"",2.0\n', (1, None, 1.0), (2, None, 2.0)),
    good("blanks_stay", "1, a ,1.0\n2,  ,2.0\n", (1, " a ", 1.0), (2, "  ", 2.0)),
    good("no_last_lf", "1,a,1.0\n2,b,2.0", A, B),
    good("no_last_lf_quoted", '1,a,1.0\n2,"b\nc","2.0"', A, (2, "b\nc", 2.0)),
    good("trailing_delimiter", "1,a,1.0,\n2,b,2.0,\n", A, B, outsiders=("duckdb",)),
    good("trailing_delimiter_once", "1,a,1.0,\n2,b,2.0\n", A, B, outsiders=()),
    good("header_quoted_lf", 'id,"v\n1",x\n1,a,1.0\n', A, options=HEAD),
    good("header_shorter", "id\n1,a,1.0\n2,b,2.0\n", A, B, options=HEAD, outsiders=PY),
    good("header_longer", "id,v,x,y,z\n1,a,1.0\n", A, options=HEAD, outsiders=PY),
    good("three_lines_skipped", "report\n\nid,v,x\n1,a,1.0\n", A, outsiders=(),
         options={"skip_header_row_number": 3}),
    good("header_order", 'x,"v",id\n1.0,"a\nb",1\n', (1, "a\nb", 1.0), options=NAMES, outsiders=()),
    good("header_short", "v,id\na,1\n", (1, "a", None), options=NAMES, outsiders=()),
    good("header_long", "y,x,v,id\n?,1.0,a,1\n", A, options=NAMES, outsiders=()),
    good("gbk", '1,"中\n文",1.0\n2,丂\\,2.0\n'.encode("gbk"), (1, "中\n文", 1.0), (2, "丂\\", 2.0),
         options={"encoding": "gbk"}, outsiders=PY),
    good("gbk_pipe", "1|中|1.0\n2|乗|2.0\n".encode("gbk"), (1, "中", 1.0), (2, "乗", 2.0),
         options={"encoding": "gbk", "delimiter": "|"}, outsiders=PY),
    good("utf16", '1,"a\nä",1.0\n2,b,2.0\n'.encode("utf-16"), (1, "a\nä", 1.0), B,
         options={"encoding": "utf-16"}, outsiders=PY),
    good("latin1", '1,"a\nä",1.0\n2,b,2.0\n'.encode("latin-1"), (1, "a\nä", 1.0), B,
         options={"encoding": "iso-8859-1"}, outsiders=PY),
    good("delimiter_of_two", '1||"a\n||b"||1.0\n2||b|||2.0\n3||c||3.0\n'.replace("b|||", "b||"),
         (1, "a\n||b", 1.0), B, C, options={"delimiter": "||"}, outsiders=("duckdb",)),
    good("delimiter_of_two_and_its_stand_in", '1||"\x1f"||1.0\n', (1, "\x1f", 1.0),
         options={"delimiter": "||"}, outsiders=("duckdb",)),
    good("delimiter_x01", '1\x01"a\nb"\x011.0\n2\x01b\x012.0\n', (1, "a\nb", 1.0), B,
         options={"delimiter": "\x01"}),
    good("delimiter_not_ascii", '1§"a\n§"§1.0\n2§b§2.0\n', (1, "a\n§", 1.0), B,
         options={"delimiter": "§"}, outsiders=PY),
    good("delimiter_tab", '1\t"a\tb"\t1.0\n', (1, "a\tb", 1.0), options={"delimiter": "\t"}),
    good("row_delimiter", '1,"a|\nb",1.0|\n2,b\nc,2.0|\n', (1, "a|\nb", 1.0), (2, "b\nc", 2.0),
         options={"row_delimiter": "|\n"}, outsiders=()),
    good("cast_quoted", '"1","a","1.5"\n', (1, "a", 1.5)),
    good("signs_and_blanks", "+1,a, 1.0 \n 2 ,b,+2.0\n", A, B, outsiders=()),
    good("null_format", 'NULL,NULL,NULL\n1,"NULL",1.0\n', (None,) * 3, (1, None, 1.0),
         options={"null_format": "NULL"}, outsiders=()),
    good("one_column", 'a\n"b\nc"\n\nd\n', ("a",), ("b\nc",), ("d",), columns={"v": "string"},
         outsiders=PY),
    good("wide", ",".join(map(str, range(2000))) + "\n", tuple(range(2000)),
         columns={f"c{n}": "int" for n in range(2000)}, outsiders=PY),
    good("large_field", '1,"' + "line\n" * 200_000 + '",1.0\n2,b,2.0\n',
         (1, "line\n" * 200_000, 1.0), B, outsiders=PY),
    good("gz", gzip.compress(LF_IN.encode()), (1, "a\nb", 1.0), B, file="a.csv.gz",
         outsiders=("duckdb",)),
    good("zip", zipped(LF_IN.encode()), (1, "a\nb", 1.0), B, file="a.zip", outsiders=(),
         options={"archive_compress_codec": "zip"}),
    good("padded", "1\n2,b\n3,c,3.0\n", (1, None, None), (2, "b", None), C,
         options={"null_padding": True}, outsiders=("duckdb",)),
    good("surplus_left_out", '1,a,1.0,x,y\n2,b,2.0,"\n"\n', A, B, options={"strict_mode": False},
         outsiders=()),
    good("text_after_quote_kept", '1,"a" b,1.0\n2,b,2.0\n', (1, "a b", 1.0), B,
         options={"strict_mode": False}, outsiders=PY),
    bad("too_few", "1,a,1.0\n2,b\n3,c,3.0\n", "it has 2 fields, and the table has 3", 2, A, C),
    bad("too_few_at_end", "1,a,1.0\n2,b", "it has 2 fields", 2, A),
    bad("too_many", "1,a,1.0\n2,b,2.0,x\n3,c,3.0\n", "it has 4 fields", 2, A, C),
    bad("spaces_line", "1,a,1.0\n   \n3,c,3.0\n", "it has 1 field", 2, A, C),
    bad("unquoted_line_break", "1,a\nb,1.0\n2,b,2.0\n", "it has 2 fields", 1, B, rejected=2),
    bad("text_after_quote", '1,"a" b,1.0\n2,b,2.0\n', "text follows the closing quote", 1, B),
    bad("blank_after_quote", '1,"a" ,1.0\n2,b,2.0\n', "text follows the closing quote", 1, B),
    bad("text_after_quoted_lf", '1,"a\n"b,1.0\n2,b,2.0\n', "text follows", 1, B),
    bad("unclosed_at_end", '1,a,1.0\n2,"b,2.0\n3,c,3.0\n', "never closed", 2, A, rejected=2),
    bad("unclosed_first", '1,"a,1.0\n' + "2,b,2.0\n" * 1000, "takes in 1,001 lines", 1,
        rejected=1001),
    bad("cast_int", "1,a,1.0\nx7,b,2.0\n3,c,3.0\n", "column id = 'x7' is not an int", 2, A, C),
    bad("cast_behind_quoted_lf", '1,"a\n\nb",1.0\n2,b,two\n', "column x = 'two'", 4,
        (1, "a\n\nb", 1.0)),
    bad("cast_hex", "1,a,1.0\n0x1F,b,2.0\n", "column id = '0x1F'", 2, A),
    bad("cast_too_large", "1,a,1.0\n2147483648,b,2.0\n", "column id = '2147483648'", 2, A),
    bad("cast_infinite", "1,a,1.0\n2,b,1e999\n", "column x = '1e999' is not a double", 2, A),
    bad("cast_suffix", "1,a,1.0\n2,b,12d\n", "column x = '12d' is not a double", 2, A),
    bad("bad_utf8", b"1,a,1.0\n2,\xff,2.0\n3,c,3.0\n", "column v has bytes that are not UTF-8", 2,
        A, C),
    bad("bad_gbk", "1,中,1.0\n".encode("gbk") + b"2,\xff\xff,2.0\n", "bytes that are not gbk", 2,
        (1, "中", 1.0), options={"encoding": "gbk"}),
    bad("bad_utf16", "1,a,1.0\n2,b\ud800,2.0\n".encode("utf-16", "surrogatepass"),
        "bytes that are not utf-16", 2, A, options={"encoding": "utf-16"}),
    bad("too_long", "1,a,1.0\n2," + "b" * 100 + ",2.0\n3,c,3.0\n", "more than 50 bytes", 2, A, C,
        options={"max_line_size": 50}),
    bad("too_long_at_end", "1,a,1.0\n2," + "b" * 100, "more than 50 bytes", 2, A,
        options={"max_line_size": 50}),
    bad("too_long_with_lines", '1,a,1.0\n2,"b' + "\n" * 100 + '",2.0\n3,c,3.0\n', "in 101 lines", 2,
        A, C, options={"max_line_size": 50}, rejected=101),
    bad("unclosed_cr", '1,a,1.0\r2,"b,2.0\r3,c,3.0\r', "takes in 2 lines", 2, A, rejected=2),
    bad("unclosed_crlf_no_last", '1,"a,1.0\r\n2,b,2.0\r\n3', "takes in 3 lines", 1, rejected=3),
    bad("instant_before_year_1", "0001-01-01 00:00:00+02:00\n2024-01-05T10:11:12Z\n",
        "column t = '0001-01-01 00:00:00+02:00' is not a timestamp_tz", 1,
        (datetime(2024, 1, 5, 10, 11, 12, tzinfo=UTC),), columns={"t": "timestamp_tz"}),
    bad("bad_in_gz", gzip.compress(b"1,a,1.0\n2,b\n"), "it has 2 fields", 2, A, file="a.csv.gz"),
    bad("bad_in_zip", zipped(b"1,a,1.0\n2,b\n"), "it has 2 fields", 2, A, file="a.zip",
        options={"archive_compress_codec": "zip"}),
    bad("bad_behind_cr", "1,a,1.0\r2,b\r3,c,3.0\r", "it has 2 fields", 2, A, C),
    bad("bad_behind_header", "id,v,x\n1,a,1.0\n2,b\n", "it has 2 fields", 3, A, options=HEAD),
    bad("bad_by_name", "v,id,x\na,1,1.0\nb,y,2.0\n", "column id = 'y'", 3, A, options=NAMES),
)  # fmt: skip
