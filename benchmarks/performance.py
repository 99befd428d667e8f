"""`make performance`: write docs/performance.md and its plots from what the last runs found.

Nothing is measured here, and no figure is typed by hand: what is not in `results/NAME.json` is not
on the page.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.catalogue import USUAL_MINUTES
from benchmarks.report import Bar, Report, Row, cell, columns, numeric, seen
from benchmarks.svg import draw

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_name("results")
IMAGES = "images/performance"

INTRODUCTION = """# Performance

Written by `make performance` from the files that `make bench` left; do not edit it. Each section
is one question, with the command that asks it again. Peers run in the same run, on the same data,
in turns with ours, so ratios are worth more than figures: the machine is small and noisy. Seconds
of CPU are those of all processes of a command. A bar that was missed says MISSED.
"""


@dataclass(frozen=True)
class Run:
    """What a benchmark found, when and on what."""

    report: Report
    date: str
    machine: dict[str, str]


def main() -> int:
    """Write the page and its plots; return the exit code."""
    files = [RESULTS / f"{name}.json" for name in USUAL_MINUTES]
    try:
        runs = [load(path) for path in files if path.exists()]
    except ValueError as error:
        print(error)
        return 2
    if not runs:
        print(f"There is nothing in {RESULTS} to write about. Run `make bench` first.")
        return 2
    write(runs, [f.stem for f in files if not f.exists()], ROOT / "docs")
    print(f"docs/performance.md: {len(runs)} of {len(files)} benchmarks, {summary(runs)}.")
    return 0


def load(path: Path) -> Run:
    """Read what a benchmark left.  Raises ValueError if that is not of our shape."""
    try:
        found = json.loads(path.read_text())
        date, machine = found["date"], found["machine"]
        return Run(msgspec.convert(found, Report), date, machine)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read: {type(error).__name__}: {error}. An older version may have"
            f" written it: run `make bench ONLY={path.stem}` again, or remove it."
        ) from error


def write(runs: Sequence[Run], missing: Sequence[str], docs: Path) -> None:
    """Write the page and the plots, and remove the plots of former pages."""
    images = docs / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for old in images.glob("*.svg"):
        old.unlink()
    for run in runs:
        for plot, name in zip(run.report.plots, image_names(run.report), strict=True):
            (images / name).write_text(draw(plot))
    (docs / "performance.md").write_text(page(runs, missing))


def page(runs: Sequence[Run], missing: Sequence[str]) -> str:
    """Return the page: where it ran, all questions at a glance, then one section for each."""
    glance: list[Row] = [
        {
            "question": f"[{run.report.question}](#{run.report.name})",
            "bars met": f"{sum(b.met for b in run.report.bars)} of {len(run.report.bars)}",
        }
        for run in runs
    ]
    absent = [f"Not in these figures, because they were not run: {', '.join(missing)}.\n"]
    return "\n".join(
        [
            INTRODUCTION,
            *(f"{line}\n" for line in where(runs)),
            *markdown(glance),
            "",
            *(absent if missing else []),
            *(line for run in runs for line in section(run)),
        ]
    )


def where(runs: Sequence[Run]) -> list[str]:
    """Return one line for each machine that was measured on, usually one."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        m = run.machine
        words = (
            f"{m['cores']} cores, {m['memory']} of memory, {m['system']}, Python {m['Python']},"
            f" Java {m['Java']}, Spark {m['Spark']}"
        )
        found.setdefault(words, []).append(run)
    lines = []
    for words, those in found.items():
        dates = sorted(run.date for run in those)
        span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        which = "" if len(found) == 1 else f" ({', '.join(r.report.name for r in those)})"
        lines.append(f"Measured {span} on {words}{which}.")
    return lines


def section(run: Run) -> list[str]:
    """Return a question, and all that is needed to judge its answer."""
    report = run.report
    peers = ", ".join(f"{name} {version}" for name, version in report.peers.items())
    rounds = f" Medians of {report.rounds} interleaved rounds." if report.rounds > 1 else ""
    lines = [
        f'## <a id="{report.name}"></a>{report.question}',
        "",
        f"`make bench ONLY={report.name}`, {run.date}. {report.data.rstrip('.')}.{rounds}"
        f" Measured: {peers}.",
        "",
        *markdown(report.table),
        "",
        *(f"{note}\n" for note in report.notes),
        *(bar_words(bar) for bar in report.bars),
        *([""] if report.bars else []),
    ]
    for plot, name in zip(report.plots, image_names(report), strict=True):
        lines += [f"![{plot.title}]({IMAGES}/{name})", ""]
    if report.profile:
        lines += ["Where the time goes:", "```", report.profile.rstrip(), "```", ""]
    elif not report.met:
        lines += ["A bar was missed, and this run made no profile.", ""]
    return lines


def bar_words(bar: Bar) -> str:
    """Return one bar as an item of a list."""
    outcome = "met" if bar.met else "**MISSED**"
    return f"- {outcome}: {escaped(bar.what)}: {seen(bar)} (at {bar.at} {bar.bound:g})"


def markdown(table: Sequence[Row]) -> list[str]:
    """Return a table in Markdown, numbers to the right."""
    heads = columns(table)
    rules = ["---:" if numeric(table, head) else "---" for head in heads]
    rows = [[escaped(cell(row.get(head))) for head in heads] for row in table]
    return [f"| {' | '.join(words)} |" for words in ([escaped(h) for h in heads], rules, *rows)]


def escaped(words: str) -> str:
    """Keep words from ending a cell of a table."""
    return words.replace("|", "\\|").replace("\n", " ")


def image_names(report: Report) -> list[str]:
    """Return the file names of a report's plots."""
    return [f"{report.name}-{n}.svg" for n in range(1, len(report.plots) + 1)]


def summary(runs: Sequence[Run]) -> str:
    """Return how many bars were met, in a few words."""
    bars = [bar for run in runs for bar in run.report.bars]
    return f"{sum(bar.met for bar in bars)} of {len(bars)} bars met"


if __name__ == "__main__":
    sys.exit(main())
