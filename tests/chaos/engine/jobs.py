"""Jobs for scenarios: made-up rows with known ids, slow enough to be struck in the middle."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.chaos.engine.modes import modes_of, with_mode
from tests.chaos.engine.reader import flaws
from tests.chaos.engine.sinks import Files, SinkKind

ID_STEP = 10_000_000
ENDLESS = 1_000_000
FILES = Files(Path())


@dataclass(frozen=True)
class From:
    """A source: so many rounds of so many rows, with a rest between rounds."""

    rounds: int = 8
    rows: int = 5
    rest_ms: int = 200

    @property
    def total(self) -> int:
        """All its rows."""
        return self.rounds * self.rows


@dataclass(frozen=True)
class Shape:
    """A job: sources for each of its pipelines, all of which lead to one sink each.

    `interval_ms` None: a bounded job without checkpoints but the final one.  `tables`: into so many
    tables each pipeline writes, all its rows into each.  `first` is the number of the first source:
    jobs that share a table need sources with ids of their own.  `empties`: its tables are emptied.
    `modes`: it has a table for each save mode of its kind of sink, which it "fills" or "empties".
    """

    pipelines: tuple[tuple[From, ...], ...] = ((From(), From()),)
    interval_ms: int | None = 600
    streaming: bool = False
    retries: int = 20
    parallelism: int = 1
    timeout_ms: int | None = None
    tables: int = 1
    first: int = 0
    empties: bool = False
    modes: Literal["", "fills", "empties"] = ""

    @property
    def sources(self) -> list[From]:
        """All sources, in order."""
        return [s for p in self.pipelines for s in p]

    def text(self, name: str, out: Path, kind: SinkKind = FILES) -> str:
        """Return the job file."""
        env = [
            f"job.name = {name}",
            f"job.mode = {'STREAMING' if self.streaming else 'BATCH'}",
            f"parallelism = {self.parallelism}",
            f"job.retry.times = {self.retries}",
            "job.retry.interval.seconds = 0",
        ]
        if self.interval_ms is not None:
            env.append(f"checkpoint.interval = {self.interval_ms}")
        if self.timeout_ms is not None:
            env.append(f"checkpoint.timeout = {self.timeout_ms}")
        return "\n".join(
            ["env {", *(f"  {e}" for e in env), "}", "source {", *self._sources(), "}", "sink {",
             *self._sinks(out, kind), "}", ""]
        )  # fmt: skip

    def _sources(self) -> Iterator[str]:
        for number, one in enumerate(self.sources, self.first):
            yield f"""  FakeSource {{
    plugin_output = s{number}
    row.num = {one.total}
    split.num = {one.rounds}
    split.read-interval = {one.rest_ms}
    auto.increment.enabled = true
    auto.increment.start = {first_id(number)}
    schema {{
      table = "made.rows"
      columns = [{{ name = id, type = bigint }}, {{ name = text, type = string }}]
      primaryKey {{ name = pk, columnNames = [id] }}
    }}
  }}"""

    def _sinks(self, out: Path, kind: SinkKind) -> Iterator[str]:
        for index, part in enumerate(self._numbers(), 1):
            inputs = ", ".join(f"s{number}" for number in part)
            for place, table in enumerate(self.tables_of(index, kind)):
                text = kind.text(inputs, out, table)
                if self.modes:
                    text = with_mode(text, kind, table, place, empties=self.modes == "empties")
                if self.empties:
                    text = text.removesuffix("  }") + "    data_save_mode = DROP_DATA\n  }"
                yield text

    def tables_of(self, index: int, kind: SinkKind = FILES) -> list[str]:
        """Return the tables of a pipeline."""
        count = len(modes_of(kind)) if self.modes else self.tables
        return [f"p{index}", *(f"p{index}_{n}" for n in range(2, count + 1))]

    def _numbers(self) -> Iterator[range]:
        """Return the numbers of the sources of each pipeline."""
        number = self.first
        for part in self.pipelines:
            yield range(number, number + len(part))
            number += len(part)

    def flaws(
        self, out: Path, finished: bool, kind: SinkKind = FILES, beside: Iterable["Shape"] = ()
    ) -> list[str]:
        """Say what is wrong with the rows that a reader sees.

        `beside` are other jobs that write to the same tables.
        """
        found = []
        others = {n for shape in beside for part in shape._numbers() for n in part}
        for index, part in enumerate(self._numbers(), 1):
            for table in self.tables_of(index, kind):
                seen = kind.shown(out, table)
                for number in part:
                    said = self._of_source(number, seen, finished)
                    found += [f"table {table}, source {number}: {f}" for f in said]
                made_by = {(i - 1) // ID_STEP for i in seen}
                if made_by - {*part, *others}:
                    found.append(f"table {table}: rows: ids of no source are shown")
        return found

    def left(self, out: Path, kind: SinkKind = FILES) -> list[str]:
        """Return what was staged and nobody has committed or removed."""
        return kind.left(out)

    def _of_source(self, number: int, seen: Counter[int], finished: bool) -> list[str]:
        first = first_id(number)
        mine = {i: n for i, n in seen.items() if first <= i < first + ID_STEP}
        total = self.sources[number - self.first].total
        return flaws(Counter(mine), first, total * self.parallelism if finished else None)


def first_id(number: int) -> int:
    """Return the first id of a source."""
    return number * ID_STEP + 1


SHORT = Shape()
LONG = Shape(((From(18), From(18)),))
ONE = Shape(((From(18),),))
ONCE = Shape(((From(1, 40), From(1, 40)),), interval_ms=None)
UNEVEN = Shape(((From(2), From(22)),))
THREE = Shape(((From(2), From(18), From(20)),))
PAIR = Shape(((From(3),), (From(22),)))
STREAM = Shape(((From(ENDLESS, 3, 200), From(ENDLESS, 3, 200)),), streaming=True)
