"""Files that arrive are copied exactly-once with a checkpoint a second: a job file against
Structured Streaming and PyFlink.

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
from benchmarks.peer import python_of
from benchmarks.report import Bar, Cell, Plot, Report, Row, holdfast, publish, versions
from benchmarks.streams import CSV, DELTA, FILES, Batch, Engine, Flink, Holdfast, MicroBatches

ROUNDS = int(os.environ.get("ROUNDS", 2))
BACKLOG = int(os.environ.get("FILES", 240))
"""Files of a backlog."""

ROWS_A_FILE = 25_000
SMALL_FILES = int(os.environ.get("SMALL_FILES", 15))
SMALL_ROWS = 100
EVERY_S = 0.37
"""No fraction of a second, so that arrivals meet every moment between two checkpoints."""

IDLE_S = float(os.environ.get("IDLE_S", 6))
WAIT_S_MAX = 300.0
OVERHEAD_MOST, ROWS_LEAST, LATENCY_MOST = 0.6, 1.0, 1.0


@dataclass(frozen=True)
class Contest:
    """Holdfast beside another engine that writes to the same sink."""

    sink: str
    peer: type[Engine]
    files: int
    """Files of a backlog."""
    rounds: int


CONTESTS = (
    Contest(FILES, MicroBatches, BACKLOG, ROUNDS),
    Contest(DELTA, MicroBatches, BACKLOG, ROUNDS),
    # CSV takes longer to write, and PyFlink from PyPI writes nothing else.
    Contest(CSV, Flink, BACKLOG // 4, 1),
)


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
    took_s: float | None = None
    inside_s: float | None = None
    """What a slice or micro-batch took while small files arrived, and Spark's jobs of it."""
    large: Sequence[Batch] = ()
    """What was copied of backlogs."""


def main(results: Path) -> bool:
    """Run all engines into all sinks, print the table, write JSON; say if every bar was met."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        warm_up()
        sample = folder / "sample"
        sample.mkdir()
        for number in range(BACKLOG):
            write_file(sample / f"{number}.csv", number, ROWS_A_FILE)
        found = {contest.sink: _compare(folder, contest, sample) for contest in CONTESTS}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return publish(_report(found), results)


def _compare(folder: Path, contest: Contest, sample: Path) -> dict[str, Figures]:
    """Run engines beside each other, in turns, and see that each has written every row once."""
    sink = contest.sink
    with ExitStack() as ending:
        engines: list[Engine] = []
        for kind in (Holdfast, contest.peer):
            engines.append(kind(folder / sink / kind.__name__, sink, sample))
            ending.callback(engines[-1].end)
        found = {engine.name: Figures() for engine in engines}
        for engine in engines:
            _start(engine, contest.files, sample)
        _idle(engines, found)
        for number in range(contest.rounds):
            for engine in engines if number % 2 else reversed(engines):
                _small(engine, found[engine.name], number)
                _backlog(engine, found[engine.name], contest.files, sample)
            said = ", ".join(f"{n} {f.rows_s[-1]:,.0f}" for n, f in found.items())
            print(f"into {sink}, round {number + 1}, rows/s: {said}", flush=True)
    for engine in engines:
        _check(engine)
        _batches(engine, found[engine.name])
    return found


def _start(engine: Engine, files: int, sample: Path) -> None:
    """Let it copy a part of a backlog first, so that no round pays for its start."""
    arrivals = engine.arrivals
    arrivals.arrive(arrivals.ready(range(files // 2), ROWS_A_FILE, sample))
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


def _backlog(engine: Engine, figures: Figures, files: int, sample: Path) -> None:
    """Let many files arrive at once; note how fast their rows become visible."""
    ready = engine.arrivals.ready(range(files), ROWS_A_FILE, sample)
    began, before = time.time(), spent_s(engine.process.pid)
    engine.arrivals.arrive(ready)
    _wait(engine)
    spent = spent_s(engine.process.pid) - before
    commits = engine.reader.commits(began)
    rows = files * ROWS_A_FILE
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
    if small:
        figures.took_s = middle([b.took_s for b in small])
        figures.inside_s = middle([b.inside_s for b in small])


def _report(found: dict[str, dict[str, Figures]]) -> Report:
    table = [
        _row(name, sink, figures) for sink, both in found.items() for name, figures in both.items()
    ]
    bars = [bar for contest in CONTESTS for bar in bars_of(contest, found[contest.sink])]
    flink = versions("apache-flink", python=python_of("pyflink"))["apache-flink"]
    return Report(
        name="streaming",
        question="What do exactly-once and a checkpoint a second cost where files arrive?",
        data=f"backlogs of {BACKLOG} CSV files of {ROWS_A_FILE:,} rows (into CSV files"
        f" {CONTESTS[-1].files}, one round) and {SMALL_FILES} small files of {SMALL_ROWS} rows, one"
        f" each {EVERY_S:g} s; 10 columns",
        rounds=ROUNDS,
        peers=holdfast() | {"PyFlink": flink},
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
    "PyFlink from PyPI alone writes neither Parquet files nor Delta tables: it takes part from CSV"
    " to CSV, looks for files each 100 ms, and closes a file after 250 ms, so that its next"
    " checkpoint shows it.",
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
            parts = f"in {len(figures.large)} parts, {took_s:.1f} s, of them {inside_s:.1f} s in"
            cut = f"{parts} Spark's jobs, " if figures.large else ""
            spent_s = middle(figures.cpu_s_a_million)
            yield f"{sink}, {name}: backlogs {cut}{spent_s:.2f} CPU s a million rows"


def _row(name: str, sink: str, figures: Figures) -> Row:
    cuts = quantiles(figures.latencies_s, n=100, method="inclusive")
    row: dict[str, Cell] = {
        "engine": name,
        "into": sink,
        "rows/s": middle(figures.rows_s),
        "CPU s a million rows": middle(figures.cpu_s_a_million),
        "visible after p50, s": cuts[49],
        "p99, s": cuts[98],
        "slice or micro-batch, ms": _ms(figures.took_s),
        "of it jobs, ms": _ms(figures.inside_s),
        "CPU ms a small file": middle(figures.small_cpu_ms),
        "idle, CPU s a minute": figures.idle_cpu_s_a_minute,
    }
    return row


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def bars_of(contest: Contest, both: dict[str, Figures]) -> Iterator[Bar]:
    """Return what Holdfast promises beside another engine."""
    sink, peer = contest.sink, contest.peer.name
    ours, theirs = both[Holdfast.name], both[peer]
    rows = middle(ours.rows_s) / middle(theirs.rows_s)
    yield Bar(f"{sink}: rows/s against {peer}", rows, ROWS_LEAST, "least")
    if ours.took_s is None or theirs.took_s is None:
        return  # PyFlink has no micro-batches, and about its delay nothing is promised
    took = ours.took_s / theirs.took_s
    yield Bar(f"{sink}: a slice against a micro-batch", took, OVERHEAD_MOST, "most")
    late = middle(ours.latencies_s) / middle(theirs.latencies_s)
    yield Bar(f"{sink}: p50 to visible against {peer}", late, LATENCY_MOST, "most")


def _plots(found: dict[str, dict[str, Figures]]) -> list[Plot]:
    names = list(dict.fromkeys(name for both in found.values() for name in both))
    seen = {n: {sink: both[n] for sink, both in found.items() if n in both} for n in names}
    rows = {n: [(s, middle(f.rows_s)) for s, f in of.items()] for n, of in seen.items()}
    late = {n: [(s, middle(f.latencies_s)) for s, f in of.items()] for n, of in seen.items()}
    return [
        Plot("Rows a second, checkpoints each second", "bars", "rows/s", rows),
        Plot("From arrival to visible, median", "bars", "s", late),
    ]
