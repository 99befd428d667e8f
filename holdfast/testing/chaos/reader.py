"""Read what a sink shows, with pyarrow alone: no code of the sinks, none of Spark."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def parquet_files(folder: Path) -> list[Path]:
    """Return all data files below a folder; other folders may vanish from it meanwhile."""

    def look_on(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    walked = os.walk(folder, onerror=look_on)
    return sorted(Path(at, n) for at, _, names in walked for n in names if n.endswith(".parquet"))


def shown_files(folder: Path) -> list[Path]:
    """Return the files a reader of the folder would read: no name on the way is hidden."""
    found = []
    for path in parquet_files(folder):
        parts = path.relative_to(folder).parts
        if not any(part.startswith((".", "_")) for part in parts):
            found.append(path)
    return found


def hidden_files(folder: Path) -> list[Path]:
    """Return the data files that no reader sees: staged, and not committed."""
    shown = set(shown_files(folder))
    return [p for p in parquet_files(folder) if p not in shown]


def ids(folder: Path, column: str = "id") -> Counter[int]:
    """Return how often each id is shown."""
    found: Counter[int] = Counter()
    for path in shown_files(folder):
        values = pq.read_table(path, columns=[column]).column(column).to_pylist()
        found.update(int(str(value)) for value in values)
    return found


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
