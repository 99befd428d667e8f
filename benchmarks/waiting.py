"""What grows while nobody commits, and what ten thousand answers at once do to a leader.

A real master and workers over the real wire that move no row, as in `control`.  First a sink is out
of reach until 60 complete checkpoints wait, each of 10,000 files: the bytes of an answer then are
compared with those while one waits, and all is let go.  Then all tasks of a thousand jobs have a
barrier and withhold their answers; the master is stopped, everybody answers, and it wakes with all
answers and heartbeats before it at once (window D23).
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.control_cluster import Cluster, Size
from benchmarks.report import Bar, Report, Row, holdfast, publish
from holdfast.core.pipeline import WAITING_MAX

FILES = int(os.environ.get("FILES", 10_000))
"""How many files each waiting commit has."""

JOBS = int(os.environ.get("JOBS", 1_000))
TASKS = 10
WORKERS = 50
INTERVAL_S = 0.5
RATE = 100.0
STOPPED_S = 1.5
"""For how long the master stands still with the answers before it: half of a lease."""

RATIO = 1.2
ALL_S = 10.0


@dataclass
class Seen:
    """What became of one load."""

    what: str
    answers: int
    took_s: float
    late_s: float
    silent_s: float
    rss_kb: int
    lost: int
    unlinked: int
    terms: int
    one_bytes: float = 0.0
    many_bytes: float = 0.0
    blob_bytes: int = 0

    @property
    def ratio(self) -> float:
        """An answer while many commits wait over one while a single one does."""
        return self.many_bytes / self.one_bytes


def main(results: Path) -> bool:
    """Measure both, print the table, write JSON; say whether the bars were met."""
    waiting = _run(Size(1, TASKS, TASKS, INTERVAL_S, files=FILES // TASKS), _waiting)
    at_once = _run(Size(JOBS, TASKS, WORKERS, JOBS / RATE), _at_once)
    return publish(_report(waiting, at_once), results)


def _run(size: Size, measure: Callable[[Cluster], Seen]) -> Seen:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    cluster = Cluster("sqlite", folder, size, "benchmarks.waiting_master")
    try:
        cluster.start("M1")
        seen = measure(cluster)
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(", ".join(f"{k}: {v}" for k, v in _row(seen).items() if v is not None), flush=True)
    return seen


def _waiting(cluster: Cluster) -> Seen:
    """Hold commits until as many wait as may; then let them go."""
    hold = cluster.folder / "M1" / "hold"
    watch = _Watch(cluster)
    cluster.wait(lambda: len(cluster.lines("M1", "commits")) >= 2)
    hold.touch()
    first = _newest(cluster) + 1
    cluster.wait(lambda: watch.status()["waiting"] >= WAITING_MAX)
    last, rss_kb = _newest(cluster), cluster.rss_kb("M1")
    blobs = [p.stat().st_size for p in (cluster.folder / "blobs").rglob("*") if p.is_file()]
    begun_s = time.monotonic()
    hold.unlink()
    cluster.wait(lambda: watch.status()["waiting"] < 2)
    took_s = time.monotonic() - begun_s
    found = cluster.lines("M1", "acks")
    return Seen(
        f"{WAITING_MAX} commits of {FILES:,} files wait", len(found), took_s, watch.late_s,
        watch.silent_s, rss_kb, *watch.lost(),
        # The first one that was held may have begun before; the one after it waits alone.
        one_bytes=statistics.median(b for n, b in found if n == first + 1),
        many_bytes=statistics.median(b for n, b in found if n == last),
        blob_bytes=max(blobs),
    )  # fmt: skip


def _at_once(cluster: Cluster) -> Seen:
    """Have every task withhold its answer, stop the master, have all answer, and let it wake."""
    withhold = cluster.folder / "withhold"
    count = withhold.with_suffix(".count")
    watch = _Watch(cluster)
    cluster.wait(lambda: len(cluster.lines("M1", "commits")) >= 2 * JOBS)
    withhold.touch()
    cluster.wait(lambda: count.exists() and int(count.read_text() or 0) >= JOBS * TASKS)
    watch.begin()
    done = len(cluster.lines("M1", "samples"))
    cluster.stop("M1", STOPPED_S, withhold.unlink)
    begun_s = time.monotonic()
    cluster.wait(lambda: watch.looked() and len(cluster.lines("M1", "samples")) >= done + JOBS)
    took_s = time.monotonic() - begun_s
    for _ in range(100):  # whoever is taken for dead is so within worker_lost_s
        watch.looked()
        time.sleep(0.12)
    return Seen(
        f"{JOBS * TASKS:,} answers at once", JOBS * TASKS, took_s, watch.late_s, watch.silent_s,
        cluster.rss_kb("M1"), *watch.lost(),
    )  # fmt: skip


class _Watch:
    """How late the loop was, how silent workers seemed, and what was lost since the beginning."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.late_s = self.silent_s = 0.0
        self._unlinked = self._unlinks()
        linked = cluster.log("M1").count("worker connected")
        assert linked >= cluster.size.workers, f"the log tells of {linked} links"

    def begin(self) -> None:
        """Forget what was before."""
        self.late_s = self.silent_s = 0.0

    def status(self) -> dict[str, float]:
        """Look, and return what was seen."""
        now = self.cluster.status("M1")
        self.late_s = max(self.late_s, now["loop_late_s"])
        self.silent_s = max(self.silent_s, now["silent_s"])
        return now

    def looked(self) -> bool:
        """Look."""
        return bool(self.status())

    def lost(self) -> tuple[int, int, int]:
        """Return how many tasks were taken from workers, links broke, and terms there were."""
        lost = (self.cluster.folder / "M1" / "lost").read_text().splitlines()
        terms = self.cluster.lines("M1", "terms")
        return len(lost), self._unlinks() - self._unlinked, len(terms)

    def _unlinks(self) -> int:
        return self.cluster.log("M1").count("worker disconnected")


def _newest(cluster: Cluster) -> int:
    return int(max(number for number, _ in cluster.lines("M1", "acks")))


def _row(seen: Seen) -> Row:
    return {
        "load": seen.what,
        "answers": seen.answers,
        "bytes of one, 1 waits": seen.one_bytes or None,
        f"{WAITING_MAX} wait": seen.many_bytes or None,
        "blob MB": seen.blob_bytes / 1e6 or None,
        "through after s": seen.took_s,
        "loop late s": seen.late_s,
        "worker silent s": seen.silent_s,
        "memory MB": seen.rss_kb / 1024,
        "tasks lost": seen.lost,
        "links broken": seen.unlinked,
        "terms": seen.terms,
    }


def _report(waiting: Seen, at_once: Seen) -> Report:
    return Report(
        name="waiting",
        question="What grows while nobody commits, and what do ten thousand answers at once cost?",
        data=f"One job of {TASKS} tasks that stage {FILES:,} files a checkpoint, its sink out of"
        f" reach; then {JOBS:,} jobs of {TASKS} tasks on {WORKERS} workers that all answer while"
        f" their master is stopped for {STOPPED_S:g} s.",
        rounds=1,
        peers={"Holdfast": holdfast()["Holdfast"]},
        table=[_row(waiting), _row(at_once)],
        bars=[
            Bar(f"bytes of an answer, {WAITING_MAX} commits waiting over 1", waiting.ratio, RATIO,
                "most"),
            *(
                Bar(f"{seen.what}: {what}", found, bound, "most")
                for seen in (waiting, at_once)
                for what, found, bound in (
                    ("tasks lost", seen.lost, 0), ("links broken", seen.unlinked, 0),
                    ("terms", seen.terms, 1),
                )
            ),
            Bar(f"{at_once.what}: all durable after, s", at_once.took_s, ALL_S, "most"),
        ],
        notes=(
            "through after: until the waiting commits are made, or all checkpoints are durable",
            "loop late: the most that the master's event loop was late; worker silent: the longest"
            " since a worker's heartbeat was taken in; a worker is lost after 10 s",
        ),
    )  # fmt: skip
