"""Who leads, as one master sees it.

A master leads while the leader key is its own and it has confirmed its lease lately by its own
clock, which only measures and never gives the date.  It stops acting early, before the store lets
the lease lapse, so that two masters never act at once even if one of them was paused.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from holdfast.core.machine import TransitionTable

ACT_SHARE = 0.6
"""Share of the lease after its last confirmation during which a leader may act."""


class Standing(StrEnum):
    """What a master is."""

    STANDBY = "standby"
    LEADING = "leading"


STANDBY, LEADING = Standing


@dataclass(frozen=True, slots=True)
class ElectionWon:
    """The leader key was created by us, at this revision; asked for at `asked_s`."""

    term: int
    asked_s: float


@dataclass(frozen=True, slots=True)
class LeaseConfirmed:
    """The store kept our lease; the request left at `asked_s`."""

    asked_s: float


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """The lease lapsed, or the leader key is another's."""


ELECTION = TransitionTable(
    "election",
    [
        # from    on               to
        (STANDBY, ElectionWon, LEADING),
        (STANDBY, LeadershipLost, STANDBY),  # the lease had lapsed before we stepped down
        (LEADING, LeaseConfirmed, LEADING),
        (LEADING, LeadershipLost, STANDBY),
    ],
)


@dataclass(frozen=True, slots=True)
class Election:
    """A master's standing, the term it leads in and when it last confirmed its lease."""

    lease_s: float
    standing: Standing = STANDBY
    term: int = 0
    confirmed_s: float = 0.0

    def may_act(self, now_s: float) -> bool:
        """Say whether this master may send, answer or commit anything at all."""
        fresh = now_s - self.confirmed_s < self.lease_s * ACT_SHARE
        return self.standing is LEADING and fresh


def step(old: Election, event: object) -> Election:
    """Return the standing after `event`."""
    new = old
    match old.standing, event:
        case Standing.STANDBY, ElectionWon(term, asked_s):
            new = replace(old, standing=LEADING, term=term, confirmed_s=asked_s)
        case Standing.LEADING, LeaseConfirmed(asked_s):
            new = replace(old, confirmed_s=max(old.confirmed_s, asked_s))
        case Standing.LEADING, LeadershipLost():
            new = replace(old, standing=STANDBY)
    ELECTION.check(old.standing, event, new.standing)
    return new
