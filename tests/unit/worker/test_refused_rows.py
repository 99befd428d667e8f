"""A row that does not fit ends its job at once, in one sentence: file or table, row, column, value.

Jobs as a worker runs them, with real files and servers, so that what people read is looked at.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from tests.unit.connectors.conftest import make
from tests.unit.connectors.jdbc.conftest import (
    Server,
    mariadb,
    mariadb_server,
    postgres,
    postgres_server,
    server,
)
from tests.unit.worker.bench import Play
from tests.unit.worker.test_root_causes import failure

__all__ = ["make", "mariadb", "mariadb_server", "postgres", "postgres_server", "server"]

pytestmark = pytest.mark.spark

ROWS = [(1, "7"), (2, "x3")]


def write_json(path: Path) -> None:
    path.write_text("".join(f'{{"id": {i}, "v": "{v}"}}\n' for i, v in ROWS))


def write_xml(path: Path) -> None:
    rows = "".join(f"<r><id>{i}</id><v>{v}</v></r>" for i, v in ROWS)
    path.write_text(f"<x>{rows}</x>")


def write_excel(path: Path) -> None:
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    for at, row in enumerate(ROWS):
        sheet.write_row(at, 0, row)
    book.close()


def table() -> pa.Table:
    return pa.table({"id": [i for i, _ in ROWS], "v": [v for _, v in ROWS]})


def write_parquet(path: Path) -> None:
    pq.write_table(table(), path)


def write_orc(path: Path) -> None:
    orc.write_table(table(), str(path))


SOURCES: dict[str, tuple[Callable[[Path], None], str, str, str]] = {
    "json": (write_json, "", "line 2", 'Row: {"id": 2, "v": "x3"}'),
    "xml": (write_xml, "xml_row_tag = r, xml_use_attr_format = false", "row 2", "Row: 2 | x3"),
    "excel": (write_excel, "", "row 2", "Row: 2 | x3"),
    "parquet": (write_parquet, "", "", "Row: id = 2, v = x3"),
    "orc": (write_orc, "", "", "Row: id = 2, v = x3"),
}
"""What writes a file, the source's options, the place in it and how the row is shown."""


@pytest.mark.parametrize("form", SOURCES)
def test_a_row_of_a_file(play: Play, tmp_path: Path, form: str) -> None:
    write, options, place, row = SOURCES[form]
    write(tmp_path / f"in.{'xlsx' if form == 'excel' else form}")
    source = (
        f'LocalFile {{ path = "{tmp_path}", file_format_type = {form}, {options}\n'
        " schema { fields { id = int, v = int } } }"
    )
    held = failure(play, source, "Console {}")
    said = str(held.failure)
    assert said.startswith("Source[0]-LocalFile cannot read ") and f"{tmp_path}/in." in said
    assert place in said and "column v = 'x3' is not an int" in said and row in said
    assert ("row_error_handle_way = SKIP" in said) or ("declare the column" in said)
    assert held.fatal, "it does not heal, so it is not tried again"


LONG = '"' + "y" * 33_000 + '"'

SINKS = {
    "excel": ("file_format_type = excel", LONG, "row 1, column v", "SUBSTRING"),
    "xml": (
        "file_format_type = xml, xml_use_attr_format = false",
        r'"a\u0001"',
        "Row: id = 7, v = a",
        "REPLACE",
    ),
    "csv": ("file_format_type = csv, encoding = gbk", '"ß"', "Row: 7,ß", "encoding = UTF-8"),
}  # fmt: skip
"""The sink's options, a value that it cannot write, and what is said of the row and the remedy."""


@pytest.mark.parametrize("form", SINKS)
def test_a_row_for_a_file(play: Play, tmp_path: Path, form: str) -> None:
    options, value, row, remedy = SINKS[form]
    source = (
        f"FakeSource {{ rows = [{{ kind = INSERT, fields = [7, {value}] }}]\n"
        " schema { fields { id = int, v = string } } }"
    )
    held = failure(play, source, f'LocalFile {{ path = "{tmp_path}/out", {options} }}')
    said = str(held.failure)
    assert said.startswith("LocalFile cannot write ") and row in said and remedy in said
    assert len(said) < 1000 and held.fatal


def test_a_time_for_orc(play: Play, tmp_path: Path) -> None:
    lost = pa.array([datetime(1969, 12, 31, 23, 59, 59, 500_000)], pa.timestamp("us"))
    pq.write_table(pa.table({"id": [7], "t": lost}), tmp_path / "in.parquet")
    source = f'LocalFile {{ path = "{tmp_path}/in.parquet", file_format_type = parquet }}'
    held = failure(play, source, f'LocalFile {{ path = "{tmp_path}/o", file_format_type = orc }}')
    assert "column t has the time 1969-12-31 23:59:59.5" in str(held.failure)
    assert "Row: id = 7, t = " in str(held.failure) and held.fatal


TABLES = [
    ("numeric(10,2)", "string", '"1.005"', "'1.005' does not fit ", "Row: id = 7, v = 1.005"),
    ("int", "string", '"x3"', "'x3' does not fit ", "Row: id = 7, v = x3"),
    ("int", "bigint", "5000000000", "'5000000000' does not fit ", "Row: id = 7, v = 5000000000"),
    ("int NOT NULL", "int", "null", "the column takes no null", "Row: id = 7, v = null"),
    ("date", "string", '"soon"', "soon", "Correct the value, convert it before (Sql)"),
]
"""A column's type, a value of the stream, and what is said; the last by the servers alone."""


@pytest.mark.parametrize(("ddl", "kind", "value", "said", "also"), TABLES)
def test_a_row_for_a_table(
    play: Play, server: Server, ddl: str, kind: str, value: str, said: str, also: str
) -> None:
    server.run(f"CREATE TABLE narrow (id int, v {ddl})")
    source = (
        f"FakeSource {{ rows = [{{ kind = INSERT, fields = [7, {value}] }}]\n"
        f" schema {{ fields {{ id = int, v = {kind} }} }} }}"
    )
    user = "postgres" if server.kind == "postgresql" else "root"
    sink = (
        f'Jdbc {{ url = "{server.url}", user = {user}, password = hush, table = narrow\n'
        " schema_save_mode = IGNORE }"
    )
    held = failure(play, source, sink)
    failed = str(held.failure)
    assert "Jdbc cannot write " in failed and "narrow" in failed and said in failed
    assert also in failed and "holdfast_stage" not in failed
    assert held.fatal and server.run("SELECT * FROM narrow") == []
