"""Readers and writers that are not ours, one pair or more for each format."""

import base64
import csv
import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from openpyxl.utils.escape import unescape

from tests.formats.matrix import Row, single

ARROW: dict[str, Any] = {
    "id": pa.int64(), "s": pa.string(), "b": pa.bool_(), "i1": pa.int8(), "i2": pa.int16(),
    "i4": pa.int32(), "i8": pa.int64(), "f4": pa.float32(), "f8": pa.float64(),
    "n10": pa.decimal128(10, 2), "n38": pa.decimal128(38, 18), "n0": pa.decimal128(38, 0),
    "d": pa.date32(), "t": pa.time64("us"), "ts": pa.timestamp("us"), "z": pa.timestamp("us",
        "UTC"),
    "y": pa.binary(), "a": pa.list_(pa.decimal128(38, 18)),
    "r": pa.struct([("x", pa.timestamp("us")), ("y", pa.string())]),
    "m": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip

_ESCAPE = re.compile(r"_(x[0-9A-Fa-f]{4}_)")
"""What Excel takes for a character unless its first line is one, which openpyxl leaves undone."""

Read = Callable[[list[Path], list[str]], list[Row]]
Write = Callable[[Path, list[Row], list[str]], None]


def table(rows: list[Row], names: list[str]) -> pa.Table:
    """Return rows as an Arrow table."""
    columns = {n: pa.array([row[n] for row in rows], ARROW[n]) for n in ["id", *names]}
    return pa.table(columns)


def _from_arrow(found: pa.Table) -> list[Row]:
    rows = found.to_pylist()
    for row in rows:
        if isinstance(row.get("m"), list):
            row["m"] = dict(row["m"])
    return rows


def value(name: str, text: Any, raw: bool = False) -> Any:
    """Return what a text, or a part of JSON, is in a column; `raw`: bytes are text."""
    if text is None or (text == "" and name not in ("s", "y")):
        return None
    match name:
        case "b":
            return text if isinstance(text, bool) else {"true": True, "false": False}[text.lower()]
        case "f4":
            return single(float(text))
        case "f8":
            return float(text)
        case "n10" | "n38" | "n0":
            places = {"n10": 2, "n38": 18, "n0": 0}[name]
            number = Decimal(text)
            return number if number.as_tuple().exponent == -places else f"{number} as written"
        case "d":
            return date.fromisoformat(text)
        case "t":
            return time.fromisoformat(text)
        case "ts" | "z":
            return datetime.fromisoformat(text)
        case "y":
            return text.encode() if raw else base64.b64decode(text)
        case "a":
            return [value("n38", one) for one in text]
        case "r":
            return {"x": value("ts", text["x"]), "y": text["y"]}
        case "s":
            return text
    return int(text) if name[0] in "i" else text


def _typed(rows: list[dict[str, Any]], raw: bool) -> list[Row]:
    return [{n: value(n, v, raw) for n, v in row.items()} for row in rows]


# Parquet and ORC


def arrow_parquet(files: list[Path], names: list[str]) -> list[Row]:
    return _from_arrow(pa.concat_tables([pq.ParquetFile(f).read() for f in files]))


def duck_parquet(files: list[Path], names: list[str]) -> list[Row]:
    found = duckdb.sql(f"SELECT * FROM read_parquet({[str(f) for f in files]})").to_arrow_table()
    return _from_arrow(found)


def arrow_orc(files: list[Path], names: list[str]) -> list[Row]:
    rows = _from_arrow(pa.concat_tables([orc.ORCFile(str(f)).read() for f in files]))
    for row in rows:
        if "t" in row:
            row["t"] = value("t", row["t"])
        if row.get("z"):
            row["z"] = row["z"].replace(tzinfo=UTC)
    return rows


def write_parquet(path: Path, rows: list[Row], names: list[str]) -> None:
    pq.write_table(table(rows, names), path)


def duck_write_parquet(path: Path, rows: list[Row], names: list[str]) -> None:
    made = table(rows, names)
    duckdb.sql("SELECT * FROM made").write_parquet(str(path))
    assert made.num_rows


def write_orc(path: Path, rows: list[Row], names: list[str]) -> None:
    orc.write_table(table(rows, names), str(path))


# JSON


def python_json(files: list[Path], names: list[str]) -> list[Row]:
    lines = [line for f in files for line in f.read_text("utf-8").split("\n") if line]
    return _typed([json.loads(line, parse_float=Decimal) for line in lines], False)


def duck_json(files: list[Path], names: list[str]) -> list[Row]:
    flat = [n for n in names if n not in ("a", "r", "m", "n10", "n38")]  # it has doubles there
    columns = dict.fromkeys(["id", *flat], "VARCHAR")
    found = duckdb.sql(
        f"SELECT * FROM read_json({[str(f) for f in files]}, format='newline_delimited',"
        f" columns={columns}, maximum_object_size=10000000)"
    ).to_arrow_table()
    return _typed(found.to_pylist(), False)


def as_json(row: Row, name: str) -> str:
    """Return a value as JSON, numbers with all their digits."""
    found = row[name]
    match found:
        case None | bool() | str() | int():
            return json.dumps(found, ensure_ascii=row["id"] % 2 == 0)
        case float():
            return json.dumps(found)
        case Decimal():
            return str(found) if row["id"] % 3 else json.dumps(str(found))
        case bytes():
            return json.dumps(base64.b64encode(found).decode())
        case list():
            return "[" + ",".join("null" if v is None else str(v) for v in found) + "]"
        case dict() if name == "r":
            moment = found["x"].isoformat(" ") if found["x"] else None
            return json.dumps({"y": found["y"], "x": moment})
        case dict():
            return json.dumps(found)
    return json.dumps(found.isoformat())


def write_json(path: Path, rows: list[Row], names: list[str]) -> None:
    lines = ("{" + ", ".join(f'"{n}": {as_json(r, n)}' for n in ["id", *names]) + "}" for r in rows)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def write_odd_json(path: Path, rows: list[Row], names: list[str]) -> None:
    """One line has a number in a text column, so that Arrow gives up the whole block."""
    write_json(path, rows, names)
    text = path.read_text("utf-8")
    path.write_text('{"id": -1, "s": 0.10}\n' + text, "utf-8")


# csv and text


def python_csv(files: list[Path], names: list[str]) -> list[Row]:
    found: list[Row] = []
    for file in files:
        with file.open(newline="", encoding="utf-8") as opened:
            found += [dict(zip(["id", *names], r, strict=True)) for r in csv.reader(opened)]
    return _typed(found, True)


def duck_csv(files: list[Path], names: list[str]) -> list[Row]:
    columns = dict.fromkeys(["id", *names], "VARCHAR")
    found = duckdb.sql(
        f"SELECT * FROM read_csv({[str(f) for f in files]}, columns={columns}, header=false,"
        " delim=',', quote='\"', escape='\"', auto_detect=false, strict_mode=true, new_line='\\n',"
        " max_line_size=10000000)"
    ).to_arrow_table()
    rows = [{n: "" if v is None else v for n, v in row.items()} for row in found.to_pylist()]
    return _typed(rows, True)


def as_text(found: Any) -> str:
    match found:
        case None:
            return ""
        case bool():
            return str(found).lower()
        case float():
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(
                str(found), repr(found)
            )
        case bytes():
            return found.decode()
        case datetime() | date() | time():
            return found.isoformat()
    return str(found)


def write_csv(path: Path, rows: list[Row], names: list[str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([as_text(r[n]) for n in ["id", *names]] for r in rows)


def python_text(files: list[Path], names: list[str]) -> list[Row]:
    lines = [line for f in files for line in f.read_bytes().decode().split("\n") if line]
    return _typed([dict(zip(["id", *names], x.split("\1"), strict=True)) for x in lines], True)


def write_text(path: Path, rows: list[Row], names: list[str]) -> None:
    lines = ("\1".join(as_text(r[n]) for n in ["id", *names]) + "\n" for r in rows)
    path.write_bytes("".join(lines).encode())


# XML and Excel


def python_xml(files: list[Path], names: list[str]) -> list[Row]:
    rows = [e for f in files for e in ET.parse(f).getroot()]
    found = [dict(e.attrib) or {c.tag: c.text or "" for c in e} for e in rows]
    return _typed(found, True)


def write_xml(path: Path, rows: list[Row], names: list[str]) -> None:
    root = ET.Element("ROWS")
    for row in rows:
        element = ET.SubElement(root, "RECORD")
        for name in ["id", *names]:
            ET.SubElement(element, name).text = as_text(row[name])
    # The library writes \r as it is, which a parser must turn into \n.
    path.write_bytes(ET.tostring(root, "utf-8").replace(b"\r", b"&#13;"))


def python_excel(files: list[Path], names: list[str]) -> list[Row]:
    found: list[Row] = []
    for file in files:
        sheet = openpyxl.load_workbook(file).active
        assert sheet is not None
        head, *rest = sheet.iter_rows(values_only=True)
        found += [dict(zip(map(str, head), r, strict=True)) for r in rest]
    for row in found:
        for name in names:
            if name in ("n10",) and isinstance(row[name], int | float):
                row[name] = f"{row[name]:.2f}"
            elif row[name] is not None and not isinstance(row[name], bool):
                text = row[name]
                row[name] = unescape(text) if isinstance(text, str) else repr(text)
    return _typed(found, True)


def write_excel(path: Path, rows: list[Row], names: list[str]) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for at, row in enumerate(rows, 1):
        for column, name in enumerate(["id", *names], 1):
            found = row[name]
            plain = isinstance(found, bool) or (isinstance(found, int) and abs(found) <= 10**15)
            if isinstance(found, float):
                # openpyxl writes no more digits.
                plain = math.isfinite(found) and f"{found:.16g}" == repr(found)
            cell = sheet.cell(at, column)
            cell.value = found if plain else _ESCAPE.sub(r"_x005F_\1", as_text(found)) or None
            if isinstance(cell.value, str):
                cell.data_type = "s"
    book.save(path)


def instant(micros: int) -> datetime:
    """Return the instant so many microseconds after 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
