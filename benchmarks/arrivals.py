"""Files that arrive in a folder, and an independent reader that says when their rows are visible.

A file arrives by an atomic rename, and the moment is noted.  Every row names the file it came with,
so that the reader, which knows nothing of the engine that wrote, tells for each arrival when its
rows could first be read: when a log names the data file that has them, or, where there is no log,
when that data file has its final name.  It looks a hundred times a second.
"""

import json
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

COLUMNS = {
    "id": "bigint", "origin": "int", "customer": "int", "price": "double", "name": "string",
    "city": "string", "active": "boolean", "day": "date", "at": "timestamp", "score": "double",
}  # fmt: skip
CITIES = ("Aachen", "Berlin", "Chemnitz", "Dresden", "Erfurt", "Frankfurt", "Gera", "Hamburg")
LOOK_S = 0.01


def write_file(path: Path, origin: int, rows: int) -> None:
    """Write one CSV file without a head line, its rows marked with `origin`."""
    chance = np.random.default_rng(origin)
    numbers = chance.integers(0, 100_000, rows)
    seconds = pa.array(1_700_000_000 + numbers).cast(pa.timestamp("s"))
    columns = {
        "id": np.arange(rows, dtype=np.int64) + origin * 1_000_000,
        "origin": np.full(rows, origin, dtype=np.int32),
        "customer": numbers.astype(np.int32),
        "price": chance.random(rows).round(4),
        "name": pc.binary_join_element_wise("name", pa.array(numbers).cast(pa.string()), "-"),
        "city": pa.array(CITIES).take(pa.array(numbers % len(CITIES))),
        "active": numbers % 2 == 0,
        "day": seconds.cast(pa.date32()),
        "at": seconds,
        "score": chance.random(rows).round(4),
    }
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    csv.write_csv(pa.table(columns), path, options)


@dataclass
class Arrivals:
    """A folder in which files arrive, and a folder beside it in which they are made ready."""

    folder: Path
    outbox: Path
    sent: Counter[int] = field(default_factory=Counter)
    """Rows that have arrived, by origin: what must be readable in the end, once."""
    _names: int = 0

    def __post_init__(self) -> None:
        for folder in (self.folder, self.outbox):
            folder.mkdir(parents=True)

    def ready(self, origins: Iterable[int], rows: int, template: Path | None = None) -> list[Path]:
        """Make files ready to arrive; copies of those in `template`, where one is given."""
        made = []
        for origin in origins:
            self._names += 1
            path = self.outbox / f"{self._names:06d}-{origin}.csv"
            if template:
                shutil.copyfile(template / f"{origin}.csv", path)
            else:
                write_file(path, origin, rows)
            self.sent[origin] += rows
            made.append(path)
        os.sync()  # else the disk is busy with them while engines wait for it
        return made

    def arrive(self, files: Iterable[Path], every_s: float = 0.0) -> dict[int, float]:
        """Let files arrive, one every so many seconds; return the moments by origin."""
        moments: dict[int, float] = {}
        due_s = time.monotonic()
        for file in files:
            time.sleep(max(0.0, due_s - time.monotonic()))
            file.rename(self.folder / file.name)
            moments[int(file.stem.rpartition("-")[2])] = time.time()
            due_s += every_s
        return moments


class Plain:
    """No log: a data file can be read from the moment at which it has its final name."""

    where = "."

    def names(self, path: Path) -> str | None:
        """Return what an entry is known by; None if it is none."""
        return None if path.name.startswith((".", "_")) or path.is_dir() else path.name

    def adds(self, path: Path, _out: Path) -> list[Path]:
        """Return the data files that an entry makes visible."""
        return [path]


class SinkLog:
    """The log of Spark's file sink.  An entry may be compacted with all before it."""

    where = "_spark_metadata"

    def names(self, path: Path) -> str | None:
        """Return the number of a micro-batch."""
        number = path.name.removesuffix(".compact")
        return number if number.isdigit() else None

    def adds(self, path: Path, _out: Path) -> list[Path]:
        """Return the data files that a micro-batch has written."""
        lines = path.read_text().splitlines()[1:]
        return [Path(json.loads(line)["path"].removeprefix("file://")) for line in lines]


class DeltaLog:
    """The log of a Delta table."""

    where = "_delta_log"

    def names(self, path: Path) -> str | None:
        """Return a version."""
        return path.stem if path.suffix == ".json" and path.stem.isdigit() else None

    def adds(self, path: Path, out: Path) -> list[Path]:
        """Return the data files that a version adds."""
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        return [out / a["add"]["path"] for a in actions if "add" in a]


Log = Plain | SinkLog | DeltaLog


class Reader:
    """Reads what one engine writes: from when on each data file could be read, and its rows."""

    def __init__(self, out: Path, log: Log) -> None:
        self.out = out
        self.files: dict[Path, tuple[float, int]] = {}
        """Data files with the moment at which they were first seen, and their rows."""
        self._log = log
        self._known: set[str] = set()
        self._rows = 0
        self._failed: Exception | None = None
        self._bell = threading.Condition()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look once more, and then no more."""
        self._done.set()
        self._thread.join()
        self._look()

    @property
    def rows(self) -> int:
        """How many rows could be read when we last looked."""
        return self._rows

    def wait_for(self, rows: int, most_s: float) -> None:
        """Wait until so many rows in all can be read; more than that are an error at once."""
        with self._bell:
            there = self._bell.wait_for(lambda: self._rows >= rows or self._failed, most_s)
        if self._failed:
            raise self._failed
        if not there or self._rows > rows:
            raise SystemExit(f"{self.out} has {self._rows} rows, not {rows}, after {most_s:g} s")

    def commits(self, since_s: float) -> list[tuple[float, int]]:
        """Return moments after one at which rows became visible, in order, and how many."""
        rows: Counter[float] = Counter()
        for moment, count in self.files.values():
            if moment >= since_s:
                rows[moment] += count
        return sorted(rows.items())

    def visible(self, since_s: float) -> dict[int, float]:
        """Return the moment from which on all rows of each origin could be read."""
        moments: dict[int, float] = {}
        for path, (moment, _) in self.files.items():
            if moment >= since_s:
                for origin in self._origins(path):
                    moments[origin] = max(moment, moments.get(origin, 0.0))
        return moments

    def counted(self) -> Counter[int]:
        """Read everything there is: rows by origin."""
        return sum((self._origins(path) for path in self.files), Counter())

    def _origins(self, path: Path) -> Counter[int]:
        if path.suffix == ".parquet":
            column = pq.read_table(path, columns=["origin"])["origin"]
        else:
            names = csv.ReadOptions(column_names=list(COLUMNS))
            column = csv.read_csv(path, names)["origin"]
        found = column.value_counts()
        return Counter({int(x["values"].as_py()): int(x["counts"].as_py()) for x in found})

    def _live(self) -> None:
        while not self._done.wait(LOOK_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001  whoever waits for rows gets it
                with self._bell:
                    self._failed = error
                    self._bell.notify_all()
                return

    def _look(self) -> None:
        fresh = list(self._fresh())
        for name, path in fresh:
            added = [f for f in self._log.adds(path, self.out) if f not in self.files]
            moment = time.time()
            self.files |= {f: (moment, _rows_of(f)) for f in added}
            self._known.add(name)
        if fresh:
            with self._bell:
                self._rows = sum(rows for _, rows in self.files.values())
                self._bell.notify_all()

    def _fresh(self) -> Iterator[tuple[str, Path]]:
        """Yield the entries of the log that are new."""
        folder = self.out / self._log.where
        for path in folder.iterdir() if folder.exists() else ():
            name = self._log.names(path)
            if name is not None and name not in self._known:
                yield name, path


def _rows_of(path: Path) -> int:
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    return path.read_bytes().count(b"\n")
