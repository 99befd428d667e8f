"""Files that arrive are copied exactly-once with a checkpoint a second: a job file against
Structured Streaming.

Two engines at a time, with the same sink, run from the first round to the last; files arrive for
one of them while the other idles, then for the other, so that what else the machine does hits both
alike.  A round has two parts: small files at a steady pace, which tell how late rows are and what a
slice or micro-batch costs that has next to nothing to do; and a backlog, which tells how many rows
a second they manage, from their arrival until the last of them is visible.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from benchmarks.arrivals import write_file
from benchmarks.job import warm_up
from benchmarks.measure import middle, spent_s
from benchmarks.report import Bar, Cell, Plot, Report, Row, holdfast, publish
from benchmarks.streams import SINKS, Batch, Engine, Holdfast, MicroBatches

ROUNDS = int(os.environ.get("ROUNDS", 2))
FILES = int(os.environ.get("FILES", 240))
"""Files of a backlog."""

ROWS_A_FILE = 25_000
SMALL_FILES = int(os.environ.get("SMALL_FILES", 15))
SMALL_ROWS = 100
EVERY_S = 0.37
"""No fraction of a second, so that arrivals meet every moment between two checkpoints."""

IDLE_S = float(os.environ.get("IDLE_S", 10))
WAIT_S_MAX = 300.0
OURS: tuple[type[Engine], ...] = (Holdfast, MicroBatches)
OVERHEAD_MOST, ROWS_LEAST, LATENCY_MOST = 0.6, 1.0, 1.0


@dataclass
class Figures:
    """What was seen of one engine with one sink."""

    rows_s: list[float] = field(default_factory=list)
    cpu_s_a_million: list[float] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    small: list[tuple[float, float]] = field(default_factory=list)
    """The moments between which small files arrived and were read."""
    idle_cpu_s_a_minute: float = 0.0
    small_cpu_ms: list[float] = field(default_factory=list)
    took_s: float = 0.0
    inside_s: float = 0.0
    large: Sequence[Batch] = ()
    """What was copied of backlogs."""


def main(results: Path) -> bool:
    """Run all engines into all sinks, print the table, write JSON; say if every bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        sample = folder / "sample"
        sample.mkdir()
        for number in range(FILES):
            write_file(sample / f"{number}.csv", number, ROWS_A_FILE)
        found = {sink: _compare(folder / sink, sink, sample, OURS) for sink in SINKS}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_report(found), results)


def _compare(
    folder: Path, sink: str, sample: Path, kinds: Sequence[type[Engine]]
) -> dict[str, Figures]:
    """Run engines beside each other, in turns, and see that each has written every row once."""
    with ExitStack() as ending:
        engines: list[Engine] = []
        for kind in kinds:
            engines.append(kind(folder / kind.__name__, sink, sample))
            ending.callback(engines[-1].end)
        found = {engine.name: Figures() for engine in engines}
        for engine in engines:
            _start(engine, sample)
        _idle(engines, found)
        for number in range(ROUNDS):
            for engine in engines if number % 2 else reversed(engines):
                _small(engine, found[engine.name], number)
                _backlog(engine, found[engine.name], sample)
            said = ", ".join(f"{n} {f.rows_s[-1]:,.0f}" for n, f in found.items())
            print(f"into {sink}, round {number + 1}, rows/s: {said}", flush=True)
    for engine in engines:
        _check(engine)
        _batches(engine, found[engine.name])
    return found


def _start(engine: Engine, sample: Path) -> None:
    """Let it copy a part of a backlog first, so that no round pays for its start."""
    arrivals = engine.arrivals
    arrivals.arrive(arrivals.ready(range(FILES // 2), ROWS_A_FILE, sample))
    _wait(engine)


def _idle(engines: list[Engine], found: dict[str, Figures]) -> None:
    before = [spent_s(e.process.pid) for e in engines]
    time.sleep(IDLE_S)
    for engine, was in zip(engines, before, strict=True):
        spent = spent_s(engine.process.pid) - was
        found[engine.name].idle_cpu_s_a_minute = spent * 60 / IDLE_S


def _small(engine: Engine, figures: Figures, number: int) -> None:
    """Let small files arrive at a steady pace; note how late each was."""
    first = 10_000 + number * SMALL_FILES
    files = engine.arrivals.ready(range(first, first + SMALL_FILES), SMALL_ROWS)
    began, before = time.time(), spent_s(engine.process.pid)
    arrived = engine.arrivals.arrive(files, EVERY_S)
    _wait(engine)
    figures.small.append((began, time.time()))
    spent = spent_s(engine.process.pid) - before
    figures.small_cpu_ms.append(spent * 1000 / SMALL_FILES)
    visible = engine.reader.visible(began)
    figures.latencies_s += [visible[origin] - moment for origin, moment in arrived.items()]


def _backlog(engine: Engine, figures: Figures, sample: Path) -> None:
    """Let many files arrive at once; note how fast their rows become visible."""
    files = engine.arrivals.ready(range(FILES), ROWS_A_FILE, sample)
    began, before = time.time(), spent_s(engine.process.pid)
    engine.arrivals.arrive(files)
    _wait(engine)
    spent = spent_s(engine.process.pid) - before
    commits = engine.reader.commits(began)
    rows = FILES * ROWS_A_FILE
    figures.cpu_s_a_million.append(spent * 1e6 / rows)
    # From the arrival, not between commits: several may come at one moment.
    figures.rows_s.append(rows / (commits[-1][0] - began))


def _wait(engine: Engine) -> None:
    engine.check_alive()
    engine.reader.wait_for(engine.arrivals.sent.total(), WAIT_S_MAX)


def _check(engine: Engine) -> None:
    """Every row that arrived can be read, once."""
    read, sent = engine.reader.counted(), engine.arrivals.sent
    wrong = {o: (read[o], sent[o]) for o in read | sent if read[o] != sent[o]}
    assert not wrong, f"{engine.name}: rows (read, arrived) by file: {wrong}"


def _batches(engine: Engine, figures: Figures) -> None:
    """Note what a slice or micro-batch took while small files arrived."""
    small: list[Batch] = []
    large: list[Batch] = []
    for batch in engine.batches():
        few = any(first <= batch.began <= last for first, last in figures.small)
        (small if few else large).append(batch)
    figures.large = large
    figures.took_s = middle([b.took_s for b in small])
    figures.inside_s = middle([b.inside_s for b in small])


def _report(found: dict[str, dict[str, Figures]]) -> Report:
    table = [
        _row(name, sink, figures) for sink, both in found.items() for name, figures in both.items()
    ]
    bars = [bar for sink in SINKS for bar in _bars(sink, found[sink])]
    return Report(
        name="streaming",
        question="What do exactly-once and a checkpoint a second cost where files arrive?",
        data=f"backlogs of {FILES} CSV files of {ROWS_A_FILE:,} rows and {SMALL_FILES} small files"
        f" of {SMALL_ROWS} rows, one each {EVERY_S:g} s; 10 columns",
        rounds=ROUNDS,
        peers=holdfast(),
        table=table,
        bars=bars,
        plots=_plots(found),
        profile="" if all(bar.met for bar in bars) else "\n".join(_profile(found)),
        notes=NOTES,
    )


NOTES = (
    "Structured Streaming runs in the session that Holdfast gives its jobs: same JVM, same"
    " settings, trigger 1 s; a micro-batch takes as many bytes as plain Spark copies in a second.",
    "Its Delta jar is not on PyPI: micro-batches are written in foreachBatch with the deltalake"
    " library, under their transaction number.",
    "Visible: named by the log of the table or of Spark's file sink, or a final file name where"
    " there is no log; looked for each 10 ms by a process that knows neither engine.",
    "PyFlink takes no part: from PyPI alone it writes neither Parquet files nor Delta tables.",
    "A slice is what a task does for small files, from looking for them to having their rows"
    " staged; a micro-batch is triggerExecution.  Of it, jobs: Spark's own jobs in a slice,"
    " addBatch in a micro-batch.",
)


def _profile(found: dict[str, dict[str, Figures]]) -> Iterator[str]:
    """Say how backlogs were cut, and how much of that was Spark's."""
    for sink, both in found.items():
        for name, figures in both.items():
            took_s = sum(b.took_s for b in figures.large)
            inside_s = sum(b.inside_s for b in figures.large)
            yield (
                f"{sink}, {name}: backlogs in {len(figures.large)} parts, {took_s:.1f} s, of them"
                f" {inside_s:.1f} s in Spark's jobs, {middle(figures.cpu_s_a_million):.2f} CPU s a"
                " million rows"
            )


def _row(name: str, sink: str, figures: Figures) -> Row:
    cuts = quantiles(figures.latencies_s, n=100, method="inclusive")
    row: dict[str, Cell] = {
        "engine": name,
        "into": sink,
        "rows/s": middle(figures.rows_s),
        "CPU s a million rows": middle(figures.cpu_s_a_million),
        "visible after p50, s": cuts[49],
        "p99, s": cuts[98],
        "slice or micro-batch, ms": figures.took_s * 1000,
        "of it jobs, ms": figures.inside_s * 1000,
        "CPU ms a small file": middle(figures.small_cpu_ms),
        "idle, CPU s a minute": figures.idle_cpu_s_a_minute,
    }
    return row


def _bars(sink: str, both: dict[str, Figures]) -> list[Bar]:
    ours, theirs = both[Holdfast.name], both[MicroBatches.name]
    took = ours.took_s / theirs.took_s
    rows = middle(ours.rows_s) / middle(theirs.rows_s)
    late = middle(ours.latencies_s) / middle(theirs.latencies_s)
    return [
        Bar(f"{sink}: a slice against a micro-batch", took, OVERHEAD_MOST, "most"),
        Bar(f"{sink}: rows/s against Structured Streaming's", rows, ROWS_LEAST, "least"),
        Bar(f"{sink}: p50 to visible against its", late, LATENCY_MOST, "most"),
    ]


def _plots(found: dict[str, dict[str, Figures]]) -> list[Plot]:
    names = list(dict.fromkeys(name for both in found.values() for name in both))
    seen = {n: {sink: both[n] for sink, both in found.items() if n in both} for n in names}
    rows = {n: [(s, middle(f.rows_s)) for s, f in of.items()] for n, of in seen.items()}
    late = {n: [(s, middle(f.latencies_s)) for s, f in of.items()] for n, of in seen.items()}
    return [
        Plot("Rows a second, checkpoints each second", "bars", "rows/s", rows),
        Plot("From arrival to visible, median", "bars", "s", late),
    ]
