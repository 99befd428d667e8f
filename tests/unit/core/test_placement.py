"""Placement: whole jobs in order of submission, tags respected, slots conserved, reasons given."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.placement import Room, Wanted, place
from holdfast.core.task import WorkerId

TAGS = (("zone", "a"),)


def room(name: str, free: int, tags: tuple[tuple[str, str], ...] = ()) -> Room:
    return Room(WorkerId(name, f"{name}-1"), free, tags)


def want(job: str, order: int, task: str = "t1", **facts: object) -> Wanted:
    return Wanted(job, order, 1, task, 1, **{"slots": 1, **facts})  # type: ignore[arg-type]


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Wanted], list[Room]]:
    """Draw jobs of one to three tasks, some of them running, and workers with some room."""
    tags = st.sampled_from([(), TAGS])
    jobs = []
    for order in range(draw(st.integers(0, 4))):
        starting, job_tags = draw(st.booleans()), draw(tags)
        for task in range(draw(st.integers(1, 3))):
            slots = draw(st.integers(1, 2))
            name = f"j{order}"
            jobs.append(Wanted(name, order, 1, f"t{task}", 1, slots, job_tags, starting))
    rooms = [room(f"w{n}", draw(st.integers(0, 4)), draw(tags)) for n in range(3)]
    return draw(st.permutations(jobs)), rooms


@given(scenes())
def test_slots_are_conserved_and_tags_respected(scene: tuple[list[Wanted], list[Room]]) -> None:
    wanted, rooms = scene
    placed, _ = place(wanted, rooms)
    used: Counter[WorkerId] = Counter()
    tags = {r.place: set(r.tags) for r in rooms}
    for choice in placed:
        used[choice.place] += choice.wanted.slots
        assert set(choice.wanted.tags) <= tags[choice.place]
    assert all(used[r.place] <= r.free for r in rooms)


@given(scenes())
def test_every_task_is_placed_or_waits_for_a_reason(scene: tuple[list[Wanted], list[Room]]) -> None:
    wanted, rooms = scene
    placed, waits = place(wanted, rooms)
    told = [c.wanted for c in placed] + [w.wanted for w in waits]
    assert sorted(told, key=repr) == sorted(wanted, key=repr)
    assert all(w.why for w in waits)


@given(scenes())
def test_a_job_starts_whole_and_in_order(scene: tuple[list[Wanted], list[Room]]) -> None:
    wanted, rooms = scene
    placed, waits = place(wanted, rooms)
    starts = {c.wanted.job for c in placed if c.wanted.starting}
    waiting = {w.wanted.job: w.wanted.order for w in waits if w.wanted.starting}
    assert not starts & set(waiting)
    started = [c.wanted.order for c in placed if c.wanted.starting]
    assert not waiting or not started or max(started) < min(waiting.values())


@given(scenes())
def test_the_order_of_the_question_does_not_matter(scene: tuple[list[Wanted], list[Room]]) -> None:
    wanted, rooms = scene
    assert place(wanted, rooms) == place(list(reversed(wanted)), rooms)


def test_a_task_of_a_running_job_goes_first() -> None:
    late = want("late", 9, starting=False)
    placed, waits = place([want("early", 1), late], [room("w1", 1)])
    assert [c.wanted for c in placed] == [late]
    assert [w.why for w in waits] == ["needs 1 slots, 0 are free"]


def test_a_job_behind_one_that_does_not_fit_waits_too() -> None:
    _, waits = place([want("big", 1, slots=5), want("small", 2)], [room("w1", 2)])
    assert [(w.wanted.job, w.why) for w in waits] == [
        ("big", "needs 5 slots, 2 are free"),
        ("small", "waits behind job big, which was submitted earlier"),
    ]


def test_the_reason_names_what_is_missing() -> None:
    assert place([want("j", 1)], [])[1][0].why == "no worker is connected"
    tagged = place([want("j", 1, tags=TAGS)], [room("w1", 4)])[1][0]
    assert tagged.why == "no connected worker carries the tags zone=a"


def test_tasks_are_spread_over_the_emptiest_workers() -> None:
    wanted = [want("j", 1, f"t{n}") for n in range(3)]
    placed, _ = place(wanted, [room("w1", 2), room("w2", 2)])
    assert Counter(c.place.worker for c in placed) == {"w1": 1, "w2": 2}
