"""Read what a sink shows, with pyarrow, openpyxl and Python's own readers: no code of the sinks,
none of Spark."""

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

SUFFIXES = {
    "parquet": ".parquet", "csv": ".csv", "text": ".txt", "json": ".json", "orc": ".orc",
    "excel": ".xlsx", "xml": ".xml",
}  # fmt: skip
"""The formats of files that can be read, and how the names of their files end."""


def data_files(folder: Path, suffixes: tuple[str, ...] = tuple(SUFFIXES.values())) -> list[Path]:
    """Return all data files below a folder; other folders may vanish from it meanwhile."""

    def look_on(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    walked = os.walk(folder, onerror=look_on)
    return sorted(Path(at, n) for at, _, names in walked for n in names if n.endswith(suffixes))


def parquet_files(folder: Path) -> list[Path]:
    """Return all Parquet files below a folder."""
    return data_files(folder, (".parquet",))


def shown_files(folder: Path) -> list[Path]:
    """Return the files a reader of the folder would read: no name on the way is hidden."""
    found = []
    for path in data_files(folder):
        parts = path.relative_to(folder).parts
        if not any(part.startswith((".", "_")) for part in parts):
            found.append(path)
    return found


def hidden_files(folder: Path) -> list[Path]:
    """Return the data files that no reader sees: staged, and not committed."""
    shown = set(shown_files(folder))
    return [p for p in data_files(folder) if p not in shown]


def ids(folder: Path) -> Counter[int]:
    """Return how often each id is shown."""
    found: Counter[int] = Counter()
    for path in shown_files(folder):
        found.update(int(str(value)) for value in READERS[path.suffix](path))
    return found


def _lines(delimiter: str) -> Callable[[Path], list[object]]:
    """Return what reads the first fields of lines."""

    def read(path: Path) -> list[object]:
        with path.open(newline="") as lines:
            return [row[0] for row in csv.reader(lines, delimiter=delimiter)]

    return read


def _parquet(path: Path) -> list[object]:
    return list(pq.read_table(path, columns=["id"]).column("id").to_pylist())


def _orc(path: Path) -> list[object]:
    return list(po.read_table(path, columns=["id"]).column("id").to_pylist())


def _json(path: Path) -> list[object]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def _excel(path: Path) -> list[object]:
    book = import_module("openpyxl").load_workbook(path, read_only=True)
    try:
        rows = [row for sheet in book for row in sheet.iter_rows(values_only=True)]
        return [row[0] for row in rows if row[0] != "id"]
    finally:
        book.close()


def _xml(path: Path) -> list[object]:
    rows = ElementTree.parse(path).getroot()
    return [row.get("id") or row.findtext("id") for row in rows]


READERS: dict[str, Callable[[Path], list[object]]] = {
    ".parquet": _parquet, ".csv": _lines(","), ".txt": _lines("\x01"), ".json": _json,
    ".orc": _orc, ".xlsx": _excel, ".xml": _xml,
}  # fmt: skip


def ids_of(files: Iterable[Path]) -> Counter[int]:
    """Return the ids in files that others may be writing or moving at this moment."""
    found: Counter[int] = Counter()
    for path in files:
        try:
            values = pq.ParquetFile(path).read(["id"]).column("id").to_pylist()
        except (FileNotFoundError, pa.ArrowInvalid):
            continue  # it was moved, or is not whole yet
        found.update(int(str(value)) for value in values)
    return found


def flaws(found: Counter[int], first: int, count: int | None) -> list[str]:
    """Say what is wrong with the ids shown: all from `first` on, `count` of them, each once.

    `count` None: any number, but without a gap.
    """
    said = []
    twice = [i for i, times in found.items() if times > 1]
    if twice:
        said.append(f"rows: {len(twice)} ids are shown more than once, such as {min(twice)}")
    expected = count if count is not None else len(found)
    wanted = set(range(first, first + expected))
    lost, strange = wanted - set(found), set(found) - wanted
    if lost:
        said.append(f"rows: {len(lost)} ids are missing, such as {min(lost)}")
    if strange:
        said.append(f"rows: {len(strange)} ids do not belong there, such as {min(strange)}")
    return said
