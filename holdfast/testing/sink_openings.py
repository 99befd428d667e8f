"""What a sink promises about save modes: they are part of a first commit, once in a job's life.

`SinkWorld.emptying` opens a sink for the same table whose save mode removes what is there.  Without
it there is nothing to check.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from holdfast.connect.sink import CommitId, Opening
from holdfast.testing.promises import require
from holdfast.testing.sink_bench import JOB, SinkBench, Slice, as_stored
from holdfast.testing.sink_points import Points, spread
from holdfast.testing.sink_process import committer, kill_inside
from holdfast.testing.sink_rivals import held

KILLS_MAX = 10
HELD_MAX = 30


def _emptying(check: Callable[[SinkBench, Slice], None]) -> Callable[[SinkBench], None]:
    """Have rows in the table first; from then on its sink is one that empties it."""

    @wraps(check)
    def run(bench: SinkBench) -> None:
        if bench.world.emptying is None:
            return
        old = bench.write()
        bench.commit(bench.user(), 1, old)
        bench.shows("the rows of another job", old)
        bench.world = replace(bench.world, open=bench.world.emptying)
        check(bench, old)

    return run


def _opened(bench: SinkBench, life: str) -> Slice:
    """Prepare the table; return what a commit needs for that, as a slice without rows."""
    made = bench.world.open().prepare([bench.world.table], Opening(f"{JOB}.{life}"))
    stored = tuple(as_stored(c) for c in made)
    require("a save mode is a committable that is marked", all(c.opening for c in stored), stored)
    return Slice(0, 0, stored)


def _first(bench: SinkBench, life: str) -> Slice:
    """Prepare the table and stage rows; return what the first commit of a life gets."""
    opened, one = _opened(bench, life), bench.write(life=life)
    return Slice(one.first, one.end, (*opened.committables, *one.committables))


def _moments(bench: SinkBench) -> list[str]:
    """Make a first commit; return the moments it passes."""
    one, user = _first(bench, "measured"), bench.user()
    with Points().watching() as points:
        bench.commit(user, 1, one)
    bench.shows("the rows of a first commit", one)
    return points.passed


@_emptying
def save_modes_change_nothing_before_their_commit(bench: SinkBench, old: Slice) -> None:
    """A worker that prepares a table, whenever it does, changes nothing that readers see."""
    dead = _opened(bench, "life1")
    bench.shows("a worker that prepares removes nothing", old)
    one = _first(bench, "life1")
    bench.shows("nor does one that has staged rows", old)
    user = bench.user()
    bench.commit(user, 1, one)
    bench.shows("old rows go when the new ones come", one)
    two = bench.write(life="life1")
    bench.commit(user, 2, two)
    assert dead.committables
    _opened(bench, "life1")  # a worker that was paused before it prepared wakes
    bench.shows("and no later worker removes anything", one, two)
    bench.commit(user, 1, one)
    bench.commit(user, 1, dead)
    bench.shows("nor a commit that is repeated, or comes late", one, two)


@_emptying
def save_modes_apply_without_rows(bench: SinkBench, old: Slice) -> None:
    """A job that has no rows empties its table all the same, and once."""
    user, none = bench.user(), _opened(bench, "life1")
    bench.commit(user, 1, none)
    bench.shows("nothing is left")
    one = bench.write(life="life1")
    bench.commit(user, 2, one)
    bench.commit(user, 1, none)
    bench.shows("rows that come later stay", one)


@_emptying
def save_modes_apply_once_for_a_life_whoever_commits(bench: SinkBench, old: Slice) -> None:
    """Two pipelines, or two tasks, of one job write the same table; another job comes later."""
    first, second, third = bench.user(), bench.user(), bench.user()
    one, two = _first(bench, "life1"), _first(bench, "life1")
    bench.commit(first, 1, one)
    bench.commit(second, 1, two)
    bench.shows("what one has shown the other does not remove", one, two)
    three = _first(bench, "life1")
    bench.commit(second, 2, three)
    bench.shows("however often it is in a checkpoint", one, two, three)
    later = _first(bench, "life2")
    bench.commit(third, 1, later)
    bench.shows("another life has its own turn", later)
    bench.commit(first, 1, one)
    bench.shows("and the one before has had it", later)


@_emptying
def a_known_table_keeps_its_rows(bench: SinkBench, old: Slice) -> None:
    """A life that starts from a savepoint gives no save modes for tables which that knows."""
    path = frozenset({bench.world.path})
    for opening in (Opening(f"{JOB}.life1", path), Opening(f"{JOB}.life1", path, path)):
        sink = bench.world.open()
        made = sink.prepare([bench.world.table], opening)
        require("no save mode for a table that is known", not list(made), made)
    one = bench.write(life="life1", sink=sink)
    bench.commit(bench.user(), 1, one)
    bench.shows("every earlier row is there", old, one)


@_emptying
def a_first_commit_cut_short_anywhere_is_finished_by_the_next(bench: SinkBench, old: Slice) -> None:
    """A process is killed while it empties and fills a table; another one repeats it."""
    moments = spread(_moments(bench), KILLS_MAX)
    for turn, at in enumerate(moments):
        life, user = f"kill{turn}", bench.user()
        one, two = _first(bench, life), bench.write(life=life)
        order = (CommitId(user, 1), one.committables)
        kill_inside(bench.world.open, order, at, bench.world.patience_s)
        bench.commit(user, 1, one)
        bench.shows(f"the new rows, after a kill at moment {at}", one)
        bench.commit(user, 2, two)
        bench.commit(user, 1, one)
        bench.shows("and the next commit's", one, two)
    bench.figures["opening kills"] = len(moments)


@_emptying
def a_first_commit_that_was_paused_removes_nothing_later(bench: SinkBench, old: Slice) -> None:
    """An old leader is held while it empties and fills a table, and wakes after its successor's
    first, second or third commit."""
    passed = _moments(bench)
    moments = spread(passed, HELD_MAX)
    for turn, at in enumerate(moments):
        life, user, ahead = f"hold{turn}", bench.user(), 1 + turn % 3
        parts = [_first(bench, life)]
        parts += [bench.write(life=life) for _ in range(ahead)]
        with held(bench.world.open(), CommitId(user, 1), parts[0], at) as paused:
            for number in range(ahead):
                bench.commit(user, number + 1, parts[number])
            paused.wake(bench.world.patience_s)
        bench.commit(user, ahead + 1, parts[ahead])
        where = f"at moment {at} ({passed[at - 1]}) until {ahead} commits were made"
        bench.shows(f"nothing removed by one that was held {where}", *parts)
    bench.figures["opening holds"] = len(moments)


@_emptying
def two_committers_may_race_to_empty_a_table(bench: SinkBench, old: Slice) -> None:
    """Two processes make the same first commits, each as if it were alone."""
    patience_s, open = bench.world.patience_s, bench.world.open
    with committer(open, patience_s) as one, committer(open, patience_s) as other:
        for turn in range(6):
            life, user = f"race{turn}", bench.user()
            parts = [_first(bench, life), bench.write(life=life)]
            for number, part in enumerate(parts, 1):
                for rival in (one, other):
                    rival.tell("commit", CommitId(user, number), part.committables)
                said = [rival.answer(patience_s * 2) for rival in (one, other)]
                require("each is told that it is done", said == ["", ""], said)
            bench.shows("the rows of both commits, and no older ones", *parts)


CHECKS = (
    save_modes_change_nothing_before_their_commit,
    save_modes_apply_without_rows,
    save_modes_apply_once_for_a_life_whoever_commits,
    a_known_table_keeps_its_rows,
    a_first_commit_cut_short_anywhere_is_finished_by_the_next,
    a_first_commit_that_was_paused_removes_nothing_later,
    two_committers_may_race_to_empty_a_table,
)
