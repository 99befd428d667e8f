"""What a sink promises when processes die between its calls, inside them, or before the answer."""

from holdfast.connect.sink import CommitId
from holdfast.testing.promises import same
from holdfast.testing.sink_bench import SinkBench, Slice
from holdfast.testing.sink_points import Points, spread
from holdfast.testing.sink_process import committer, kill_inside

KILLS_MAX = 12


def rows_show_at_their_commit_and_not_before(bench: SinkBench) -> None:
    """Staged rows are out of sight; their commit shows all of them."""
    user = bench.user()
    one, two = bench.write(5, pieces=2), bench.write(3)
    bench.shows("nothing shows before its commit")
    bench.commit(user, 1, one)
    bench.shows("a commit shows its rows, and no others", one)
    bench.commit(user, 2, two)
    bench.shows("the next commit adds its rows", one, two)


def a_process_may_die_between_any_two_calls(bench: SinkBench) -> None:
    """Each call is made by a sink that knows nothing of the calls before."""
    user = bench.user()
    dead = bench.write(attempt=1)
    bench.shows("what a dead attempt has staged never shows")
    one, two, dropped = bench.write(attempt=2), bench.write(attempt=2), bench.write(attempt=2)
    bench.commit(user, 1, one)
    bench.commit(user, 1, one)
    bench.shows("a repeated commit adds nothing", one)
    bench.abort(dropped)
    bench.abort(dropped)
    bench.commit(user, 1, one)
    bench.shows("an abort takes nothing that is committed", one)
    bench.sweep(task="task-1", before=2)
    bench.sweep(task="task-1", before=2)
    bench.commit(user, 2, two)
    bench.commit(user, 1, one)
    bench.commit(user, 2, two)
    bench.sweep()
    bench.sweep()
    bench.commit(user, 2, two)
    bench.shows("every commit shows once", one, two)
    assert dead.ids


def a_repeated_commit_changes_nothing(bench: SinkBench) -> None:
    """Whoever repeats it: the same sink, another one, another process."""
    user = bench.user()
    one, two = bench.write(), bench.write()
    sink = bench.world.open()
    bench.commit(user, 7, one, sink)
    for again in (sink, sink, bench.world.open()):
        bench.commit(user, 7, one, again)
    bench.shows("once", one)
    with committer(bench.world.open, bench.world.patience_s) as other:
        other.tell("commit", CommitId(user, 7), one.committables)
        same("another process repeats it", other.answer(bench.world.patience_s), "")
        other.tell("commit", CommitId(user, 8), two.committables)
        same("and commits the next", other.answer(bench.world.patience_s), "")
    bench.commit(user, 8, two, sink)
    bench.commit(user, 7, one, sink)
    bench.shows("also for one that remembers an older state", one, two)


def a_commit_cut_short_anywhere_is_finished_by_the_next(bench: SinkBench) -> None:
    """A process is killed inside its commit, at moment after moment; another one repeats it."""
    shown = [bench.write(4, pieces=2)]
    with Points().watching() as points:
        bench.commit(bench.user(), 1, shown[0])
    moments = spread(points.passed, KILLS_MAX)
    for at in moments:
        user = bench.user()
        one, two = bench.write(4, pieces=2), bench.write()
        kill_inside(
            bench.world.open, (CommitId(user, 1), one.committables), at, bench.world.patience_s
        )
        bench.sweep(life="i2")  # another life of the job ends meanwhile
        bench.sweep(task="task-9")
        bench.commit(user, 1, one)
        shown += [one]
        bench.shows(f"all of it shows once after a kill at {_named(points, at)}", *shown)
        bench.commit(user, 2, two)
        shown += [two]
    bench.shows("the next commits follow", *shown)
    bench.figures["kills"] = len(moments)


def the_next_number_follows_a_commit_cut_short(bench: SinkBench) -> None:
    """Two commits are owed, the process dies inside the first: both come, each under its number."""
    user = bench.user()
    one, two, three = bench.write(), bench.write(), bench.write()
    kill_inside(bench.world.open, (CommitId(user, 1), one.committables), 3, 60.0)
    for number, part in enumerate((one, two, three), 1):
        bench.commit(user, number, part)
    bench.shows("all that was owed", one, two, three)
    for number, part in enumerate((one, two, three), 1):
        bench.commit(user, number, part)
    bench.shows("and once", one, two, three)


def an_answer_may_be_lost(bench: SinkBench) -> None:
    """A commit is applied and its answer is lost; others commit; then it is made again."""
    user, sink = bench.user(), bench.world.open()
    one, two = bench.write(), bench.write()
    sink.commit(CommitId(user, 1), one.committables)  # nobody hears that this went well
    bench.foreign()
    bench.commit(user, 1, one, sink)
    bench.commit(user, 1, one)
    bench.shows("the commit of the lost answer", one)
    bench.commit(user, 2, two, sink)
    bench.shows("and the next one", one, two)


def numbers_may_have_gaps_and_users_do_not_mask_each_other(bench: SinkBench) -> None:
    """Numbers only grow; another life of the job begins its own."""
    first, second = bench.user(), bench.user()
    parts: list[Slice] = []
    for user, number in ((first, 5), (second, 1), (first, 9), (second, 2), (second, 40)):
        parts.append(bench.write())
        bench.commit(user, number, parts[-1])
    bench.commit(first, 5, parts[0])
    bench.shows("each user's commits", *parts)


CHECKS = (
    rows_show_at_their_commit_and_not_before,
    a_process_may_die_between_any_two_calls,
    a_repeated_commit_changes_nothing,
    a_commit_cut_short_anywhere_is_finished_by_the_next,
    the_next_number_follows_a_commit_cut_short,
    an_answer_may_be_lost,
    numbers_may_have_gaps_and_users_do_not_mask_each_other,
)


def _named(points: Points, at: int) -> str:
    return f"moment {at} ({points.passed[at - 1]})"
