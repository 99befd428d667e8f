"""What a sink promises about the smallest, the largest, the lost and the left over."""

import time
from statistics import median

from holdfast.connect.sink import CommitId
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.testing.promises import require, same
from holdfast.testing.sink_bench import LIFE, SinkBench

FILES = 1000
COMMITS = 300
SAMPLE = 10
GROWTH_MAX = 3.0
"""How much dearer the last commits may be: a guard against growth, not a measurement."""


def an_epoch_may_be_empty(bench: SinkBench) -> None:
    """No committables, and a slice without rows: both are commits like any other."""
    user = bench.user()
    bench.commit(user, 1, ())
    nothing = bench.write(0)
    same("a slice without rows has none", sum(c.rows for c in nothing.committables), 0)
    bench.commit(user, 2, nothing)
    bench.shows("nothing shows")
    one = bench.write()
    bench.commit(user, 3, one)
    bench.commit(user, 4, ())
    bench.commit(user, 3, one)
    bench.commit(user, 5, bench.write(0))
    bench.commit(user, 3, one)
    bench.shows("what was committed between empty epochs shows once", one)


def a_commit_may_have_a_thousand_files(bench: SinkBench) -> None:
    """One slice of a thousand pieces is one commit."""
    user = bench.user()
    large = bench.write(FILES, pieces=FILES)
    began = time.monotonic()
    bench.commit(user, 1, large)
    bench.figures["commit_1000_s"] = time.monotonic() - began
    bench.commit(user, 1, large)
    bench.shows("all of a thousand files, once", large)


def the_hundredth_commit_costs_what_the_tenth_did(bench: SinkBench) -> None:
    """Three hundred commits in a row; the last ones take about as long as the first ones."""
    user, sink = bench.user(), bench.world.open()
    parts = bench.write_many(COMMITS, rows=1)
    taken_s: list[float] = []
    cpu_s: list[float] = []
    for number, part in enumerate(parts, 1):
        began, spent = time.monotonic(), time.process_time()
        bench.commit(user, number, part, sink)
        taken_s.append(time.monotonic() - began)
        cpu_s.append(time.process_time() - spent)
    bench.shows("three hundred commits, each once", *parts)
    early, late = _around_ten(cpu_s), _at_the_end(cpu_s)
    bench.figures |= {
        "early_s": median(_around_ten(taken_s)), "late_s": median(_at_the_end(taken_s)),
        "early_cpu_s": median(early), "late_cpu_s": median(late),
    }  # fmt: skip
    # The cheapest of each ten, and not by the clock: the machine has other things to do, too.
    require(
        f"commit {COMMITS} costs at most {GROWTH_MAX} times what commit 10 did",
        min(late) <= GROWTH_MAX * min(early),
        (early, late),
    )


def _around_ten(taken: list[float]) -> list[float]:
    return taken[10 - SAMPLE // 2 : 10 + SAMPLE // 2]


def _at_the_end(taken: list[float]) -> list[float]:
    return taken[-SAMPLE:]


def what_was_staged_and_is_gone_fails_loudly(bench: SinkBench) -> None:
    """A commit whose files are gone says so at once, each time, and shows nothing of them."""
    if bench.world.lose is None:
        return
    user = bench.user()
    one, lost = bench.write(), bench.write(6, pieces=3)
    bench.commit(user, 1, one)
    bench.world.lose(lost.committables)
    for _ in range(2):
        try:
            bench.world.open().commit(CommitId(user, 2), lost.committables)
        except (Unavailable, OutcomeUnknown) as error:
            raise AssertionError(
                f"broken promise: a loss that stays is not tried again for ever; seen: {error!r}"
            ) from error
        except HoldfastError:
            pass
        else:
            raise AssertionError("broken promise: a commit whose files are gone fails")
        bench.shows("nothing of a commit that fails shows", one)


def what_a_checkpoint_needs_is_left_alone(bench: SinkBench) -> None:
    """Only leftovers go: not what another task, attempt, life or job has staged and may commit."""
    user = bench.user()
    needed = bench.write(attempt=2)
    other_task = bench.write(task="task-10")
    other_life = bench.write(life="i10")
    dropped = bench.write(attempt=2)
    bench.sweep(task="task-1", before=2)  # earlier attempts only
    bench.sweep(task="task-9", before=9)
    bench.sweep(life="i")  # the names of lives and tasks may begin alike
    bench.sweep(life="i1x")
    bench.sweep(task="task", before=9)
    bench.abort(dropped)
    for number, part in enumerate((needed, other_task, other_life), 1):
        bench.commit(user, number, part)
    bench.shows("what was needed", needed, other_task, other_life)
    bench.sweep(task="task-1", before=9)
    bench.sweep()
    bench.sweep(life="i10")
    bench.shows("what is committed is no leftover", needed, other_task, other_life)


def leftovers_go(bench: SinkBench) -> None:
    """After a sweep nothing is left of dead attempts, nor of a job that is over."""
    if bench.world.staged is None:
        return
    dead, alive = bench.write(attempt=1), bench.write(attempt=2)
    both = bench.world.staged()
    bench.sweep(LIFE, "task-1", 2)
    left = bench.world.staged()
    require("what a dead attempt has staged goes", 0 < left < both, (both, left))
    bench.commit(bench.user(), 1, alive)
    bench.abort(bench.write(attempt=2))
    same("nothing is left after commit and abort", bench.world.staged(), 0)
    bench.write(3, pieces=3)
    bench.sweep()
    same("nothing is left of a job that is over", bench.world.staged(), 0)
    bench.shows("only what was committed", alive)
    assert dead.ids


def the_table_tells_its_watermark(bench: SinkBench) -> None:
    """The watermark of a commit is the table's, and a repeated commit does not move it."""
    if bench.world.watermark is None:
        return
    user, one, two = bench.user(), bench.write(), bench.write()
    bench.commit(user, 1, one, watermark=1000)
    same("the first watermark", bench.world.watermark(), 1000)
    bench.commit(user, 2, two, watermark=2000)
    bench.commit(user, 1, one, watermark=1000)
    same("the latest watermark", bench.world.watermark(), 2000)


CHECKS = (
    an_epoch_may_be_empty,
    a_commit_may_have_a_thousand_files,
    the_hundredth_commit_costs_what_the_tenth_did,
    what_was_staged_and_is_gone_fails_loudly,
    what_a_checkpoint_needs_is_left_alone,
    leftovers_go,
    the_table_tells_its_watermark,
)
