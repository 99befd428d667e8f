"""The cluster's time goes on from leader to leader, and never runs ahead of the world."""

import asyncio

from holdfast.master.cluster_time import CLOCK, ClusterTime
from holdfast.store.contract import Item


class Clock:
    """A clock that a test sets."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s

    def now(self) -> float:
        return self.at_s

    def date(self) -> float:
        raise AssertionError("no date decides how old anything is")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def item(time: ClusterTime, revision: int) -> Item:
    return Item(CLOCK, time.written(), revision, 1)


def test_a_standby_counts_on_from_what_it_has_seen() -> None:
    leads, stands_by = Clock(5.0), Clock(70_000.0)
    one, other = ClusterTime(leads), ClusterTime(stands_by)
    leads.at_s += 100
    word = item(one, 7)
    other.hear(word)
    stands_by.at_s += 3
    other.hear(word)  # nothing new: what was counted since stays
    assert other.now() == 103.0


def test_a_new_leaders_word_replaces_what_was_counted_even_if_that_was_more() -> None:
    clock = Clock(0.0)
    mine, theirs = ClusterTime(clock), ClusterTime(Clock(0.0))
    mine.at_least(500.0)
    mine.hear(item(theirs, 8))
    assert mine.now() == 0.0, "its records carry its time; with mine they would look older"


def test_a_record_that_knows_a_later_moment_sets_it_forward_and_none_sets_it_back() -> None:
    time = ClusterTime(Clock(0.0))
    time.at_least(40.0)
    time.at_least(30.0)
    assert time.now() == 40.0


def test_what_cannot_be_read_is_said_and_changes_nothing(caplog: object) -> None:
    time = ClusterTime(Clock(0.0))
    time.at_least(40.0)
    time.hear(Item(CLOCK, b"noon", 9, 1))
    assert time.now() == 40.0
    assert "cannot be read" in caplog.text  # type: ignore[attr-defined]
