"""What a sink promises when several commit at once: an old leader and a new one, and strangers."""

import threading
import time
from typing import Any

from holdfast.connect.sink import CommitId, Sink
from holdfast.testing.promises import require
from holdfast.testing.sink_bench import SinkBench, Slice
from holdfast.testing.sink_points import Hold, Points, spread
from holdfast.testing.sink_process import committer

RACES = 40
FREEZES = 8
HELD_MAX = 45
FEW = 12
"""So few moments are tried with every number of commits ahead; of more, with one in turn."""


def two_live_committers_add_each_row_once(bench: SinkBench) -> None:
    """Two processes make the same forty commits, each as if it were alone."""
    user = bench.user()
    parts = bench.write_many(RACES)
    patience_s, open = bench.world.patience_s, bench.world.open
    with committer(open, patience_s) as one, committer(open, patience_s) as other:
        for number, part in enumerate(parts, 1):
            for rival in (one, other):
                rival.tell("commit", CommitId(user, number), part.committables)
            said = [rival.answer(patience_s * 2) for rival in (one, other)]
            require("each of two committers is told that it is done", said == ["", ""], said)
    bench.shows("forty commits of two committers, nothing twice, nothing lost", *parts)


def an_old_committer_that_was_paused_changes_nothing(bench: SinkBench) -> None:
    """It is held inside a commit, at moment after moment, and wakes after its successor's
    first, second or third commit; the one after that works too."""
    points, shown = _measured(bench)
    moments = spread(points.passed, HELD_MAX)
    turns = [(at, 1 + n % 3) for n, at in enumerate(moments)]
    if len(moments) <= FEW:
        turns = [(at, ahead) for at in moments for ahead in (1, 2, 3)]
    for at, ahead in turns:
        user = bench.user()
        parts = bench.write_many(ahead + 1)
        with held(bench.world.open(), CommitId(user, 1), parts[0], at) as old:
            for number in range(ahead):
                bench.commit(user, number + 1, parts[number])
            old.wake(bench.world.patience_s)
        bench.commit(user, ahead + 1, parts[ahead])
        shown += parts
        bench.shows(
            f"nothing lost or doubled by one that was held at moment {at}"
            f" ({points.passed[at - 1]}) until {ahead} commits were made",
            *shown,
        )
    bench.figures |= {"moments": len(points.passed), "held": len(turns)}


def a_stranger_commits_inside_a_commit(bench: SinkBench) -> None:
    """Another job commits while a commit is held, at moment after moment; both are kept."""
    points, shown = _measured(bench)
    for at in spread(points.passed, HELD_MAX // 3):
        user = bench.user()
        one, two = bench.write_many(2)
        with held(bench.world.open(), CommitId(user, 1), one, at) as paused:
            bench.foreign()
            paused.wake(bench.world.patience_s)
        bench.commit(user, 1, one)
        bench.commit(user, 2, two)
        shown += [one, two]
        bench.shows(f"both are kept when it came at moment {at}", *shown)


def a_process_frozen_at_any_time_changes_nothing(bench: SinkBench) -> None:
    """A whole process is stopped a little later each time, wherever that may be, and wakes late."""
    shown: list[Slice] = []
    world = bench.world
    with committer(world.open, world.patience_s) as old:
        taken_s = 0.02
        for turn in range(FREEZES):
            user = bench.user()
            parts = bench.write_many(4)
            began = time.monotonic()
            old.tell("once", CommitId(user, 1), parts[0].committables)
            if turn == 0:  # an undisturbed one, to know how long it takes
                old.answer(world.patience_s)
                taken_s = time.monotonic() - began
            else:
                time.sleep(taken_s * turn / FREEZES)
                old.freeze()
            for number in range(3):
                bench.commit(user, number + 1, parts[number])
            if turn:
                old.wake()
                said = old.answer(world.patience_s)
                require("it ends without a bug", not said.startswith("bug"), said)
            bench.commit(user, 4, parts[3])
            shown += parts
            bench.shows(f"nothing lost or doubled by freeze {turn}", *shown)
    bench.figures["commit_s"] = taken_s


CHECKS = (
    two_live_committers_add_each_row_once,
    an_old_committer_that_was_paused_changes_nothing,
    a_stranger_commits_inside_a_commit,
    a_process_frozen_at_any_time_changes_nothing,
)


class _Held:
    """A thread that commits and is held at a moment inside."""

    def __init__(self, sink: Sink[Any], identifier: CommitId, part: Slice, at: int) -> None:
        self._hold = Hold()
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(sink, identifier, part, at), daemon=True
        )

    def __enter__(self) -> "_Held":
        self._thread.start()
        while not (self._hold.reached.wait(0.005) or self._ended.is_set()):
            pass
        return self

    def __exit__(self, *error: object) -> None:
        self._hold.released.set()

    def wake(self, patience_s: float) -> None:
        """Let it go on, to its end.  What it says of its commit nobody listens to any more."""
        self._hold.released.set()
        self._thread.join(patience_s)
        require("a commit that was held ends", self._ended.is_set(), f"none after {patience_s} s")

    def _run(self, sink: Sink[Any], identifier: CommitId, part: Slice, at: int) -> None:
        try:
            with Points(at, self._hold).watching():
                sink.commit(identifier, part.committables)
        except Exception:  # noqa: BLE001  an old leader's word counts for nothing
            pass
        finally:
            self._ended.set()


def held(sink: Sink[Any], identifier: CommitId, part: Slice, at: int) -> _Held:
    """Return a commit that is held, as a context, just before a moment of it."""
    return _Held(sink, identifier, part, at)


def _measured(bench: SinkBench) -> tuple[Points, list[Slice]]:
    """Make a first and a second commit; return the moments of the longer one, and both slices."""
    user, parts, found = bench.user(), bench.write_many(2), []
    for number, part in enumerate(parts, 1):
        with Points().watching() as points:
            bench.commit(user, number, part)
        found.append(points)
    return max(found, key=lambda p: len(p.passed)), parts
