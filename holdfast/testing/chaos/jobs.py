"""Jobs for scenarios: made-up rows with known ids, slow enough to be struck in the middle."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing.chaos.reader import flaws, hidden_files, ids

ID_STEP = 10_000_000
ENDLESS = 1_000_000


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

    `interval_ms` None: a bounded job without checkpoints but the final one.
    """

    pipelines: tuple[tuple[From, ...], ...] = ((From(), From()),)
    interval_ms: int | None = 600
    streaming: bool = False
    retries: int = 20
    parallelism: int = 1

    @property
    def sources(self) -> list[From]:
        """All sources, in order."""
        return [s for p in self.pipelines for s in p]

    def text(self, name: str, out: Path) -> str:
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
        return "\n".join(
            ["env {", *(f"  {e}" for e in env), "}", "source {", *self._sources(), "}", "sink {",
             *self._sinks(out), "}", ""]
        )  # fmt: skip

    def _sources(self) -> Iterator[str]:
        for number, one in enumerate(self.sources):
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

    def _sinks(self, out: Path) -> Iterator[str]:
        number = 0
        for index, part in enumerate(self.pipelines, 1):
            inputs = ", ".join(f"s{number + n}" for n in range(len(part)))
            number += len(part)
            yield f"""  LocalFile {{
    plugin_input = [{inputs}]
    path = "{out}/p{index}"
    file_format_type = parquet
  }}"""

    def flaws(self, out: Path, finished: bool) -> list[str]:
        """Say what is wrong with the rows that a reader sees."""
        found = []
        number = 0
        for index, part in enumerate(self.pipelines, 1):
            seen = ids(out / f"p{index}")
            for one in part:
                first = first_id(number)
                mine = {i: n for i, n in seen.items() if first <= i < first + ID_STEP}
                count = one.total * self.parallelism if finished else None
                found += [f"source {number}: {f}" for f in flaws(_counter(mine), first, count)]
                number += 1
            if set(seen) - {i for i in seen if 0 < i < number * ID_STEP}:
                found.append("rows: ids of no source are shown")
        return found

    def left(self, out: Path) -> list[Path]:
        """Return the files that were staged and nobody has committed or removed."""
        return hidden_files(out)


def first_id(number: int) -> int:
    """Return the first id of a source."""
    return number * ID_STEP + 1


def _counter(found: dict[int, int]) -> Counter[int]:
    return Counter(found)


SHORT = Shape()
LONG = Shape(((From(18), From(18)),))
ONE = Shape(((From(18),),))
ONCE = Shape(((From(1, 40), From(1, 40)),), interval_ms=None)
UNEVEN = Shape(((From(2), From(22)),))
THREE = Shape(((From(2), From(18), From(20)),))
PAIR = Shape(((From(3),), (From(22),)))
STREAM = Shape(((From(ENDLESS, 3, 200), From(ENDLESS, 3, 200)),), streaming=True)
