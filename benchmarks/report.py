"""What every benchmark hands over: one shape, one printer, one writer.

A benchmark builds a `Report` from what it has just measured and calls `publish`: the table and the
bars are printed, `results/NAME.json` is written, and the answer says whether every bar was met.
`make performance` makes docs/performance.md and its plots from those files alone, so whatever a
reader must know to believe a number is in the report: question, data, peers and their versions.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from holdfast.spark import java

Cell = str | int | float | None
Row = Mapping[str, Cell]
Point = tuple[float | str, float]


@dataclass(frozen=True)
class Bar:
    """A promise about one figure: it is at least, or at most, its bound."""

    what: str
    seen: float
    bound: float
    at: Literal["least", "most"]

    @property
    def met(self) -> bool:
        """Say whether the promise was kept.  A figure that is no number keeps none."""
        return self.seen >= self.bound if self.at == "least" else self.seen <= self.bound


@dataclass(frozen=True)
class Plot:
    """One picture: series of (x, y).

    "bars" takes words for x, and every series may have every word; "lines" and "dots" take numbers.
    `unit` is said beside the y axis, `across` below the x axis.
    """

    title: str
    kind: Literal["bars", "lines", "dots"]
    unit: str
    series: Mapping[str, Sequence[Point]]
    across: str = ""


@dataclass(frozen=True)
class Report:
    """One benchmark's answer, with all that is needed to judge it and to ask again."""

    name: str
    question: str
    """One sentence, with a question mark."""
    data: str
    """One sentence: rows, columns, sizes."""
    rounds: int
    peers: Mapping[str, str]
    """Who was measured, Holdfast first, with the version that ran (see `versions`)."""
    table: Sequence[Row]
    bars: Sequence[Bar] = ()
    plots: Sequence[Plot] = ()
    profile: str = ""
    """Where the time goes; wanted when a bar was missed."""
    notes: Sequence[str] = field(default=())
    """Sentences a reader needs beside the table: what a column means, who could not take part."""

    @property
    def met(self) -> bool:
        """Say whether every bar was met."""
        return all(bar.met for bar in self.bars)


def publish(report: Report, results: Path) -> bool:
    """Print a report and write its JSON; say whether every bar was met."""
    print(f"\n{shown(report)}\n", flush=True)
    results.mkdir(parents=True, exist_ok=True)
    text = json.dumps(as_json(report), indent=1, ensure_ascii=False, allow_nan=False)
    (results / f"{report.name}.json").write_text(text + "\n")
    return report.met


def as_json(report: Report) -> dict[str, object]:
    """Return what `results/NAME.json` holds: the report, the command, when and where it ran."""
    return asdict(report) | {
        "command": f"make bench ONLY={report.name}",
        "bars": [asdict(bar) | {"met": bar.met} for bar in report.bars],
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
    }


def shown(report: Report) -> str:
    """Return a report as people read it in a terminal."""
    rounds = f", medians of {report.rounds} interleaved rounds" if report.rounds > 1 else ""
    peers = ", ".join(f"{name} {version}" for name, version in report.peers.items())
    lines = [
        f"{report.name}: {report.question}",
        f"{report.data.rstrip('.')}{rounds}",
        f"measured: {peers}",
        "",
        *table_lines(report.table),
        *(f"note: {note}" for note in report.notes),
        *(bar_line(bar) for bar in report.bars),
    ]
    if report.profile:
        lines += ["where the time goes:", *(f"  {x}" for x in report.profile.splitlines())]
    return "\n".join(lines)


def bar_line(bar: Bar) -> str:
    """Return one bar as a line that starts with its outcome."""
    return (
        f"{'met   ' if bar.met else 'MISSED'} {bar.what}: {seen(bar)} (at {bar.at} {bar.bound:g})"
    )


def seen(bar: Bar) -> str:
    """Return a bar's figure with a digit more than a table has, so that near misses show."""
    return f"{bar.seen:.4g}" if abs(bar.seen) < 1000 else cell(bar.seen)


def table_lines(table: Sequence[Row]) -> list[str]:
    """Return a table with a line of heads; numbers stand right, words left."""
    heads = columns(table)
    cells = [[cell(row.get(head)) for head in heads] for row in table]
    widths = [max(len(head), *(len(r[i]) for r in cells)) for i, head in enumerate(heads)]
    right = [numeric(table, head) for head in heads]
    lined = [
        "  ".join(
            word.rjust(width) if number else word.ljust(width)
            for word, width, number in zip(words, widths, right, strict=True)
        ).rstrip()
        for words in (heads, *cells)
    ]
    return [lined[0], "  ".join("-" * width for width in widths), *lined[1:]] if table else []


def columns(table: Sequence[Row]) -> list[str]:
    """Return every column that any row has, in the order in which they first appear."""
    return list(dict.fromkeys(head for row in table for head in row))


def numeric(table: Sequence[Row], head: str) -> bool:
    """Say whether a column holds numbers, some cells perhaps empty or explained in words."""
    return any(isinstance(row.get(head), int | float) for row in table)


def cell(value: Cell) -> str:
    """Return a value with as many digits as it is worth: three, and all before the point."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float() if value and abs(value) < 0.1:
            return f"{value:.2g}"
        case float():
            digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
            return f"{value:,.{digits}f}"
        case int():
            return f"{value:,}"
        case _:
            return value


def versions(*packages: str, python: Path | str = sys.executable) -> dict[str, str]:
    """Return the versions of packages as installed for `python`, a peer's perhaps."""
    asked = "import sys; from importlib.metadata import version as v; print(*map(v, sys.argv[1:]))"
    said = subprocess.run(
        [str(python), "-c", asked, *packages], check=True, capture_output=True, text=True
    )
    return dict(zip(packages, said.stdout.split(), strict=True))


def holdfast() -> dict[str, str]:
    """Return the first two of all peers: ourselves, and the Spark that both we and scripts use."""
    return {"Holdfast": metadata.version("holdfast"), "PySpark": metadata.version("pyspark")}


def machine() -> dict[str, str]:
    """Return what the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.1f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "Java": java.find().version,
        "Spark": metadata.version("pyspark"),
    }
