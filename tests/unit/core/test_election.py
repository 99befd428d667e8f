"""A master acts only while it leads and has confirmed its lease lately, by its own clock."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.election import (
    ACT_SHARE,
    LEADING,
    STANDBY,
    Election,
    ElectionWon,
    LeadershipLost,
    LeaseConfirmed,
    step,
)

LEASE_S = 10.0
LEADER = step(Election(LEASE_S), ElectionWon(term=7, asked_s=100.0))


def test_a_standby_never_acts() -> None:
    assert not Election(LEASE_S).may_act(0.0)
    assert not step(LEADER, LeadershipLost()).may_act(100.0)


def test_a_leader_acts_for_a_share_of_its_lease_since_it_asked() -> None:
    assert (LEADER.standing, LEADER.term) == (LEADING, 7)
    assert LEADER.may_act(100.0 + LEASE_S * ACT_SHARE - 0.01)
    assert not LEADER.may_act(100.0 + LEASE_S * ACT_SHARE)


def test_it_stops_before_the_store_lets_the_lease_lapse() -> None:
    assert ACT_SHARE < 1


def test_a_confirmation_counts_from_when_it_was_asked_for() -> None:
    kept = step(LEADER, LeaseConfirmed(asked_s=104.0))
    assert kept.may_act(109.0)
    assert not kept.may_act(110.0)


def test_a_confirmation_that_comes_late_does_not_turn_time_back() -> None:
    kept = step(step(LEADER, LeaseConfirmed(104.0)), LeaseConfirmed(101.0))
    assert kept.confirmed_s == 104.0


def test_losing_twice_is_losing() -> None:
    lost = step(LEADER, LeadershipLost())
    assert lost.standing is STANDBY
    assert step(lost, LeadershipLost()) == lost


@given(st.lists(st.floats(0, 1000)), st.floats(0, 2000))
def test_no_leader_acts_longer_than_its_lease_after_its_last_question(
    asked: list[float], now_s: float
) -> None:
    leader = LEADER
    for asked_s in asked:
        leader = step(leader, LeaseConfirmed(asked_s))
    if leader.may_act(now_s):
        assert now_s < max([100.0, *asked]) + LEASE_S
